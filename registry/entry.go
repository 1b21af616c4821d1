package registry

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Kind tells the components of a Catalog apart.
type Kind string

// The kinds of components.
const (
	KindTool     Kind = "tool"
	KindResource Kind = "resource"         // its key is the URI
	KindTemplate Kind = "resourceTemplate" // its key is the template's text
	KindPrompt   Kind = "prompt"
)

// kinds are all of them.
var kinds = [...]Kind{KindTool, KindResource, KindTemplate, KindPrompt}

// plural returns the name of the member that holds a list of kind.
func plural(kind Kind) string {
	if kind == "" {
		return "components"
	}
	return string(kind) + "s"
}

// Entry is one component. It must not change once it was added to a Catalog.
type Entry struct {
	// Definition is what lists say of it: a *protocol.Tool, *protocol.Resource,
	// *protocol.ResourceTemplate or *protocol.Prompt, which decides the kind.
	Definition any
	// Serve calls a tool, reads a resource or gets a prompt for the request of f.
	Serve frame.Handler
	// Visible reports whether the component is there for the client of f; nil means
	// for everybody.
	Visible func(f *frame.Frame) bool
	// Scopes are those that a client must have been granted to use it.
	Scopes []string

	// Headers are the arguments of a tool that clients mirror into HTTP headers.
	Headers []facts.Header
	// Task reports whether calls of a tool may become tasks.
	Task bool

	// Match returns what reads the resource of a template at uri, or nil if uri
	// does not fit the template. Templates have it in place of Serve.
	Match func(uri string) frame.Handler
	// Literals tells how closely a template fits what it matches: of two, the one
	// with more is asked first.
	Literals int

	// Arguments are the names of a prompt's arguments, or of a template's
	// variables.
	Arguments []string
	// Completers find values for arguments; not every argument has one. value is
	// what was typed, arguments are the others that are known.
	Completers map[string]func(f *frame.Frame, value string, arguments map[string]string) (protocol.Completion, error)
}

// Kind returns the kind of the component; "" if there is none for what the
// Definition is.
func (e *Entry) Kind() Kind {
	kind, _ := e.place()
	return kind
}

// Key returns what clients call the component by; it is unique among those of
// its kind.
func (e *Entry) Key() string {
	_, key := e.place()
	return key
}

// place returns kind and key, both of which follow from the type and the content
// of the Definition. Both are "" for a type that describes no component.
func (e *Entry) place() (kind Kind, key string) {
	switch d := e.Definition.(type) {
	case *protocol.Tool:
		return KindTool, d.Name
	case *protocol.Resource:
		return KindResource, d.URI
	case *protocol.ResourceTemplate:
		return KindTemplate, d.URITemplate
	case *protocol.Prompt:
		return KindPrompt, d.Name
	}
	return "", ""
}

// define returns the JSON object that describes the component in rev.
func (e *Entry) define(rev protocol.Revision) (json.RawMessage, error) {
	switch d := e.Definition.(type) {
	case *protocol.Tool:
		return encode(wire.ToolFor(*d, rev))
	case *protocol.Resource:
		return encode(wire.ResourceFor(*d, rev))
	case *protocol.ResourceTemplate:
		return encode(wire.ResourceTemplateFor(*d, rev))
	case *protocol.Prompt:
		return encode(wire.PromptFor(*d, rev))
	}
	return nil, fmt.Errorf("a %T describes no component", e.Definition)
}

// encode returns the JSON of a definition, without the newline that an Encoder
// ends it with.
func encode(definition any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // schemas have patterns with < and >, and models read them
	if err := enc.Encode(definition); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
