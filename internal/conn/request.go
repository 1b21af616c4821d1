package conn

import (
	"context"
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// request is one message of a client that is being served: a request, which is
// the core.Peer of its Frame, or a notification. It is owned by one goroutine
// at a time: by the one that reads until it is queued or handed to a worker,
// then by that. Only Send may be called by others.
type request struct {
	core.Request // of which its Frame is made; set when the message was accepted

	conn      *Conn
	message   protocol.Message
	revision  protocol.Revision
	session   *session.Session
	ctx       context.Context
	finish    func()
	by        *http.Request // what brought it, on a connection to which messages are posted; else nil
	size      int           // bytes of its text
	later     func()        // what is to be done when the queue comes to it; nil to serve the message
	batch     *batch        // nil unless the message came in one
	index     int           // in batch
	offReader bool          // the goroutine that reads has given it away, and writes nothing for it

	mu       sync.Mutex
	answered bool
}

// Send implements core.Peer: it sends a message that belongs to r ahead of its
// answer. It fails with ErrAnswered once r is answered or cancelled, so that
// nothing follows the answer. r.mu orders it before the answer.
func (r *request) Send(message []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered || inflight.Cancelled(r.ctx) {
		return wire.ErrAnswered
	}
	return r.write(message)
}

// reply sends the answer to r; nil means that there is none. It must be called
// exactly once for every message, because a batch waits for all of its replies.
// A write that fails is not reported here: flushing the connection reports it.
func (r *request) reply(response []byte) {
	switch {
	case r.batch != nil:
		if all := r.batch.put(r.index, response); all != nil {
			_ = r.write(all) // see above
		}
	case response != nil:
		_ = r.write(response) // see above
	}
}

// write sends a message of r. On the goroutine that reads it must not wait for
// the client and goes through the queue; elsewhere it waits.
func (r *request) write(message []byte) error {
	if !r.offReader {
		r.conn.writeSoon(message)
		return nil
	}
	return r.conn.writes.write(message)
}

// refuse answers r with an error, in the form of rev, and tells of it.
func (r *request) refuse(rev protocol.Revision, fault *protocol.Error) {
	r.conn.refused(fault)
	r.reply(wire.AppendErrorResponse(nil, r.message.ID, fault, rev))
}

// isModern reports whether r belongs to a modern revision. It does if it names
// a revision in _meta, which legacy messages do not have; server/discover, with
// which clients probe, counts even without, unless there is a session. The legacy
// handshake never does, whatever else its messages say (basic/versioning of
// 2026-07-28, "Compatibility Matrix").
func (r *request) isModern() bool {
	switch {
	case r.Initializes(), r.message.Method == protocol.MethodInitialized:
		return false
	case r.message.Method == protocol.MethodDiscover && r.conn.session.Load() == nil:
		return true
	}
	return r.Params.Meta.ProtocolVersion != ""
}

// initialize serves an initialize request and returns when it is answered.
// Messages that were read after it must find either the session as users' code
// has left it or none.
func (r *request) initialize() {
	if fault := r.admit(); fault != nil {
		r.drop(fault)
		return
	}
	var response []byte
	fault := dispatch.ErrPanicked
	// On a goroutine of its own: this one has to continue, whatever users' code
	// does.
	_ = safely.Apart(func() { response, fault = r.dispatch(nil) }) // a failure is answered and in the log
	if fault != nil || inflight.Cancelled(r.ctx) {
		r.conn.session.Store(nil)
		r.conn.stream.close()
	} else {
		r.conn.manager.Hooks.Opened(r.session)
	}
	r.answer(r.orPanicked(response))
}

// notify serves a notification that was admitted.
func (r *request) notify() {
	if r.message.Method == protocol.MethodInitialized && r.session != nil && r.session.SetInitialized() {
		r.conn.stream.start(r.session)
	}
	r.ctx = r.within(r.conn.ctx)
	if f, fault := r.frame(); fault == nil {
		r.conn.manager.notify(f)
	} else {
		r.conn.refused(fault)
	}
}

// frame makes the Frame of r, and lets its session take over the identity of r,
// which may be newer. r.ctx must be set.
func (r *request) frame() (*frame.Frame, *protocol.Error) {
	if r.session != nil {
		r.session.SetIdentity(frame.Internal(facts.Private{}).Identity(r.ctx))
	}
	via := r.conn.opts.via
	if r.by != nil {
		via.HTTP = r.by.WithContext(r.within(r.conn.ctx))
	}
	return r.conn.manager.Frame(r.ctx, r.session, core.Config{Request: &r.Request, Revision: r.revision, Transport: via, Peer: r})
}

// within returns the context that r is served in: ctx, and for a message that
// was POSTed, the values of its request before those of ctx. Its end is that of
// ctx, because a POST ends long before its message is served.
func (r *request) within(ctx context.Context) context.Context {
	if r.by == nil {
		return ctx
	}
	return withValues{ctx, r.by.Context()}
}

// withValues is a context that ends like the first one and has the values of
// the second one before its own. Both are asked for values, since package
// context looks for the cause of an end among them.
type withValues struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c withValues) Value(key any) any {
	if value := c.values.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}

// begin registers a request as in progress and gives it its context, or answers
// it with an error and returns false: the server is shutting down, its id is in
// use, or the connection has stopped. After begin has returned true, answer
// must be called.
func (r *request) begin() bool {
	ctx := r.conn.ctx
	if wire.IsSubscription(r.message.Method) && r.revision.Modern() {
		ctx = r.conn.stream.ctx
	}
	if r.conn.manager.refuses(r.message.Method) {
		r.refuse(r.revision, errShutsDown)
		return false
	}
	var ok bool
	if r.ctx, r.finish, ok = r.conn.inflight.Start(r.within(ctx), r.message.ID); !ok {
		r.refuse(r.revision, wire.Refused("duplicate_id", protocol.CodeInvalidRequest, "a request with id %s is under way", r.message.ID))
		return false
	}
	if !r.conn.addRunning() {
		r.finish()
		r.refuse(r.revision, errShutsDown)
		return false
	}
	return true
}

// skip answers a request whose time was over before a worker was free.
func (r *request) skip() {
	fault := errShutsDown
	if !r.conn.isStopped() {
		fault = wire.Refused("down", protocol.CodeBusy, "the connection ended before the request had its turn: %v", context.Cause(r.ctx))
	}
	r.drop(fault)
}

// drop answers a request, for which begin has succeeded, with an error and
// without calling a handler. It notifies observers, unless the client
// cancelled the request.
func (r *request) drop(fault *protocol.Error) {
	if !inflight.Cancelled(r.ctx) {
		r.conn.refused(fault)
	}
	r.answer(wire.AppendErrorResponse(nil, r.message.ID, fault, r.revision))
}

// serve serves and answers one request. It appends the answer to buffer and
// returns the buffer, possibly a larger one, for the next request. If the
// handler ends the goroutine, the request is answered by the deferred call.
func (r *request) serve(buffer []byte) (response []byte) {
	if r.ctx.Err() != nil {
		r.skip()
		return buffer
	}
	defer func() { r.answer(r.orPanicked(response)) }()
	response, _ = r.dispatch(buffer)
	return response
}

// orPanicked returns response, or if that is nil the error for a handler that
// has ended its goroutine.
func (r *request) orPanicked(response []byte) []byte {
	if response == nil {
		return dispatch.AppendPanicked(nil, r.message.ID, r.revision)
	}
	return response
}

// dispatch appends the answer to r to buffer; the error is set as well if that
// answer is one.
func (r *request) dispatch(buffer []byte) ([]byte, *protocol.Error) {
	f, fault := r.frame()
	if fault != nil {
		r.conn.refused(fault)
		return wire.AppendErrorResponse(buffer, r.message.ID, fault, r.revision), fault
	}
	return r.conn.manager.Hooks.Dispatcher().Serve(f, buffer)
}

// answer ends a request for which begin has succeeded. The response is sent
// unless the client cancelled the request, or is nil. It must be called exactly
// once.
func (r *request) answer(response []byte) {
	defer r.conn.running.Done()
	r.mu.Lock()
	r.answered = true
	r.mu.Unlock()
	cancelled := inflight.Cancelled(r.ctx)
	r.finish() // before the answer is out, so that its id is free again
	if cancelled {
		r.reply(nil)
	} else {
		r.reply(response)
	}
}

// admit decides which revision and session a message belongs to and checks what
// must be right before any handler runs. It is called when all that was read
// before has been served or given to a worker. Without session, a legacy client
// may send initialize, ping and notifications only.
func (r *request) admit() (fault *protocol.Error) {
	r.session = r.conn.session.Load()
	r.revision = r.conn.revision()
	if r.isModern() {
		if fault := r.modernFault(); fault != nil {
			return fault
		}
		r.session = nil
		r.revision = protocol.Latest
		if r.message.Kind() == protocol.KindRequest {
			rev, fault := wire.CheckModern(&r.Params.Meta, r.conn.manager.Revisions)
			if fault != nil {
				return fault
			}
			r.revision = rev
		}
		return nil
	}
	switch {
	case r.message.Method == protocol.MethodInitialize && r.message.Kind() == protocol.KindRequest:
		return r.open()
	case r.session != nil:
		return nil
	case r.message.Method == protocol.MethodPing || r.message.Kind() == protocol.KindNotification:
		r.revision = protocol.LatestLegacy
		return nil
	}
	return wire.Refused("no_session", protocol.CodeInvalidRequest,
		"not initialized: send initialize first, or a request of revision %s with its _meta", protocol.Latest)
}

// open begins the session of the connection, for an initialize request. It is
// stored before the handler runs, so that what the handler asks the client
// finds its answers. If the input has ended in the meantime, questions fail at
// once.
func (r *request) open() *protocol.Error {
	if r.session != nil {
		return wire.Refused("initialized", protocol.CodeInvalidRequest, "this connection is initialized already")
	}
	client, fault := readClient(r.Params.Raw, r.conn.manager.Revisions)
	if fault != nil {
		return fault
	}
	client.Principal = core.Principal(r.conn.ctx)
	r.revision = client.Revision
	r.session = session.New(r.conn.ctx, r.conn.manager.newID(), client)
	r.conn.session.Store(r.session)
	r.conn.stream.open(r.session)
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	if r.conn.inputErr != nil {
		r.session.Pending.Close(r.conn.inputErr)
	}
	return nil
}

// modernFault returns the error for a modern request that came in a batch or
// over a transport that has only legacy revisions, else nil.
func (r *request) modernFault() *protocol.Error {
	switch {
	case r.batch != nil:
		return wire.ErrModernInBatch()
	case r.conn.opts.legacy:
		return wire.Refused("era", protocol.CodeInvalidRequest,
			"the HTTP+SSE transport has no revision %s: send initialize, or POST to the endpoint without a session", protocol.Latest)
	}
	return nil
}

// cancelRequest cancels the request that the params of a notifications/cancelled
// name. It returns its id, the zero ID if the params make no sense, because the
// specification wants such notifications to be ignored, and whether the request
// is in progress. The reason is cleaned and shortened: it ends up in logs.
func cancelRequest(under *inflight.Requests, params []byte) (id protocol.ID, found bool) {
	var cancelled wire.CancelledParams
	if jsonx.Unmarshal(params, &cancelled) == nil {
		id = cancelled.RequestID
		found = under.CancelFor(id, visible.Line(cancelled.Reason, visible.Sentence))
	}
	return id, found
}

// batch gathers the answers to the messages of a JSON array, which leave
// together as an array in the order of the messages. It is done when each
// message had its reply.
type batch struct {
	mu      sync.Mutex
	answers [][]byte // nil where there is none
	open    int      // messages without a reply
}

// put keeps a copy of the answer to message i, nil for none. The call for the
// last message returns the encoded array, or nil if there is no answer in it.
func (b *batch) put(i int, answer []byte) (all []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer != nil {
		b.answers[i] = append([]byte{}, answer...)
	}
	if b.open--; b.open > 0 {
		return nil
	}
	return wire.AppendBatch(nil, b.answers)
}
