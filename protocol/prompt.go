package protocol

// Prompt describes a prompt to clients (server/prompts of every revision). Name
// identifies it in prompts/get; Title and Description are shown to the user,
// who chooses it.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Icons       []Icon           `json:"icons,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Meta        map[string]any   `json:"_meta,omitempty"`
}

// PromptArgument describes one argument of a prompt. Its value is a string on
// the wire, whatever it stands for; one that is not Required may be left out.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// PromptMessage is one message of a prompt: a single content item and the role
// of its speaker. Both are required.
type PromptMessage struct {
	Role    Role
	Content Content
}

// GetPromptResult is the result of prompts/get. An empty Description is left
// out; nil Messages are an empty array.
type GetPromptResult struct {
	Description string
	Messages    []PromptMessage
	Meta        map[string]any
}
