package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// Methods by which a server asks its client.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// ElicitParams are the params of elicitation/create (client/elicitation).
type ElicitParams struct {
	Mode            string          `json:"mode,omitempty"` // "form" or "url"; revisions from 2025-11-25 on
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
	URL             string          `json:"url,omitempty"`
	ElicitationID   string          `json:"elicitationId,omitempty"` // for url, in 2025-11-25 alone
}

// ElicitAction is what the user did with a question.
type ElicitAction string

// The actions.
const (
	ElicitAccept  ElicitAction = "accept"
	ElicitDecline ElicitAction = "decline"
	ElicitCancel  ElicitAction = "cancel"
)

// ElicitResult is the answer to elicitation/create.
type ElicitResult struct {
	Action  ElicitAction    `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// SampleParams are the params of sampling/createMessage (client/sampling).
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
	ToolChoice       *ToolChoice       `json:"toolChoice,omitempty"` // likewise
}

// ModelPreferences tell the client which model suits. Priorities go from 0 to
// 1; nil leaves them to the client.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitempty"`
	CostPriority         *float64    `json:"costPriority,omitempty"`
	SpeedPriority        *float64    `json:"speedPriority,omitempty"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitempty"`
}

// ModelHint names a model, or a part of its name.
type ModelHint struct {
	Name string `json:"name,omitempty"`
}

// ToolChoice says whether the model may, must or must not use tools.
type ToolChoice struct {
	Mode string `json:"mode,omitempty"` // "auto", "required" or "none"
}

// For returns the params as a client of rev takes them. Before 2025-11-25 a
// message has one item, so that each becomes a message of its own, and there are
// no tools; what else the revision lacks becomes text.
func (p SampleParams) For(rev Revision) SampleParams {
	single := !rev.Has(SamplingTools)
	if single {
		p.Tools, p.ToolChoice = nil, nil
	}
	var messages []SampleMessage
	for _, m := range p.Messages {
		m.rev = rev
		if !single || len(m.Content) == 0 {
			messages = append(messages, m)
			continue
		}
		for i := range m.Content {
			messages = append(messages, SampleMessage{Role: m.Role, Content: m.Content[i : i+1], rev: rev})
		}
	}
	p.Messages = messages
	return p
}

// SampleMessage is one message of the conversation that a model continues.
type SampleMessage struct {
	Role    Role
	Content []Content
	rev     Revision // that it is encoded for; 0 is the latest
}

// MarshalJSON implements json.Marshaler: one item goes out alone, several as
// an array.
func (m SampleMessage) MarshalJSON() ([]byte, error) {
	dst, err := AppendContent([]byte(fmt.Sprintf(`{"role":%q,"content":`, m.Role)), m.Content, cmp.Or(m.rev, Latest))
	if err != nil {
		return nil, err
	}
	if len(m.Content) == 1 {
		at := bytes.IndexByte(dst, '[')
		dst = append(dst[:at], dst[at+1:len(dst)-1]...)
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler, for one item and for an array of
// them.
func (m *SampleMessage) UnmarshalJSON(data []byte) error {
	var wire struct {
		Role    Role            `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	items, err := ParseContents(wire.Content)
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

// Text returns the text items of the answer, joined.
func (r *SampleResult) Text() string { return textOf(r.Content) }

func textOf(items []Content) string {
	var text string
	for _, item := range items {
		if t, ok := item.(TextContent); ok {
			text += t.Text
		}
	}
	return text
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *SampleResult) UnmarshalJSON(raw []byte) error {
	var wire struct {
		Role       Role            `json:"role"`
		Content    json.RawMessage `json:"content"`
		Model      *string         `json:"model"` // may be empty
		StopReason string          `json:"stopReason"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	if wire.Role != RoleUser && wire.Role != RoleAssistant {
		return fmt.Errorf("role must be %q or %q, got %q", RoleUser, RoleAssistant, wire.Role)
	}
	if wire.Model == nil {
		return errors.New("member model is missing")
	}
	items, err := ParseContents(wire.Content)
	if err != nil {
		return err
	}
	*r = SampleResult{Role: wire.Role, Content: items, Model: *wire.Model, StopReason: wire.StopReason}
	return nil
}

// Root is a place that the client lets the server work in (client/roots).
type Root struct {
	URI  string  `json:"uri"`
	Name string  `json:"name,omitempty"`
	Meta MetaMap `json:"_meta,omitempty"`
}

// RootsResult is the answer to roots/list.
type RootsResult struct {
	Roots []Root `json:"roots"`
}

// InputRequest is one question of an InputRequiredResult.
type InputRequest struct {
	Key    string
	Method string
	Params json.RawMessage // an object
}

// InputRequiredResult tells the client to answer questions and to send its
// request again, with the answers and State (basic/patterns/mrtr).
type InputRequiredResult struct {
	Requests []InputRequest // in the order asked
	State    string
}

// Append implements Result.
func (r *InputRequiredResult) Append(dst []byte, to Wire) ([]byte, error) {
	requests := []byte{'{'}
	for _, q := range r.Requests {
		entry, err := json.Marshal(struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}{q.Method, q.Params})
		if err != nil {
			return nil, err
		}
		key, err := json.Marshal(q.Key)
		if err != nil {
			return nil, err
		}
		requests = append(append(append(separate(requests), key...), ':'), entry...)
	}
	dst = append(dst, `{"resultType":"input_required"`...)
	if len(r.Requests) > 0 {
		dst = append(append(append(dst, `,"inputRequests":`...), requests...), '}')
	}
	dst = appendOptional(dst, `,"requestState":`, r.State)
	return closeResult(dst, nil, to)
}

// MissingCapability is the error for a question that the client did not
// declare to understand; name is its capability, settings are those in it that
// are needed. (basic/index of 2026-07-28.)
func MissingCapability(name string, settings ...string) *Error {
	inner := map[string]any{}
	whole := name
	for _, s := range settings {
		inner[s] = struct{}{}
		whole += "." + s
	}
	return &Error{
		Code:    CodeMissingCapability,
		Message: fmt.Sprintf("the client did not declare the capability %q, which this request needs", whole),
		Data:    map[string]any{"requiredCapabilities": map[string]any{name: inner}},
	}
}
