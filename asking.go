package mcp

import (
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/ask"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/schema"
)

// newRounds makes what asks modern clients. It panics on keys that cannot
// seal, as NewServer does on other faults.
func newRounds(opts Options) *ask.Askers {
	if len(opts.StateKeys) == 0 && opts.Store != nil {
		panic("mcp: NewServer: Options.Store is for servers that share their work, and they need the same Options.StateKeys: " +
			"without them no other server, nor this one after a restart, continues a request that asked its client something. " +
			"Give all of them the same secret of 16 random bytes or more")
	}
	return ask.NewAskers(opts.sealer(seal.Rounds), opts.rounds())
}

// ErrInputRequired is the error of a question that the client has not answered
// yet; handlers return it, as it is or wrapped; see Ask.
var ErrInputRequired = wire.ErrInputRequired

// Question is one question of Ask; ElicitQuestion and URLQuestion make it.
type Question = frame.Question

// Elicited is the user's answer to a form or a URL. Its fields are Action, which is
// accept, decline or cancel, and Value, the filled form. Its methods:
//
//	answer  Accepted
type Elicited[T any] = frame.Elicited[T]

// ElicitQuestion asks the user to fill in a form that is made from the struct
// T: its fields may be strings, numbers, booleans, enums and lists of enums,
// with the tags that arguments of tools have. The tag jsonschema_extras may name
// the values of an enum for people: enumTitles=One,enumTitles=Two. The answer is
// checked against the tags and goes to into. The rules, formats and types of
// Options.Schema apply: those of the server that the handler was added to, also where
// that server is mounted.
func ElicitQuestion[T any](key, message string, into *Elicited[T]) *Question {
	return ask.ElicitQuestion(schemaFor, key, message, into)
}

// schemaFor returns Options.Schema of the server that the handler of a request was
// added to.
func schemaFor(f core.QuestionRequest) *schema.Options {
	request := f.(*frame.Frame) // the only type of package frame that asks
	if m := mountedIn(request); m != nil {
		return m.mount.child.opts.Schema
	}
	if server := frame.Internal(facts.Private{}).Server(request); server != nil {
		return server.Owner.(*Server).opts.Schema
	}
	return nil
}

// URLQuestion asks the user to visit a page, for what must not pass through
// the client, such as a password. Accepting means that the user agreed to go
// there, not that all is done; see Frame.ElicitationID for telling that. address is an
// absolute URL of http or https. Revisions from 2025-11-25 on have it.
func URLQuestion(key, message, address string, into *Elicited[struct{}]) *Question {
	return ask.URLQuestion(key, message, address, into)
}

// Elicit asks the user to fill in a form made from the struct T; see
// ElicitQuestion and Ask. Each question of a request has a key of its own.
//
//	confirm, err := mcp.Elicit[Confirm](f, "confirm", "Delete 3 files?")
//	if err != nil {
//		return out, err
//	}
//	if !confirm.Accepted() { … }
func Elicit[T any](f *Frame, key, message string) (Elicited[T], error) {
	return ask.Elicit[T](schemaFor, f, key, message)
}

// ElicitURL asks the user to visit a page; see URLQuestion and Ask.
func ElicitURL(f *Frame, key, message, address string) (Elicited[struct{}], error) {
	return ask.ElicitURL(f, key, message, address)
}

// Ask asks the client several questions at once; each stores its answer in its own
// variable. In legacy revisions it sends them and waits for the answers; in the
// modern one it returns ErrInputRequired until the client has sent them
// (basic/patterns/mrtr of 2026-07-28).
//
// Keys must differ within a request and stay the same from round to round: a key
// that is used for a second time is an error, since the two answers could be
// confused. In the modern revision, a question whose text, form or address has
// changed when the handler runs again is a new question, and is asked again. Use
// Once for values that differ in each run, such as a time or a random part of a URL.
// A client that did not declare the capability is not asked: that is an error.
func Ask(f *Frame, questions ...*Question) error { return ask.All(f, questions...) }

// Once runs fn once per request, however often its handler runs again for
// answers, and returns what it returned. In legacy revisions, where handlers
// do not run again, it simply runs fn. T must survive encoding/json. An error
// is not kept: fn runs again then.
//
// The value travels with the client's next round. A client that sends the same
// round twice, on purpose or because the answer was lost, runs fn twice. If a
// step must never happen twice, the server must also record it, for instance by
// the id of an order that an earlier round has made (Security Considerations in
// basic/patterns/mrtr of 2026-07-28).
func Once[T any](f *Frame, key string, fn func() (T, error)) (T, error) {
	return ask.Once(f, key, fn)
}
