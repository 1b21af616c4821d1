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
	until    time.Time    // when the access token ends; zero if it does not
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
	if to.Send(wire.AppendAcknowledged(nil, s.id, s.accepted)) != nil {
		return
	}
	s.accepted = protocol.SubscriptionFilter{}
	if !s.until.IsZero() {
		// The client comes again with another token.
		defer time.AfterFunc(time.Until(s.until), s.sub.End).Stop()
	}
	for to.Wait() {
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
