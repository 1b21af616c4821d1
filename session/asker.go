package session

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// asker asks the client of a session during one request. It sends through the stream of
// that request, or the connection. It has no state and is safe for concurrent use.
type asker struct {
	session *Session
	of      core.AskerRequest
}

// Ask implements core.Asker: all questions are out at once. It blocks until
// all of them are answered or have failed, so that no answer comes after it;
// the error is that of the first question that failed, in their order.
func (a *asker) Ask(asked context.Context, questions []protocol.InputRequest) ([]json.RawMessage, error) {
	ctx, leave := a.whileThere(asked)
	defer leave()
	if asked.Err() != nil {
		return nil, context.Cause(asked)
	}
	answers := make([]json.RawMessage, len(questions))
	errs := make([]error, len(questions))
	var out sync.WaitGroup
	for i, q := range questions {
		out.Go(func() {
			answers[i], errs[i] = a.session.Pending.Call(ctx, a.sender(ctx), q.Method, q.Params)
		})
	}
	out.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// sender returns what sends messages for a request. After the end of ctx it withdraws a
// question. The stream of the request may be closed by then, so the message goes to the
// session's own stream.
func (a *asker) sender(ctx context.Context) func([]byte) error {
	return func(message []byte) error {
		err := a.of.Send(message)
		if err != nil && ctx.Err() != nil {
			_, _ = a.session.Route(context.WithoutCancel(ctx), message) // otherwise the client only keeps asking its user
			return nil
		}
		return err
	}
}

// Recall implements core.Asker: legacy handlers run once, so there is nothing
// to recall.
func (a *asker) Recall(string) (json.RawMessage, bool, error) { return nil, false, nil }

// Keep implements core.Asker. It drops the value:
// the handler that has it is the only one to run.
func (a *asker) Keep(context.Context, string, json.RawMessage) error { return nil }

// Known implements core.Asker: no legacy request becomes a task.
func (a *asker) Known() core.Recorded { return core.Recorded{} }

// Required implements core.Asker. A legacy handler that returns
// ErrInputRequired has made it up.
func (a *asker) Required() (protocol.Result, error) {
	return nil, wire.ErrInputRequired
}

// errGone is the error of a question whose client has hung up.
var errGone = errors.New("the client went away before it answered")

// whileThere returns a context that ends with asked, or when the client has disconnected
// and does not resume. The request continues, but no client is left to answer.
func (a *asker) whileThere(asked context.Context) (context.Context, func()) {
	if a.of.HTTP == nil {
		return asked, func() {}
	}
	ctx, cancel := context.WithCancelCause(asked)
	stop := context.AfterFunc(a.of.HTTP.Context(), func() {
		if !a.session.resumable() || a.away(ctx) {
			cancel(errGone)
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// away waits for a client that has hung up, and returns true when it has had
// no stream open for a while. It returns false when ctx ends before.
func (a *asker) away(ctx context.Context) bool {
	ticker := time.NewTicker(grace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		if !a.session.hasStream() {
			return true
		}
	}
}
