package conn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// serverStream is what a connection sends that answers no request: the messages
// of its legacy session, sent by a goroutine of its own, and modern
// subscriptions, each with a goroutine of its own.
//
// For the session its states are: none; open, from initialize on, when messages
// are kept; sending, from notifications/initialized on, because a client must
// not be sent anything before; and closed.
type serverStream struct {
	conn *Conn
	ctx  context.Context // of subscriptions; ends with the input
	stop context.CancelFunc

	subscriptions atomic.Int64
	sending       sync.WaitGroup // of start; the last Add is before conn is stopped
	leave         func()         // ends the session; nil if there is none; conn.mu is held
}

// init prepares s, which must be the stream of c.
func (s *serverStream) init(c *Conn) {
	s.conn = c
	s.ctx, s.stop = context.WithCancel(c.ctx)
}

// open attaches the session to the server, which tells it of changes from now
// on. They are kept until start.
func (s *serverStream) open(x *session.Session) {
	detach := s.conn.manager.Sessions.AttachConn(x, s.conn.closeWith)
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.leave = func() {
		detach()
		x.Close(s.conn.reason())
	}
}

// start begins to send the messages of the session, beginning with the
// retained ones. It does nothing on a connection that has stopped.
func (s *serverStream) start(x *session.Session) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.conn.isStopped() {
		return
	}
	open := make(chan struct{})
	opened := sync.OnceFunc(func() { close(open) })
	s.sending.Go(func() {
		defer opened() // of a session that has ended in the meantime
		// The error is that of the connection, which its flush at the end has.
		_ = x.ServeStream("", &sessionLine{s.conn, opened, make(chan struct{}, 1)})
	})
	<-open // messages before the end of the session have a sender
}

// sessionLine is the connection of a session as its only stream, of which nothing
// is lost: there is no coming back to it.
type sessionLine struct {
	conn   *Conn
	opened func()
	wake   chan struct{} // holds one
}

// Open implements core.StreamConn.
func (l *sessionLine) Open() error { l.opened(); return nil }

// Event implements core.EventWriter.
func (l *sessionLine) Event(_ string, message []byte) error { return l.conn.writes.write(message) }

// Pause implements core.EventWriter. It is for streams of answers, which this
// connection does not have.
func (l *sessionLine) Pause(time.Duration) error { return nil }

// Waker implements core.StreamConn.
func (l *sessionLine) Waker() func() { return func() { nudge(l.wake) } }

// Wait implements core.StreamConn. The session wakes it at its end.
func (l *sessionLine) Wait() bool {
	<-l.wake
	return true
}

// nudge makes the next receive from a channel that holds one continue. It
// never waits.
func nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it will anyway
	}
}

// close ends the session, if there is one; it may be called again. The
// goroutine of start ends with it.
func (s *serverStream) close() {
	s.conn.mu.Lock()
	leave := s.leave
	s.leave = nil
	s.conn.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// subscribe serves subscriptions/listen or events/stream on a goroutine of its own: it may last
// for hours and must not take a worker from the calls. The number of those
// goroutines is limited by Config.Subscriptions.
func (s *serverStream) subscribe(r *request) {
	limit := s.conn.manager.Subscriptions
	if s.subscriptions.Add(1) > int64(limit) {
		s.subscriptions.Add(-1)
		r.drop(protocol.Errorf(protocol.CodeBusy,
			"the connection has %d subscriptions open, the limit", limit))
		return
	}
	r.offReader = true
	go func() {
		defer s.subscriptions.Add(-1)
		to := &subscriptionLine{request: r, wake: make(chan struct{}, 1)}
		sub := &Subscription{wake: to.Wake}
		r.ctx = withSubscription(r.ctx, sub)
		var response []byte
		fault := dispatch.ErrPanicked
		defer func() {
			if fault != nil || !sub.IsOpen() {
				sub.drop()
			}
			r.answer(r.orPanicked(response))
		}()
		response, fault = r.dispatch(nil)
		if fault == nil && sub.IsOpen() {
			sub.carry(to)
		}
	}()
}

// subscriptionLine is the client's end of a subscription on a connection. It
// ends with its request.
type subscriptionLine struct {
	*request
	wake chan struct{} // holds one
}

var _ streamable.Line = (*subscriptionLine)(nil)

// Wake makes the next Wait, or the one in progress, return true. It never waits.
func (l *subscriptionLine) Wake() { nudge(l.wake) }

// Wait implements streamable.Line.
func (l *subscriptionLine) Wait() bool {
	select {
	case <-l.wake:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// ComeBack implements streamable.Line. A message cannot say it.
func (l *subscriptionLine) ComeBack(time.Duration) {}

// KeepAlive implements streamable.Line. There are no proxies on such a
// connection that would close it when it is idle, so that nothing is sent.
func (l *subscriptionLine) KeepAlive() error { return nil }
