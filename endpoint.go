package mcp

import (
	"context"
	"net/http"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport/streamable"
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
	case c.Revision == 0:
		return e.open(c)
	case c.Session == "" && c.Message.Method == protocol.MethodListen:
		return e.subscribe(c)
	case c.Session == "":
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
	answer := e.dispatchTo(withOpening(task, o), c, nil)
	if answer.Code != 0 || o.sub == nil {
		o.drop()
		task.End()
		return answer
	}
	answer.Stream, answer.End = o.carry, task.End
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
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "%w", err))
	}
	x.Use()
	defer x.Release()
	c.Revision = client.Revision
	answer := e.dispatchTo(ctx, c, x)
	if answer.Code != 0 {
		e.sessions.End(x.ID(), session.ErrClosed)
		return answer
	}
	e.server().watchEnd(x)
	answer.Session = x.ID()
	return answer
}

// serveLegacy serves a request of a session. A client that goes away has not
// cancelled it: it says so with notifications/cancelled.
func (e *endpoint) serveLegacy(c *streamable.Call) streamable.Answer {
	x, ok := e.sessions.Get(c.Session)
	if !ok {
		return refusal(c, protocol.Errorf(protocol.CodeSessionNotFound, "the session ended"))
	}
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
	task, ok := e.running.BeginDetached(c.HTTP.Context())
	if !ok {
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "the server shuts down"))
	}
	defer task.End()
	if x.Inflight.Len() >= e.opts.MaxConcurrent {
		return refusal(c, protocol.Errorf(protocol.CodeBusy, "the session has %d requests under way, which is the limit", e.opts.MaxConcurrent))
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
	response, code := e.server().dispatch().Serve(f, c.Buffer)
	answer := streamable.Answer{Response: response, Code: code}
	if code == protocol.CodeInsufficientScope || code == protocol.CodeUnauthorized {
		answer.Status, answer.Challenge = f.Challenge()
	}
	return answer
}

func (e *endpoint) frame(ctx context.Context, c *streamable.Call, x *session.Session) (*frame.Frame, *protocol.Error) {
	return e.server().frameOf(ctx, &c.Message, &c.Params, c.Revision, x, frame.Config{
		Transport: frame.Transport{Kind: frame.HTTP, HTTP: c.HTTP}, Peer: c,
	})
}

func refusal(c *streamable.Call, fault *protocol.Error) streamable.Answer {
	answer := streamable.Answer{Response: protocol.AppendErrorResponse(c.Buffer, c.Message.ID, fault, c.Revision), Code: fault.Code}
	switch fault.Code {
	case protocol.CodeBusy:
		answer.Status = http.StatusServiceUnavailable
	case protocol.CodeSessionNotFound:
		answer.Status = http.StatusNotFound
	}
	return answer
}

// Notify implements streamable.Backend.
func (e *endpoint) Notify(c *streamable.Call) {
	if c.Message.IsResponse() {
		if x, ok := e.sessions.Get(c.Session); ok {
			x.Pending.Answer(&c.Message)
		}
		return
	}
	var x *session.Session
	if c.Session != "" {
		var ok bool
		if x, ok = e.sessions.Get(c.Session); !ok {
			return
		}
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

// SessionRevision implements streamable.Backend.
func (e *endpoint) SessionRevision(id string, r *http.Request) (protocol.Revision, bool) {
	x, ok := e.server().sessionOf(id, r)
	if !ok {
		return 0, false
	}
	return x.Revision(), true
}

// EndSession implements streamable.Backend.
func (e *endpoint) EndSession(id string) { e.sessions.End(id, session.ErrDeleted) }
