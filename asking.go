package mcp

import (
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/rounds"
	"github.com/talaria-go/mcp/protocol"
)

// Rounds bound the questions of one request in modern revisions: Expiry is how
// long the client may take to answer (default 15 minutes), MaxRounds how often
// one request may be asked (10), MaxState the size of the state that the
// client carries, in bytes (32 KiB).
type Rounds = rounds.Config

// newRounds makes what asks modern clients. It panics on keys that cannot
// seal, as NewServer does on other faults.
func newRounds(opts Options) *rounds.Askers {
	keys := make([]rounds.Key, len(opts.StateKeys))
	for i, key := range opts.StateKeys {
		keys[i] = key
	}
	sealer, err := rounds.NewSealer(keys...)
	if err != nil {
		panic("mcp: Options.StateKeys: " + err.Error())
	}
	return rounds.New(sealer, opts.Rounds)
}

// ErrInputRequired is the error of a question that the client has not answered
// yet; handlers pass it up. See frame.Ask.
var ErrInputRequired = frame.ErrInputRequired

// Elicited is the answer to a form; see frame.Elicit.
type Elicited[T any] = frame.Elicited[T]

// The types of questions and answers; see packages frame and protocol.
type (
	Question         = frame.Question
	ElicitAction     = protocol.ElicitAction
	SampleParams     = protocol.SampleParams
	SampleMessage    = protocol.SampleMessage
	SampleResult     = protocol.SampleResult
	ModelPreferences = protocol.ModelPreferences
	Root             = protocol.Root
)

// Elicit asks the user to fill in a form made from the struct T; see
// frame.Elicit. Each question of a request has a key of its own.
func Elicit[T any](f *Frame, key, message string) (Elicited[T], error) {
	return frame.Elicit[T](f, key, message)
}

// ElicitURL asks the user to visit a page; see frame.ElicitURL.
func ElicitURL(f *Frame, key, message, address string) (ElicitAction, error) {
	return frame.ElicitURL(f, key, message, address)
}

// ElicitationID returns the id of a URL question, for telling that what it was
// for is done; see frame.ElicitationID.
func ElicitationID(f *Frame, key string) string { return frame.ElicitationID(f, key) }

// Sample asks the client's model; see frame.Sample.
func Sample(f *Frame, key string, params SampleParams) (*SampleResult, error) {
	return frame.Sample(f, key, params)
}

// Roots asks for the places that the client lets the server work in; see
// frame.Roots.
func Roots(f *Frame, key string) ([]Root, error) { return frame.Roots(f, key) }

// Ask asks several questions at once; see frame.Ask.
func Ask(f *Frame, questions ...*Question) error { return frame.Ask(f, questions...) }

// Once runs fn once per request, however often its handler runs again for
// answers; see frame.Once, also for what a client may do that sends one round
// twice.
func Once[T any](f *Frame, key string, fn func() (T, error)) (T, error) {
	return frame.Once(f, key, fn)
}
