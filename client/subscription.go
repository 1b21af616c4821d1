package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Subscription is a request for notifications of changes. It lives until
// Close, until the server ends it, or until the client is closed; it survives
// the loss of a connection. Its methods are safe for concurrent use.
//
// With a modern server it is a request subscriptions/listen that stays open,
// and run is its goroutine. With a legacy server it is a list of subscribed
// resources, and nothing runs. mu guards the fields below it.
type Subscription struct {
	client *Client
	wanted protocol.SubscriptionFilter
	fn     func(Notification)
	done   chan struct{} // closed at the end

	mu       sync.Mutex
	accepted protocol.SubscriptionFilter
	acked    chan struct{} // closed when the server has agreed; made again per attempt
	isAcked  bool
	call     *call         // of the modern request that is in progress
	over     chan struct{} // closed when that is over; nil if there was none
	early    int           // modern requests in a row that broke before they had settled
	closed   bool
	err      error
}

// lasting is a context that ends with one context and has the values of another: of
// the call that began the work in it.
type lasting struct {
	context.Context
	values context.Context
}

// Value implements context.Context. How values ends, package context finds as a value
// as well, and must not.
func (l lasting) Value(key any) any {
	if v := context.WithoutCancel(l.values).Value(key); v != nil {
		return v
	}
	return l.Context.Value(key)
}

// start opens the subscription on a connection and waits until the server has
// agreed, ctx ends or Options.Timeout is over.
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
	ctx, stop := s.client.limited(ctx)
	defer stop()
	within := lasting{s.client.life.ctx, ctx}
	if !s.client.life.spawn(func() {
		defer close(over)
		ended <- s.run(within, conn)
	}) {
		close(over)
		return &Error{kind: ErrClosed, Err: errClientClosed}
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

// run sends subscriptions/listen and waits until it ends. A server that ends it
// in order ends the subscription (basic/patterns/subscriptions of 2026-07-28);
// after a loss it is opened again.
func (s *Subscription) run(ctx context.Context, conn *connection) error {
	c := s.client
	members := append([]byte(`"notifications":`), filterText(&s.wanted)...)
	r := &request{client: c, op: "listen", method: protocol.MethodListen, members: members, options: &callOptions{timeout: -1, maxTimeout: -1}}
	p := &call{method: r.method, conn: conn, sub: s}
	ctx, end := p.begin(ctx, 0, 0)
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
		m := &link.Message{Body: r.encode(ctx, conn, p.id, round{}, false), ID: protocol.NewID(p.id), Method: r.method,
			Revision: conn.revision(), Modern: true}
		if err = conn.carry(ctx, m); err == nil && !conn.sync {
			p.wait(ctx)
		}
	}
	unsent := err != nil
	_, err = p.settle(ctx, err)
	s.mu.Lock()
	agreed := s.isAcked
	if s.early++; time.Since(p.start) >= settled {
		s.early = 0
	}
	if s.call == p {
		s.call = nil
	}
	s.mu.Unlock()
	if !agreed {
		if unsent && context.Cause(ctx) == nil {
			err = sent(conn, err)
		}
		return err
	}
	var own *Error
	switch {
	case err == nil:
		s.finish(nil)
	case errors.As(err, &own) && own.kind == ErrConnection:
		// The client reconnects, and opens it again then.
	case c.life.conn.Load() == conn && conn.sync && !errors.As(err, &own):
		s.reopen(conn, err)
	default:
		s.finish(err)
	}
	return err
}

// reopen opens a subscription again whose stream broke while the connection
// lives on, as often as Options.Reconnect says.
func (s *Subscription) reopen(conn *connection, err error) {
	c := s.client
	if c.opts.NoReconnect {
		s.finish(unconnected("listen", err))
		return
	}
	s.mu.Lock()
	early := s.early
	s.mu.Unlock()
	c.life.spawn(func() {
		for n := 1; ; n++ {
			wait, ok := c.opts.Reconnect.wait(n)
			if !ok {
				s.finish(unconnected("listen", err))
				return
			}
			if early > n { // as when a connection is lost
				wait = c.opts.Reconnect.pause(early)
			}
			if pause.For(c.life.ctx, wait) != nil || s.ended() {
				return
			}
			now := c.life.conn.Load()
			if now == nil {
				return // who reconnects opens it
			}
			if err = s.start(c.life.ctx, now); err == nil {
				c.subs.forget()
				s.resumed()
				return
			}
			if final(err) {
				s.finish(err)
				return
			}
		}
	})
}

// errSubscriptionClosed ends the request of a subscription that was closed on
// this side.
var errSubscriptionClosed = errors.New("the subscription was closed")

// resumed calls Options.OnResumed. It does not wait for that.
func (s *Subscription) resumed() {
	c := s.client
	if c.opts.OnResumed == nil || s.ended() {
		return
	}
	c.life.spawn(func() { _ = c.guard("OnResumed", func() { c.opts.OnResumed(s) }) })
}

// startLegacy subscribes to each resource.
func (s *Subscription) startLegacy(ctx context.Context, conn *connection) error {
	caps := conn.server.Capabilities
	accepted := protocol.SubscriptionFilter{
		ToolsListChanged:     s.wanted.ToolsListChanged && caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   s.wanted.PromptsListChanged && caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: s.wanted.ResourcesListChanged && caps.Resources != nil && caps.Resources.ListChanged,
	}
	for _, uri := range s.wanted.ResourceSubscriptions {
		if err := s.client.resourceRequest(ctx, protocol.MethodSubscribe, uri); err != nil {
			return err
		}
		accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
	}
	s.opened(accepted)
	return nil
}

// filterText encodes a filter.
func filterText(f *protocol.SubscriptionFilter) []byte {
	text, err := json.Marshal(f)
	if err != nil {
		return []byte("{}") // strings and flags always encode
	}
	return text
}

// Accepted returns what of the filter the server agreed to tell.
func (s *Subscription) Accepted() protocol.SubscriptionFilter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
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
	conn := c.life.conn.Load()
	s.finish(nil)
	if conn == nil || conn.revision().Modern() {
		s.await()
		return nil
	}
	ctx, stop := c.limited(c.life.ctx) // of all together
	defer stop()
	var errs []error
	for _, uri := range s.Accepted().ResourceSubscriptions {
		if !c.subs.wants(uri) {
			errs = append(errs, c.resourceRequest(ctx, protocol.MethodUnsubscribe, uri))
		}
	}
	return errors.Join(errs...)
}

// await waits until the request is over, for a limited time.
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

// ended reports whether the subscription is over, for whatever reason.
func (s *Subscription) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// finish ends the subscription and its request, once; err is what Err returns
// from then on.
func (s *Subscription) finish(err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed, s.err = true, err
	close(s.done)
	s.mu.Unlock()
	s.client.subs.remove(s)
	s.hangUp(errSubscriptionClosed)
}

// hangUp cancels the request.
func (s *Subscription) hangUp(cause error) {
	s.mu.Lock()
	p := s.call
	s.mu.Unlock()
	if p != nil {
		p.abort(&Error{kind: ErrCancelled, Err: cause})
	}
}

// wants reports whether the subscription is about a notification.
func (s *Subscription) wants(m *protocol.Message) bool {
	switch m.Method {
	case protocol.MethodToolsChanged:
		return s.wanted.ToolsListChanged
	case protocol.MethodPromptsChanged:
		return s.wanted.PromptsListChanged
	case protocol.MethodResourcesChanged:
		return s.wanted.ResourcesListChanged
	case wire.MethodEventsChanged:
		return s.wanted.EventsListChanged
	case protocol.MethodResourceUpdated:
		return slices.Contains(s.wanted.ResourceSubscriptions, stringIn(m.Params, "uri"))
	}
	return false
}

// opened stores what the server agreed to, and ends the waiting for it.
func (s *Subscription) opened(accepted protocol.SubscriptionFilter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted = accepted
	if !s.isAcked {
		s.isAcked = true
		close(s.acked)
	}
}

// acknowledged handles the notification with what the server agreed to. More
// than was wanted is ignored.
func (s *Subscription) acknowledged(params []byte) {
	var accepted protocol.SubscriptionFilter
	raw := jsonx.Lookup(params, []string{"notifications"})
	if raw != nil {
		if err := jsonx.Unmarshal(raw, &accepted); err != nil {
			s.mu.Lock()
			p := s.call
			s.mu.Unlock()
			if p != nil {
				p.abort(invalid(fmt.Errorf("what the server agreed to is not valid: %w", err)))
			}
			return
		}
	}
	s.opened(protocol.SubscriptionFilter{
		ToolsListChanged:      accepted.ToolsListChanged && s.wanted.ToolsListChanged,
		PromptsListChanged:    accepted.PromptsListChanged && s.wanted.PromptsListChanged,
		ResourcesListChanged:  accepted.ResourcesListChanged && s.wanted.ResourcesListChanged,
		EventsListChanged:     accepted.EventsListChanged && s.wanted.EventsListChanged,
		ResourceSubscriptions: among(s.wanted.ResourceSubscriptions, accepted.ResourceSubscriptions),
		TaskIDs:               among(s.wanted.TaskIDs, accepted.TaskIDs),
	})
}

// among returns those elements of got that are wanted, each once.
func among(wanted, got []string) []string {
	left := make(map[string]bool, len(wanted))
	for _, one := range wanted {
		left[one] = true
	}
	var list []string
	for _, one := range got {
		if left[one] {
			list = append(list, one)
			delete(left, one)
		}
	}
	return list
}

// subscriptions are those of a client that have not ended. mu guards closed and
// set.
type subscriptions struct {
	client *Client
	mu     sync.Mutex
	closed bool // the client is
	set    map[*Subscription]struct{}
}

// add adds a subscription; it returns false once the client is closed.
func (l *subscriptions) add(s *Subscription) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if l.set == nil {
		l.set = map[*Subscription]struct{}{}
	}
	l.set[s] = struct{}{}
	return true
}

// remove takes a subscription out; it may be out already.
func (l *subscriptions) remove(s *Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.set, s)
}

// all returns those that live.
func (l *subscriptions) all() []*Subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.set))
}

// close ends all of them for good.
func (l *subscriptions) close(err error) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(err)
}

// end ends all of them, because the client does not come back.
func (l *subscriptions) end(err error) {
	for _, s := range l.all() {
		s.finish(err)
	}
}

// wants reports whether some subscription needs updates of a resource.
func (l *subscriptions) wants(uri string) bool {
	return slices.ContainsFunc(l.all(), func(s *Subscription) bool { return slices.Contains(s.wanted.ResourceSubscriptions, uri) })
}

// only returns the one subscription that wants a notification whose server does
// not say which it belongs to; nil if there are none or several.
func (l *subscriptions) only(m *protocol.Message) (one *Subscription) {
	for _, s := range l.all() {
		if !s.wants(m) {
			continue
		}
		if one != nil {
			return nil
		}
		one = s
	}
	return one
}

// legacy returns the callback for a notification of a legacy server: that of
// every subscription that wants it, or nil.
func (l *subscriptions) legacy(m *protocol.Message) func(Notification) {
	var fns []func(Notification)
	for _, s := range l.all() {
		if s.fn != nil && s.wants(m) {
			fns = append(fns, s.fn)
		}
	}
	if len(fns) < 2 {
		return append(fns, nil)[0]
	}
	return func(n Notification) {
		for _, fn := range fns {
			fn(n)
		}
	}
}

// reopen opens all subscriptions on a new connection. Changes in between were
// not reported, so cached lists and resources are dropped.
func (l *subscriptions) reopen() {
	c := l.client
	conn := c.life.conn.Load()
	if conn == nil {
		return
	}
	opened := l.all()
	for i, s := range opened {
		if err := s.start(c.life.ctx, conn); err != nil && c.life.conn.Load() == conn {
			safely.Log(c.opts.Logger.Warn().Err(visible.Error(err)).Str("server", c.server), "a subscription was not opened again")
			s.finish(wrap("listen", protocol.MethodListen, err))
			opened[i] = nil
		} else if err != nil {
			opened[i] = nil // who reconnects opens it
		}
	}
	l.forget()
	for _, s := range opened {
		if s != nil {
			s.resumed()
		}
	}
}

// resumed is reopen for a stream of a legacy server that is open again on the
// same connection.
func (l *subscriptions) resumed() {
	l.forget()
	for _, s := range l.all() {
		s.resumed()
	}
}

// forget drops what is cached of the server, because changes were not reported
// for some time.
func (l *subscriptions) forget() {
	c := l.client
	c.tools.stale()
	for _, method := range []string{protocol.MethodToolsList, protocol.MethodPromptsList, protocol.MethodResourcesList,
		protocol.MethodResourceTemplates, protocol.MethodResourcesRead} {
		c.opts.Cache.drop(c.server, method, "")
	}
}
