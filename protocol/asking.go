package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// ElicitParams are the params of elicitation/create (client/elicitation): a
// question to the user, either a form that the client shows or a page that the
// user opens.
type ElicitParams struct {
	Mode string `json:"mode,omitempty"` // "form" or "url"; revisions from 2025-11-25 on
	// Message is the text for the user; every mode has it.
	Message string `json:"message"`
	// RequestedSchema is the JSON Schema of the form's answer: an object whose
	// properties are strings, numbers, booleans or enumerations. It belongs to
	// mode form.
	RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
	// URL is the page to open. It belongs to mode url.
	URL           string `json:"url,omitempty"`
	ElicitationID string `json:"elicitationId,omitempty"` // for url, only in 2025-11-25
}

// ElicitAction is what the user did with a question.
type ElicitAction string

// The actions.
const (
	ElicitAccept  ElicitAction = "accept"
	ElicitDecline ElicitAction = "decline"
	ElicitCancel  ElicitAction = "cancel"
)

// ElicitResult is the answer to elicitation/create. Content is the filled form,
// an object that fits RequestedSchema; it comes with ElicitAccept in mode form
// only.
type ElicitResult struct {
	Action  ElicitAction    `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// SampleParams are the params of sampling/createMessage (client/sampling): the
// server asks the client's model to continue a conversation. MaxTokens is
// required and bounds the answer; nil and empty members are left to the client.
// The client may change or ignore everything but the messages.
type SampleParams struct {
	Messages         []SampleMessage   `json:"messages"`
	MaxTokens        int               `json:"maxTokens"`
	SystemPrompt     string            `json:"systemPrompt,omitempty"`
	IncludeContext   string            `json:"includeContext,omitempty"` // "none", "thisServer" or "allServers"
	Temperature      *float64          `json:"temperature,omitempty"`
	StopSequences    []string          `json:"stopSequences,omitempty"`
	ModelPreferences *ModelPreferences `json:"modelPreferences,omitempty"`
	Metadata         map[string]any    `json:"metadata,omitempty"`
	Tools            []Tool            `json:"tools,omitempty"`      // revisions from 2025-11-25 on
	ToolChoice       *ToolChoice       `json:"toolChoice,omitempty"` // the same
}

// ModelPreferences tell the client which model suits. Priorities go from 0 to
// 1; nil leaves them to the client.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitempty"`
	CostPriority         *float64    `json:"costPriority,omitempty"`
	SpeedPriority        *float64    `json:"speedPriority,omitempty"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitempty"`
}

// ModelHint names a model or a part of a name, such as "sonnet". Hints are
// tried in order; the client maps one that it does not know to a model of its
// own.
type ModelHint struct {
	Name string `json:"name,omitempty"`
}

// ToolChoice says whether the model may, must or must not use tools.
type ToolChoice struct {
	Mode string `json:"mode,omitempty"` // "auto", "required" or "none"
}

// SampleMessage is one message of the conversation that a model continues.
type SampleMessage struct {
	Role    Role
	Content []Content
}

// MarshalJSON implements [json.Marshaler]. A single item is written as an
// object, which every revision accepts, and several as an array.
func (m SampleMessage) MarshalJSON() ([]byte, error) {
	dst, err := appendContents(fmt.Appendf(nil, `{"role":%q,"content":`, m.Role), m.Content)
	if err != nil {
		return nil, err
	}
	if len(m.Content) == 1 {
		at := bytes.IndexByte(dst, '[')
		dst = append(dst[:at], dst[at+1:len(dst)-1]...)
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts a single item and an
// array of items.
func (m *SampleMessage) UnmarshalJSON(data []byte) error {
	var wire struct {
		Role    Role            `json:"role"`
		Content json.RawMessage `json:"content,omitempty"`
	}
	if err := jsonx.Unmarshal(data, &wire); err != nil {
		return err
	}
	items, err := parseContents(wire.Content)
	*m = SampleMessage{Role: wire.Role, Content: items}
	return err
}

// SampleResult is the answer to sampling/createMessage.
type SampleResult struct {
	Role       Role
	Content    []Content
	Model      string
	StopReason string // "endTurn", "stopSequence", "maxTokens", "toolUse" or the provider's own
}

// Text returns the text items of the answer joined without separator. Items of
// other types are left out.
func (r *SampleResult) Text() string { return textOf(r.Content) }

// textOf joins the text items of a content list and skips all others.
func textOf(items []Content) string {
	var text string
	for _, item := range items {
		if t, ok := item.(TextContent); ok {
			text += t.Text
		}
	}
	return text
}

// UnmarshalJSON implements [json.Unmarshaler]. Unlike encoding/json it retries
// on what the schema requires: a known role, a model, which may be the empty
// string, and content that can be parsed. On an error r is unchanged.
func (r *SampleResult) UnmarshalJSON(raw []byte) error {
	var wire struct {
		Role       Role            `json:"role"`
		Content    json.RawMessage `json:"content,omitempty"`
		Model      *string         `json:"model"` // may be empty
		StopReason string          `json:"stopReason"`
	}
	if err := jsonx.Unmarshal(raw, &wire); err != nil {
		return err
	}
	if wire.Role != RoleUser && wire.Role != RoleAssistant {
		return fmt.Errorf("role must be %q or %q, got %q", RoleUser, RoleAssistant, wire.Role)
	}
	if wire.Model == nil {
		return errors.New("member model is missing")
	}
	items, err := parseContents(wire.Content)
	if err != nil {
		return err
	}
	*r = SampleResult{Role: wire.Role, Content: items, Model: *wire.Model, StopReason: wire.StopReason}
	return nil
}

// Root is a directory or file that the client lets the server work in
// (client/roots). URI is a file: URI in every revision so far; Name is for
// display.
type Root struct {
	URI  string         `json:"uri"`
	Name string         `json:"name,omitempty"`
	Meta map[string]any `json:"_meta,omitempty"`
}

// InputRequest is one question in an InputRequiredResult: a request of the
// server that travels in a result. Key is chosen by the server, is unique
// within the result, and names the answer in inputResponses.
type InputRequest struct {
	Key    string
	Method string
	Params json.RawMessage // an object
}

// InputRequiredResult tells the client to answer the questions and then to send
// its request again with the answers and with State (basic/patterns/mrtr of
// 2026-07-28). It replaces the requests that legacy servers send to their
// clients. State is opaque to the client, which returns it unread; its author
// must therefore protect it.
type InputRequiredResult struct {
	Requests []InputRequest // in the order asked
	State    string
}
