package protocol

import (
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Prompt describes a prompt to clients (server/prompts of every revision).
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Icons       []Icon           `json:"icons,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Meta        MetaMap          `json:"_meta,omitempty"`
}

// PromptArgument describes one argument of a prompt. On the wire its value is
// a string.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// For returns p without what rev lacks.
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

// PromptMessage is what somebody says in a prompt.
type PromptMessage struct {
	Role    Role
	Content Content
}

// GetPromptResult is the result of prompts/get.
type GetPromptResult struct {
	Description string
	Messages    []PromptMessage
	Meta        MetaMap
}

// Append implements Result.
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
