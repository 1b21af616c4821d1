package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// link is the server's side of one connection.
//
// One goroutine reads, and waits for nothing that a client or a handler does,
// so that a cancellation, an answer or the end of the input is seen whatever
// else is under way. Its states:
//
//	            a message                        the end, or an error
//	 ┌─────────┐ ───────► handled or queued,     ───────► ┌───────┐ all is answered, ┌──────┐
//	 │ reading │          reading again                   │ ended │ ───────────────► │ over │
//	 └─────────┘ ◄─────── room                            └───────┘ or given up      └──────┘
//	     │ ▲      ┌──────┐                                    ▲
//	     └─┼────► │ full │ ───────────────────────────────────┘
//	       └───── └──────┘ no room within DefaultWriteTimeout, or the connection is closed
//
//	reading  a response      goes to the question that waits for it
//	         a cancellation  ends its request, or takes it out of the queue: it never starts
//	         a ping          is served by a goroutine of its own, whatever else waits
//	         a request       is given to a worker if one is free, or there may be one more
//	         anything else, and requests that find no worker, wait in a queue,
//	         which a goroutine serves in order that is there only as long as
//	         something waits. Beyond maxWaiting: CodeBusy.
//	full     the client does not take what is answered at once (see replies): nothing more
//	         is read for as long, and for DefaultWriteTimeout at most.
//	ended    questions to the client fail. Calls are cancelled if it has left, else
//	         when Timeouts.Grace is over; what waits in the queue counts as a call.
//
// A shutdown, the end of the context and Stop need no reader: they refuse what
// waits (halted), and close the connection once the calls have ended, which ends
// reading too.
type link struct {
	server  *Server
	conn    transport.Conn
	opts    linkOptions
	ctx     context.Context
	session atomic.Pointer[session.Session] // nil until initialize

	inflight peer.Inflight
	queue    queue // its turn is to start requests
	pings    queue
	work     chan *job
	workers  int            // of who has the turn
	staff    sync.WaitGroup // the workers, and who serves the queues
	running  sync.WaitGroup // requests and notifications, those that wait too
	unasked  unasked
	replies  replies
	unread   atomic.Pointer[error] // why the client is given up; nil if it is not
	lost     atomic.Bool           // a notification was dropped

	limit   context.Context // ends when calls and answers have had their time
	cut     context.CancelFunc
	over    chan struct{} // closed at the end of the input
	readErr error         // why it ended; nil if in order
	ended   chan struct{} // closed when the goroutine that reads has ended
	settled chan struct{} // closed when everything is written, or cannot be

	mu         sync.Mutex
	halted     chan struct{} // closed when no request is started any more
	inputErr   error         // why no input comes any more; nil while it may
	ousted     chan struct{} // closed when the session is ended by a handler
	oustReason error         // why; set before
}

// serve runs the connection until its input ends or ctx does. What it leaves
// behind, wait waits for.
func (s *Server) serve(ctx context.Context, conn transport.Conn, opts linkOptions) (*link, error) {
	ctx, done, ok := s.running.Start(ctx)
	if !ok {
		return nil, ErrServerClosed
	}
	defer done()
	inner, end := context.WithCancel(ctx)
	defer end()
	l := &link{
		server: s, conn: conn, opts: opts, ctx: inner, work: make(chan *job), halted: make(chan struct{}),
		over: make(chan struct{}), ended: make(chan struct{}), settled: make(chan struct{}), ousted: make(chan struct{}),
	}
	l.limit, l.cut = context.WithCancel(ctx)
	defer l.cut()
	l.unasked.init(inner)
	l.replies.conn = conn
	l.queue.serve, l.pings.serve = l.inTurn, l.ping
	l.queue.all, l.pings.all = &s.waiting, &s.waiting
	go func() {
		defer close(l.ended)
		l.read()
	}()
	down := s.connections.down
	select {
	case <-down:
		if l.session.Load() == nil { // or else it knows no tasks
			down = s.connections.last
		}
	case <-l.over:
	case <-ctx.Done():
	case <-l.ousted:
	}
	var err error
	select {
	case <-l.over:
		err = l.readErr
	case <-ctx.Done():
		err = context.Cause(ctx)
		l.stop()
	case <-down:
		err = ErrServerClosed
		l.stop()
	case <-l.ousted:
		err = l.oustReason
		l.stop()
		l.inflight.CancelAll(err)
		l.cut()
	}
	settleErr := l.settle(end)
	switch {
	case err != nil:
	case settleErr == ErrStillRunning && ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		err = settleErr
	}
	if errors.Is(err, peer.ErrShutdown) {
		err = ErrServerClosed // the context of a connection may hear of it first
	}
	return l, err
}

// ErrServerClosed is what serving returns once Shutdown was called.
var ErrServerClosed = fmt.Errorf("mcp: %w", peer.ErrShutdown)

// stop keeps further requests from starting, also those that wait.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.halted)
}

// isHalted tells whether stop was called.
func (l *link) isHalted() bool {
	select {
	case <-l.halted:
		return true
	default:
		return false
	}
}

// read takes messages until the end of the input, and sees to what ends with
// it.
func (l *link) read() {
	defer close(l.work) // the workers end
	var err error
	defer func() { // also if the connection has ended the goroutine
		stop := l.endInput(err)
		defer stop()
		<-l.settled
		l.detach() // of a session that was opened while the connection ended
	}()
	safely.Do(func() { err = l.readAll() }, func(f *safely.Failure) { err = f.Detail() })
}

// readAll takes messages and returns why there are no more.
func (l *link) readAll() error {
	for {
		message, err := l.conn.Read()
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		if err == nil {
			l.handle(message)
			continue
		}
		tooLong, ok := errors.AsType[*transport.TooLongError](err)
		if unread := l.unread.Load(); unread != nil {
			return *unread
		}
		if errors.Is(err, transport.ErrHalfMessage) {
			l.turnAway(&job{link: l}, protocol.Errorf(protocol.CodeParseError, "%w", err))
		}
		if !ok {
			return err
		}
		l.turnAway(&job{link: l}, protocol.Errorf(protocol.CodeInvalidRequest, "%w", tooLong))
	}
}

// say sends what the goroutine that reads has to say. It ends the connection of
// a client that does not take it.
func (l *link) say(message []byte) {
	if err := l.replies.say(message); err != nil && l.unread.CompareAndSwap(nil, &err) {
		_ = l.conn.Close() // reading ends, which tells why
	}
}

// handle takes what was read: one message, or a batch of them.
func (l *link) handle(text []byte) {
	j := &job{link: l, size: len(text)}
	if l.opts.by != nil {
		j.by = l.opts.by()
	}
	if protocol.IsBatch(text) {
		if l.session.Load() != nil {
			l.handleBatch(text, j.by)
		} else { // the revision that decides about it may be on its way
			l.inOrder(j, func() { l.handleBatch(text, j.by) })
		}
		return
	}
	if fault := protocol.Scan(text, protocol.Limits{}, &j.message); fault != nil {
		l.unreadable(j, fault)
		return
	}
	l.take(j)
}

// unreadable takes a message with a fault.
func (l *link) unreadable(j *job, fault *protocol.Error) {
	if !j.message.MeantAsResponse() {
		l.turnAway(j, fault)
		return
	}
	if x := l.session.Load(); x != nil {
		x.Pending.Spoil(j.message.ID, fault)
	}
	j.reply(nil)
}

// take takes one message. It waits for nothing but room for an answer.
func (l *link) take(j *job) {
	m := &j.message
	if m.IsResponse() {
		if x := l.session.Load(); x != nil {
			x.Pending.Answer(m)
		}
		j.reply(nil)
		return
	}
	fault := protocol.ScanParams(m, &j.params)
	switch {
	case m.IsNotification():
		if fault == nil && m.Method == protocol.MethodCancelled {
			l.cancel(j)
		}
		j.reply(nil)
		if fault == nil && l.enter() {
			l.enqueue(&l.queue, j)
		}
		return
	case fault != nil:
		l.turnAway(j, fault)
		return
	}
	if j.revision = l.revision(); j.isModern() {
		j.revision = protocol.Latest
	}
	switch {
	case !l.begin(j):
	case m.Method == protocol.MethodPing:
		l.enqueue(&l.pings, j)
	case m.Method == protocol.MethodInitialize && !j.revision.Modern() && l.queue.isFree() && !l.server.greetsSlowly():
		l.initialize(j) // which is over before anything else is answered
	case m.Method == protocol.MethodInitialize || !l.queue.isFree() || !l.start(j, false):
		l.enqueue(&l.queue, j)
	}
}

// turnAway answers what is no message, or a request without right params, in
// the form of the revision that is spoken when all before it has been served.
func (l *link) turnAway(j *job, fault *protocol.Error) {
	l.inOrder(j, func() { j.refuse(l.revision(), fault) })
}

// inOrder calls do when everything has been served, or given to a worker, that
// was read before.
func (l *link) inOrder(j *job, do func()) {
	switch {
	case l.queue.isFree():
		do()
	case l.enter():
		j.late = do
		l.enqueue(&l.queue, j)
	default:
		j.reply(nil)
	}
}

// enqueue lets j, which counts as running, wait for its turn.
func (l *link) enqueue(to *queue, j *job) {
	j.apart = true
	first, ok := to.put(j)
	if ok {
		if first {
			l.staff.Go(func() { to.run(&l.staff) })
		}
		return
	}
	j.apart = false
	busy := protocol.Errorf(protocol.CodeBusy, "too much is waiting beside the calls under way: a connection may have %d MiB of messages waiting, and all together %d MiB", maxWaiting>>20, maxWaitingAll>>20)
	switch {
	case j.late != nil:
		j.refuse(l.revision(), busy)
		l.running.Done()
	case j.message.IsNotification():
		if l.lost.CompareAndSwap(false, true) {
			safely.Log(l.server.logger.Warn(), "a client sends notifications faster than they are handled; some are dropped")
		}
		l.running.Done()
	default:
		l.drop(j, busy)
	}
}

// inTurn serves what has waited in the queue.
func (l *link) inTurn(j *job) {
	switch {
	case j.late != nil:
		defer l.running.Done()
		j.late()
	case j.message.IsNotification():
		defer l.running.Done()
		if l.admit(j) == nil {
			l.notify(j)
		}
	case j.message.Method == protocol.MethodInitialize && !j.revision.Modern():
		l.initialize(j)
	default:
		l.start(j, true)
	}
}

// ping serves a ping.
func (l *link) ping(j *job) {
	if fault := l.admit(j); fault != nil {
		l.drop(j, fault)
		return
	}
	l.serve(j, nil)
}

// revision returns what an answer is written in whose request cannot tell.
func (l *link) revision() protocol.Revision {
	if x := l.session.Load(); x != nil {
		return x.Revision()
	}
	return 0
}

// admit decides the era of a message and checks what must be right before
// anything runs.
func (l *link) admit(j *job) (fault *protocol.Error) {
	j.session = l.session.Load()
	j.revision = l.revision()
	if j.isModern() {
		if fault := l.modernFault(j); fault != nil {
			return fault
		}
		j.session = nil
		j.revision = protocol.Latest
		if j.message.IsRequest() {
			rev, fault := j.params.Meta.CheckModern(l.server.opts.Revisions)
			if fault != nil {
				return fault
			}
			j.revision = rev
		}
		return nil
	}
	switch {
	case j.message.Method == protocol.MethodInitialize && j.message.IsRequest():
		return l.open(j)
	case j.session != nil:
		return nil
	case j.message.Method == protocol.MethodPing || j.message.IsNotification():
		j.revision = protocol.LatestLegacy
		return nil
	}
	return protocol.Errorf(protocol.CodeInvalidRequest,
		"not initialized: send initialize first, or a request of revision %s with its _meta", protocol.Latest)
}

// open begins the session of the connection, for an initialize request.
func (l *link) open(j *job) *protocol.Error {
	if j.session != nil {
		return protocol.Errorf(protocol.CodeInvalidRequest, "this connection is initialized already")
	}
	client, fault := l.server.clientOf(j.params.Raw)
	if fault != nil {
		return fault
	}
	client.Principal = frame.PrincipalOf(l.ctx)
	j.revision = client.Revision
	j.session = session.New(l.ctx, rand.Text(), client) // nobody else can guess its id
	l.session.Store(j.session)
	l.attach(j.session)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inputErr != nil {
		j.session.Pending.Close(l.inputErr)
	}
	return nil
}
