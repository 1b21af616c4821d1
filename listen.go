package mcp

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/hub"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// announce tells everybody who wants to know, in either era, that a list has
// changed. method says which.
func (s *Server) announce(method string) { s.announcers[method].changed() }

// ResourceUpdated tells the clients that subscribed to the resource at uri
// that it is another. It does not wait for them: changes that come faster than
// a client reads reach it as one.
func (s *Server) ResourceUpdated(uri string) {
	for _, p := range s.family.parents() {
		p.ResourceUpdated(uri)
	}
	change := protocol.ResourceUpdated(uri)
	s.hub.Publish(resourceTopic(uri), change)
	s.sessions.Each(func(x *session.Session) {
		if x.Subscribed(uri) && s.sessionMayHear(x, uri) {
			x.Send(change.Plain())
		}
	})
}

// sessionMayHear is mayHear for the client of a session.
func (s *Server) sessionMayHear(x *session.Session, uri string) bool {
	return s.mayHear(aloneAs(x.Identity(), x.Principal()), frame.Config{Revision: x.Revision(), Session: x}, uri)
}

// aloneAs returns a context that has nothing but who asks.
func aloneAs(id *frame.Identity, principal string) context.Context {
	if id == nil {
		return frame.WithPrincipal(context.Background(), principal)
	}
	return WithIdentity(context.Background(), id)
}

// mayHear tells whether a client that subscribed to the resource at uri may be
// told of it now. It could when it subscribed; but what is there may have come
// later, and not be for everybody.
func (s *Server) mayHear(ctx context.Context, c frame.Config, uri string) (may bool) {
	restricted := s.opts.Filter != nil || s.resources.Restricted() || s.resources.Scoped() || s.templates.Restricted() || s.templates.Scoped()
	if !restricted && c.Session == nil {
		return true
	}
	c.Request = frame.Request{Method: protocol.MethodResourceUpdated, Params: protocol.Params{Name: uri}}
	f := frame.New(ctx, c)
	if own := catalogOf(f); !restricted && own.resources == nil && own.templates == nil {
		return true
	}
	// It is users' code, and whoever tells of a change has more to do.
	_ = safely.Apart(func() { // a failure is in the log
		_, err := s.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
			may = !s.hidden(f, uri) && f.HasScope(s.scopesOf(f, uri)...)
			return nil, nil
		})
		may = may && err == nil
	})
	return may
}

// resourceTopic returns the topic of one resource in the hub.
func resourceTopic(uri string) string { return resourceTopics + uri }

const resourceTopics = protocol.MethodResourceUpdated + " "

// opening is a subscription on its way from the method that checks it to the
// transport that carries it, which it does when the method has returned: a
// subscription lasts for hours and must not keep the memory of its request, nor
// count as a call where middleware limits those.
type opening struct {
	wake  func() // makes the transport look up
	beats bool   // whether the transport wants signs of life

	id       protocol.ID
	honoured protocol.SubscriptionFilter
	until    time.Time       // when the access token ends; zero if it does not
	sub      *hub.Subscriber // nil until it is open
}

type openingKey struct{}

func withOpening(ctx context.Context, o *opening) context.Context {
	return context.WithValue(ctx, openingKey{}, o)
}

// listen serves subscriptions/listen (basic/patterns/subscriptions of
// 2026-07-28) and returns the result that will end the subscription.
func (s *Server) listen(f *frame.Frame) (protocol.Result, error) {
	o, ok := f.Value(openingKey{}).(*opening)
	if !ok || o.sub != nil {
		return nil, protocol.Errorf(protocol.CodeInternal, "a request opens one subscription, on a transport that carries it")
	}
	req := f.Request()
	var filter protocol.SubscriptionFilter
	if fault := protocol.ScanFilter(req.Params.Raw, s.opts.Limits.Resources, &filter); fault != nil {
		return nil, fault
	}
	if s.draining.Load() && !filter.OfTasks() {
		return nil, errShutsDown
	}
	if len(filter.TaskIDs) > 0 && !takesTasks(f) {
		return nil, errNeedsTasks()
	}
	for _, uri := range filter.ResourceSubscriptions {
		if err := f.NeedScopes(s.scopesOf(f, uri)...); err != nil {
			return nil, err
		}
	}
	honoured, topics := s.honour(f, filter)
	honoured.TaskIDs, topics = s.honourTasks(f, filter.TaskIDs, topics)
	join := hub.Join{Owner: f.Principal(), Topics: topics, Beats: o.beats, Wake: o.wake}
	if len(honoured.ResourceSubscriptions) > 0 {
		as, rev := aloneAs(f.Identity(), f.Principal()), f.Revision()
		join.May = func(topic string) bool {
			uri, ok := strings.CutPrefix(topic, resourceTopics)
			return !ok || s.mayHear(as, frame.Config{Revision: rev}, uri)
		}
	}
	sub, err := s.hub.Join(join)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeBusy, "%w", err)
	}
	o.id, o.honoured, o.sub = req.ID, honoured, sub
	if id := f.Identity(); id != nil {
		o.until = id.Expiry
	}
	return protocol.ListenResult{Subscription: req.ID}, nil
}

// drop ends a subscription that is not to be carried, if there is one.
func (o *opening) drop() {
	if o.sub != nil {
		o.sub.Leave()
	}
}

// carry sends what the subscription is told, until the server ends it or the
// client is gone or does not read.
func (o *opening) carry(to streamable.Line) {
	defer o.sub.Leave()
	if to.Send(protocol.AppendAcknowledged(nil, o.id, o.honoured)) != nil {
		return
	}
	o.honoured = protocol.SubscriptionFilter{}
	if !o.until.IsZero() {
		// The client comes again with another token.
		defer time.AfterFunc(time.Until(o.until), o.sub.End).Stop()
	}
	for to.Wait() {
		if over, err := o.forward(to); over || err != nil {
			return
		}
	}
}

// forward sends what waits, and tells whether it was the last.
func (o *opening) forward(to streamable.Line) (over bool, err error) {
	buffer := changeBuffers.Get().(*changeBuffer)
	defer buffer.release()
	var signs hub.Signs
	buffer.changes, signs = o.sub.Take(buffer.changes)
	for _, change := range buffer.changes {
		buffer.text = change.Append(buffer.text[:0], o.id)
		if err := to.Send(buffer.text); err != nil {
			return false, err
		}
	}
	if signs&hub.Beat != 0 && len(buffer.changes) == 0 {
		err = to.KeepAlive()
	}
	return signs&hub.Over != 0, err
}

// honour returns what of filter the server can do, and the topics for it.
func (s *Server) honour(f *frame.Frame, filter protocol.SubscriptionFilter) (protocol.SubscriptionFilter, []string) {
	can := s.capabilities(f.Revision())
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
		if !s.hidden(f, uri) {
			topics = append(topics, resourceTopic(uri))
		}
	}
	return filter, topics
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
	if s.hidden(f, uri) {
		return protocol.EmptyResult{}, nil // as of a resource that is not there
	}
	if err := f.NeedScopes(s.scopesOf(f, uri)...); err != nil {
		return nil, err
	}
	if !x.Subscribe(uri, s.opts.Limits.Resources) {
		return nil, protocol.Errorf(protocol.CodeBusy, "the subscriptions of the session are at their limit, %d resources or %d bytes of URIs",
			s.opts.Limits.Resources, protocol.MaxSubscribed)
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
	if len(uri) > protocol.MaxURI {
		return nil, "", protocol.Errorf(protocol.CodeInvalidParams, "params.uri is longer than %d bytes", protocol.MaxURI)
	}
	return x, uri, nil
}
