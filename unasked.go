package mcp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// unasked is what a connection sends that no call asked for: subscriptions of
// the modern era, and the messages of its legacy session.
type unasked struct {
	ctx  context.Context // of subscriptions; ends with the input
	stop context.CancelFunc

	subscriptions atomic.Int64
	passing       sync.WaitGroup
	detach        func() // takes the session from the server; nil if there is none
}

func (u *unasked) init(ctx context.Context) { u.ctx, u.stop = context.WithCancel(ctx) }

// subscribe serves subscriptions/listen on a goroutine of its own: it lasts, so
// it must not take the place of a call.
func (l *link) subscribe(j *job) {
	limit := l.server.opts.Limits.PerConnection
	if l.unasked.subscriptions.Add(1) > int64(limit) {
		l.unasked.subscriptions.Add(-1)
		l.drop(j, protocol.Errorf(protocol.CodeBusy,
			"the connection has %d subscriptions open, which is the limit", limit))
		return
	}
	j.apart = true
	go func() {
		defer l.unasked.subscriptions.Add(-1)
		to := &jobLine{job: j, wake: make(chan struct{}, 1)}
		o := &opening{wake: to.Wake}
		j.ctx = withOpening(j.ctx, o)
		var response []byte
		fault := dispatch.ErrPanicked
		defer func() {
			if fault != nil || o.sub == nil {
				o.drop()
			}
			l.answer(j, orPanicked(j, response))
		}()
		response, fault = l.dispatch(j, nil)
		if fault == nil && o.sub != nil {
			o.carry(to)
		}
	}()
}

// jobLine is the client's end of a subscription on a connection.
type jobLine struct {
	*job
	wake chan struct{} // holds one
}

var _ streamable.Line = (*jobLine)(nil)

// Wake makes Wait return true.
func (l *jobLine) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // it will anyway
	}
}

// Wait implements streamable.Line.
func (l *jobLine) Wait() bool {
	select {
	case <-l.wake:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// KeepAlive implements streamable.Line. Connections like this need no sign.
func (l *jobLine) KeepAlive() error { return nil }

// attach makes the server tell the session of the connection of changes. They
// wait until the client is initialized.
func (l *link) attach(x *session.Session) {
	detach := l.server.sessions.Attach(x, l.oust)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unasked.detach = func() {
		detach()
		x.Close(l.reason())
	}
}

// oust ends the connection for that reason.
func (l *link) oust(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.oustReason == nil {
		l.oustReason = reason
		close(l.ousted)
	}
}

// reason tells why the session of the connection ends.
func (l *link) reason() error {
	select {
	case <-l.ousted:
		return l.oustReason
	default:
	}
	select {
	case <-l.server.connections.down:
		return ErrServerClosed
	default:
	}
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	return session.ErrClosed
}

// pass sends what the session is told, from now on.
func (l *link) pass(x *session.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isHalted() {
		return
	}
	wake := make(chan struct{}, 1)
	out, leave := x.Listen("", func() {
		select {
		case wake <- struct{}{}:
		default: // it will look anyway
		}
	})
	l.unasked.passing.Go(func() {
		defer leave()
		for {
			_, message, over := x.Next(out)
			switch {
			case message != nil:
				if l.replies.write(message) != nil {
					return // the flush at the end has the error
				}
			case over:
				return
			default:
				<-wake
			}
		}
	})
}

// detach ends the session of the connection, if there is one.
func (l *link) detach() {
	l.mu.Lock()
	detach := l.unasked.detach
	l.unasked.detach = nil
	l.mu.Unlock()
	if detach != nil {
		detach()
	}
}
