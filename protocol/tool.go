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
	Execution    *ToolExecution   `json:"execution,omitempty"` // in 2025-11-25
	Meta         map[string]any   `json:"_meta,omitempty"`
}

// ToolExecution says how a tool of a server of 2025-11-25 is called.
type ToolExecution struct {
	TaskSupport string `json:"taskSupport,omitempty"` // TaskRequired, TaskOptional, or "forbidden", which "" stands for
}

// The values of [ToolExecution.TaskSupport] with which a call may become a task.
const (
	TaskRequired = "required"
	TaskOptional = "optional"
)

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
