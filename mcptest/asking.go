package mcptest

import (
	"encoding/json"
	"errors"
	"fmt"

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
func (c *config) answer(method string, params json.RawMessage) (json.RawMessage, *protocol.Error) {
	script := c.answers[method]
	if script == nil {
		return nil, protocol.MethodNotFound(method)
	}
	result, err := script(params)
	if err != nil {
		if fault, ok := errors.AsType[*protocol.Error](err); ok {
			return nil, fault
		}
		return nil, protocol.Errorf(protocol.CodeInternal, "%w", err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInternal, "the script's answer does not encode: %w", err)
	}
	return text, nil
}

// inputRequired is the result that asks for more, in the modern revision.
type inputRequired struct {
	ResultType    string `json:"resultType"`
	InputRequests map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"inputRequests"`
	RequestState string `json:"requestState"`
}

// answerAll adds the answers that result asks for to params. done is true if
// it asks nothing.
func (c *config) answerAll(result json.RawMessage, params map[string]any) (done bool, err error) {
	var more inputRequired
	if json.Unmarshal(result, &more) != nil || more.ResultType != "input_required" {
		return true, nil
	}
	answers := map[string]json.RawMessage{}
	for key, q := range more.InputRequests {
		answer, fault := c.answer(q.Method, q.Params)
		if fault != nil {
			return false, fmt.Errorf("the script has no answer to %s %q: %w", q.Method, key, fault)
		}
		answers[key] = answer
	}
	params["inputResponses"] = answers
	delete(params, "requestState")
	if more.RequestState != "" {
		params["requestState"] = more.RequestState
	}
	return false, nil
}
