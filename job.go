package mcp

import (
	"context"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
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
	batch    *batch // nil unless the message came in one
	place    int    // in batch
	apart    bool   // it has left the goroutine that reads

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
		cancel(&l.inflight, &j.params)
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
	j.apart = true
	select {
	case l.work <- j:
		return
	default:
	}
	if l.workers < l.server.opts.MaxConcurrent {
		l.workers++
		l.staff.Go(func() { l.worker(j) })
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
