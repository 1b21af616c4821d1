package record

import (
	"encoding/json"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// params are the members of a request or a notification that its row shows.
type params struct {
	Name     json.RawMessage `json:"name,omitempty"`
	URI      json.RawMessage `json:"uri,omitempty"`
	Level    json.RawMessage `json:"level,omitempty"` // of a log notification
	Logger   json.RawMessage `json:"logger,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Message  json.RawMessage `json:"message,omitempty"` // of progress, or a question
	Progress json.RawMessage `json:"progress,omitempty"`
	Total    json.RawMessage `json:"total,omitempty"`
	Reason   json.RawMessage `json:"reason,omitempty"` // of a cancellation
	TaskID   json.RawMessage `json:"taskId,omitempty"`
	Asked    json.RawMessage `json:"elicitationId,omitempty"`
	Status   json.RawMessage `json:"status,omitempty"` // of a task
}

// says is what a row shows next to the method: the name of a tool or the like, or what
// a notification says.
func (p *params) says(method string) string {
	switch method {
	case protocol.MethodLog:
		logger := text(p.Logger)
		if logger != "" {
			logger += ": "
		}
		return visible.Line(logger+text(p.Data), maxName)
	case protocol.MethodProgress:
		said := text(p.Progress)
		if total := text(p.Total); total != "" {
			said += " of " + total
		}
		return visible.Line(said+" "+text(p.Message), maxName)
	}
	for _, member := range []json.RawMessage{p.Name, p.URI} {
		var name string
		if jsonx.Unmarshal(member, &name) == nil && name != "" {
			return visible.Line(name, visible.Name)
		}
	}
	var said []string
	for _, member := range []json.RawMessage{p.TaskID, p.Status, p.Message, p.Reason, p.Asked} {
		if one := text(member); one != "" {
			said = append(said, one)
		}
	}
	return visible.Line(strings.Join(said, " "), maxName)
}

// text is a value as a row shows it: the beginning of a string without quotes, or of
// JSON.
func text(value json.RawMessage) string {
	var s string
	if jsonx.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
