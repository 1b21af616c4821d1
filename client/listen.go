package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
)

// Subscription is what a client wants to be told of. It lives until Close, until
// the server ends it, or until the client is closed; a lost connection it
// survives.
type Subscription struct {
	client *Client
	wanted protocol.SubscriptionFilter
	fn     func(Event)
	done   chan struct{} // closed at the end

	mu       sync.Mutex
	honoured protocol.SubscriptionFilter
	acked    chan struct{} // closed when the server has agreed; made anew per attempt
	isAcked  bool
	call     *call         // of the modern request that is under way
	over     chan struct{} // closed when that is over; nil if there was none
	closed   bool
	err      error
}

// Listen asks the server to tell of what filter says, and returns when the
// server has agreed. fn hears the notifications, as Options.OnNotification
// does, which hears them too; it may be nil. In legacy revisions changed lists
// are told anyway and resources are subscribed to one by one, so that the same
// code works with every server.
//
// Only the agreeing is bounded by ctx and the client's timeout.
func (c *Client) Listen(ctx context.Context, filter protocol.SubscriptionFilter, fn func(Event)) (*Subscription, error) {
	filter.ResourceSubscriptions = slices.Clone(filter.ResourceSubscriptions)
	filter.TaskIDs = slices.Clone(filter.TaskIDs)
	s := &Subscription{client: c, wanted: filter, fn: fn, done: make(chan struct{}), acked: make(chan struct{})}
	conn, err := c.current(ctx)
	if err != nil {
		return nil, wrap("listen", protocol.MethodListen, "", err)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, &Error{Op: "listen", Method: protocol.MethodListen, kind: ErrClosed, Err: errClientClosed}
	}
	c.subs[s] = struct{}{}
	c.mu.Unlock()
	if err := s.start(ctx, conn); err != nil {
		s.finish(err)
		if first := s.Err(); first != nil { // the client was closed meanwhile
			err = first
		}
		return nil, wrap("listen", protocol.MethodListen, "", err)
	}
	return s, nil
}

// start opens the subscription on a connection and waits until it is agreed on.
func (s *Subscription) start(ctx context.Context, conn *connection) error {
	if !conn.revision().Modern() {
		return s.startLegacy(ctx, conn)
	}
	s.mu.Lock()
	s.acked, s.isAcked = make(chan struct{}), false
	acked, over := s.acked, make(chan struct{})
	s.over = over
	s.mu.Unlock()
	ended := make(chan error, 1)
	if !s.client.spawn(func() {
		defer close(over)
		ended <- s.run(conn)
	}) {
		close(over)
		return &Error{kind: ErrClosed, Err: errClientClosed}
	}
	if s.client.opts.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, s.client.opts.Timeout)
		defer stop()
	}
	select {
	case <-acked:
		return nil
	case err := <-ended:
		select {
		case <-acked: // before it ended, which the subscription tells
			return nil
		default:
		}
		if err == nil {
			err = &Error{kind: ErrClosed, Err: errors.New("the server ended the subscription at once")}
		}
		return err
	case <-ctx.Done():
		s.hangUp(stopped(ctx))
		return stopped(ctx)
	}
}

// run is the request subscriptions/listen, as long as it lasts. A server that
// ends it in order ends the subscription
// (basic/patterns/subscriptions of 2026-07-28).
func (s *Subscription) run(conn *connection) error {
	c := s.client
	members := append([]byte(`"notifications":`), filterText(&s.wanted)...)
	r := &request{op: "listen", method: protocol.MethodListen, members: members, options: &callOptions{timeout: -1, maxTimeout: -1}}
	p := &call{method: r.method, conn: conn, sub: s}
	ctx, end := p.begin(c.ctx, 0, 0)
	defer end()
	c.calls.enter(p)
	s.mu.Lock()
	s.call = p
	closed := s.closed
	s.mu.Unlock()
	var err error
	if closed {
		p.abort(errSubscriptionClosed)
	} else {
		m := &link.Message{Body: conn.encode(p.id, r, round{}, false, 0), ID: protocol.IntID(p.id), Method: r.method,
			Revision: conn.revision(), Modern: true}
		if err = conn.carry(ctx, m); err == nil && !conn.sync {
			p.wait(ctx)
		}
	}
	_, err = c.settle(ctx, p, err)
	s.mu.Lock()
	agreed := s.isAcked
	if s.call == p {
		s.call = nil
	}
	s.mu.Unlock()
	if !agreed {
		return err
	}
	var own *Error
	switch {
	case err == nil:
		s.finish(nil)
	case errors.As(err, &own) && own.kind == ErrClosed && own.lost:
		// The client reconnects, and opens it again then.
	case c.conn.Load() == conn && conn.sync && !errors.As(err, &own):
		s.reopen(conn, err)
	default:
		s.finish(err)
	}
	return err
}

// reopen opens a subscription again whose stream broke, as often as
// Options.Reconnect says.
func (s *Subscription) reopen(conn *connection, err error) {
	c := s.client
	if c.opts.NoReconnect {
		s.finish(&Error{Op: "listen", Method: protocol.MethodListen, kind: ErrClosed, Err: err})
		return
	}
	c.spawn(func() {
		for n := 1; ; n++ {
			wait, ok := c.opts.Reconnect.wait(n)
			if !ok {
				s.finish(&Error{Op: "listen", Method: protocol.MethodListen, kind: ErrClosed, Err: err})
				return
			}
			if pause.For(c.ctx, wait) != nil || s.ended() {
				return
			}
			now := c.conn.Load()
			if now == nil {
				return // who reconnects opens it
			}
			if err = s.start(c.ctx, now); err == nil {
				return
			}
		}
	})
}

var errSubscriptionClosed = errors.New("the subscription was closed")

// startLegacy subscribes to each resource.
func (s *Subscription) startLegacy(ctx context.Context, conn *connection) error {
	caps := conn.about.caps
	honoured := protocol.SubscriptionFilter{
		ToolsListChanged:     s.wanted.ToolsListChanged && caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   s.wanted.PromptsListChanged && caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: s.wanted.ResourcesListChanged && caps.Resources != nil && caps.Resources.ListChanged,
	}
	for _, uri := range s.wanted.ResourceSubscriptions {
		if err := s.client.resourceRequest(ctx, protocol.MethodSubscribe, uri, nil); err != nil {
			return err
		}
		honoured.ResourceSubscriptions = append(honoured.ResourceSubscriptions, uri)
	}
	s.opened(honoured)
	return nil
}

func (c *Client) resourceRequest(ctx context.Context, method, uri string, options []CallOption) error {
	_, err := c.ask(ctx, method+" "+uri, method, "", named("uri", uri), options)
	return err
}

// filterText encodes a filter.
func filterText(f *protocol.SubscriptionFilter) []byte {
	text, err := json.Marshal(f)
	if err != nil {
		return []byte("{}") // strings and flags always encode
	}
	return text
}

// Honoured returns what of the filter the server agreed to tell.
func (s *Subscription) Honoured() protocol.SubscriptionFilter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.honoured
}

// Done is closed when the subscription has ended.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Err says why the subscription has ended: nil before that, after Close and
// when the server ended it in order.
func (s *Subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the subscription and tells the server.
func (s *Subscription) Close() error {
	if s.ended() {
		return nil
	}
	c := s.client
	conn := c.conn.Load()
	s.finish(nil)
	if conn == nil || conn.revision().Modern() {
		s.await()
		return nil
	}
	var errs []error
	for _, uri := range s.Honoured().ResourceSubscriptions {
		if !c.wants(uri) {
			errs = append(errs, c.resourceRequest(c.ctx, protocol.MethodUnsubscribe, uri, nil))
		}
	}
	return errors.Join(errs...)
}

// await waits until the request is over, which it is at once unless the link
// is stuck.
func (s *Subscription) await() {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over == nil {
		return
	}
	timer := time.NewTimer(notifyTimeout)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
}

// wants tells whether another subscription needs a resource.
func (c *Client) wants(uri string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.subs {
		if slices.Contains(s.wanted.ResourceSubscriptions, uri) {
			return true
		}
	}
	return false
}

func (s *Subscription) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// finish ends the subscription here, and its request.
func (s *Subscription) finish(err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed, s.err = true, err
	close(s.done)
	s.mu.Unlock()
	c := s.client
	c.mu.Lock()
	delete(c.subs, s)
	c.mu.Unlock()
	s.hangUp(errSubscriptionClosed)
}

// hangUp gives the request up.
func (s *Subscription) hangUp(cause error) {
	s.mu.Lock()
	p := s.call
	s.mu.Unlock()
	if p != nil {
		p.abort(&Error{kind: ErrCancelled, Err: cause})
	}
}

// opened says what the server honours, which ends the waiting for it.
func (s *Subscription) opened(honoured protocol.SubscriptionFilter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.honoured = honoured
	if !s.isAcked {
		s.isAcked = true
		close(s.acked)
	}
}

// acknowledged takes what the server agreed to.
func (s *Subscription) acknowledged(params []byte) {
	var honoured protocol.SubscriptionFilter
	raw := protocol.Lookup(params, []string{"notifications"})
	if raw != nil && json.Unmarshal(raw, &honoured) != nil {
		return
	}
	s.opened(honoured)
}
