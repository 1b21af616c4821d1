package inspector

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// maxIssues is how many faults of one result are shown.
const maxIssues = 100

// readable is what can be read of the result of a tools/call that is not valid as a whole.
func readable(raw json.RawMessage) *client.CallToolResult {
	var loose map[string]json.RawMessage
	_ = jsonx.Unmarshal(raw, &loose) // of what is not an object nothing can be read
	r := &client.CallToolResult{Raw: raw, Structured: loose["structuredContent"]}
	_ = jsonx.Unmarshal(loose["isError"], &r.IsError) // else it is false
	return r
}

// contentIssues are the items of a result that are not valid, by their places.
func contentIssues(method string, raw json.RawMessage) (issues []schema.Issue) {
	note := func(err error, format string, at ...any) {
		if err != nil && len(issues) < maxIssues {
			issues = append(issues, schema.Issue{Path: fmt.Sprintf(format, at...), Rule: "content", Message: visible.Line(err.Error(), visible.Sentence)})
		}
	}
	parse := func(item json.RawMessage) error {
		if _, err := protocol.ParseContent(item); err != nil {
			return err
		}
		return lacking(item)
	}
	switch method {
	case protocol.MethodToolsCall:
		var r struct{ Content []json.RawMessage }
		_ = jsonx.Unmarshal(raw, &r) // of what has no items none is wrong
		for n, item := range r.Content {
			note(parse(item), "/content/%d", n)
		}
	case protocol.MethodPromptsGet:
		var r struct {
			Messages []struct{ Content json.RawMessage }
		}
		note(jsonx.Unmarshal(raw, &r), "/messages")
		for n, m := range r.Messages {
			note(parse(m.Content), "/messages/%d", n)
		}
	case protocol.MethodResourcesRead:
		var r struct{ Contents []json.RawMessage }
		note(jsonx.Unmarshal(raw, &r), "/contents")
		for n, item := range r.Contents {
			var one struct {
				URI, Text *string
				Blob      []byte
			}
			err := jsonx.Unmarshal(item, &one)
			switch {
			case err != nil:
			case one.URI == nil:
				err = fmt.Errorf("must have a uri")
			case one.Text == nil && one.Blob == nil:
				err = fmt.Errorf("must have a text or a blob")
			}
			note(err, "/contents/%d", n)
		}
	}
	return issues
}

// required are the members that an item must have, by its type as JSON (server/tools, section "Tool Result").
var required = map[string][]string{`"image"`: {"data", "mimeType"}, `"audio"`: {"data", "mimeType"}, `"resource_link"`: {"uri", "name"}, `"resource"`: {"resource"}}

// lacking returns what an item that parses does not have. Clients that check results drop all of such a result.
func lacking(item json.RawMessage) error {
	kind := string(jsonx.Lookup(item, []string{"type"}))
	has := func(at ...string) bool { return jsonx.Lookup(item, at) != nil }
	for _, name := range required[kind] {
		if !has(name) {
			return fmt.Errorf("has no %s, which content of this type must have", name)
		}
	}
	switch {
	case kind != `"resource"`:
	case !has("resource", "uri"):
		return errors.New("must have a uri")
	case !has("resource", "text") && !has("resource", "blob"):
		return errors.New("must have a text or a blob")
	}
	return nil
}

// bare reports whether an item may lack what it must have, or is of an unknown type.
func bare(item protocol.Content) bool {
	switch c := item.(type) {
	case protocol.ImageContent:
		return c.MIMEType == "" || len(c.Data) == 0
	case protocol.AudioContent:
		return c.MIMEType == "" || len(c.Data) == 0
	case protocol.ResourceLink:
		return c.URI == "" || c.Name == ""
	case protocol.EmbeddedResource:
		return c.Resource.URI == "" || c.Resource.Text == "" && c.Resource.Blob == nil
	case protocol.UnknownContent:
		return true
	}
	return false
}
