package conn

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// Conn is the server's side of one connection.
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
//	full     the client does not take what is answered at once (see writeQueue): nothing more
//	         is read for as long, and for DefaultWriteTimeout at most.
//	ended    questions to the client fail. Calls are cancelled if it has left, else
//	         when Config.Grace is over; what waits in the queue counts as a call.
//
// A shutdown, the end of the context and closeWith need no reader: they refuse
// what waits (stop), and close the connection once the calls have ended, which ends
// reading too.
type Conn struct {
	manager   *Manager
	transport transport.Conn
	opts      options
	ctx       context.Context
	end       context.CancelFunc              // of ctx
	session   atomic.Pointer[session.Session] // nil until initialize

	inflight    peer.Inflight
	queue       requestQueue // of what waits for a worker, or for what was read before it
	pings       requestQueue
	work        chan *request  // to workers that have nothing to do
	workerCount int            // belongs to who may start requests: see start
	workers     sync.WaitGroup // the workers, and who serves the queues
	running     sync.WaitGroup // requests and notifications, those that wait too; the last Add is before stopped
	stream      serverStream
	writes      writeQueue
	writeErr    atomic.Pointer[error] // why the client is given up; nil if it is not
	dropped     atomic.Bool           // a notification was

	grace      context.Context // ends when calls and answers have had their time
	endGrace   context.CancelFunc
	inputEnded chan struct{} // closed at the end of the input
	readErr    error         // why it ended, nil if in order; set before
	readerDone chan struct{} // closed when the goroutine that reads has ended
	flushed    chan struct{} // closed when everything is written, or cannot be

	mu          sync.Mutex
	stopped     chan struct{} // closed when no request is started any more
	inputErr    error         // why no input comes any more; nil while it may
	closing     chan struct{} // closed when the session is ended by a handler
	closeReason error         // why; set before
}

// options shape the service of one connection.
type options struct {
	via frame.Transport
	// legacy refuses modern requests, for a transport that has none.
	legacy bool
	// by returns the request that brought the message that was read last; nil for
	// a connection that brings them itself.
	by func() *http.Request
}

// newConn makes a Conn of what carries its messages.
func newConn(ctx context.Context, m *Manager, carrier transport.Conn, opts options) *Conn {
	c := &Conn{
		manager: m, transport: carrier, opts: opts, work: make(chan *request), stopped: make(chan struct{}),
		inputEnded: make(chan struct{}), readerDone: make(chan struct{}), flushed: make(chan struct{}), closing: make(chan struct{}),
	}
	c.ctx, c.end = context.WithCancel(ctx)
	c.grace, c.endGrace = context.WithCancel(ctx)
	c.stream.init(c)
	c.writes.to = carrier
	c.queue.serve, c.pings.serve = c.serveQueued, c.ping
	c.queue.all, c.pings.all = &m.waiting, &m.waiting
	return c
}

// serve runs the connection until its input ends or ctx does, from which its
// own context comes. What it leaves behind, wait waits for.
func (c *Conn) serve(ctx context.Context) error {
	defer c.end()
	defer c.endGrace()
	go func() {
		defer close(c.readerDone)
		c.read()
	}()
	down := c.manager.down
	select {
	case <-down:
		if c.session.Load() == nil { // or else it knows no tasks
			down = c.manager.last
		}
	case <-c.inputEnded:
	case <-ctx.Done():
	case <-c.closing:
	}
	var err error
	select {
	case <-c.inputEnded:
		err = c.readErr
	case <-ctx.Done():
		err = context.Cause(ctx)
		c.stop()
	case <-down:
		err = ErrServerClosed
		c.stop()
	case <-c.closing:
		err = c.closeReason
		c.stop()
		c.inflight.CancelAll(err)
		c.endGrace()
	}
	flushErr := c.finish()
	switch {
	case err != nil:
	case flushErr == ErrStillRunning && ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		err = flushErr
	}
	if errors.Is(err, peer.ErrShutdown) {
		err = ErrServerClosed // the context of a connection may hear of it first
	}
	return err
}

// stop keeps further requests from starting, also those that wait.
func (c *Conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.stopped)
}

// isStopped reports whether stop was called.
func (c *Conn) isStopped() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// read takes messages until the end of the input, and sees to what ends with
// it.
func (c *Conn) read() {
	defer close(c.work) // the workers end
	var err error
	defer func() { // also if the connection has ended the goroutine
		stop := c.endInput(err)
		defer stop()
		<-c.flushed
		c.stream.close() // of a session that was opened while the connection ended
	}()
	safely.Do(func() { err = c.readAll() }, func(f *safely.Failure) { err = f.Detail() })
}

// readAll takes messages and returns why there are no more.
func (c *Conn) readAll() error {
	for {
		message, err := c.transport.Read()
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		if err == nil {
			c.receive(message)
			continue
		}
		tooLong, ok := errors.AsType[*transport.TooLongError](err)
		if gone := c.writeErr.Load(); gone != nil {
			return *gone
		}
		if errors.Is(err, transport.ErrHalfMessage) {
			c.reject(&request{conn: c}, protocol.Errorf(protocol.CodeParseError, "%w", err))
		}
		if !ok {
			return err
		}
		c.reject(&request{conn: c}, protocol.Errorf(protocol.CodeInvalidRequest, "%w", tooLong))
	}
}

// writeSoon is for the goroutine that reads, which must not wait for the client.
// It ends the connection of a client that does not take what it is sent.
func (c *Conn) writeSoon(message []byte) {
	if err := c.writes.writeSoon(message); err != nil && c.writeErr.CompareAndSwap(nil, &err) {
		_ = c.transport.Close() // reading ends, which tells why
	}
}

// receive takes what was read: one message, or a batch of them.
func (c *Conn) receive(text []byte) {
	r := &request{conn: c, size: len(text)}
	if c.opts.by != nil {
		r.by = c.opts.by()
	}
	if protocol.IsBatch(text) {
		if c.session.Load() != nil {
			c.receiveBatch(text, r.by)
		} else { // the revision that decides about it may be on its way
			c.inOrder(r, func() { c.receiveBatch(text, r.by) })
		}
		return
	}
	if fault := protocol.Scan(text, protocol.Limits{}, &r.message); fault != nil {
		c.receiveFaulty(r, fault)
		return
	}
	c.accept(r)
}

// receiveFaulty takes a message with a fault.
func (c *Conn) receiveFaulty(r *request, fault *protocol.Error) {
	if !r.message.MeantAsResponse() {
		c.reject(r, fault)
		return
	}
	if x := c.session.Load(); x != nil {
		x.Pending.Spoil(r.message.ID, fault)
	}
	r.reply(nil)
}

// accept takes one message. It waits for nothing but room for an answer.
func (c *Conn) accept(r *request) {
	m := &r.message
	if m.IsResponse() {
		if x := c.session.Load(); x != nil {
			x.Pending.Answer(m)
		}
		r.reply(nil)
		return
	}
	fault := protocol.ScanParams(m, &r.params)
	switch {
	case m.IsNotification():
		if fault == nil && m.Method == protocol.MethodCancelled {
			c.cancel(r)
		}
		r.reply(nil)
		if fault == nil && c.addRunning() {
			c.enqueue(&c.queue, r)
		}
		return
	case fault != nil:
		c.reject(r, fault)
		return
	}
	if r.revision = c.revision(); r.isModern() {
		r.revision = protocol.Latest
	}
	switch {
	case !r.begin():
	case m.Method == protocol.MethodPing:
		c.enqueue(&c.pings, r)
	case m.Method == protocol.MethodInitialize && !r.revision.Modern() && c.queue.isIdle() && !c.manager.Host.InitializesSlowly():
		r.initialize() // which is over before anything else is answered
	case m.Method == protocol.MethodInitialize || !c.queue.isIdle() || !c.start(r, false):
		c.enqueue(&c.queue, r)
	}
}

// reject answers what is no message, or a request without right params, in
// the form of the revision that is spoken when all before it has been served.
func (c *Conn) reject(r *request, fault *protocol.Error) {
	c.inOrder(r, func() { r.refuse(c.revision(), fault) })
}

// inOrder calls do when everything has been served, or given to a worker, that
// was read before.
func (c *Conn) inOrder(r *request, do func()) {
	switch {
	case c.queue.isIdle():
		do()
	case c.addRunning():
		r.later = do
		c.enqueue(&c.queue, r)
	default:
		r.reply(nil)
	}
}

// enqueue lets r, which counts as running, wait in a queue. What finds no room
// there is refused, or dropped if it is a notification.
func (c *Conn) enqueue(to *requestQueue, r *request) {
	r.offReader = true
	first, ok := to.put(r)
	if ok {
		if first {
			c.workers.Go(func() { to.run(&c.workers) })
		}
		return
	}
	r.offReader = false
	busy := protocol.Errorf(protocol.CodeBusy, "too much is waiting beside the calls under way: a connection may have %d MiB of messages waiting, and all together %d MiB", maxWaiting>>20, maxWaitingAll>>20)
	switch {
	case r.later != nil:
		r.refuse(c.revision(), busy)
		c.running.Done()
	case r.message.IsNotification():
		if c.dropped.CompareAndSwap(false, true) {
			safely.Log(c.manager.Logger.Warn(), "a client sends notifications faster than they are handled; some are dropped")
		}
		c.running.Done()
	default:
		r.drop(busy)
	}
}

// serveQueued serves what has waited in the queue.
func (c *Conn) serveQueued(r *request) {
	switch {
	case r.later != nil:
		defer c.running.Done()
		r.later()
	case r.message.IsNotification():
		defer c.running.Done()
		if r.admit() == nil {
			r.notify()
		}
	case r.message.Method == protocol.MethodInitialize && !r.revision.Modern():
		r.initialize()
	default:
		c.start(r, true)
	}
}

// ping serves a ping: it waits for other pings alone.
func (c *Conn) ping(r *request) {
	if fault := r.admit(); fault != nil {
		r.drop(fault)
		return
	}
	r.serve(nil)
}

// revision returns what an answer is written in whose request cannot tell.
func (c *Conn) revision() protocol.Revision {
	if x := c.session.Load(); x != nil {
		return x.Revision()
	}
	return 0
}

// receiveBatch takes a JSON array of messages, which by has brought, if not nil.
func (c *Conn) receiveBatch(text []byte, by *http.Request) {
	messages, fault := protocol.ScanBatch(text, protocol.Limits{}, c.revision(), c.manager.Batch)
	if fault != nil {
		c.reject(&request{conn: c, size: len(text)}, fault)
		return
	}
	requests := make([]*request, len(messages))
	faults := make([]*protocol.Error, len(messages))
	b := &batch{answers: make([][]byte, len(messages)), open: len(messages)}
	for i, message := range messages {
		r := &request{conn: c, batch: b, index: i, size: len(message), by: by}
		requests[i] = r
		faults[i] = protocol.Scan(message, protocol.Limits{}, &r.message)
		if r.message.Method == protocol.MethodInitialize {
			c.reject(&request{conn: c, size: len(text)}, protocol.ErrInitializeInBatch())
			return
		}
	}
	for i, r := range requests {
		if faults[i] != nil {
			c.receiveFaulty(r, faults[i])
			continue
		}
		c.accept(r)
	}
}

// cancel ends the request that a cancellation names. One that waits is out of
// the queue at once, and its id is free.
func (c *Conn) cancel(r *request) {
	id := cancelRequest(&c.inflight, &r.params)
	for _, q := range []*requestQueue{&c.queue, &c.pings} {
		if waiting := q.remove(id); waiting != nil {
			waiting.answer(nil)
		}
	}
}

// start gives a request to a worker that is idle, or to a new one. When there
// are as many as allowed, it waits for one, or returns false if it may not. It is
// called by who serves the queue, or by the reader while nobody does.
func (c *Conn) start(r *request, mayWait bool) bool {
	if fault := r.admit(); fault != nil {
		r.drop(fault)
		return true
	}
	if r.message.Method == protocol.MethodListen && r.revision.Modern() {
		c.stream.subscribe(r)
		return true
	}
	r.offReader = true
	select {
	case c.work <- r:
		return true
	default:
	}
	if c.workerCount < c.manager.Concurrent {
		c.workerCount++
		c.workers.Go(func() { c.worker(r) })
		return true
	}
	if !mayWait {
		return false
	}
	select {
	case <-c.stopped:
		r.skip()
		return true
	default:
	}
	select {
	case c.work <- r:
	case <-c.stopped:
		r.skip()
	case <-r.ctx.Done():
		r.skip()
	}
	return true
}

// addRunning counts a message as under way, unless the connection is stopped.
func (c *Conn) addRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isStopped() {
		return false
	}
	c.running.Add(1)
	return true
}

// worker serves requests until there are no more.
func (c *Conn) worker(r *request) {
	defer func() {
		if r != nil { // a handler has ended the goroutine; another one takes its place
			c.workers.Go(func() { c.worker(<-c.work) })
		}
	}()
	var buffer []byte
	for ; r != nil; r = <-c.work {
		buffer = r.serve(buffer[:0])
		if cap(buffer) > maxKept {
			buffer = nil
		}
	}
}

// maxKept is the size, in bytes, from which a worker gives the memory of an
// answer back.
const maxKept = 64 << 10

// finish waits until the calls have ended and everything is written, and
// returns the error of the latter. Once grace has ended it does not wait for
// ever: a call that ignores its context, or a write that can neither be done
// nor be interrupted, is left behind. grace ends, too, when the client takes
// nothing for DefaultWriteTimeout, for which not every Conn has a time of its
// own.
func (c *Conn) finish() error {
	var err error
	go func() {
		defer close(c.flushed)
		c.running.Wait()
		c.stream.stop()
		c.stream.close()
		c.end()
		c.stream.sending.Wait()
		err = c.writes.flush()
	}()
	late := time.NewTicker(transport.DefaultWriteTimeout)
	defer late.Stop()
	written, stuck := c.writes.isStuck(-1)
	for !stuck && c.grace.Err() == nil {
		select {
		case <-c.flushed:
			return err
		case <-c.grace.Done():
		case <-late.C:
			if written, stuck = c.writes.isStuck(written); stuck {
				c.inflight.CancelAll(errUnread)
				c.endGrace()
			}
		}
	}
	for closed := false; ; closed = true {
		timer := time.NewTimer(settleTime)
		select {
		case <-c.flushed:
			timer.Stop()
			return err
		case <-timer.C:
		}
		if closed {
			return ErrStillRunning
		}
		_ = c.transport.Close() // what it could not write has an error of its own
	}
}

// wait waits for every goroutine of the connection, which is closed. err is
// why it ended; nothing is left behind any more. c may be nil.
func (c *Conn) wait(err error) error {
	if c != nil {
		<-c.readerDone
		<-c.flushed
		c.workers.Wait()
		c.writes.waitIdle()
	}
	if errors.Is(err, ErrStillRunning) {
		return nil
	}
	return err
}

// endInput is told why there is no more input: who has left wants no answers,
// and who may still read does not wait for ever. stop must be called when
// nothing is under way any more.
func (c *Conn) endInput(err error) (stop func()) {
	defer close(c.inputEnded)
	c.stream.stop()
	c.mu.Lock()
	c.inputErr = err
	c.mu.Unlock()
	if x := c.session.Load(); x != nil {
		x.Pending.Close(err) // no answer can come any more
	}
	if !errors.Is(err, io.EOF) {
		c.readErr = err
	}
	giveUp := func() {
		c.inflight.CancelAll(err)
		c.endGrace()
	}
	stop = func() {}
	switch grace := c.manager.Grace; {
	case c.readErr != nil || errors.Is(err, transport.ErrPeerGone):
		giveUp()
	case grace > 0:
		timer := time.AfterFunc(grace, giveUp)
		stop = func() { timer.Stop() }
	}
	return stop
}

// settleTime is how long calls that were cancelled may take to write their
// answers to a client that does not read, before the connection is closed over
// them, and how long that may take to free them.
const settleTime = time.Second

// ErrStillRunning is what ServeStdio returns when a call, or the writing of an
// answer, went on although its time was over.
var ErrStillRunning = errors.New("mcp: something under way ignored its end and was left behind")

// closeWith ends the connection for that reason.
func (c *Conn) closeWith(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeReason == nil {
		c.closeReason = reason
		close(c.closing)
	}
}

// reason returns why the session of the connection ends.
func (c *Conn) reason() error {
	select {
	case <-c.closing:
		return c.closeReason
	default:
	}
	select {
	case <-c.manager.down:
		return ErrServerClosed
	default:
	}
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return session.ErrClosed
}
