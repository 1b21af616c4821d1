package conn

import (
	"context"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/broadcast"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
)

// Subscription is one on its way from the method that opens it to the transport
// that carries it, which it does when the method has returned: a subscription
// lasts for hours and must not keep the memory of its request, nor count as a
// call where middleware limits those.
type Subscription struct {
	wake      func() // makes the transport look up
	keepAlive bool   // the transport wants signs of life

	id       protocol.ID
	accepted protocol.SubscriptionFilter
	until    time.Time             // when the access token ends; zero if it does not
	sub      *broadcast.Subscriber // nil until it is open
}

type subscriptionKey struct{}

func withSubscription(ctx context.Context, s *Subscription) context.Context {
	return context.WithValue(ctx, subscriptionKey{}, s)
}

// SubscriptionOf returns the Subscription that a request may open; nil if its
// transport carries none.
func SubscriptionOf(ctx context.Context) *Subscription {
	s, _ := ctx.Value(subscriptionKey{}).(*Subscription)
	return s
}

// IsOpen reports whether Open was called and has succeeded.
func (s *Subscription) IsOpen() bool { return s.sub != nil }

// Open joins b. id is that of the request, accepted what the client is told to
// have subscribed to. The subscription ends at until, if that is not zero.
func (s *Subscription) Open(b *broadcast.Broker, join broadcast.Join, id protocol.ID, accepted protocol.SubscriptionFilter, until time.Time) error {
	join.KeepAlive, join.Wake = s.keepAlive, s.wake
	sub, err := b.Join(join)
	if err != nil {
		return err
	}
	s.id, s.accepted, s.until, s.sub = id, accepted, until, sub
	return nil
}

// drop ends a subscription that is not to be carried, if there is one.
func (s *Subscription) drop() {
	if s.sub != nil {
		s.sub.Leave()
	}
}

// carry sends what the subscription is told, until the server ends it or the
// client is gone or does not read.
func (s *Subscription) carry(to streamable.Line) {
	defer s.sub.Leave()
	if to.Send(protocol.AppendAcknowledged(nil, s.id, s.accepted)) != nil {
		return
	}
	s.accepted = protocol.SubscriptionFilter{}
	if !s.until.IsZero() {
		// The client comes again with another token.
		defer time.AfterFunc(time.Until(s.until), s.sub.End).Stop()
	}
	for to.Wait() {
		if over, err := s.forward(to); over || err != nil {
			return
		}
	}
}

// forward sends what waits, and reports whether it was the last.
func (s *Subscription) forward(to streamable.Line) (over bool, err error) {
	buffer := changeBuffers.Get().(*changeBuffer)
	defer buffer.release()
	var signs broadcast.Signs
	buffer.changes, signs = s.sub.Take(buffer.changes)
	for _, change := range buffer.changes {
		buffer.text = change.Append(buffer.text[:0], s.id)
		if err := to.Send(buffer.text); err != nil {
			return false, err
		}
	}
	if signs&broadcast.KeepAlive != 0 && len(buffer.changes) == 0 {
		err = to.KeepAlive()
	}
	return signs&broadcast.Over != 0, err
}

// changeBuffer is the memory that forward works in. Thousands of subscriptions
// wait at a time, but few of them send.
type changeBuffer struct {
	changes []*protocol.Change
	text    []byte
}

var changeBuffers = sync.Pool{New: func() any { return new(changeBuffer) }}

func (b *changeBuffer) release() {
	clear(b.changes)
	b.changes = b.changes[:0]
	if cap(b.changes) <= 64 && cap(b.text) <= maxKept {
		changeBuffers.Put(b)
	}
}
