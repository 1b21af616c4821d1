package mcp

import (
	"context"
	"strings"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/hub"
	"github.com/talaria-go/mcp/internal/safely"
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
	for _, p := range s.mounts.parents() {
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
	if s.catalog.View(nil, catalogOf(c.Session)).Open(KindResource, KindTemplate) {
		return true
	}
	c.Request = frame.Request{Method: protocol.MethodResourceUpdated, Params: protocol.Params{Name: uri}}
	f := frame.New(ctx, c)
	// It is users' code, and whoever tells of a change has more to do.
	_ = safely.Apart(func() { // a failure is in the log
		_, err := s.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
			view := s.view(f)
			may = !view.Hides(uri) && f.HasScope(scopesOf(view, uri)...)
			return nil, nil
		})
		may = may && err == nil
	})
	return may
}

// resourceTopic returns the topic of one resource in the hub.
func resourceTopic(uri string) string { return resourceTopics + uri }

const resourceTopics = protocol.MethodResourceUpdated + " "

// listen serves subscriptions/listen (basic/patterns/subscriptions of
// 2026-07-28) and returns the result that will end the subscription.
func (s *Server) listen(f *frame.Frame) (protocol.Result, error) {
	sub := conn.SubscriptionOf(f)
	if sub == nil || sub.IsOpen() {
		return nil, protocol.Errorf(protocol.CodeInternal, "a request opens one subscription, on a transport that carries it")
	}
	req := f.Request()
	var filter protocol.SubscriptionFilter
	if fault := protocol.ScanFilter(req.Params.Raw, s.opts.Limits.Resources, &filter); fault != nil {
		return nil, fault
	}
	if s.connections.IsDown() && !filter.OfTasks() {
		return nil, protocol.Errorf(protocol.CodeBusy, "the server shuts down")
	}
	if len(filter.TaskIDs) > 0 && !takesTasks(f) {
		return nil, errNeedsTasks()
	}
	for _, uri := range filter.ResourceSubscriptions {
		if err := f.NeedScopes(scopesOf(s.view(f), uri)...); err != nil {
			return nil, err
		}
	}
	honoured, topics := s.honour(f, filter)
	honoured.TaskIDs, topics = s.honourTasks(f, filter.TaskIDs, topics)
	join := hub.Join{Owner: f.Principal(), Topics: topics}
	if len(honoured.ResourceSubscriptions) > 0 {
		as, rev := aloneAs(f.Identity(), f.Principal()), f.Revision()
		join.May = func(topic string) bool {
			uri, ok := strings.CutPrefix(topic, resourceTopics)
			return !ok || s.mayHear(as, frame.Config{Revision: rev}, uri)
		}
	}
	var until time.Time
	if id := f.Identity(); id != nil {
		until = id.Expiry
	}
	if err := sub.Open(s.hub, join, req.ID, honoured, until); err != nil {
		return nil, protocol.Errorf(protocol.CodeBusy, "%w", err)
	}
	return protocol.ListenResult{Subscription: req.ID}, nil
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
		if !s.view(f).Hides(uri) {
			topics = append(topics, resourceTopic(uri))
		}
	}
	return filter, topics
}

// subscribe serves resources/subscribe (server/resources of the legacy
// revisions).
func (s *Server) subscribe(f *frame.Frame) (protocol.Result, error) {
	x, uri, err := s.subscription(f)
	if err != nil {
		return nil, err
	}
	if s.view(f).Hides(uri) {
		return protocol.EmptyResult{}, nil // as of a resource that is not there
	}
	if err := f.NeedScopes(scopesOf(s.view(f), uri)...); err != nil {
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
