package conn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Subscription is a modern subscription on its way from the handler that opens
// it to the transport that carries it once the handler has returned. It lasts
// for hours and must neither keep the memory of its request nor count as a call
// where middleware limits those.
//
// Its states are: new, made by the transport; open, after Open; and carried or
// dropped, exactly one of which the transport does with an open one. It has no
// lock: handler and transport use it one after the other.
type Subscription struct {
	wake      func() // makes the transport look up
	keepAlive bool   // the transport wants signs of life

	id       protocol.ID
	accepted protocol.SubscriptionFilter
	feed     Feed         // nil if changes are what is sent
	until    time.Time    // when the access token ends; zero if it does not
	timer    *time.Timer  // wakes the transport for the feed; nil until that wants it
	sub      *Subscriber  // nil until it is open
	retry    atomic.Int64 // when its client is to come back, as a time.Duration; 0 if that is not said
}

// subscriptionKey is the key of the Subscription in a context.
type subscriptionKey struct{}

// withSubscription hands s to the handler of a request.
func withSubscription(ctx context.Context, s *Subscription) context.Context {
	return context.WithValue(ctx, subscriptionKey{}, s)
}

// SubscriptionOf returns the Subscription that the request with that context
// may open, nil if its transport cannot carry any.
func SubscriptionOf(ctx context.Context) *Subscription {
	s, _ := ctx.Value(subscriptionKey{}).(*Subscription)
	return s
}

// IsOpen reports whether Open has succeeded.
func (s *Subscription) IsOpen() bool { return s.sub != nil }

// Open subscribes at b. id is the id of the request, which names the
// subscription, and accepted is the accepted filter, for the client. The
// subscription ends at until, unless that is zero. Open must be called at most
// once, by the handler of the request.
func (s *Subscription) Open(b *Broker, join Subscribing, id protocol.ID, accepted protocol.SubscriptionFilter, until time.Time) error {
	join.KeepAlive, join.Wake = s.keepAlive, s.wake
	sub, err := b.Join(join)
	if err != nil {
		return err
	}
	s.id, s.accepted, s.until, s.sub = id, accepted, until, sub
	return nil
}

// Feed makes the messages of a subscription to events. One goroutine calls it.
type Feed interface {
	// Send sends what there is with send, which takes a method and the members of its
	// params. It is called when the subscription begins, after each change of its topics,
	// and for signs. again is when to call it in any case: 0 means never, less than 0 at
	// once. over ends the subscription, as an error of send does.
	Send(send func(method string, members []byte) error, signs Signs) (again time.Duration, over bool, err error)
}

// OpenFeed is Open for a subscription whose messages feed makes.
func (s *Subscription) OpenFeed(b *Broker, join Subscribing, id protocol.ID, feed Feed, until time.Time) error {
	s.keepAlive = true // heartbeats are for every transport
	if err := s.Open(b, join, id, protocol.SubscriptionFilter{}, until); err != nil {
		return err
	}
	s.feed = feed
	return nil
}

// drop ends a subscription that will not be carried, if it is open.
func (s *Subscription) drop() {
	if s.sub != nil {
		s.sub.Leave()
	}
}

// end ends a subscription that is carried. Its client receives a time to
// reconnect.
func (s *Subscription) end(retry time.Duration) {
	s.retry.Store(int64(retry))
	s.sub.End()
}

// carry sends the acknowledgement and then every change to to, until the server
// ends the subscription, its access token ends, or the client is gone or does
// not read. The subscription must be open.
func (s *Subscription) carry(to streamable.Line) {
	defer s.sub.Leave()
	if s.feed == nil && to.Send(wire.AppendAcknowledged(nil, s.id, s.accepted)) != nil {
		return
	}
	s.accepted = protocol.SubscriptionFilter{}
	defer func() {
		if s.timer != nil {
			s.timer.Stop()
		}
	}()
	if !s.until.IsZero() {
		// The client comes again with another token.
		defer time.AfterFunc(time.Until(s.until), s.sub.End).Stop()
	}
	// A feed has something to send at once. HTTP takes the connection over in the first Wait,
	// and only behind a message.
	for first := s.feed != nil; first || to.Wait(); first = false {
		over, err := s.forward(to)
		if retry := time.Duration(s.retry.Load()); over && retry > 0 {
			to.ComeBack(retry)
		}
		if over || err != nil {
			return
		}
	}
}

// forward sends the changes that wait and reports whether the subscription has
// ended with them. If there are none and it is time, it sends a sign of life.
func (s *Subscription) forward(to streamable.Line) (over bool, err error) {
	buffer := changeBuffers.Get().(*changeBuffer)
	defer buffer.release()
	var signs Signs
	buffer.changes, signs = s.sub.Take(buffer.changes)
	if s.feed != nil {
		over, err = s.feedTo(to, buffer, signs)
		return over || signs&Over != 0, err
	}
	for _, change := range buffer.changes {
		buffer.text = change.Append(buffer.text[:0], s.id)
		if err := to.Send(buffer.text); err != nil {
			return false, err
		}
	}
	if signs&KeepAlive != 0 && len(buffer.changes) == 0 {
		err = to.KeepAlive()
	}
	return signs&Over != 0, err
}

// feedTo makes the feed send what there is.
func (s *Subscription) feedTo(to streamable.Line, buffer *changeBuffer, signs Signs) (over bool, err error) {
	again, over, err := s.feed.Send(func(method string, members []byte) error {
		buffer.text = wire.AppendSubscribed(buffer.text[:0], method, members, s.id)
		return to.Send(buffer.text)
	}, signs)
	switch {
	case again < 0:
		s.wake()
	case again > 0 && s.timer == nil:
		s.timer = time.AfterFunc(again, s.wake)
	case again > 0:
		s.timer.Reset(again)
	}
	return over, err
}

// changeBuffer is the memory that forward works in. It comes from a pool,
// because thousands of subscriptions wait at a time but few of them send.
type changeBuffer struct {
	changes []*wire.Change
	text    []byte
}

// changeBuffers holds the buffers that are not in use.
var changeBuffers = sync.Pool{New: func() any { return new(changeBuffer) }}

// release gives b back to the pool, without references to changes, unless it
// has grown large.
func (b *changeBuffer) release() {
	clear(b.changes)
	b.changes = b.changes[:0]
	if cap(b.changes) <= 64 && cap(b.text) <= maxKept {
		changeBuffers.Put(b)
	}
}
