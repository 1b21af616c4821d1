package mcp

import (
	"context"
	"errors"

	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// resumable lets the client come back for the answer to c, if its revision
// knows how.
func resumable(c *streamable.Call, x *session.Session) {
	if !c.TakesEvents() || !c.Revision.Has(protocol.ResumableStreams) {
		return
	}
	c.Resumable(func(to streamable.Sink) streamable.Stream {
		if stream := x.OpenStream(to); stream != nil {
			return stream
		}
		return nil
	})
}

// serveApart serves a request on a goroutine of its own, so that its handler
// can go on when it has let the connection go.
func (e *endpoint) serveApart(c *streamable.Call, x *session.Session) streamable.Answer {
	c.Buffer = nil // it belongs to the connection
	paused := c.Pausable()
	answered := make(chan streamable.Answer)
	left := make(chan struct{}) // closed when the connection no longer waits for the answer
	e.running.Go(func() {
		answer := streamable.Answer{Fault: dispatch.ErrPanicked} // unless the handler returns
		defer func() {
			if answer.Fault == dispatch.ErrPanicked {
				answer.Response = dispatch.AppendPanicked(nil, c.Message.ID, c.Revision)
			}
			select {
			case answered <- answer:
			case <-left:
				c.Finish(answer.Response)
			}
		}()
		answer = e.call(c, x)
	})
	select {
	case answer := <-answered:
		return answer
	case <-paused:
		close(left)
		return streamable.Answer{Later: true}
	}
}

// Listen implements streamable.Backend.
func (e *endpoint) Listen(found streamable.Session, to *streamable.Events) *protocol.Error {
	x := found.(*session.Session)
	defer x.Hold()()
	if x.Ended() {
		return sessionNotFound()
	}
	if to.Last != "" && x.Resumable() && !session.Unasked(to.Last) {
		return resume(x, to)
	}
	out, leave := x.Listen(to.Last, to.Waker())
	defer leave()
	switch err := x.Missed(to.Last, to); {
	case errors.Is(err, session.ErrNotKept):
		return protocol.Errorf(protocol.CodeInvalidRequest,
			"some of what followed Last-Event-ID %q was too long to be kept, and cannot be sent again: open the stream once more to go on without it", to.Last)
	case err != nil, to.Open() != nil:
		return nil // the client is gone
	}
	for {
		id, message, over := x.Next(out)
		if message == nil {
			if over || !to.Wait() {
				return nil
			}
			continue
		}
		if to.Event(id, message) != nil {
			x.Unsent(message)
			return nil
		}
	}
}

// resume goes on with the stream of an answer.
func resume(x *session.Session, to *streamable.Events) *protocol.Error {
	attached, lost, err := x.Resume(to.Last, to, to.Waker())
	switch {
	case errors.Is(err, session.ErrNotKept):
		return protocol.Errorf(protocol.CodeInvalidRequest,
			"what followed Last-Event-ID %q was too long to be kept, and cannot be sent again: send the request again", to.Last)
	case err != nil:
		return protocol.Errorf(protocol.CodeInvalidRequest,
			"Last-Event-ID %q names no stream of this session, or one that is too long ago", to.Last)
	}
	defer lost()
	if to.Open() != nil {
		return nil
	}
	defer context.AfterFunc(x.Context(), to.Waker())()
	for attached() && !x.Ended() && to.Wait() {
	}
	return nil
}
