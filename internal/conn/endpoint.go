package conn

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// endpoint serves what the HTTP transport reads for a Manager.
type endpoint struct{ *Manager }

// headerParams is the HeaderParams of streamable.Backend. A client that must not see a tool
// must not learn its parameters either: there are none for it, nor if the Frame
// that would decide cannot be made. The call itself then fails with the reason.
func (e endpoint) headerParams(c *streamable.Call) []facts.Header {
	params, forAll := e.Hooks.HeaderParams(c.Params.Name)
	if forAll || len(params) == 0 {
		return params
	}
	f, fault := e.frame(c.HTTP.Context(), c, nil)
	if fault != nil || !e.Hooks.Offers(f, c.Params.Name) {
		return nil
	}
	return params
}

// serve is the Serve of streamable.Backend. It chooses by what the request belongs
// to: a call without revision is an initialize, one without session is modern.
func (e endpoint) serve(c *streamable.Call) streamable.Answer {
	switch {
	case e.Manager.refuses(c.Message.Method):
		return e.refusal(c, errShutsDown)
	case c.Revision == 0:
		return e.open(c)
	case c.Session == nil && wire.IsSubscription(c.Message.Method):
		return e.subscribe(c)
	case c.Session == nil:
		return e.serveModern(c)
	}
	return e.serveLegacy(c)
}

// serveModern serves a stateless request. Its context ends when the client
// disconnects, which is how a client cancels it.
func (e endpoint) serveModern(c *streamable.Call) streamable.Answer {
	task, ok := e.Running.Begin(c.HTTP.Context())
	if !ok {
		return e.refusal(c, errShutsDown)
	}
	defer task.End()
	return e.dispatchTo(task, c, nil)
}

// subscribe opens a subscription. Its handler only opens it; the answer carries
// on as a stream, for which the transport calls Stream and then End. Should the
// handler fail or panic, the deferred function undoes what it has opened.
func (e endpoint) subscribe(c *streamable.Call) streamable.Answer {
	if !c.TakesEvents() {
		return e.refusal(c, wire.Refused("accept", protocol.CodeInvalidRequest, "%s needs a client that accepts text/event-stream", c.Message.Method))
	}
	if e.draining.Load() {
		return e.refusal(c, errDrains)
	}
	task, ok := e.Running.Begin(c.HTTP.Context())
	if !ok {
		return e.refusal(c, errShutsDown)
	}
	s := &Subscription{wake: c.Waker(), keepAlive: true}
	answer := streamable.Answer{Fault: dispatch.ErrPanicked}
	defer func() {
		if answer.Stream == nil {
			s.drop()
			task.End()
		}
	}()
	answer = e.dispatchTo(withSubscription(task, s), c, nil)
	if answer.Fault == nil && s.IsOpen() {
		open := e.streamSet.enter(streamSubscription, frame.HTTP, "", s.end)
		answer.Stream, answer.End = s.carry, func() {
			open.leave(nil)
			task.End()
		}
	}
	return answer
}

// open opens a session for an initialize request. It is not cancelled when the
// client leaves. The session ends again if the request fails.
func (e endpoint) open(c *streamable.Call) streamable.Answer {
	ctx, done, ok := e.Running.Start(c.HTTP.Context())
	if !ok {
		return e.refusal(c, errShutsDown)
	}
	defer done()
	client, fault := readClient(c.Params.Raw, e.Revisions)
	if fault != nil {
		return e.refusal(c, fault)
	}
	client.Principal = core.Principal(ctx)
	x, err := e.Sessions.Open(ctx, client)
	switch {
	case errors.Is(err, core.ErrTooManySessions):
		return e.refusal(c, tooMany(err))
	case err != nil:
		return e.refusal(c, wire.Unavailable("a session cannot be opened", err))
	}
	x.SetIdentity(frame.Internal(facts.Private{}).Identity(ctx))
	x.Use()
	used := true
	defer func() {
		if used {
			_ = x.Release() // the session is new: there is nothing to save
		}
	}()
	c.Revision = client.Revision
	c.Opens(x.ID())
	answer := streamable.Answer{Fault: dispatch.ErrPanicked}
	defer func() {
		if answer.Fault != nil {
			_ = e.Sessions.Stop(x, core.ErrSessionClosed) // the store forgets it by itself
		}
	}()
	answer = e.dispatchTo(ctx, c, x)
	if answer.Fault == nil {
		e.Hooks.Opened(x)
		used = false
		if err := x.Release(); err != nil {
			answer = fails(c, wire.Unavailable("a session cannot be opened", err))
			return answer
		}
		answer.Session = x.ID()
	}
	return answer
}

// serveLegacy serves a request of a session. A client whose connection breaks
// has not cancelled it: it does that with notifications/cancelled, and may come
// back for the answer.
func (e endpoint) serveLegacy(c *streamable.Call) streamable.Answer {
	x := c.Session
	resumable(c, x)
	if e.Polling && c.Revision.Has(protocol.FeaturePrimedStreams) && c.TakesEvents() {
		return e.serveApart(c, x)
	}
	return e.call(c, x)
}

// call serves a request of a session within the limits of that session and
// returns its answer, which is empty if the client has cancelled the request in
// the meantime. It must not be called twice with the same id at a time: the
// second is refused.
func (e endpoint) call(c *streamable.Call, x *session.Session) streamable.Answer {
	if c.InBatch() {
		return e.callUsed(c, x)
	}
	x.Use()
	answer := e.callUsed(c, x)
	if err := x.Release(); err != nil && answer.Response != nil {
		return fails(c, notKept(err))
	}
	return answer
}

// callUsed is call for a session that is in use.
func (e endpoint) callUsed(c *streamable.Call, x *session.Session) streamable.Answer {
	if x.Ended() {
		return e.refusal(c, sessionNotFound())
	}
	task, ok := e.Running.BeginDetached(c.HTTP.Context())
	if !ok {
		return e.refusal(c, errShutsDown)
	}
	defer task.End()
	limit := e.Concurrent
	if c.Message.Method == protocol.MethodPing {
		limit = 0
	}
	if fault := x.Inflight.Enter(c.Message.ID, task, limit); fault != nil {
		return e.refusal(c, fault)
	}
	defer x.Inflight.Leave(c.Message.ID)
	answer := e.dispatchTo(task, c, x)
	if task.Cancelled() {
		answer.Response = nil
	}
	return answer
}

// dispatchTo serves a request of session x, nil for none, on the goroutine of
// the caller. Errors of authorization also get their HTTP status and challenge.
func (e endpoint) dispatchTo(ctx context.Context, c *streamable.Call, x *session.Session) streamable.Answer {
	f, fault := e.frame(ctx, c, x)
	if fault != nil {
		return e.refusal(c, fault)
	}
	response, fault := e.Hooks.Dispatcher().Serve(f, c.Buffer)
	if err := frame.Internal(facts.Private{}).Unkept(f); err != nil && response != nil {
		return fails(c, notKept(err))
	}
	answer := streamable.Answer{Response: response, Fault: fault}
	if fault != nil && (fault.Code == protocol.CodeInsufficientScope || fault.Code == protocol.CodeUnauthorized) {
		answer.Status, answer.Challenge = frame.Internal(facts.Private{}).Challenge(f)
	}
	return answer
}

// frame makes the Frame of a message that came over HTTP.
func (e endpoint) frame(ctx context.Context, c *streamable.Call, x *session.Session) (*frame.Frame, *protocol.Error) {
	via := core.Transport{Kind: string(frame.HTTP), HTTP: c.HTTP}
	return e.Manager.Frame(ctx, x, core.Config{Request: &c.Request, Revision: c.Revision, Transport: via, Peer: c})
}

// refused is the Refused of streamable.Backend.
func (e endpoint) refused(r *http.Request, sse bool, fault *protocol.Error) {
	kind := frame.HTTP
	if sse {
		kind = frame.SSE
	}
	e.Manager.refused(core.Transport{Kind: string(kind), HTTP: r}, r.Header.Get("Mcp-Session-Id"), fault)
}

// refusal is the response to a request that does not reach its handler; observers are
// notified.
func (e endpoint) refusal(c *streamable.Call, fault *protocol.Error) streamable.Answer {
	e.refused(c.HTTP, false, fault)
	return fails(c, fault)
}

// fails is the answer to a request in place of a handler's: it did not run, or
// what it did was not kept.
func fails(c *streamable.Call, fault *protocol.Error) streamable.Answer {
	return streamable.Answer{
		Response: wire.AppendErrorResponse(c.Buffer, c.Message.ID, fault, c.Revision), Fault: fault, Refused: true,
	}
}

// notify is the Notify of streamable.Backend. It also takes the client's answers to
// questions of the server, which it passes to the questions that wait for
// them; any other answer is dropped.
func (e endpoint) notify(c *streamable.Call) *protocol.Error {
	x := c.Session
	if c.Message.Kind() == protocol.KindResponse {
		asked, fault, id := false, (*protocol.Error)(nil), ""
		if x != nil {
			id = x.ID()
			asked, fault = e.replicas().answered(x, &c.Message)
		}
		if !asked {
			e.Manager.unasked(core.Transport{Kind: string(frame.HTTP), HTTP: c.HTTP}, id, &c.Message)
		}
		return fault
	}
	if x != nil {
		if !c.InBatch() {
			x.Use()
			defer x.Release()
		}
		switch c.Message.Method {
		case protocol.MethodInitialized:
			x.SetInitialized()
		case protocol.MethodCancelled:
			e.replicas().cancelled(x, &c.Message)
		}
	}
	ctx, done, ok := e.Running.Start(c.HTTP.Context())
	if !ok {
		e.refused(c.HTTP, false, errShutsDown)
		return nil
	}
	defer done()
	if f, fault := e.frame(ctx, c, x); fault == nil {
		e.Manager.notify(f)
	} else {
		e.refused(c.HTTP, false, fault)
	}
	return nil
}

// batch is the Batch of streamable.Backend. The session is used once for all messages,
// and so saved once: many requests that save it at the same time would be in each
// other's way.
func (e endpoint) batch(x *session.Session) (end func() *protocol.Error) {
	x.Use()
	return func() *protocol.Error {
		if err := x.Release(); err != nil {
			return notKept(err)
		}
		return nil
	}
}

// session is the Session of streamable.Backend. The session of another principal is
// treated like one that does not exist, so that ids cannot be probed. The
// session takes over the identity of the request, whose token may be newer.
func (e endpoint) session(id string, r *http.Request) (*session.Session, *protocol.Error) {
	who := core.GrantOf(r.Context())
	x, err := e.Sessions.Get(r.Context(), who.Name, id)
	switch {
	case errors.Is(err, core.ErrTooManySessions):
		return nil, tooMany(err)
	case err != nil:
		return nil, wire.Unavailable("the session cannot be looked up", err)
	case x == nil:
		return nil, sessionNotFound()
	}
	identity, _ := who.Identity.(*frame.Identity)
	x.SetIdentity(identity)
	return x, nil
}

// tooMany is the error for a session that finds no room.
func tooMany(err error) *protocol.Error {
	fault := protocol.Errorf(protocol.CodeBusy, "%w", err)
	fault.RetryAfter = retryAfter
	return fault
}

// notKept is the error of a request that has run, and of which the store did not
// keep what it changed in the session. It must not look as if the request might
// be sent again.
func notKept(err error) *protocol.Error {
	return &protocol.Error{
		Code: protocol.CodeInternal, Message: "the request was served, but what it changed in the session could not be kept",
		Data: map[string]bool{"executed": true}, Err: err,
	}
}

// sessionNotFound is the error for a session that has ended or never was; over
// HTTP it is sent with status 404, on which clients open a new one.
func sessionNotFound() *protocol.Error {
	return protocol.Errorf(protocol.CodeSessionNotFound, "Session not found: send initialize to open a new one")
}

// endSession is the EndSession of streamable.Backend.
func (e endpoint) endSession(x *session.Session) *protocol.Error {
	if err := e.Sessions.Stop(x, core.ErrSessionDeleted); err != nil {
		return wire.Unavailable("the session cannot be ended", err)
	}
	return nil
}

// resumable lets the client come back for the answer to c with Last-Event-ID,
// if its revision has that and it takes events at all.
func resumable(c *streamable.Call, x *session.Session) {
	if !c.TakesEvents() || !c.Revision.Has(protocol.FeatureResumableStreams) {
		return
	}
	c.Resumable(x)
}

// serveApart serves a request on a goroutine of its own, so that the handler can close
// the connection and continue (frame.Frame.CloseStream): the client comes back for the
// answer. It returns when there is an answer or the handler has let the connection go,
// whichever comes first; exactly one of the two goroutines hands the answer over.
func (e endpoint) serveApart(c *streamable.Call, x *session.Session) streamable.Answer {
	c.Buffer = nil // it belongs to the connection
	paused := c.Pausable()
	answered := make(chan streamable.Answer)
	left := make(chan struct{}) // closed when the connection no longer waits for the answer
	e.Running.Go(func() {
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

// listen is the Listen of streamable.Backend: it serves a GET, the stream of a session.
// If Last-Event-ID names the stream of an answer, that is resumed instead. It
// returns when the client is gone or the session ends; an error is returned only
// if nothing was sent yet.
//
// No new one begins here after Drain, but a client that reconnects gets the missed
// messages, and the response of a call that it waits for. With other replicas,
// none begins during a shutdown: it would end at once.
func (e endpoint) listen(x *session.Session, to *streamable.Events) *protocol.Error {
	if to.Last == "" && e.draining.Load() {
		return errDrains
	}
	if e.Manager.Post != nil && e.Manager.IsDown() {
		return errShutsDown
	}
	var err error
	told := &toldStream{Events: to, note: func() *stream { return e.streamSet.note(streamSession, frame.HTTP, x.ID(), x.EndStreams) }}
	defer func() { told.leave(err) }()
	err = x.ServeStream(to.Last, told)
	if errors.Is(err, core.ErrSessionClosed) {
		return sessionNotFound()
	}
	fault, _ := errors.AsType[*protocol.Error](err)
	return fault
}

// connect is the Connect of streamable.Backend for HTTP+SSE: the stream is a
// connection like others that only speaks legacy revisions, and ends with the
// stream. A message that is POSTed to it runs with the token of the POST, which
// may differ from the one that opened the stream but must belong to the same
// principal.
func (e endpoint) connect(r *http.Request, open func(o streamable.Opening) (*streamable.Posted, error)) *protocol.Error {
	m := e.Manager
	switch {
	case m.draining.Load():
		return errDrains
	case m.IsDown():
		return errShutsDown
	}
	owner := core.Principal(r.Context())
	leave, err := m.enter(owner)
	if err != nil {
		return protocol.Errorf(protocol.CodeBusy, "%w", err)
	}
	defer leave()
	opening := streamable.Opening{
		ID: rand.Text(), Ours: func(post *http.Request) bool { return core.Principal(post.Context()) == owner },
	}
	conn, err := open(opening)
	if err != nil {
		return nil // the client is gone
	}
	via := core.Transport{Kind: string(frame.SSE), HTTP: r}
	// The connection itself says when the client has left.
	// Nothing runs with the token that opened the stream.
	ctx := core.WithPrincipal(context.WithoutCancel(r.Context()), owner)
	m.logEnd(via, m.serveConn(ctx, conn, options{via: via, legacy: true, by: conn.By, comeBack: conn.ComeBack}))
	return nil
}
