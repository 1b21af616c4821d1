package mcp

import (
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// PromptMessage is what somebody says in a prompt; see Messages.
type PromptMessage = protocol.PromptMessage

// Messages builds the result of a prompt: what the user and the assistant say,
// in order. Methods return the Messages, so that they chain. The zero value
// has none.
//
//	return mcp.NewMessages().
//		User("Review this file.").
//		Add(mcp.RoleUser, mcp.EmbeddedResource{Resource: file}).
//		Assistant("I will look for bugs first."), nil
type Messages struct {
	description string
	list        []protocol.PromptMessage
	meta        protocol.MetaMap
}

// NewMessages returns empty Messages.
func NewMessages() *Messages { return &Messages{} }

// User appends text that the user says.
func (m *Messages) User(text string) *Messages {
	return m.Add(RoleUser, protocol.TextContent{Text: text})
}

// Userf appends formatted text that the user says.
func (m *Messages) Userf(format string, args ...any) *Messages {
	return m.User(fmt.Sprintf(format, args...))
}

// Assistant appends text that the assistant says.
func (m *Messages) Assistant(text string) *Messages {
	return m.Add(RoleAssistant, protocol.TextContent{Text: text})
}

// Assistantf appends formatted text that the assistant says.
func (m *Messages) Assistantf(format string, args ...any) *Messages {
	return m.Assistant(fmt.Sprintf(format, args...))
}

// Add appends a message for each item of content: text, image, audio, resource
// link or embedded resource.
func (m *Messages) Add(role Role, items ...Content) *Messages {
	for _, item := range items {
		m.list = append(m.list, protocol.PromptMessage{Role: role, Content: item})
	}
	return m
}

// Describe sets the description of the result; that of the prompt unless told.
func (m *Messages) Describe(text string) *Messages {
	m.description = text
	return m
}

// Meta adds a member to the result's _meta.
func (m *Messages) Meta(key string, value any) *Messages {
	if m.meta == nil {
		m.meta = protocol.MetaMap{}
	}
	m.meta[key] = value
	return m
}

// build returns the result for the wire; nil has no messages.
func (m *Messages) build(doc string) (protocol.Result, error) {
	if m == nil {
		m = &Messages{}
	}
	if m.description != "" {
		doc = m.description
	}
	return &protocol.GetPromptResult{Description: doc, Messages: m.list, Meta: m.meta}, nil
}
