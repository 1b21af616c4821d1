package mcptest

import (
	"cmp"

	"github.com/talaria-go/mcp/protocol"
)

// Answer is what the user does with an elicitation. Accept, Decline and Cancel
// make one.
type Answer struct {
	Action  protocol.ElicitAction `json:"action"`
	Content any                   `json:"content,omitempty"`
}

// Accept answers a form with content, a struct or map; nil is for a URL.
func Accept(content any) Answer { return Answer{protocol.ElicitAccept, content} }

// Decline answers that the user refuses.
func Decline() Answer { return Answer{Action: protocol.ElicitDecline} }

// Cancel answers that the user went away.
func Cancel() Answer { return Answer{Action: protocol.ElicitCancel} }

// Sampled is the answer of the model to a sampling request.
type Sampled struct {
	Text       string
	Model      string // "" stands for "test"
	StopReason string // "" stands for "endTurn"
}

// result returns the answer as the protocol has it, in the form that every
// revision with sampling understands: one item of text.
func (s Sampled) result() any {
	return map[string]any{
		"role": protocol.RoleAssistant, "model": cmp.Or(s.Model, "test"), "stopReason": cmp.Or(s.StopReason, "endTurn"),
		"content": map[string]string{"type": "text", "text": s.Text},
	}
}
