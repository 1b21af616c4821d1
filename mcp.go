// Package mcp makes servers for the Model Context Protocol from plain Go
// functions.
//
// A tool is a function whose argument is a struct. The struct's tags are compiled
// once, into the JSON Schema that a model sees and the check that runs on every
// call:
//
//	type AddIn struct {
//		A int `json:"a" jsonschema_description:"first summand"`
//		B int `json:"b" jsonschema_description:"second summand"`
//	}
//
//	func add(ctx context.Context, in AddIn) (int, error) { return in.A + in.B, nil }
//
//	s := mcp.NewServer(mcp.Info{Name: "calc", Version: "1.0.0"}, nil)
//	s.MustAdd(mcp.Tool("add", add, mcp.Doc("Adds two integers"), mcp.ReadOnly()))
//
// # Components
//
// What a Server offers is a [Component]: [Tool], [Resource], [Template] and
// [Prompt] are made from functions, [File], [Bytes] and [Directory] from data, and
// [Method] serves a custom method. Options describe it. There is a type of option
// for each kind, so that one in the wrong place does not compile; [Option] fits
// all.
//
// The first parameter of the function is a [*Frame], or a context.Context if that
// is enough. The Frame is the context of the request: it has the client and its
// identity, and sends progress. The result type decides the form of the result: any
// Go value, [Content], or the builders [Result], [ResultOf] and [Messages]. An
// error is for the model to read, an [*Error] for the client's program. [Elicit]
// and [Ask] ask the user, [Once] keeps the result of a step that must not run again
// when the client sends the answer, and a [Key] keeps values for the session.
//
// # Serving
//
// One Server serves every protocol revision from 2024-11-05 to 2026-07-28 at the
// same time: over HTTP ([Server.Handler]), over standard input and output
// ([Server.ServeStdio]), over sockets and any transport.Conn. Components can be
// added and removed while it serves, and subscribed clients are notified.
// Middleware ([Server.Use]) wraps every method, [Server.Mount] takes in what
// another Server offers, [Server.Shutdown] ends in order. [Options] shape all of
// it: [Limits] has the sizes and [Timeouts] the durations. 0 is the default, and
// negative means no limit.
//
// # Other packages
//
// Package schema says what tags mean, frame what a handler can ask of its
// request, middleware and auth what goes around a server, mcptest how to test
// one, client how to use one. The directory docs has a guide for each part.
package mcp

import (
	"context"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/ask"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Frame is the context of a request, which a handler receives. Its methods, which
// package frame describes:
//
//	context    Deadline, Done, Err, Value, WithContext
//	request    Request, Query, Header, HTTPRequest, RemoteAddr, Transport, Revision, Outer, Labels, String
//	client     ClientInfo, ClientCapabilities, Identity, Principal, HasScope, RequireScopes
//	messages   Progress, Log, LogEnabled, Notify, ElicitationID
//	session    SessionID, Initialized, EndSession, Get, Set, GetOrSet
//	long call  CloseStream, Detach, Detached, TaskRun
type Frame = frame.Frame

// FromContext returns the Frame that ctx is or comes from, for handlers that
// take a context.Context and for what they call. ok is false where there is
// none.
func FromContext(ctx context.Context) (f *Frame, ok bool) {
	return frame.Internal(facts.Private{}).From(ctx)
}

// Observer is notified of every message that a server serves; see
// frame.Observer.
type Observer = frame.Observer

// Outcome is how a message ended; see frame.Outcome.
type Outcome = frame.Outcome

// Event is something that belongs to no one message; see frame.Event.
type Event = frame.Event

// Key is a typed place for a value that handlers keep in a session, or in one
// stateless request. Its methods, which package frame describes:
//
//	values  Get, Set, GetOrSet, Update
//	other   With, String
type Key[T any] = frame.Key[T]

// NewKey returns a new Key, whose values stay in this process. The name is for
// people.
func NewKey[T any](name string) Key[T] { return frame.NewKey[T](name) }

// NewStoredKey returns a Key whose value all replicas of the server share, where
// it has Options.Store. T must survive encoding/json.
// Keys of the same name and type are the same place: give each a name of its
// own, as "example.com/cart".
func NewStoredKey[T any](name string) Key[T] { return frame.NewStoredKey[T](name) }

// Identity is who a request comes from and what it may do; see frame.Identity.
type Identity = frame.Identity

// WithIdentity returns a context whose requests come from id: for middleware of
// one's own, for tests, and for transports whose client is known otherwise, as
// that of stdio is.
//
//	ctx = mcp.WithIdentity(ctx, &mcp.Identity{Subject: "me", Scopes: []string{"notes:write"}})
//	err := server.ServeStdio(ctx)
func WithIdentity(ctx context.Context, id *Identity) context.Context {
	return core.WithGrant(ctx, &core.Grant{Name: id.Principal(), Identity: id})
}

// The types of content and what goes with them; see package protocol.
type (
	Content          = protocol.Content
	TextContent      = protocol.TextContent
	ImageContent     = protocol.ImageContent
	AudioContent     = protocol.AudioContent
	ResourceLink     = protocol.ResourceLink
	EmbeddedResource = protocol.EmbeddedResource
	ResourceContents = protocol.ResourceContents
	Annotations      = protocol.Annotations
	Icon             = protocol.Icon
	Role             = protocol.Role
)

// The roles.
const (
	RoleUser      = protocol.RoleUser
	RoleAssistant = protocol.RoleAssistant
)

// Error is an error with a JSON-RPC code. Returned from a handler, possibly
// wrapped, it becomes the response unchanged; see Errorf. Package protocol
// describes its fields. Its methods:
//
//	errors  Error, Unwrap
//	JSON    MarshalJSON, UnmarshalJSON
type Error = protocol.Error

// Code is the code of a JSON-RPC error; package protocol has all of them.
type Code = protocol.Code

// The codes that handlers use.
const (
	CodeInvalidParams = protocol.CodeInvalidParams // the request is wrong
	CodeInternal      = protocol.CodeInternal      // the server is
	CodeBusy          = protocol.CodeBusy          // worth trying again, later
)

// Errorf returns an error with a code, for a handler that wants its request
// answered with a JSON-RPC error; that of a tool, for one, then fails the call
// and is not for the model. The text goes to the client. A %w wraps a cause, as
// with fmt.Errorf, which is in the text, too.
func Errorf(code Code, format string, args ...any) *Error {
	return protocol.Errorf(code, format, args...)
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
