package frame

import (
	"context"
	"encoding/json"

	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/protocol"
)

// Internal returns what other packages of this module need of this one and
// users do not. Only those can call it.
func Internal(call.Private) internals { return internals{} }

// internals has the funcs that Internal gives to packages of this module. They
// are methods, so that one argument of a type that only the module has guards
// all of them.
type internals struct{}

// QuestionParts are what a Question is made of, by the packages that make them.
type QuestionParts struct {
	Key, Method string
	// Params returns the params of the request to the client.
	Params func(f *Frame) (json.RawMessage, error)
	// Needs returns the error for a client without the capability, nil if it
	// is there.
	Needs func(c *protocol.ClientCapabilities) *protocol.Error
	// Take reads the answer.
	Take func(raw json.RawMessage) error
}

// Question makes a question to the client.
func (internals) Question(p QuestionParts) *Question {
	return &Question{key: p.Key, method: p.Method, params: p.Params, needs: p.Needs, take: p.Take}
}

// Ask asks the client questions.
func (internals) Ask(f *Frame, questions []*Question) error { return ask(f, questions...) }

// Asker returns the Asker of f, nil if the client cannot be asked.
func (internals) Asker(f *Frame) Asker { return f.asker() }

// From returns the Frame that ctx is or comes from.
func (internals) From(ctx context.Context) (f *Frame, ok bool) {
	f, ok = ctx.Value(frameKey{}).(*Frame)
	return f, ok
}

// NewKey makes a Key, for mcp.NewKey and mcp.NewStoredKey. Only packages of this
// module can call it.
func NewKey[T any](_ call.Private, name string, stored bool) Key[T] {
	if stored {
		return Key[T]{stored: name}
	}
	return Key[T]{name: &name}
}
