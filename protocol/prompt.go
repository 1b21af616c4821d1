package protocol

import (
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Prompt describes a prompt to clients (server/prompts of every revision). Name
// identifies it in prompts/get; Title and Description are shown to the user,
// who chooses it.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Icons       []Icon           `json:"icons,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Meta        MetaMap          `json:"_meta,omitempty"`
}

// PromptArgument describes one argument of a prompt. Its value is a string on
// the wire, whatever it stands for; one that is not Required may be left out.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// For returns p without the members that rev lacks. p's arguments are copied
// before they are changed, because the list is shared by all clients.
func (p Prompt) For(rev Revision) Prompt {
	if !rev.Has(Titles) {
		p.Title = ""
		arguments := make([]PromptArgument, len(p.Arguments))
		for i, a := range p.Arguments {
			a.Title = ""
			arguments[i] = a
		}
		p.Arguments = arguments
	}
	if !rev.Has(Icons) {
		p.Icons = nil
	}
	return p
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
	Meta        MetaMap
}

// Append implements [Result]. It fails for a message with an unknown role or
// without content, which clients would reject.
func (r *GetPromptResult) Append(dst []byte, to Wire) ([]byte, error) {
	dst = openResult(dst, to)
	if r.Description != "" {
		dst = jsonx.AppendString(append(separate(dst), `"description":`...), r.Description)
	}
	dst = append(separate(dst), `"messages":[`...)
	for i, m := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		if m.Role != RoleUser && m.Role != RoleAssistant {
			return nil, fmt.Errorf("message %d has role %q; it must be %q or %q", i, m.Role, RoleUser, RoleAssistant)
		}
		if m.Content == nil {
			return nil, fmt.Errorf("message %d has no content", i)
		}
		dst = append(append(dst, `{"role":"`...), m.Role...)
		var err error
		if dst, err = m.Content.appendContent(append(dst, `","content":`...), to.Revision); err != nil {
			return nil, err
		}
		dst = append(dst, '}')
	}
	return closeResult(append(dst, ']'), r.Meta, to)
}
