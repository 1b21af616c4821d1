package mcp

import (
	"context"
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// job is one request on its way; it is the frame's Peer.
type job struct {
	link     *link
	message  protocol.Message
	params   protocol.Params
	revision protocol.Revision
	session  *session.Session
	ctx      context.Context
	finish   func()
	by       *http.Request // what brought it, on a connection to which messages are posted; else nil
	size     int           // bytes of its text
	late     func()        // what is to be done in its turn; nil to serve the message
	batch    *batch        // nil unless the message came in one
	place    int           // in batch
	apart    bool          // it has left the goroutine that reads

	mu       sync.Mutex
	answered bool
}

// Send implements frame.Peer.
func (j *job) Send(message []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.answered || peer.Cancelled(j.ctx) {
		return protocol.ErrAnswered
	}
	return j.write(message)
}

// reply sends the answer to j, which may be none; every message gets one
// reply. The error of a broken connection shows when the answers are flushed.
func (j *job) reply(response []byte) {
	switch {
	case j.batch != nil:
		if all := j.batch.put(j.place, response); all != nil {
			_ = j.write(all)
		}
	case response != nil:
		_ = j.write(response)
	}
}

// write sends a message that belongs to j.
func (j *job) write(message []byte) error {
	if !j.apart {
		j.link.say(message)
		return nil
	}
	return j.link.replies.write(message)
}

// refuse answers j with an error.
func (j *job) refuse(rev protocol.Revision, fault *protocol.Error) {
	j.reply(protocol.AppendErrorResponse(nil, j.message.ID, fault, rev))
}

// isModern tells whether j is of the modern era.
func (j *job) isModern() bool {
	return j.params.Meta.ProtocolVersion != "" || j.message.Method == protocol.MethodDiscover && j.link.session.Load() == nil
}

// initialize serves an initialize request before what was read after it: that
// must find the session as Options.OnSessionStart has left it, or not at all.
func (l *link) initialize(j *job) {
	if fault := l.admit(j); fault != nil {
		l.drop(j, fault)
		return
	}
	var response []byte
	fault := dispatch.ErrPanicked
	// On a goroutine of its own: this one has to go on, whatever OnSessionStart does.
	_ = safely.Apart(func() { response, fault = l.dispatch(j, nil) }) // a failure is answered and in the log
	if fault != nil || peer.Cancelled(j.ctx) {
		l.session.Store(nil)
		l.detach()
	} else {
		l.server.watchEnd(j.session)
	}
	l.answer(j, orPanicked(j, response))
}

// cancel ends the request that a cancellation names. One that waits is out of
// the queue at once, and its id is free.
func (l *link) cancel(j *job) {
	id := cancel(&l.inflight, &j.params)
	for _, q := range []*queue{&l.queue, &l.pings} {
		if waiting := q.remove(id); waiting != nil {
			l.answer(waiting, nil)
		}
	}
}

func (l *link) notify(j *job) {
	if j.message.Method == protocol.MethodInitialized && j.session != nil && j.session.SetInitialized() {
		l.pass(j.session)
	}
	j.ctx = j.within(l.ctx)
	if f, fault := l.frame(j); fault == nil {
		l.server.notify(f)
	}
}

func (l *link) frame(j *job) (*frame.Frame, *protocol.Error) {
	via := l.opts.via
	if j.by != nil {
		via.HTTP = j.by.WithContext(j.within(l.ctx))
	}
	return l.server.frameOf(j.ctx, &j.message, &j.params, j.revision, j.session, frame.Config{Transport: via, Peer: j})
}

// within returns the context that j is served in: ctx, with the values of the
// request that brought j, if one did. Its identity is that of j.
func (j *job) within(ctx context.Context) context.Context {
	if j.by == nil {
		return ctx
	}
	return lent{ctx, j.by.Context()}
}

// lent is a context with the values of another one before its own, by which
// package context finds why it ended.
type lent struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c lent) Value(key any) any {
	if value := c.values.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}

// start gives a request to a worker that is idle, or to a new one. When there
// are as many as allowed, it waits for one, or returns false if it may not. Who
// calls it has the turn.
func (l *link) start(j *job, mayWait bool) bool {
	if fault := l.admit(j); fault != nil {
		l.drop(j, fault)
		return true
	}
	if j.message.Method == protocol.MethodListen && j.revision.Modern() {
		l.subscribe(j)
		return true
	}
	j.apart = true
	select {
	case l.work <- j:
		return true
	default:
	}
	if l.workers < l.server.opts.Limits.Concurrent {
		l.workers++
		l.staff.Go(func() { l.worker(j) })
		return true
	}
	if !mayWait {
		return false
	}
	select {
	case <-l.halted:
		l.skip(j)
		return true
	default:
	}
	select {
	case l.work <- j:
	case <-l.halted:
		l.skip(j)
	case <-j.ctx.Done():
		l.skip(j)
	}
	return true
}

// begin makes a request one that is under way, or refuses it.
func (l *link) begin(j *job) bool {
	ctx := l.ctx
	if j.message.Method == protocol.MethodListen && j.revision.Modern() {
		ctx = l.unasked.ctx
	}
	if l.server.refuses(j.message.Method) {
		j.refuse(j.revision, errShutsDown)
		return false
	}
	var ok bool
	if j.ctx, j.finish, ok = l.inflight.Start(j.within(ctx), j.message.ID); !ok {
		j.refuse(j.revision, protocol.Errorf(protocol.CodeInvalidRequest, "a request with id %s is under way", j.message.ID))
		return false
	}
	if !l.enter() {
		j.finish()
		j.refuse(j.revision, errShutsDown)
		return false
	}
	return true
}

var errShutsDown = protocol.Errorf(protocol.CodeBusy, "the server shuts down")

// skip ends a request whose time is over before it has started.
func (l *link) skip(j *job) {
	fault := errShutsDown
	if !l.isHalted() {
		fault = protocol.Errorf(protocol.CodeBusy, "the connection ended before the request had its turn: %w", context.Cause(j.ctx))
	}
	l.drop(j, fault)
}

// drop answers a request that will not start with an error.
func (l *link) drop(j *job, fault *protocol.Error) {
	l.answer(j, protocol.AppendErrorResponse(nil, j.message.ID, fault, j.revision))
}

// enter counts a message as under way, unless the connection is stopped.
func (l *link) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isHalted() {
		return false
	}
	l.running.Add(1)
	return true
}

// worker serves requests until there are no more.
func (l *link) worker(j *job) {
	defer func() {
		if j != nil { // a handler has ended the goroutine; another one takes its place
			l.staff.Go(func() { l.worker(<-l.work) })
		}
	}()
	var buffer []byte
	for ; j != nil; j = <-l.work {
		buffer = l.serve(j, buffer[:0])
		if cap(buffer) > maxKept {
			buffer = nil
		}
	}
}

// maxKept is the size, in bytes, from which a worker gives the memory of an
// answer back.
const maxKept = 64 << 10

// serve answers one request, in buffer if that is large enough, and returns
// the buffer.
func (l *link) serve(j *job, buffer []byte) (response []byte) {
	if j.ctx.Err() != nil {
		l.skip(j)
		return buffer
	}
	defer func() { l.answer(j, orPanicked(j, response)) }()
	response, _ = l.dispatch(j, buffer)
	return response
}

// orPanicked returns the answer to j: what it is if its handler has ended the
// goroutine, and there is no response.
func orPanicked(j *job, response []byte) []byte {
	if response == nil {
		return dispatch.AppendPanicked(nil, j.message.ID, j.revision)
	}
	return response
}

// dispatch returns the answer to a request, and its error if it is one.
func (l *link) dispatch(j *job, buffer []byte) ([]byte, *protocol.Error) {
	f, fault := l.frame(j)
	if fault != nil {
		return protocol.AppendErrorResponse(buffer, j.message.ID, fault, j.revision), fault
	}
	return l.server.dispatch().Serve(f, buffer)
}

// answer ends a request with its answer, which is sent unless the client
// cancelled it.
func (l *link) answer(j *job, response []byte) {
	defer l.running.Done()
	j.mu.Lock()
	j.answered = true
	j.mu.Unlock()
	cancelled := peer.Cancelled(j.ctx)
	j.finish() // before the answer is out, so that its id is free again
	if cancelled {
		j.reply(nil)
	} else {
		j.reply(response)
	}
}
