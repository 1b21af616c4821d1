package protocol

import "encoding/json"

// Tool describes a tool to clients (server/tools of every revision).
// InputSchema and OutputSchema are JSON Schemas, encoded once; a nil
// OutputSchema means that results have no declared structure.
type Tool struct {
	Name         string           `json:"name"`
	Title        string           `json:"title,omitempty"`
	Description  string           `json:"description,omitempty"`
	Icons        []Icon           `json:"icons,omitempty"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema,omitempty"`
	Annotations  *ToolAnnotations `json:"annotations,omitempty"`
	Meta         map[string]any   `json:"_meta,omitempty"`
}

// CallToolParams are the params of tools/call (server/tools of every revision).
// Arguments encode to an object; nil leaves them out. InputResponses and
// RequestState answer an [InputRequiredResult]. To read params of a peer, use
// [Message.DecodeParams], which copies nothing.
type CallToolParams struct {
	Name           string         `json:"name"`
	Arguments      any            `json:"arguments,omitempty"`
	InputResponses map[string]any `json:"inputResponses,omitempty"` // by the keys of the questions
	RequestState   string         `json:"requestState,omitempty"`
	Meta           map[string]any `json:"_meta,omitempty"`
}

// ToolAnnotations are hints about what a tool does. A nil pointer leaves the
// hint to its default, which the specification gives as: not read-only,
// destructive, not idempotent, open world.
type ToolAnnotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool  `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}
