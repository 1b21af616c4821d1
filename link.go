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
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// link is the server's side of one connection.
type link struct {
	server  *Server
	conn    transport.Conn
	opts    linkOptions
	ctx     context.Context
	session *session.Session // nil until initialize; the reader's

	inflight peer.Inflight
	work     chan *job
	workers  int            // the reader's
	staff    sync.WaitGroup // the workers
	running  sync.WaitGroup // requests
	unasked  unasked
	replies  replies
	unread   atomic.Pointer[error] // why the client is given up; nil if it is not

	limit   context.Context // ends when calls and answers have had their time
	cut     context.CancelFunc
	over    chan struct{} // closed at the end of the input
	readErr error         // why it ended; nil if in order
	ended   chan struct{} // closed when the goroutine that reads has ended
	settled chan struct{} // closed when everything is written, or cannot be

	mu         sync.Mutex
	stopped    bool          // no request is started any more
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
		server: s, conn: conn, opts: opts, ctx: inner, work: make(chan *job),
		over: make(chan struct{}), ended: make(chan struct{}), settled: make(chan struct{}), ousted: make(chan struct{}),
	}
	l.limit, l.cut = context.WithCancel(ctx)
	defer l.cut()
	l.unasked.init(inner)
	l.replies.conn = conn
	go func() {
		defer close(l.ended)
		l.read()
	}()
	var err error
	select {
	case <-l.over:
		err = l.readErr
	case <-ctx.Done():
		err = context.Cause(ctx)
		l.stop()
	case <-s.connections.down:
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
	case settleErr == ErrLeftBehind && ctx.Err() != nil:
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

// stop keeps further requests from starting.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}

// read takes messages until the end of the input, and sees to what ends with
// it.
func (l *link) read() {
	defer close(l.work) // the workers end
	stop := l.endInput(l.readAll())
	defer stop()
	<-l.settled
	l.detach() // of a session that was opened while the connection ended
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
		if !ok {
			return err
		}
		l.refuse(protocol.ID{}, l.revision(), protocol.Errorf(protocol.CodeInvalidRequest, "%w", tooLong))
	}
}

// say sends what the goroutine that reads has to say. It ends the connection of
// a client that does not take it.
func (l *link) say(message []byte) {
	if err := l.replies.say(message); err != nil && l.unread.CompareAndSwap(nil, &err) {
		_ = l.conn.Close() // reading ends, which tells why
	}
}

// refuse answers with an error.
func (l *link) refuse(id protocol.ID, rev protocol.Revision, fault *protocol.Error) {
	l.say(protocol.AppendErrorResponse(nil, id, fault, rev))
}

// handle takes what was read: one message, or a batch of them.
func (l *link) handle(text []byte) {
	if protocol.IsBatch(text) {
		l.handleBatch(text)
		return
	}
	j := &job{link: l}
	if fault := protocol.Scan(text, protocol.Limits{}, &j.message); fault != nil {
		j.refuse(l.revision(), fault)
		return
	}
	l.take(j)
}

// take takes one message: notifications at once, so that they keep their
// order, requests by a worker.
func (l *link) take(j *job) {
	j.session = l.session
	if j.message.IsResponse() {
		if l.session != nil {
			l.session.Pending.Answer(&j.message)
		}
		j.reply(nil)
		return
	}
	if fault := l.admit(j); fault != nil {
		if j.message.IsRequest() {
			j.refuse(j.revision, fault)
		} else {
			j.reply(nil)
		}
		return
	}
	if j.message.IsNotification() {
		l.notify(j)
		j.reply(nil)
		return
	}
	if j.message.Method == protocol.MethodListen && j.revision.Modern() {
		l.subscribe(j)
		return
	}
	if j.message.Method == protocol.MethodInitialize && !j.revision.Modern() {
		l.initialize(j)
		return
	}
	l.start(j)
}

// revision returns what an answer is written in whose request cannot tell.
func (l *link) revision() protocol.Revision {
	if l.session != nil {
		return l.session.Revision()
	}
	return 0
}

// admit decides the era of a message and checks what must be right before
// anything runs.
func (l *link) admit(j *job) (fault *protocol.Error) {
	j.revision = l.revision()
	if fault = protocol.ScanParams(&j.message, &j.params); fault != nil {
		return fault
	}
	meta := &j.params.Meta
	if meta.ProtocolVersion != "" || j.message.Method == protocol.MethodDiscover && l.session == nil {
		if fault := l.modernFault(j); fault != nil {
			return fault
		}
		j.session = nil
		j.revision = protocol.Latest
		if j.message.IsRequest() {
			rev, fault := meta.CheckModern(l.server.opts.Revisions)
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
	case l.session != nil:
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
	if l.session != nil {
		return protocol.Errorf(protocol.CodeInvalidRequest, "this connection is initialized already")
	}
	client, fault := l.server.clientOf(j.params.Raw)
	if fault != nil {
		return fault
	}
	client.Principal = frame.PrincipalOf(l.ctx)
	j.revision = client.Revision
	j.session = session.New(l.ctx, rand.Text(), client) // nobody else can guess its id
	l.session = j.session
	l.attach(j.session)
	return nil
}
