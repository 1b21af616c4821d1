package core

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Question is something to ask the client for.
type Question struct {
	Key    string // tells it from the others of its request
	Method string // by which the client is asked
	// Params returns the params of the request to the client.
	Params func(f QuestionRequest) (json.RawMessage, error)
	// Needs returns the error for a client without the capability, nil if it is
	// there.
	Needs func(c *protocol.ClientCapabilities) *protocol.Error
	// Take reads the answer.
	Take func(raw json.RawMessage) error
}

// QuestionRequest is the request whose client a Question is for: its Frame.
type QuestionRequest interface {
	Revision() protocol.Revision
	ClientCapabilities() *protocol.ClientCapabilities
	ElicitationID(key string) string
}

// AskerRequest is the request for which an Asker is made: as the client has sent it,
// whichever Frame of it asks.
type AskerRequest struct {
	Context  context.Context // which has the principal
	Method   string
	Params   *protocol.Params // which must not be changed
	Revision protocol.Revision
	Session  Session       // nil in modern revisions
	HTTP     *http.Request // as Transport.HTTP
	// Send sends a message to the client next to those of Progress and Log.
	Send func(message []byte) error
}

// Askers makes the Asker of a request.
type Askers func(of AskerRequest) Asker

// Recorded is what a request has learned: the answers to its questions, which have
// these digests, and what it kept, all by keys.
type Recorded struct {
	Asked   map[string]wire.Digest
	Answers map[string]json.RawMessage
	Kept    map[string]json.RawMessage
}

// Asker carries the questions of one request to the client, and the answers
// back.
type Asker interface {
	// Ask returns the answers in the order of the questions, or
	// wire.ErrInputRequired. ctx is that of the question.
	Ask(ctx context.Context, questions []protocol.InputRequest) ([]json.RawMessage, error)
	// Recall returns what Keep kept under a key, in this round or before.
	Recall(key string) (value json.RawMessage, ok bool, err error)
	// Keep makes later rounds of the request recall a value, and later runs of a
	// task. It returns when they would.
	Keep(ctx context.Context, key string, value json.RawMessage) error
	// Known returns what a request has learned so far, for the task that it becomes.
	Known() Recorded
	// Required returns the result that tells the client what was asked.
	Required() (protocol.Result, error)
}
