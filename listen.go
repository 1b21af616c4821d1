package mcp

import (
	"context"
	"errors"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/hub"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// SubscriptionLimits bound what clients may subscribe to. The zero value is
// the default.
type SubscriptionLimits struct {
	Max           int // subscriptions of the whole server at a time; 0 means 20,000
	PerConnection int // subscriptions of one stdio connection or the like; 0 means 100
	Resources     int // resources that one subscription, or one legacy session, names; 0 means 1,000
}

// The limits that zero SubscriptionLimits stand for.
const (
	DefaultMaxSubscriptions         = 20_000
	DefaultSubscriptionsPerConn     = 100
	DefaultResourcesPerSubscription = 1_000
)

func (l SubscriptionLimits) orDefaults() SubscriptionLimits {
	for _, limit := range []struct {
		value *int
		or    int
	}{
		{&l.Max, DefaultMaxSubscriptions}, {&l.PerConnection, DefaultSubscriptionsPerConn},
		{&l.Resources, DefaultResourcesPerSubscription},
	} {
		if *limit.value <= 0 {
			*limit.value = limit.or
		}
	}
	return l
}

// announce tells everybody who wants to know, in either era, that a list has
// changed. method, which says which, is also the topic in the hub.
func (s *Server) announce(method string) {
	change := protocol.NewChange(method, nil)
	s.hub.Publish(method, change)
	s.sessions.Each(func(x *session.Session) { x.Send(change.Plain()) })
}

// ResourceUpdated tells the clients that subscribed to the resource at uri
// that it is another. It does not wait for them: changes that come faster than
// a client reads reach it as one.
func (s *Server) ResourceUpdated(uri string) {
	change := protocol.ResourceUpdated(uri)
	s.hub.Publish(resourceTopic(uri), change)
	s.sessions.Each(func(x *session.Session) {
		if x.Subscribed(uri) {
			x.Send(change.Plain())
		}
	})
}

// resourceTopic returns the topic of one resource in the hub.
func resourceTopic(uri string) string { return protocol.MethodResourceUpdated + " " + uri }

type peerKey struct{}

// withPeer returns a context through which listen finds the client that it
// sends to: a Frame keeps that to itself.
func withPeer(ctx context.Context, to frame.Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, to)
}

// keepAliver is a Peer whose connection wants a sign of life now and then.
type keepAliver interface{ KeepAlive() error }

// listen serves subscriptions/listen (basic/patterns/subscriptions of
// 2026-07-28). It returns when the client or the server ends the subscription,
// or the client does not read.
func (s *Server) listen(f *frame.Frame) (protocol.Result, error) {
	to, ok := f.Value(peerKey{}).(frame.Peer)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeInternal, "this transport cannot carry subscriptions")
	}
	req := f.Request()
	var filter protocol.SubscriptionFilter
	if fault := protocol.ScanFilter(req.Params.Raw, s.opts.Subscriptions.Resources, &filter); fault != nil {
		return nil, fault
	}
	filter, topics := s.honour(filter, f.Revision())
	_, beats := to.(keepAliver)
	sub, err := s.hub.Join(topics, beats)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeBusy, "%w", err)
	}
	defer sub.Leave()
	err = to.Send(protocol.AppendAcknowledged(nil, req.ID, filter))
	if errors.Is(err, protocol.ErrNoStream) {
		return nil, protocol.Errorf(protocol.CodeInvalidRequest, "subscriptions/listen needs a client that accepts text/event-stream")
	}
	if err == nil {
		err = s.feed(f, to, sub)
	}
	if err != nil {
		return nil, err // nobody is there to read it
	}
	return protocol.ListenResult{Subscription: req.ID}, nil
}

// honour returns what of filter the server can do, and the topics for it.
func (s *Server) honour(filter protocol.SubscriptionFilter, rev protocol.Revision) (protocol.SubscriptionFilter, []string) {
	can := s.capabilities(rev)
	var topics []string
	for _, list := range []struct {
		wanted *bool
		can    bool
		method string
	}{
		{&filter.ToolsListChanged, can.Tools != nil && can.Tools.ListChanged, protocol.MethodToolsChanged},
		{&filter.PromptsListChanged, can.Prompts != nil && can.Prompts.ListChanged, protocol.MethodPromptsChanged},
		{&filter.ResourcesListChanged, can.Resources != nil && can.Resources.ListChanged, protocol.MethodResourcesChanged},
	} {
		if *list.wanted = *list.wanted && list.can; *list.wanted {
			topics = append(topics, list.method)
		}
	}
	if can.Resources == nil || !can.Resources.Subscribe {
		filter.ResourceSubscriptions = nil
	}
	for _, uri := range filter.ResourceSubscriptions {
		topics = append(topics, resourceTopic(uri))
	}
	return filter, topics
}

// feed sends what sub is told until the subscription ends. The error is that
// of a client that cannot be reached.
func (s *Server) feed(f *frame.Frame, to frame.Peer, sub *hub.Subscriber) error {
	id, done := f.Request().ID, f.Done()
	for {
		select {
		case <-sub.Wake():
		case <-s.hub.Done():
			return forward(to, sub, id) // what waits, for the last time
		case <-done:
			return nil
		}
		if err := forward(to, sub, id); err != nil {
			return err
		}
	}
}

// forward sends what waits in sub.
func forward(to frame.Peer, sub *hub.Subscriber, id protocol.ID) error {
	buffer := changeBuffers.Get().(*changeBuffer)
	defer buffer.release()
	var beat bool
	buffer.changes, beat = sub.Take(buffer.changes)
	for _, change := range buffer.changes {
		buffer.text = change.Append(buffer.text[:0], id)
		if err := to.Send(buffer.text); err != nil {
			return err
		}
	}
	if !beat || len(buffer.changes) > 0 {
		return nil
	}
	if to, ok := to.(keepAliver); ok {
		return to.KeepAlive()
	}
	return nil
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

// subscribe serves resources/subscribe (server/resources of the legacy
// revisions).
func (s *Server) subscribe(f *frame.Frame) (protocol.Result, error) {
	x, uri, err := s.subscription(f)
	if err != nil {
		return nil, err
	}
	if !x.Subscribe(uri, s.opts.Subscriptions.Resources) {
		return nil, protocol.Errorf(protocol.CodeBusy, "the session has %d subscriptions, which is the limit", s.opts.Subscriptions.Resources)
	}
	return protocol.EmptyResult{}, nil
}

// unsubscribe serves resources/unsubscribe. There may be no such subscription.
func (s *Server) unsubscribe(f *frame.Frame) (protocol.Result, error) {
	x, uri, err := s.subscription(f)
	if err != nil {
		return nil, err
	}
	x.Unsubscribe(uri)
	return protocol.EmptyResult{}, nil
}

func (s *Server) subscription(f *frame.Frame) (*session.Session, string, error) {
	if can := s.capabilities(f.Revision()); can.Resources == nil || !can.Resources.Subscribe {
		return nil, "", protocol.MethodNotFound(f.Request().Method)
	}
	x, ok := f.Session().(*session.Session)
	if !ok {
		return nil, "", protocol.Errorf(protocol.CodeInvalidRequest, "%s needs a session", f.Request().Method)
	}
	uri := f.Request().Params.Name
	if uri == "" {
		return nil, "", protocol.Errorf(protocol.CodeInvalidParams, "params.uri is missing: it names the resource")
	}
	return x, uri, nil
}
