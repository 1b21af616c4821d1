package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// ServeStdio serves one client over standard input and output, until the
// client closes standard input or ctx ends. Nothing else may write to standard
// output meanwhile.
//
// At the end of input it answers what is under way and returns nil. When ctx
// ends it cancels what is under way and returns ctx's cause; the goroutine
// that waits for standard input may stay until the process ends, because such
// a read cannot be interrupted.
func (s *Server) ServeStdio(ctx context.Context) error {
	_, err := s.serve(ctx, transport.NewStream(os.Stdin, os.Stdout, nil), linkOptions{via: frame.Transport{Kind: frame.Stdio}})
	return err
}

// link is the server's side of one connection.
type link struct {
	server  *Server
	conn    transport.Conn
	opts    linkOptions
	ctx     context.Context
	session *session.Session // nil until initialize; the reader's

	inflight peer.Inflight
	work     chan *job
	workers  int // the reader's
	running  sync.WaitGroup
	unasked  unasked

	mu      sync.Mutex
	stopped bool // no request is started any more
}

// job is one request on its way; it is the frame's Peer.
type job struct {
	link     *link
	message  protocol.Message
	params   protocol.Params
	revision protocol.Revision
	session  *session.Session
	ctx      context.Context
	finish   func()
	batch    *batch // nil unless the message came in one
	place    int    // in batch

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
	return j.link.conn.Write(message)
}

// serve runs the connection until its input ends or ctx does. read is closed
// when the goroutine that reads has ended.
func (s *Server) serve(ctx context.Context, conn transport.Conn, opts linkOptions) (read <-chan struct{}, err error) {
	ctx, done, ok := s.running.Start(ctx)
	if !ok {
		return nil, ErrServerClosed
	}
	defer done()
	inner, end := context.WithCancel(ctx)
	defer end()
	l := &link{server: s, conn: conn, opts: opts, ctx: inner, work: make(chan *job)}
	l.unasked.init(inner)
	ended := make(chan struct{})
	var readErr error
	go func() {
		defer close(ended)
		readErr = l.read()
	}()
	select {
	case <-ended:
		err = readErr
	case <-ctx.Done():
		err = context.Cause(ctx)
		l.stop()
	case <-s.connections.down:
		err = ErrServerClosed
		l.stop()
	}
	settled, flushErr := l.settle(ctx, end)
	if err == nil && settled {
		err = flushErr
	}
	return ended, err
}

// ErrServerClosed is what serving returns once Shutdown was called.
var ErrServerClosed = fmt.Errorf("mcp: %w", peer.ErrShutdown)

// stop keeps further requests from starting.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
}

// read takes messages until the end of the input, for which it returns nil.
func (l *link) read() error {
	defer close(l.work) // the workers end
	defer func() {
		l.unasked.stop()
		if l.session != nil {
			l.running.Wait()
			l.session.Close(l.reason())
		}
	}()
	for {
		message, err := l.conn.Read()
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		if err == nil {
			l.handle(message)
			continue
		}
		if errors.Is(err, io.EOF) {
			l.ended(err)
			return nil
		}
		tooLong, ok := errors.AsType[*transport.TooLongError](err)
		if !ok {
			l.inflight.CancelAll(err) // nobody is there to answer
			return err
		}
		l.refuse(protocol.ID{}, l.revision(), protocol.Errorf(protocol.CodeInvalidRequest, "%w", tooLong))
	}
}

// refuse answers with an error. That of a broken connection shows when the
// answers are flushed.
func (l *link) refuse(id protocol.ID, rev protocol.Revision, fault *protocol.Error) {
	_ = l.conn.Write(protocol.AppendErrorResponse(nil, id, fault, rev))
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

// reply sends the answer to j, which may be none; every message gets one
// reply. The error of a broken connection shows when the answers are flushed.
func (j *job) reply(response []byte) {
	switch {
	case j.batch != nil:
		j.batch.put(j.place, response)
	case response != nil:
		_ = j.link.conn.Write(response)
	}
}

// refuse answers j with an error.
func (j *job) refuse(rev protocol.Revision, fault *protocol.Error) {
	j.reply(protocol.AppendErrorResponse(nil, j.message.ID, fault, rev))
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

// initialize serves an initialize request before anything else is read: what
// follows must find the session as Options.Init has left it, or not at all.
func (l *link) initialize(j *job) {
	if !l.begin(l.ctx, j) {
		return
	}
	defer l.running.Done()
	response, code := l.dispatch(j, nil)
	if code != 0 {
		l.session = nil
		l.detach()
	} else {
		l.server.watchEnd(j.session)
	}
	l.answer(j, response)
}

func (l *link) notify(j *job) {
	switch j.message.Method {
	case protocol.MethodCancelled:
		l.inflight.Cancel(cancelledID(&j.params))
	case protocol.MethodInitialized:
		if j.session != nil && j.session.SetInitialized() {
			l.pass(j.session)
		}
	}
	j.ctx = l.ctx
	if f, fault := l.frame(j); fault == nil {
		l.server.notify(f)
	}
}

func (l *link) frame(j *job) (*frame.Frame, *protocol.Error) {
	return l.server.frameOf(j.ctx, &j.message, &j.params, j.revision, j.session, frame.Config{
		Transport: l.opts.via, Peer: j,
	})
}

// start gives a request to a worker that is idle, or to a new one, or waits
// for one when there are as many as allowed.
func (l *link) start(j *job) {
	if !l.begin(l.ctx, j) {
		return
	}
	select {
	case l.work <- j:
		return
	default:
	}
	if l.workers < l.server.opts.MaxConcurrent {
		l.workers++
		go l.worker(j)
		return
	}
	l.work <- j
}

// begin makes a request one that is under way, or refuses it. Its context comes
// from ctx.
func (l *link) begin(ctx context.Context, j *job) bool {
	var ok bool
	if j.ctx, j.finish, ok = l.inflight.Start(ctx, j.message.ID); !ok {
		j.refuse(j.revision, protocol.Errorf(protocol.CodeInvalidRequest, "a request with id %s is under way", j.message.ID))
		return false
	}
	if !l.enter() {
		j.finish()
		j.refuse(j.revision, protocol.Errorf(protocol.CodeBusy, "the server shuts down"))
		return false
	}
	return true
}

// enter counts a request as running, unless the connection is stopped.
func (l *link) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.running.Add(1)
	return true
}

// worker serves requests until there are no more.
func (l *link) worker(j *job) {
	var buffer []byte
	for ; j != nil; j = <-l.work {
		buffer = l.serve(j, buffer[:0])
		if cap(buffer) > maxKept {
			buffer = nil
		}
		l.running.Done()
	}
}

// maxKept is the size, in bytes, from which a worker gives the memory of an
// answer back.
const maxKept = 64 << 10

// serve answers one request, in buffer if that is large enough, and returns
// the buffer.
func (l *link) serve(j *job, buffer []byte) []byte {
	response, _ := l.dispatch(j, buffer)
	l.answer(j, response)
	return response
}

// dispatch returns the answer to a request, and the code of its error.
func (l *link) dispatch(j *job, buffer []byte) ([]byte, protocol.Code) {
	f, fault := l.frame(j)
	if fault != nil {
		return protocol.AppendErrorResponse(buffer, j.message.ID, fault, j.revision), fault.Code
	}
	return l.server.dispatch().Serve(f, buffer)
}

// answer sends the answer to a request, unless the client cancelled it.
func (l *link) answer(j *job, response []byte) {
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
