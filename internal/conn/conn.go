package conn

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// Conn is the server's side of one connection.
//
// One goroutine reads, and waits for nothing that a client or a handler does, so that a
// cancellation, an answer or the end of the input is seen whatever else is in progress. Its
// states:
//
//	            a message                        the end, or an error
//	 ┌─────────┐ ───────► handled or queued,     ───────► ┌───────┐ all is answered, ┌──────┐
//	 │ reading │          reading again                   │ ended │ ───────────────► │ over │
//	 └─────────┘ ◄─────── room                            └───────┘ or given up      └──────┘
//	     │ ▲      ┌──────┐                                    ▲
//	     └─┼────► │ full │ ───────────────────────────────────┘
//	       └───── └──────┘ no room within facts.WriteTimeout, or the connection is closed
//
//	reading  a response      goes to the question that waits for it
//	         a cancellation  ends its request, or takes it out of the queue: it never starts
//	         a ping          is served by a goroutine of its own, whatever else waits
//	         a request       is given to a worker if one is free, or there may be one more
//	         anything else, and requests that find no worker, wait in a queue,
//	         which a goroutine serves in order that is there only as long as
//	         something waits. Beyond maxWaiting: CodeBusy.
//	full     the client does not take what is answered at once (see writeQueue): nothing more
//	         is read for as long, and for facts.WriteTimeout at most.
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

	inflight    inflight.Requests
	queue       requestQueue // of what waits for a worker, or for what was read before it
	pings       requestQueue
	work        chan *request  // to workers that have nothing to do
	workerCount int            // belongs to the goroutine that may start requests: see start
	workers     sync.WaitGroup // the workers, and who serves the queues
	running     sync.WaitGroup // requests and notifications, those that wait too; the last Add is before stopped
	stream      serverStream
	writes      writeQueue
	writeErr    atomic.Pointer[error] // why the client is given up; nil if it is not

	grace      context.Context // ends when calls and answers have had their time
	endGrace   context.CancelFunc
	inputEnded chan struct{} // closed at the end of the input
	readErr    error         // why it ended, nil if in order; set before
	readerDone chan struct{} // closed when the goroutine that reads has ended
	flushed    chan struct{} // closed when everything is written, or cannot be

	mu          sync.Mutex
	stopped     chan struct{} // closed when no request is started any more
	inputErr    error         // why no input comes any more; nil while it may
	drained     chan struct{} // closed when the client is to go elsewhere
	retry       time.Duration // after which it may; set before
	closing     chan struct{} // closed when the session is ended by a handler
	closeReason error         // why; set before
}

// options say how one connection is served.
type options struct {
	via core.Transport
	// legacy refuses modern requests, for a transport that has none.
	legacy bool
	// by returns the request that brought the message that was read last; nil for
	// a connection that brings them itself.
	by func() *http.Request
	// comeBack tells the client when to connect again; nil where that cannot be
	// said.
	comeBack func(retry time.Duration)
}

// newConn returns a Conn that carries its messages over carrier. Its context
// comes from ctx. serve must be called once.
func newConn(ctx context.Context, m *Manager, carrier transport.Conn, opts options) *Conn {
	c := &Conn{
		manager: m, transport: carrier, opts: opts, work: make(chan *request), stopped: make(chan struct{}),
		inputEnded: make(chan struct{}), readerDone: make(chan struct{}), flushed: make(chan struct{}), closing: make(chan struct{}), drained: make(chan struct{}),
	}
	c.ctx, c.end = context.WithCancel(ctx)
	c.grace, c.endGrace = context.WithCancel(ctx)
	c.stream.init(c)
	c.writes.to = carrier
	c.queue.serve, c.pings.serve = c.serveQueued, c.ping
	c.queue.all, c.pings.all = &m.waiting, &m.waiting
	return c
}

// serve runs the connection until its input ends, ctx ends, the server shuts
// down or a handler closes the session, and then until finish returns. ctx must
// be the context that c was made with. serve closes the transport only to free
// what is stuck in it. wait waits for the goroutines that it abandons.
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
	case <-c.drained:
		down = c.drained
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
		if down == c.drained {
			c.stream.stop() // nothing else ends the subscriptions of this connection
		}
	case <-c.closing:
		err = &wire.SessionEnd{Reason: c.closeReason}
		c.stop()
		c.inflight.CancelAll(c.closeReason)
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
	if errors.Is(err, inflight.ErrShutdown) {
		err = ErrServerClosed // the context of a connection may end first
	}
	return err
}

// stop keeps further requests from being started, including those that wait. It
// is called once, by serve.
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

// read takes messages until the input ends and then does what follows from that
// end. It runs on a goroutine of its own, of which the transport's Read may be
// users' code that ends it: hence the deferred calls.
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

// readAll takes messages and returns why there are no more; io.EOF is the
// orderly end. A message that is too long is answered and skipped, if the
// transport can continue after it.
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
		if errors.Is(err, facts.ErrHalfMessage) {
			c.reject(&request{conn: c}, wire.Refused("incomplete", protocol.CodeParseError, "%v", err))
		}
		if !ok {
			return err
		}
		c.receiveLong(tooLong)
	}
}

// receiveLong takes a message that is too long, of which the envelope is known. A
// notification is not answered (JSON-RPC 2.0 §4.1).
func (c *Conn) receiveLong(long *transport.TooLongError) {
	r := &request{conn: c}
	fault := wire.Refused("too_long", protocol.CodeInvalidRequest, "%v", long)
	text, whole := long.Message()
	var err error
	if r.message, err = protocol.Decode(text); err == nil && r.message.Kind() == protocol.KindNotification && whole {
		c.refused(fault)
		return
	}
	c.receiveFaulty(r, fault)
}

// writeSoon sends a message from the goroutine that reads. If the client does
// not take it in time, the connection ends.
func (c *Conn) writeSoon(message []byte) {
	if err := c.writes.writeSoon(message); err != nil && c.writeErr.CompareAndSwap(nil, &err) {
		_ = c.transport.Close() // reading ends, which tells why
	}
}

// receive takes the text that was read, which it owns: one message, or a batch.
func (c *Conn) receive(text []byte) {
	r := &request{conn: c, size: len(text)}
	if c.opts.by != nil {
		r.by = c.opts.by()
	}
	if wire.IsBatch(text) {
		if c.session.Load() != nil {
			c.receiveBatch(text, r.by)
		} else { // the revision that decides about it may be on its way
			c.inOrder(r, func() { c.receiveBatch(text, r.by) })
		}
		return
	}
	if fault := wire.Scan(text, &r.message); fault != nil {
		c.receiveFaulty(r, fault)
		return
	}
	c.accept(r)
}

// receiveFaulty takes a message that Scan has refused. A broken response makes
// the question fail that it is for; everything else is answered with the error.
func (c *Conn) receiveFaulty(r *request, fault *protocol.Error) {
	if r.message.Kind() != protocol.KindResponse {
		c.reject(r, fault)
		return
	}
	c.refused(fault)
	if x := c.session.Load(); x != nil {
		x.Pending.Spoil(r.message.ID, fault)
	}
	r.reply(nil)
}

// accept takes one message and decides where it is served: here (responses, and
// initialize if nothing is before it and no users' code is involved), by a
// worker, or from a queue. It waits for nothing but room in the writeQueue.
func (c *Conn) accept(r *request) {
	m := &r.message
	if m.Kind() == protocol.KindResponse {
		if x := c.session.Load(); x == nil || !x.Pending.Answer(m) {
			c.manager.unasked(c.opts.via, c.sessionID(), m)
		}
		r.reply(nil)
		return
	}
	fault := r.Read(m)
	switch {
	case m.Kind() == protocol.KindNotification:
		if fault == nil && m.Method == protocol.MethodCancelled {
			c.cancel(r)
		}
		r.reply(nil)
		switch {
		case fault != nil:
			c.refused(fault)
		case c.addRunning():
			c.enqueue(&c.queue, r)
		default:
			c.refused(errShutsDown)
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
	case m.Method == protocol.MethodInitialize && !r.revision.Modern() && c.queue.isIdle() && !c.manager.Hooks.InitializesSlowly():
		r.initialize() // which is over before anything else is answered
	case m.Method == protocol.MethodInitialize || !c.queue.isIdle() || !c.start(r, false):
		c.enqueue(&c.queue, r)
	}
}

// reject answers a text that is not a message, or a request with invalid
// params. The error takes the form of the revision that is spoken when all
// that was read before has been served, since an initialize may be among
// that.
func (c *Conn) reject(r *request, fault *protocol.Error) {
	c.inOrder(r, func() { r.refuse(c.revision(), fault) })
}

// inOrder calls do when everything that was read before has been served or
// given to a worker: at once if nothing waits, else in r's turn. r stands for
// do in the queue.
func (c *Conn) inOrder(r *request, do func()) {
	switch {
	case c.queue.isIdle():
		do()
	case c.addRunning():
		r.later = do
		c.enqueue(&c.queue, r)
	default:
		c.refused(errShutsDown)
		r.reply(nil)
	}
}

// refused reports a rejected message of the client to the observers.
func (c *Conn) refused(fault *protocol.Error) {
	c.manager.refused(c.opts.via, c.sessionID(), fault)
}

// sessionID returns the id of the session, "" if there is none.
func (c *Conn) sessionID() string {
	if x := c.session.Load(); x != nil {
		return x.ID()
	}
	return ""
}

// enqueue lets r wait for its turn in to. r must count as running (addRunning).
// If there is no room, a request is answered with CodeBusy and a notification
// is dropped.
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
	busy := protocol.Errorf(protocol.CodeBusy, "too many messages wait for the running calls: a connection may have %d MiB of messages waiting, and all together %d MiB", maxWaiting>>20, MaxWaiting>>20)
	switch {
	case r.later != nil:
		r.refuse(c.revision(), busy)
		c.running.Done()
	case r.message.Kind() == protocol.KindNotification:
		c.refused(busy)
		c.running.Done()
	default:
		r.drop(busy)
	}
}

// serveQueued serves a message from the queue, on the goroutine that serves the
// queue.
func (c *Conn) serveQueued(r *request) {
	switch {
	case r.later != nil:
		defer c.running.Done()
		r.later()
	case r.message.Kind() == protocol.KindNotification:
		defer c.running.Done()
		if fault := r.admit(); fault != nil {
			c.refused(fault)
		} else {
			r.notify()
		}
	case r.message.Method == protocol.MethodInitialize && !r.revision.Modern():
		r.initialize()
	default:
		c.start(r, true)
	}
}

// ping serves a ping from the queue of pings, which no other request delays.
func (c *Conn) ping(r *request) {
	if fault := r.admit(); fault != nil {
		r.drop(fault)
		return
	}
	r.serve(nil)
}

// revision returns the revision of the session, 0 if there is none. Errors are
// written in it when their request does not tell.
func (c *Conn) revision() protocol.Revision {
	if x := c.session.Load(); x != nil {
		return x.Revision()
	}
	return 0
}

// receiveBatch takes a JSON array of messages. by is the HTTP request that has
// brought it, nil on other transports. All messages are scanned before the
// first is taken, because initialize must not be in a batch.
func (c *Conn) receiveBatch(text []byte, by *http.Request) {
	messages, fault := wire.ScanBatch(text, c.revision(), c.manager.Batch)
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
		faults[i] = wire.Scan(message, &r.message)
		if r.message.Method == protocol.MethodInitialize {
			c.reject(&request{conn: c, size: len(text)}, wire.ErrInitializeInBatch())
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

// cancel cancels the request that a cancellation names. One that still waits
// leaves its queue and is finished at once, so that its id is free.
func (c *Conn) cancel(r *request) {
	id, _ := cancelRequest(&c.inflight, r.Params.Raw)
	for _, q := range []*requestQueue{&c.queue, &c.pings} {
		if waiting := q.remove(id); waiting != nil {
			waiting.answer(nil)
		}
	}
}

// start gives a request to an idle worker, or to a new one if there may be one
// more. If all are busy, it waits when mayWait is set and else returns false.
// It is called by the goroutine that serves the queue, or by the reader while
// the queue is idle; this is what protects c.workerCount.
func (c *Conn) start(r *request, mayWait bool) bool {
	if fault := r.admit(); fault != nil {
		r.drop(fault)
		return true
	}
	if wire.IsSubscription(r.message.Method) && r.revision.Modern() {
		c.stream.subscribe(r)
		return true
	}
	r.offReader = true
	select {
	case c.work <- r:
		return true
	default: // all are busy
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

// addRunning counts a message as in progress, for which c.running.Done must
// be called, or returns false if the connection has stopped.
func (c *Conn) addRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isStopped() {
		return false
	}
	c.running.Add(1)
	return true
}

// worker serves r and then requests from c.work, until that is closed. It keeps
// the buffer of its answers for the next one, unless that has grown large. If a
// handler ends the goroutine, another one takes the worker's place.
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

// maxKept is the size of a buffer, in bytes, beyond which it is not kept for
// the next answer.
const maxKept = 64 << 10

// finish waits until all calls have ended and everything is written, and
// returns the error of the writing. It waits without limit until c.grace ends.
// That happens when Config.Grace is over, when the client has disconnected, or
// here when no write ends for facts.WriteTimeout; some transports have no
// limit. From then on calls have settleTime, and once more after the
// connection has been closed. Calls that still run, because they ignore their
// context, are abandoned with ErrStillRunning.
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
		c.comeBack()
	}()
	late := time.NewTicker(facts.WriteTimeout)
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

// wait waits for every goroutine of the connection, which must be closed. After the end
// of ctx, which is that of serve, or Manager.Abandon it waits no longer than
// settleTime. err is what serve has returned; ErrStillRunning becomes nil if nothing
// is left behind any more. c may be nil.
func (c *Conn) wait(ctx context.Context, err error) error {
	if c == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.manager.abandoned, cancel)()
	ended := inflight.Within(ctx, settleTime, func() {
		<-c.readerDone
		<-c.flushed
		c.workers.Wait()
		c.writes.waitIdle()
	})
	if ended && errors.Is(err, ErrStillRunning) {
		return nil
	}
	return err
}

// endInput does what follows from the end of the input. Questions to the client
// fail. If the client has left altogether, its calls are cancelled; if it has
// only ended its side and may still read answers, they have Config.Grace. stop
// ends that limit and must be called when nothing is in progress any more.
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

// ErrStillRunning is the error of a connection whose call, or writing of a response,
// continues after its time. Its goroutine is abandoned.
var ErrStillRunning = errors.New("mcp: a running call ignored its end and was abandoned")

// drain ends the connection once its calls have ended, as a shutdown does. It is
// called once at most.
func (c *Conn) drain(retry time.Duration) {
	c.retry = retry
	close(c.drained)
}

// comeBack tells a client that was drained when to connect again. Writing waits for
// it, so that this is not for the goroutine that drains.
func (c *Conn) comeBack() {
	select {
	case <-c.drained:
		if c.opts.comeBack != nil {
			_ = safely.Try(func() error { c.opts.comeBack(c.retry); return nil }) // the connection ends anyway
		}
	default:
	}
}

// closeWith ends the connection. The reason of the first call counts. It is
// called by the session manager when the session is ended.
func (c *Conn) closeWith(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeReason == nil {
		c.closeReason = reason
		close(c.closing)
	}
}

// reason returns why the session of the connection ends, for its context.
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
	return core.ErrSessionClosed
}
