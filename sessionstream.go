package mcp

import (
	"net/http"
	"time"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport/streamable"
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
	answered := make(chan streamable.Answer, 1)
	e.running.Go(func() {
		answer := e.call(c, x)
		select {
		case <-paused:
			c.Finish(answer.Response)
		default:
			answered <- answer
		}
	})
	select {
	case answer := <-answered:
		return answer
	case <-paused:
		return streamable.Answer{Later: true}
	}
}

// Listen implements streamable.Backend.
func (e *endpoint) Listen(id string, r *http.Request, to *streamable.Events) *protocol.Error {
	x, ok := e.sessions.Get(id)
	if !ok {
		return protocol.Errorf(protocol.CodeSessionNotFound, "the session ended")
	}
	defer x.Hold()()
	if to.Last != "" && x.Resumable() && !session.Unasked(to.Last) {
		return resume(x, r, to)
	}
	out, leave := x.Listen()
	defer leave()
	if to.Open() != nil || x.Missed(to.Last, to) != nil {
		return nil // the client is gone
	}
	send := func(message []byte) error {
		eventID, ok := x.Claim(out, message)
		if !ok {
			return nil
		}
		return to.Event(eventID, message)
	}
	feedEvents(x, r, to, out.C, out.Done, send)
	return nil
}

// resume goes on with the stream of an answer.
func resume(x *session.Session, r *http.Request, to *streamable.Events) *protocol.Error {
	left, lost, ok := x.Resume(to.Last, to)
	if !ok {
		return protocol.Errorf(protocol.CodeInvalidRequest,
			"Last-Event-ID %q names no stream of this session, or one that is too long ago", to.Last)
	}
	defer lost()
	if to.Open() != nil {
		return nil
	}
	feedEvents(x, r, to, nil, left, nil)
	return nil
}

// feedEvents passes messages to send, and keeps the stream alive, until it is
// over.
func feedEvents(x *session.Session, r *http.Request, to *streamable.Events, messages <-chan []byte, over <-chan struct{}, send func([]byte) error) {
	var quiet <-chan time.Time
	if to.KeepAlive > 0 {
		ticker := time.NewTicker(to.KeepAlive)
		defer ticker.Stop()
		quiet = ticker.C
	}
	for {
		var err error
		select {
		case message := <-messages:
			err = send(message)
		case <-quiet:
			err = to.Comment()
		case <-over:
			return
		case <-r.Context().Done():
			return
		case <-x.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}
