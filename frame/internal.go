package frame

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Internal returns what other packages of this module need of this one and
// users do not. Only those can call it.
func Internal(facts.Private) internals { return internals{} }

// internals has the functions that Internal gives to packages of this module.
// They are methods, so that one argument of a type that only the module has
// guards all of them.
type internals struct{}

// New returns the Frame of one request.
func (internals) New(ctx context.Context, c core.Config) *Frame { return newFrame(ctx, c) }

// Check returns an error if f is nil or the zero Frame, neither of which is of a request.
// caller is the function that was called with it.
func (internals) Check(f *Frame, caller string) error {
	if f == nil || f.state == nil {
		return fmt.Errorf("mcp: %s: the Frame is nil or zero; use that of the handler that calls", caller)
	}
	return nil
}

// From returns the Frame that ctx is or comes from.
func (internals) From(ctx context.Context) (f *Frame, ok bool) {
	f, ok = ctx.Value(frameKey{}).(*Frame)
	return f, ok
}

// Renamed returns a Frame for the request of f in which its params have another
// name: that by which a server knows what another one offers under a prefix.
func (internals) Renamed(f *Frame, name string) *Frame {
	as := &struct {
		asked
		request Request
	}{request: *f.Request()}
	as.request.Params.Name = name
	as.asked = asked{&as.request, f.nested()}
	return &Frame{ctx: f.ctx, state: f.state, as: &as.asked}
}

// Nested returns the Frame of a call of a tool that the handler of f makes in place
// of its client, and params those of the call. ctx comes from f.
func (internals) Nested(ctx context.Context, f *Frame, params protocol.Params) (*Frame, error) {
	return newNested(ctx, f, params)
}

// Meta returns the _meta that the client has sent.
func (internals) Meta(f *Frame) protocol.Meta { return f.request.Params.Meta }

// Server returns the server of the request; nil if it is unknown.
func (internals) Server(f *Frame) *core.Server { return f.server }

// Sending notes that an answer of size bytes is sent, if clients may not take it.
func (internals) Sending(f *Frame, size int) { f.sending(size) }

// Keyed returns the key by which the request has what the handler of f calls key.
func (internals) Keyed(f *Frame, key string) string { return f.keyed(key) }

// AtEnd makes fn be called once when the answer to the request of f has been made, with
// the error if it is one. The goroutine of the request calls AtEnd and fn.
func (internals) AtEnd(f *Frame, fn func(err error)) {
	at := f.endOf()
	before := *at
	*at = func(err error) {
		if before != nil {
			before(err)
		}
		fn(err)
	}
}

// TakeEnd returns what AtEnd was given, for the caller to call; nil if there is nothing.
func (internals) TakeEnd(f *Frame) func(err error) {
	at := f.endOf()
	end := *at
	*at = nil
	return end
}

// Session returns the legacy session, or nil if there is none.
func (internals) Session(f *Frame) core.Session { return f.session }

// Identity returns who requests with ctx come from; nil for an anonymous client.
func (internals) Identity(ctx context.Context) *Identity { return identityOf(ctx) }

// Question makes a question to the client.
func (internals) Question(q core.Question) *Question { return &Question{q} }

// Ask asks the client questions.
func (internals) Ask(f *Frame, questions []*Question) error { return ask(f, questions...) }

// Asker returns the Asker of f, nil if the client cannot be asked.
func (internals) Asker(f *Frame) core.Asker { return f.asker() }

// Keep makes later rounds and runs of the request of f recall a value.
func (internals) Keep(f *Frame, key string, value json.RawMessage) error { return f.keep(key, value) }

// Asked reports whether the handler has asked the client something so far, or
// kept something with Once: what it returns may then depend on the answer.
func (internals) Asked(f *Frame) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asking != nil
}

// Unanswered returns the keys of the questions of a modern request that its client has
// not been asked yet. The handler has to return wire.ErrInputRequired for that.
func (internals) Unanswered(f *Frame) []string {
	f.mu.Lock()
	asking := f.asking
	f.mu.Unlock()
	if rounds, ok := asking.(interface{ Unanswered() []string }); ok {
		return rounds.Unanswered()
	}
	return nil
}

// Unkept returns why something that the handler has kept for all replicas is not
// kept; nil if nothing went wrong. The client must not take its result for good.
func (internals) Unkept(f *Frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unkept
}

// InputRequired returns the result that tells the client what the handler
// asked; the dispatcher answers with it when a handler returns
// wire.ErrInputRequired.
func (internals) InputRequired(f *Frame) (protocol.Result, error) {
	asker := f.asker()
	if asker == nil {
		return nil, wire.ErrInputRequired
	}
	return asker.Required()
}

// Challenge returns how a request that RequireScopes has refused is answered over
// HTTP; status is 0 if RequireScopes was not asked.
func (internals) Challenge(f *Frame) (status int, header string) {
	f.mu.Lock()
	needs := f.needs
	f.mu.Unlock()
	if needs == nil {
		return 0, ""
	}
	if challenge := core.GrantOf(f.ctx).Challenge; challenge != nil {
		return challenge(needs)
	}
	header = `Bearer scope="` + strings.Join(needs, " ") + `"`
	if f.Identity() == nil {
		return http.StatusUnauthorized, header
	}
	return http.StatusForbidden, `Bearer error="insufficient_scope",` + strings.TrimPrefix(header, "Bearer")
}
