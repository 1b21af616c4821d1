package conn

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// request is one message of a client that is being served: a request, which is
// the frame.Peer of its Frame, or a notification.
type request struct {
	conn      *Conn
	message   protocol.Message
	params    protocol.Params
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

// Send implements frame.Peer.
func (r *request) Send(message []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered || peer.Cancelled(r.ctx) {
		return protocol.ErrAnswered
	}
	return r.write(message)
}

// reply sends the answer to r, which may be none; every message gets one
// reply. The error of a broken connection shows when the answers are flushed.
func (r *request) reply(response []byte) {
	switch {
	case r.batch != nil:
		if all := r.batch.put(r.index, response); all != nil {
			_ = r.write(all)
		}
	case response != nil:
		_ = r.write(response)
	}
}

// write sends a message that belongs to r.
func (r *request) write(message []byte) error {
	if !r.offReader {
		r.conn.writeSoon(message)
		return nil
	}
	return r.conn.writes.write(message)
}

// refuse answers r with an error.
func (r *request) refuse(rev protocol.Revision, fault *protocol.Error) {
	r.reply(protocol.AppendErrorResponse(nil, r.message.ID, fault, rev))
}

// isModern reports whether r is of the modern era.
func (r *request) isModern() bool {
	return r.params.Meta.ProtocolVersion != "" || r.message.Method == protocol.MethodDiscover && r.conn.session.Load() == nil
}

// initialize serves an initialize request before what was read after it: that
// must find the session as users' code has left it, or not at all.
func (r *request) initialize() {
	if fault := r.admit(); fault != nil {
		r.drop(fault)
		return
	}
	var response []byte
	fault := dispatch.ErrPanicked
	// On a goroutine of its own: this one has to go on, whatever users' code does.
	_ = safely.Apart(func() { response, fault = r.dispatch(nil) }) // a failure is answered and in the log
	if fault != nil || peer.Cancelled(r.ctx) {
		r.conn.session.Store(nil)
		r.conn.stream.close()
	} else {
		r.conn.manager.Host.Opened(r.session)
	}
	r.answer(r.orPanicked(response))
}

// notify serves a notification; nothing is answered.
func (r *request) notify() {
	if r.message.Method == protocol.MethodInitialized && r.session != nil && r.session.SetInitialized() {
		r.conn.stream.start(r.session)
	}
	r.ctx = r.within(r.conn.ctx)
	if f, fault := r.frame(); fault == nil {
		r.conn.manager.notify(f)
	}
}

// frame makes the Frame that r is served with.
func (r *request) frame() (*frame.Frame, *protocol.Error) {
	via := r.conn.opts.via
	if r.by != nil {
		via.HTTP = r.by.WithContext(r.within(r.conn.ctx))
	}
	return r.conn.manager.Frame(r.ctx, &r.message, &r.params, r.revision, r.session, frame.Config{Transport: via, Peer: r})
}

// within returns the context that r is served in: ctx, with the values of the
// request that brought r, if one did. Its identity is that of r.
func (r *request) within(ctx context.Context) context.Context {
	if r.by == nil {
		return ctx
	}
	return withValues{ctx, r.by.Context()}
}

// withValues is a context with the values of another one before its own, by which
// package context finds why it ended.
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

// begin makes a request one that is under way, or refuses it.
func (r *request) begin() bool {
	ctx := r.conn.ctx
	if r.message.Method == protocol.MethodListen && r.revision.Modern() {
		ctx = r.conn.stream.ctx
	}
	if r.conn.manager.refuses(r.message.Method) {
		r.refuse(r.revision, errShutsDown)
		return false
	}
	var ok bool
	if r.ctx, r.finish, ok = r.conn.inflight.Start(r.within(ctx), r.message.ID); !ok {
		r.refuse(r.revision, protocol.Errorf(protocol.CodeInvalidRequest, "a request with id %s is under way", r.message.ID))
		return false
	}
	if !r.conn.addRunning() {
		r.finish()
		r.refuse(r.revision, errShutsDown)
		return false
	}
	return true
}

// skip ends a request whose time is over before it has started.
func (r *request) skip() {
	fault := errShutsDown
	if !r.conn.isStopped() {
		fault = protocol.Errorf(protocol.CodeBusy, "the connection ended before the request had its turn: %w", context.Cause(r.ctx))
	}
	r.drop(fault)
}

// drop answers a request that will not start with an error.
func (r *request) drop(fault *protocol.Error) {
	r.answer(protocol.AppendErrorResponse(nil, r.message.ID, fault, r.revision))
}

// serve answers one request, in buffer if that is large enough, and returns
// the buffer.
func (r *request) serve(buffer []byte) (response []byte) {
	if r.ctx.Err() != nil {
		r.skip()
		return buffer
	}
	defer func() { r.answer(r.orPanicked(response)) }()
	response, _ = r.dispatch(buffer)
	return response
}

// orPanicked returns the answer to r: what it is if its handler has ended the
// goroutine, and there is no response.
func (r *request) orPanicked(response []byte) []byte {
	if response == nil {
		return dispatch.AppendPanicked(nil, r.message.ID, r.revision)
	}
	return response
}

// dispatch returns the answer to a request, and its error if it is one.
func (r *request) dispatch(buffer []byte) ([]byte, *protocol.Error) {
	f, fault := r.frame()
	if fault != nil {
		return protocol.AppendErrorResponse(buffer, r.message.ID, fault, r.revision), fault
	}
	return r.conn.manager.Host.Dispatcher().Serve(f, buffer)
}

// answer ends a request with its answer, which is sent unless the client
// cancelled it.
func (r *request) answer(response []byte) {
	defer r.conn.running.Done()
	r.mu.Lock()
	r.answered = true
	r.mu.Unlock()
	cancelled := peer.Cancelled(r.ctx)
	r.finish() // before the answer is out, so that its id is free again
	if cancelled {
		r.reply(nil)
	} else {
		r.reply(response)
	}
}

// admit decides the era of a message and checks what must be right before
// anything runs.
func (r *request) admit() (fault *protocol.Error) {
	r.session = r.conn.session.Load()
	r.revision = r.conn.revision()
	if r.isModern() {
		if fault := r.modernFault(); fault != nil {
			return fault
		}
		r.session = nil
		r.revision = protocol.Latest
		if r.message.IsRequest() {
			rev, fault := r.params.Meta.CheckModern(r.conn.manager.Revisions)
			if fault != nil {
				return fault
			}
			r.revision = rev
		}
		return nil
	}
	switch {
	case r.message.Method == protocol.MethodInitialize && r.message.IsRequest():
		return r.open()
	case r.session != nil:
		return nil
	case r.message.Method == protocol.MethodPing || r.message.IsNotification():
		r.revision = protocol.LatestLegacy
		return nil
	}
	return protocol.Errorf(protocol.CodeInvalidRequest,
		"not initialized: send initialize first, or a request of revision %s with its _meta", protocol.Latest)
}

// open begins the session of the connection, for an initialize request.
func (r *request) open() *protocol.Error {
	if r.session != nil {
		return protocol.Errorf(protocol.CodeInvalidRequest, "this connection is initialized already")
	}
	client, fault := readClient(r.params.Raw, r.conn.manager.Revisions)
	if fault != nil {
		return fault
	}
	client.Principal = frame.PrincipalOf(r.conn.ctx)
	r.revision = client.Revision
	r.session = session.New(r.conn.ctx, rand.Text(), client) // nobody else can guess its id
	r.conn.session.Store(r.session)
	r.conn.stream.open(r.session)
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	if r.conn.inputErr != nil {
		r.session.Pending.Close(r.conn.inputErr)
	}
	return nil
}

// modernFault returns why a modern request is not served where it came.
func (r *request) modernFault() *protocol.Error {
	switch {
	case r.batch != nil:
		return protocol.ErrModernInBatch()
	case r.conn.opts.legacy:
		return protocol.Errorf(protocol.CodeInvalidRequest,
			"the HTTP+SSE transport has no revision %s: send initialize, or POST to the endpoint without a session", protocol.Latest)
	}
	return nil
}

// cancelRequest ends the request that a notifications/cancelled names, and returns
// its id. One that names none is to be ignored.
func cancelRequest(under *peer.Inflight, params *protocol.Params) (id protocol.ID) {
	var cancelled protocol.CancelledParams
	if json.Unmarshal(params.Raw, &cancelled) == nil {
		id = cancelled.RequestID
		under.CancelFor(id, visible.Line(cancelled.Reason, visible.Sentence))
	}
	return id
}

// batch gathers the answers to the messages of a JSON array, which leave
// together, in the order of the questions.
type batch struct {
	mu      sync.Mutex
	answers [][]byte // nil where there is none
	open    int      // messages without a reply
}

// put keeps a copy of the answer to message i, nil for none. When it was the
// last, it returns the array, nil if that would be empty.
func (b *batch) put(i int, answer []byte) (all []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer != nil {
		b.answers[i] = append([]byte{}, answer...)
	}
	if b.open--; b.open > 0 {
		return nil
	}
	return protocol.AppendBatch(nil, b.answers)
}
