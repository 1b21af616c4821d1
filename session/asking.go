package session

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// Asker implements frame.Askers: questions go out through send, and their
// answers come back to s.Pending.
func (s *Session) Asker(_ *frame.Frame, send func(message []byte) error) frame.Asker {
	return &asker{session: s, send: send}
}

type asker struct {
	session *Session
	send    func([]byte) error
}

// Ask implements frame.Asker: all questions are out at once.
func (a *asker) Ask(f *frame.Frame, questions []*frame.Question) ([]json.RawMessage, error) {
	params := make([]json.RawMessage, len(questions))
	for i, q := range questions {
		var err error
		if params[i], err = q.Params(f.Revision()); err != nil {
			return nil, err
		}
	}
	ctx, leave := whileThere(f)
	defer leave()
	answers := make([]json.RawMessage, len(questions))
	errs := make([]error, len(questions))
	var asked sync.WaitGroup
	for i, q := range questions {
		asked.Go(func() {
			answers[i], errs[i] = a.session.Pending.Call(ctx, a.send, q.Method(), params[i])
		})
	}
	asked.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// Recall implements frame.Asker: legacy handlers run once, so there is nothing
// to recall.
func (a *asker) Recall(*frame.Frame, string) (json.RawMessage, bool, error) { return nil, false, nil }

// Keep implements frame.Asker.
func (a *asker) Keep(*frame.Frame, string, json.RawMessage) {}

// Required implements frame.Asker. A legacy handler that returns
// ErrInputRequired has made it up.
func (a *asker) Required(*frame.Frame) (protocol.Result, error) {
	return nil, frame.ErrInputRequired
}

// errGone is the error of a question whose client has hung up.
var errGone = errors.New("the client went away before it answered")

// whileThere returns a context that ends with f, or when the client hangs up.
// The request goes on without its client, but nobody is left to answer.
func whileThere(f *frame.Frame) (context.Context, func()) {
	r := f.HTTPRequest()
	if r == nil {
		return f, func() {}
	}
	ctx, cancel := context.WithCancelCause(f)
	stop := context.AfterFunc(r.Context(), func() { cancel(errGone) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
