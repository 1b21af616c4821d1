package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/talaria-go/mcp/protocol"
)

// Elicitation is a question to the user.
type Elicitation struct {
	Mode    string          `json:"mode"` // "form" or "url"; "" in revisions before 2025-11-25
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema"`
	URL     string          `json:"url"`
	ID      string          `json:"elicitationId"` // of a URL, in revision 2025-11-25
	Raw     json.RawMessage `json:"-"`             // all params
}

// Answer is what the user does with a question.
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

// Sampling is a question to the model.
type Sampling struct {
	Messages     []SamplingMessage `json:"messages"`
	SystemPrompt string            `json:"systemPrompt"`
	MaxTokens    int               `json:"maxTokens"`
	Raw          json.RawMessage   `json:"-"` // all params
}

// SamplingMessage is one message of the conversation.
type SamplingMessage struct {
	Role    protocol.Role
	Content []protocol.Content
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *SamplingMessage) UnmarshalJSON(raw []byte) (err error) {
	var wire struct {
		Role    protocol.Role
		Content json.RawMessage
	}
	if err = json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	m.Role = wire.Role
	m.Content, err = protocol.ParseContents(wire.Content)
	return err
}

// Text returns the text items of the message, joined.
func (m SamplingMessage) Text() string { return textOf(m.Content) }

// Sampled is what the model answers.
type Sampled struct {
	Text       string
	Model      string // "" stands for "test"
	StopReason string // "" stands for "endTurn"
}

// MarshalJSON implements json.Marshaler.
func (s Sampled) MarshalJSON() ([]byte, error) {
	if s.Model == "" {
		s.Model = "test"
	}
	if s.StopReason == "" {
		s.StopReason = "endTurn"
	}
	return json.Marshal(map[string]any{
		"role": protocol.RoleAssistant, "model": s.Model, "stopReason": s.StopReason,
		"content": map[string]string{"type": "text", "text": s.Text},
	})
}

// answer runs the script for a request of the server.
func (c *Client) answer(_ context.Context, method string, params json.RawMessage) (any, error) {
	script := c.conf.answers[method]
	if script == nil {
		return nil, protocol.MethodNotFound(method)
	}
	defer func() {
		if p := recover(); p != nil { // the client would go on with an error
			c.t.Errorf("mcptest: the script for %s panics: %v\n%s", method, p, debug.Stack())
			panic(p)
		}
	}()
	result, err := script(params)
	if _, ok := errors.AsType[*protocol.Error](err); err != nil && !ok {
		err = protocol.Errorf(protocol.CodeInternal, "%w", err)
	}
	return result, err
}
