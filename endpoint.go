package mcp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// endpoint is the Server as the HTTP transport sees it.
type endpoint Server

var _ streamable.Backend = (*endpoint)(nil)

func (e *endpoint) server() *Server { return (*Server)(e) }

// Revisions implements streamable.Backend.
func (e *endpoint) Revisions() []protocol.Revision { return e.opts.Revisions }

// HeaderParams implements streamable.Backend.
func (e *endpoint) HeaderParams(c *streamable.Call) []protocol.HeaderParam {
	tool, ok := e.tools.Get(c.Params.Name)
	if !ok || len(tool.Headers) == 0 || !e.server().callable(c) {
		return nil
	}
	return tool.Headers
}

// Serve implements streamable.Backend.
func (e *endpoint) Serve(c *streamable.Call) streamable.Answer {
	switch {
	case e.server().refuses(c.Message.Method):
		return refusal(c, errShutsDown)
	case c.Revision == 0:
		return e.open(c)
	case c.Session == nil && c.Message.Method == protocol.MethodListen:
		return e.subscribe(c)
	case c.Session == nil:
		return e.serveModern(c)
	}
	return e.serveLegacy(c)
}

// serveModern serves a request that stands alone. It ends when its client
// goes away.
func (e *endpoint) serveModern(c *streamable.Call) streamable.Answer {
	task, ok := e.running.Begin(c.HTTP.Context())
	if !ok {
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "the server shuts down"))
	}
	defer task.End()
	return e.dispatchTo(task, c, nil)
}

// subscribe opens a subscription, which goes on as a stream.
func (e *endpoint) subscribe(c *streamable.Call) streamable.Answer {
	if !c.TakesEvents() {
		return refusal(c, protocol.Errorf(protocol.CodeInvalidRequest, "subscriptions/listen needs a client that accepts text/event-stream"))
	}
	task, ok := e.running.Begin(c.HTTP.Context())
	if !ok {
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "the server shuts down"))
	}
	o := &opening{wake: c.Waker(), beats: true}
	answer := streamable.Answer{Fault: dispatch.ErrPanicked}
	defer func() {
		if answer.Stream == nil {
			o.drop()
			task.End()
		}
	}()
	answer = e.dispatchTo(withOpening(task, o), c, nil)
	if answer.Fault == nil && o.sub != nil {
		answer.Stream, answer.End = o.carry, task.End
	}
	return answer
}

// open opens a session for an initialize request.
func (e *endpoint) open(c *streamable.Call) streamable.Answer {
	ctx, done, ok := e.running.Start(c.HTTP.Context())
	if !ok {
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "the server shuts down"))
	}
	defer done()
	client, fault := e.server().clientOf(c.Params.Raw)
	if fault != nil {
		return refusal(c, fault)
	}
	client.Principal = frame.PrincipalOf(ctx)
	x, err := e.sessions.Open(client)
	if err != nil {
		return refusal(c, tooMany(err))
	}
	x.Use()
	defer x.Release()
	c.Revision = client.Revision
	c.Opens(x.ID())
	answer := streamable.Answer{Fault: dispatch.ErrPanicked}
	defer func() {
		if answer.Fault != nil {
			e.sessions.End(x.ID(), session.ErrClosed)
		}
	}()
	answer = e.dispatchTo(ctx, c, x)
	if answer.Fault == nil {
		e.server().watchEnd(x)
		answer.Session = x.ID()
	}
	return answer
}

// serveLegacy serves a request of a session. A client that goes away has not
// cancelled it: it says so with notifications/cancelled.
func (e *endpoint) serveLegacy(c *streamable.Call) streamable.Answer {
	x := c.Session.(*session.Session)
	resumable(c, x)
	if e.opts.HTTP.Polling && c.Revision.Has(protocol.PrimedStreams) && c.TakesEvents() {
		return e.serveApart(c, x)
	}
	return e.call(c, x)
}

// call serves a request of a session.
func (e *endpoint) call(c *streamable.Call, x *session.Session) streamable.Answer {
	x.Use()
	defer x.Release()
	if x.Ended() {
		return refusal(c, sessionNotFound())
	}
	task, ok := e.running.BeginDetached(c.HTTP.Context())
	if !ok {
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "the server shuts down"))
	}
	defer task.End()
	if x.Inflight.Len() >= e.opts.Limits.Concurrent && c.Message.Method != protocol.MethodPing {
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "the session has %d requests under way, which is the limit", e.opts.Limits.Concurrent))
	}
	if !x.Inflight.Enter(c.Message.ID, task) {
		return refusal(c, protocol.Errorf(protocol.CodeInvalidRequest, "a request with id %s is under way", c.Message.ID))
	}
	defer x.Inflight.Leave(c.Message.ID)
	answer := e.dispatchTo(task, c, x)
	if task.Cancelled() {
		answer.Response = nil
	}
	return answer
}

func (e *endpoint) dispatchTo(ctx context.Context, c *streamable.Call, x *session.Session) streamable.Answer {
	f, fault := e.frame(ctx, c, x)
	if fault != nil {
		return refusal(c, fault)
	}
	response, fault := e.server().dispatch().Serve(f, c.Buffer)
	answer := streamable.Answer{Response: response, Fault: fault}
	if fault != nil && (fault.Code == protocol.CodeInsufficientScope || fault.Code == protocol.CodeUnauthorized) {
		answer.Status, answer.Challenge = f.Challenge()
	}
	return answer
}

func (e *endpoint) frame(ctx context.Context, c *streamable.Call, x *session.Session) (*frame.Frame, *protocol.Error) {
	return e.server().frameOf(ctx, &c.Message, &c.Params, c.Revision, x, frame.Config{
		Transport: frame.Transport{Kind: frame.HTTP, HTTP: c.HTTP}, Peer: c,
	})
}

// refusal is the answer to a request that is not served at all.
func refusal(c *streamable.Call, fault *protocol.Error) streamable.Answer {
	return streamable.Answer{
		Response: protocol.AppendErrorResponse(c.Buffer, c.Message.ID, fault, c.Revision), Fault: fault, Refused: true,
	}
}

// Notify implements streamable.Backend.
func (e *endpoint) Notify(c *streamable.Call) {
	x, _ := c.Session.(*session.Session)
	if c.Message.IsResponse() {
		if x != nil {
			x.Pending.Answer(&c.Message)
		}
		return
	}
	if x != nil {
		x.Use()
		defer x.Release()
		switch c.Message.Method {
		case protocol.MethodInitialized:
			x.SetInitialized()
		case protocol.MethodCancelled:
			cancel(&x.Inflight, &c.Params)
		}
	}
	ctx, done, ok := e.running.Start(c.HTTP.Context())
	if !ok {
		return
	}
	defer done()
	if f, fault := e.frame(ctx, c, x); fault == nil {
		e.server().notify(f)
	}
}

// Session implements streamable.Backend. A session of somebody else is like one
// that does not exist.
func (e *endpoint) Session(id string, r *http.Request) (streamable.Session, *protocol.Error) {
	x, err := e.sessions.Get(id)
	switch {
	case errors.Is(err, session.ErrTooMany):
		return nil, tooMany(err)
	case err != nil:
		return nil, &protocol.Error{Code: protocol.CodeUnavailable, Message: "the session cannot be looked up now: try again", RetryAfter: retryAfter, Err: err}
	case x == nil || x.Principal() != frame.PrincipalOf(r.Context()):
		return nil, sessionNotFound()
	}
	x.SetIdentity(frame.IdentityOf(r.Context()))
	return x, nil
}

// retryAfter is when a client may try again what other clients are in the way
// of, or a store that does not answer.
const retryAfter = time.Second

// tooMany is the error of a session that finds no room.
func tooMany(err error) *protocol.Error {
	fault := protocol.Errorf(protocol.CodeBusy, "%w", err)
	fault.RetryAfter = retryAfter
	return fault
}

func sessionNotFound() *protocol.Error {
	return protocol.Errorf(protocol.CodeSessionNotFound, "Session not found: send initialize to open a new one")
}

// EndSession implements streamable.Backend.
func (e *endpoint) EndSession(x streamable.Session) {
	e.sessions.End(x.(*session.Session).ID(), session.ErrDeleted)
}
