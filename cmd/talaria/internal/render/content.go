// Package render shows what servers answer: content, resources, prompts and
// lists.
package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

// Renderer writes to a console. Images, sounds and other bytes go into files.
type Renderer struct {
	Console *console.Console
	Dir     string // where files go; "" is a new directory for temporary files
}

// Call shows the result of a tool; name is the tool's, for files. Text that only
// repeats the structured content is not shown next to it. The error has
// everything that cannot be saved; the rest is shown.
func (r *Renderer) Call(name string, result *client.CallToolResult) error {
	var faults []error
	shown := result.Structured == nil
	structured := func() {
		if !shown {
			faults = append(faults, r.JSON(result.Structured))
		}
		shown = true
	}
	for _, item := range result.Content {
		if repeats(item, result.Structured) {
			structured()
		} else {
			faults = append(faults, r.Content(name, item))
		}
	}
	structured()
	if result.Structured == nil && len(result.Content) == 0 {
		r.Console.Notef("(the result is empty)")
	}
	return errors.Join(faults...)
}

// repeats reports whether an item says what the structured content does.
func repeats(item protocol.Content, structured json.RawMessage) bool {
	text, ok := item.(protocol.TextContent)
	if !ok || structured == nil {
		return false
	}
	var a, b bytes.Buffer
	return json.Compact(&a, []byte(text.Text)) == nil && json.Compact(&b, structured) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

// JSON shows JSON text, indented.
func (r *Renderer) JSON(text json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return fmt.Errorf("the server sent no valid JSON: %w", err)
	}
	r.Console.Print(console.JSONText(b.Bytes()))
	return nil
}

// Content shows one item.
func (r *Renderer) Content(name string, item protocol.Content) error {
	switch c := item.(type) {
	case protocol.TextContent:
		r.Console.Data(c.Text)
	case protocol.ImageContent:
		return r.bytes(name, "image", c.MIMEType, c.Data)
	case protocol.AudioContent:
		return r.bytes(name, "audio", c.MIMEType, c.Data)
	case protocol.ResourceLink:
		r.Console.Printf("%s %s", r.Console.Paint(console.Name, console.Line(c.URI)), describe(c.Name, c.MIMEType, c.Description))
	case protocol.EmbeddedResource:
		return r.Resource(name, c.Resource)
	case protocol.UnknownContent:
		r.Console.Notef("(an item of the unknown type %q)", console.Line(c.Type))
		return r.JSON(c.Raw)
	default:
		r.Console.Notef("(an item of a type that cannot be shown: %s)", fmt.Sprintf("%T", item))
	}
	return nil
}

func describe(parts ...string) string {
	var list []string
	for _, p := range parts {
		if p = console.Line(p); p != "" {
			list = append(list, p)
		}
	}
	return strings.Join(list, ", ")
}

// save writes data into a file.
func (r *Renderer) save(name, mediaType string, data []byte) (string, error) {
	if r.Dir == "" {
		dir, err := os.MkdirTemp("", "talaria-")
		if err != nil {
			return "", err
		}
		r.Dir = dir
	}
	return save(r.Dir, name, mediaType, data)
}

// bytes saves data and says where.
func (r *Renderer) bytes(name, kind, mediaType string, data []byte) error {
	path, err := r.save(name, mediaType, data)
	if err != nil {
		return fmt.Errorf("the %s cannot be saved: %w", kind, err)
	}
	r.Console.Printf("%s (%s) saved as %s", kind, describe(mediaType, size(len(data))), path)
	return nil
}

func size(n int) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}

// Read shows the contents of a resource, with an error as Call's.
func (r *Renderer) Read(result *protocol.ReadResourceResult) error {
	var faults []error
	for _, c := range result.Contents {
		if len(result.Contents) > 1 {
			r.Console.Print(r.Console.Paint(console.Name, console.Line(c.URI)))
		}
		faults = append(faults, r.Resource(c.URI, c))
	}
	if len(result.Contents) == 0 {
		r.Console.Notef("(the resource is empty)")
	}
	return errors.Join(faults...)
}

// Resource shows one item of contents.
func (r *Renderer) Resource(name string, c protocol.ResourceContents) error {
	if c.Blob != nil {
		if c.URI != "" {
			name = c.URI
		}
		return r.bytes(name, "data", c.MIMEType, c.Blob)
	}
	r.Console.Data(c.Text)
	return nil
}

// Prompt shows the messages of a prompt, with an error as Call's.
func (r *Renderer) Prompt(name string, result *protocol.GetPromptResult) error {
	var faults []error
	if d := result.Description; d != "" {
		r.Console.Print(r.Console.Paint(console.Faint, d))
	}
	for _, m := range result.Messages {
		r.Console.Print(r.Console.Paint(console.Bold, console.Line(string(m.Role))+":"))
		faults = append(faults, r.Content(name, m.Content))
	}
	return errors.Join(faults...)
}
