package inspector

import (
	"encoding/json"
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
		_, err := protocol.ParseContent(item)
		return err
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
