package mcp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// subscriptions notifies clients of changes: modern ones according to their
// subscriptions, and legacy sessions. It belongs to one server, and serves
// subscriptions/listen, resources/subscribe and resources/unsubscribe.
//
// A modern subscription is a request that stays open: conn carries it, and the
// broker hands it what is published under its topics, which are the method of a
// list, or a method and the URI of a resource or the id of a task. A legacy
// session keeps the URIs that it subscribed to, and is notified of lists without
// a subscription. Publishing a change never waits for a client.
type subscriptions struct {
	server *Server
	broker *conn.Broker
	lists  map[string]*announcer // by the method that tells of a list; it does not change
}

// newSubscriptions makes the subscriptions of s, whose options and endpoint must
// be there already.
func newSubscriptions(s *Server) *subscriptions {
	u := &subscriptions{
		server: s, lists: make(map[string]*announcer, len(topics.ListTopics)),
		broker: conn.NewBroker(s.opts.Limits.Subscriptions, s.opts.Limits.SubscriptionsPerPrincipal, s.handler.KeepAlive()),
	}
	for _, method := range topics.ListTopics {
		u.lists[method] = &announcer{subscriptions: u, change: wire.NewChange(method, nil), topic: method, sessions: slices.Contains(topics.SessionTopics[:], method)}
	}
	u.broker.Interest = u.interest
	return u
}

// methods are the rows of subscriptions in the method table.
func (u *subscriptions) methods() []dispatch.Method {
	return []dispatch.Method{
		{Name: protocol.MethodListen, Revisions: dispatch.Modern, Params: true, Serve: u.listen},
		{Name: protocol.MethodSubscribe, Revisions: dispatch.Legacy, Params: true, Serve: u.subscribe},
		{Name: protocol.MethodUnsubscribe, Revisions: dispatch.Legacy, Params: true, Serve: u.unsubscribe},
	}
}

// listChanged notifies every interested client, in every revision, that a list has
// changed. method is the list's notification.
func (u *subscriptions) listChanged(method string) {
	u.lists[method].changed()
	// Before it serves, no client has seen a list of this server.
	if u.server.dispatcher.Load() != nil {
		u.raise(method)
	}
}

// resourceChangedHere notifies the clients of this replica that subscribed to the
// resource at uri. It returns how many sessions go without it because
// their clients do not read.
func (u *subscriptions) resourceChangedHere(uri string, change *wire.Change) (dropped int) {
	u.broker.Publish(topics.ResourceTopic(uri), change)
	u.server.sessions.Each(func(x *session.Session) {
		if x.Subscribed(uri) && u.sessionMayHear(x, uri) && !x.Send(change.Plain()) {
			dropped++
		}
	})
	return dropped
}

// listChangedWith is listChanged with params of the notification, for the clients of this
// replica. These receive it at once. A session whose client does not read receives it
// without params.
func (u *subscriptions) listChangedWith(method string, change *wire.Change) {
	u.broker.Publish(method, change)
	if u.lists[method].sessions {
		u.server.sessions.Each(func(x *session.Session) {
			if !x.Send(change.Plain()) {
				x.Send(u.lists[method].change.Plain())
			}
		})
	}
	u.raise(method)
}

// raise tells the other replicas, if there are any.
func (u *subscriptions) raise(topic string) {
	if u.server.topics == nil {
		return
	}
	if err := u.server.topics.Publish(topic); err != nil {
		safely.Log(u.server.logger.Error().Err(err).Str("topic", visible.Line(topic, visible.Name)), "the other replicas are not told of a change")
	}
}

// interest follows the log of an event type, or subscribes to changes of another topic at
// other replicas.
func (u *subscriptions) interest(topic string, wanted bool) {
	if name, ok := strings.CutPrefix(topic, eventTopic("")); ok {
		u.server.events.follow(u.server, name, wanted)
		return
	}
	if u.server.topics == nil {
		return
	}
	id, isTask := strings.CutPrefix(topic, taskTopic(""))
	switch {
	case isTask:
		u.server.tasks.interest(id, wanted)
	case wanted:
		u.server.topics.Subscribe(nil, topic, 0)
	default:
		u.server.topics.Unsubscribe(topic)
	}
}

// heard notifies the clients of this replica of a change that another has
// published. It returns false if it could not find out what to send.
func (u *subscriptions) heard(topic string) (ok bool) {
	if uri, ok := topics.ResourceURI(topic); ok {
		u.resourceChangedHere(uri, wire.ResourceUpdated(uri))
	} else if list := u.lists[topic]; list != nil {
		list.changed()
	} else if id, ok := strings.CutPrefix(topic, taskTopic("")); ok {
		return u.server.tasks.heard(id)
	}
	return true
}

// heardLate tells a session of what was raised while its client was not there.
func (u *subscriptions) heardLate(x *session.Session, topic string) {
	uri, ok := topics.ResourceURI(topic)
	switch {
	case !ok:
		x.Send(u.lists[topic].change.Plain())
	case x.Subscribed(uri) && u.sessionMayHear(x, uri):
		x.Send(wire.ResourceUpdated(uri).Plain())
	}
}

// announceLast tells of what has changed until now, and of no list any more.
// Shutdown calls it first, while there are streams to tell on.
func (u *subscriptions) announceLast() {
	for _, a := range u.lists {
		a.close()
	}
}

// endAllBut ends the subscriptions without a topic that begins with prefix. With
// it, Shutdown keeps those of tasks, whose clients wait for the end of their
// tasks.
func (u *subscriptions) endAllBut(prefix string) {
	u.broker.End(func(topics []string) bool {
		return len(topics) == 0 || slices.ContainsFunc(topics, func(topic string) bool { return !strings.HasPrefix(topic, prefix) })
	})
}

// sessionMayHear is mayHear for the client of a session.
func (u *subscriptions) sessionMayHear(x *session.Session, uri string) bool {
	return u.mayHear(aloneAs(x.Identity(), x.Principal()), core.Config{Revision: x.Revision(), Session: x}, uri)
}

// aloneAs returns a context that has nothing but who asks.
func aloneAs(id *frame.Identity, name string) context.Context {
	return core.WithGrant(context.Background(), &core.Grant{Name: name, Identity: id})
}

// mayHear reports whether a client that subscribed to the resource at uri may
// be notified of it now. It could when it subscribed, but the resource may have
// been replaced since, with other rules. It runs the rules of visibility,
// users' code, with a separate Frame that has the identity and the session, if
// there is one, and nothing of the request that subscribed. A rule that panics
// means no.
func (u *subscriptions) mayHear(ctx context.Context, c core.Config, uri string) (may bool) {
	if u.server.catalog.View(nil, catalogOf(c.Session)).Internal(facts.Private{}).Open(KindResource, KindTemplate) {
		return true
	}
	c.Request = &core.Request{Method: protocol.MethodResourceUpdated, Params: protocol.Params{Name: uri}}
	// OnSessionAttach may be what has made the change, and waits for its end here.
	ctx, cancel := context.WithTimeout(ctx, mayHearTimeout)
	defer cancel()
	f := frame.Internal(facts.Private{}).New(ctx, c)
	// It is users' code, and must not delay the publisher of the change.
	_ = safely.Apart(func() { // a failure is in the log
		_, err := u.server.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
			if err := u.server.attach(f); err != nil {
				return nil, err
			}
			view := u.server.view(f)
			may = !view.Internal(facts.Private{}).Hides(uri) && f.HasScope(scopesOf(view, uri)...)
			return nil, nil
		})
		may = may && err == nil
	})
	return may
}

// mayHearTimeout bounds how long the rules of one client hold up who tells of a
// change, as far as they heed their context.
const mayHearTimeout = 5 * time.Second

// listen serves subscriptions/listen (basic/patterns/subscriptions of
// 2026-07-28) and returns the result that will end the subscription. It does not
// wait: the transport sends the result when the subscription is over. A
// subscription ends with the access token that it was opened with.
func (u *subscriptions) listen(f *frame.Frame) (protocol.Result, error) {
	sub := conn.SubscriptionOf(f)
	if sub == nil || sub.IsOpen() {
		return nil, protocol.Errorf(protocol.CodeInternal, "a request opens one subscription, on a transport that carries it")
	}
	req := f.Request()
	var filter protocol.SubscriptionFilter
	if fault := wire.ScanFilter(req.Params.Raw, u.server.opts.Limits.ResourcesPerSubscription, &filter); fault != nil {
		return nil, fault
	}
	if u.server.connections.IsDown() && !wire.OfTasks(&filter) {
		return nil, protocol.Errorf(protocol.CodeBusy, "the server shuts down")
	}
	if len(filter.TaskIDs) > 0 && !takesTasks(f) {
		return nil, errNeedsTasks()
	}
	for _, uri := range filter.ResourceSubscriptions {
		if err := f.RequireScopes(scopesOf(u.server.view(f), uri)...); err != nil {
			return nil, err
		}
	}
	accepted, names := u.accept(f, filter)
	accepted.TaskIDs, names = u.server.tasks.accept(f, filter.TaskIDs, names)
	join := conn.Subscribing{Owner: f.Principal(), Topics: names}
	if len(accepted.ResourceSubscriptions) > 0 {
		as, rev := aloneAs(f.Identity(), f.Principal()), f.Revision()
		join.May = func(topic string) bool {
			uri, ok := topics.ResourceURI(topic)
			return !ok || u.mayHear(as, core.Config{Revision: rev}, uri)
		}
	}
	var until time.Time
	if id := f.Identity(); id != nil {
		until = id.Expiry
	}
	if err := sub.Open(u.broker, join, req.ID, accepted, until); err != nil {
		return nil, protocol.Errorf(protocol.CodeBusy, "%w", err)
	}
	return wire.ListenResult{Subscription: req.ID}, nil
}

// accept returns what of filter the server can do, and the topics for it. A
// resource that is hidden from the client is accepted without a topic: to the
// client it is one of which nothing is ever told, as of one that is not there.
func (u *subscriptions) accept(f *frame.Frame, filter protocol.SubscriptionFilter) (protocol.SubscriptionFilter, []string) {
	can := u.server.capabilities(f.Revision())
	var names []string
	for _, list := range []struct {
		wanted *bool
		can    bool
		method string
	}{
		{&filter.ToolsListChanged, can.Tools != nil && can.Tools.ListChanged, protocol.MethodToolsChanged},
		{&filter.PromptsListChanged, can.Prompts != nil && can.Prompts.ListChanged, protocol.MethodPromptsChanged},
		{&filter.EventsListChanged, u.server.had(hasEvents), wire.MethodEventsChanged},
		{&filter.ResourcesListChanged, can.Resources != nil && can.Resources.ListChanged, protocol.MethodResourcesChanged},
	} {
		if *list.wanted = *list.wanted && list.can; *list.wanted {
			names = append(names, list.method)
		}
	}
	if can.Resources == nil || !can.Resources.Subscribe {
		filter.ResourceSubscriptions = nil
	}
	for _, uri := range filter.ResourceSubscriptions {
		if !u.server.view(f).Internal(facts.Private{}).Hides(uri) {
			names = append(names, topics.ResourceTopic(uri))
		}
	}
	return filter, names
}

// subscribe serves resources/subscribe (server/resources of the legacy
// revisions).
func (u *subscriptions) subscribe(f *frame.Frame) (protocol.Result, error) {
	x, uri, err := u.subscription(f)
	if err != nil {
		return nil, err
	}
	if u.server.view(f).Internal(facts.Private{}).Hides(uri) {
		return wire.EmptyResult{}, nil // as of a resource that is not there
	}
	if err := f.RequireScopes(scopesOf(u.server.view(f), uri)...); err != nil {
		return nil, err
	}
	if !x.Subscribe(uri, u.server.opts.Limits.ResourcesPerSubscription) {
		return nil, protocol.Errorf(protocol.CodeBusy, "the subscriptions of the session are at their limit, %d resources or %d bytes of URIs",
			u.server.opts.Limits.ResourcesPerSubscription, wire.MaxSubscribed)
	}
	return wire.EmptyResult{}, nil
}

// unsubscribe serves resources/unsubscribe. An unknown subscription is not an
// error.
func (u *subscriptions) unsubscribe(f *frame.Frame) (protocol.Result, error) {
	x, uri, err := u.subscription(f)
	if err != nil {
		return nil, err
	}
	x.Unsubscribe(uri)
	return wire.EmptyResult{}, nil
}

// subscription returns the session and the URI of a request to subscribe or to
// unsubscribe, or the error that answers it. Where resources are not declared
// the methods do not exist.
func (u *subscriptions) subscription(f *frame.Frame) (*session.Session, string, error) {
	if can := u.server.capabilities(f.Revision()); can.Resources == nil || !can.Resources.Subscribe {
		return nil, "", wire.MethodNotFound(f.Request().Method)
	}
	x, ok := frame.Internal(facts.Private{}).Session(f).(*session.Session)
	if !ok {
		return nil, "", protocol.Errorf(protocol.CodeInvalidRequest, "%s needs a session", f.Request().Method)
	}
	uri := f.Request().Params.Name
	if uri == "" {
		return nil, "", protocol.Errorf(protocol.CodeInvalidParams, "params.uri is missing: it names the resource")
	}
	if len(uri) > wire.MaxURI {
		return nil, "", protocol.Errorf(protocol.CodeInvalidParams, "params.uri is longer than %d bytes", wire.MaxURI)
	}
	return x, uri, nil
}

// announceEvery is how long changes of a list gather before clients are
// notified, unless the list was quiet: each client then reads the list again.
const announceEvery = 100 * time.Millisecond

// announcer notifies clients, in every revision, of changes of one list: of the
// first at once, and of quick successors as one.
//
// It is quiet, with no timer, until a change comes, which it announces. It then
// gathers: the timer runs, and more is set by changes. Each time the timer fires,
// they are announced as one, until it fires without changes. A closed announcer
// announces nothing.
type announcer struct {
	subscriptions *subscriptions
	change        *wire.Change
	topic         string
	sessions      bool // sessions are notified as well

	mu     sync.Mutex
	timer  *time.Timer // runs while changes gather; nil else
	more   bool        // set if there were changes since the last announcement
	closed bool
}

// changed announces that the list has changed. It may be called by any
// goroutine. Without a listener no timer starts, so a server that adds its
// components before it serves has none.
func (a *announcer) changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
	case a.timer != nil:
		a.more = true
	case a.tell():
		a.timer = time.AfterFunc(announceEvery, a.due)
	}
}

// due tells of what has gathered. The timer calls it, on a goroutine of its own.
func (a *announcer) due() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.more || a.closed {
		a.timer = nil
		return
	}
	a.more = false
	a.timer.Reset(announceEvery)
	a.tell()
}

// tell does not wait, and returns false without a listener. a.mu is held.
func (a *announcer) tell() (heard bool) {
	heard = a.subscriptions.broker.Len() > 0
	a.subscriptions.broker.Publish(a.topic, a.change)
	if !a.sessions {
		return heard
	}
	a.subscriptions.server.sessions.Each(func(x *session.Session) {
		heard = true
		x.Send(a.change.Plain())
	})
	return heard
}

// close tells of what has gathered, and then of nothing any more.
func (a *announcer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.more && !a.closed {
		a.tell()
	}
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
