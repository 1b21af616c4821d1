package arguments

import (
	"encoding/json"
	"errors"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Request sends a request to a server.
type Request func(method string, params, result any) error

// ToolFaults returns all faults of arguments of a tool: those that the server finds, if it
// says that it checks more than the tool's schema, else faults, which are those of the schema.
// The tool does not run, whatever the server is.
func ToolFaults(tool protocol.Tool, given json.RawMessage, faults error, request Request) error {
	if marked, _ := tool.Meta[wire.MetaChecks].(bool); !marked || faults == nil || given == nil {
		return faults
	}
	var result struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if request(wire.MethodCheck, map[string]any{"name": tool.Name, "arguments": given}, &result) != nil {
		return faults
	}
	return found(result.Meta[wire.MetaIssues], faults)
}

// EventFaults is ToolFaults for an event type. A poll has no effect, so that every server may
// be asked.
func EventFaults(name string, given json.RawMessage, faults error, request Request) error {
	if faults == nil || given == nil {
		return faults
	}
	refused, ok := errors.AsType[*protocol.Error](request(wire.MethodEventsPoll, map[string]any{"name": name, "arguments": given, "cursor": nil}, nil))
	if !ok {
		return faults
	}
	data, _ := refused.Data.(json.RawMessage)
	return found(jsonx.Lookup(data, []string{"issues"}), faults)
}

// found returns the faults that a server found, in the form of Arguments; the others if it
// found none.
func found(text json.RawMessage, others error) error {
	var issues []schema.Issue
	if jsonx.Unmarshal(text, &issues) != nil || len(issues) == 0 {
		return others
	}
	lines := make([]error, len(issues))
	for i, is := range issues {
		lines[i] = line(is)
	}
	return errors.Join(lines...)
}
