package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/session"
)

// The reasons for which sessions end, for errors.Is in Options.OnSessionEnd.
var (
	ErrSessionClosed  = core.ErrSessionClosed  // its connection ended, or any of the others
	ErrSessionDeleted = core.ErrSessionDeleted // the client ended it with DELETE
	ErrSessionIdle    = core.ErrSessionIdle    // it was not used for Timeouts.Session
)

// methodSessionEnd is what Frames of Options.OnSessionEnd have for a method. No
// client can ask for it.
const methodSessionEnd = "session/terminate"

// host is what the connections and sessions of a Server call.
type host struct{ *Server }

// newSessions makes the table of HTTP sessions. NewServer calls it. Sessions
// from a store have not passed Opened in this process, so the table has the
// function to call when one ends.
func (h host) newSessions() *session.Manager {
	config := h.opts.sessions(h.storeFailed("session store", "sessions"), h.dropped)
	if h.post != nil {
		config.Seal, config.Bus, config.ReplicaID, config.Topics = h.opts.sealer("session"), h.post, h.post.ReplicaID(), h.topics
	}
	config.OnRestoredEnd = h.sessionEnded
	return session.NewManager(config)
}

// newPost makes the bus that carries messages between the replicas of the server,
// and the hub that publishes changes of other replicas. A server without a store
// has neither.
func (h host) newPost() {
	if h.opts.Store == nil {
		return
	}
	h.post = bus.New(bus.Config{Store: h.opts.Store, Seal: h.opts.sealer("post"), MaxWait: h.opts.Timeouts.Question, OnError: h.storeFailed("post", "post")})
	h.topics = topics.New(topics.Config{
		Store: h.opts.Store, Seal: h.opts.sealer("topics"), ReplicaID: h.post.ReplicaID(), IsAlive: h.post.IsAlive, StoreTime: h.post.StoreTime,
		ListDigests: h.catalogue, OnError: h.storeFailed("changes", "changes"),
		OnChange: func(topic string) bool { return h.subscriptions.heard(topic) },
		OnMissed: func(who any, topic string) { h.subscriptions.heardLate(who.(*session.Session), topic) },
	})
}

// catalogue returns a digest of each list, by the method that tells of it; nil
// until the server serves, as it may not be complete before. Components that
// encode themselves are code of users: where that fails, there is no digest, and
// two that fail do not differ.
func (h host) catalogue() map[string]string {
	if h.dispatcher.Load() == nil {
		return nil
	}
	digests := make(map[string]string, len(kindsOfLists))
	for _, list := range kindsOfLists {
		digests[list.method] = ""
		err := safely.Try(func() (err error) {
			digests[list.method], err = h.Server.catalog.Internal(facts.Private{}).Digest(list.kinds...)
			return err
		})
		if err != nil {
			safely.Log(h.logger.Error().Err(visible.Error(err)).Str("list", list.method), "a list does not encode")
		}
	}
	return digests
}

// catalogChanged notifies clients of changed lists, and webhooks of event types.
func (h host) catalogChanged(changed []*registry.Entry) {
	for _, method := range listsOf(changed) {
		h.subscriptions.listChanged(method)
	}
	h.Server.events.changed(h.Server, changed)
}

// share begins to receive messages of other replicas, and to renew what they
// share.
func (h host) share() {
	if h.post != nil {
		replicas := conn.Replicas{Manager: h.connections}
		h.post.Handle(kindNotify, h.notified)
		h.post.Start()
		h.topics.Start()
		h.sessions.StartReplication(replicas.SessionChanged)
		h.tasks.Share()
	}
}

// notifyOne sends a notification to one session that is here, or in the store.
func (h host) notifyOne(id string, n *notification) error {
	x, err := h.connections.Session(context.Background(), id)
	if err != nil {
		return err
	}
	if n.uri != "" && !h.subscriptions.sessionMayHear(x, n.uri) {
		return nil // as if it had not subscribed
	}
	if !n.wanted(x) {
		return nil
	}
	return conn.Post(context.Background(), x, n.text)
}

// notify sends a notification to the sessions that are here. It returns how many these
// are, and how many of them go without it because their clients do not read.
func (h host) notify(n *notification) (sessions, dropped int) {
	h.sessions.Each(func(x *session.Session) {
		sessions++
		if n.wanted(x) && !x.Send(n.text) {
			dropped++
		}
	})
	return sessions, dropped
}

// notification is newNotification for a call of the program, and notes a text that
// clients may not take.
func (h host) notification(method string, params any) (notification, error) {
	n, err := newNotification(method, params)
	if len(n.text) > facts.MaxMessage {
		h.connections.Upcalls().SentLong(method, "", len(n.text))
	}
	return n, err
}

// notifyAll is Server.NotifyAll for a notification that was checked.
func (h host) notifyAll(method string, n *notification) error {
	list := h.subscriptions.lists[method] != nil
	if !list && n.uri == "" {
		sessions, dropped := h.notify(n)
		if err := h.notifyOthers(method, n.params); err != nil {
			return err
		}
		if sessions == 0 && h.post == nil {
			return fmt.Errorf("mcp: notification %q reaches no client: %w; Frame.Notify sends it to a client of 2026-07-28 during a request", method, ErrSessionNotFound)
		}
		return behind(method, dropped)
	}
	change, further := wire.ChangeOf(method, n.params)
	dropped := 0
	switch {
	case list && further:
		h.subscriptions.listChangedWith(method, change)
	case list:
		h.subscriptions.listChanged(method)
	default:
		dropped = h.Server.resourceUpdated(n.uri, change)
	}
	if further && h.post != nil {
		return fmt.Errorf("mcp: notification %q: clients of other replicas receive it without its further params", method)
	}
	return behind(method, dropped)
}

// behind is the error of a notification that n sessions did not receive.
func behind(method string, sessions int) error {
	if sessions == 0 {
		return nil
	}
	return fmt.Errorf("mcp: notification %q: %d sessions go without it: %w", method, sessions, ErrSlowClient)
}

// dropped logs that messages for a client were dropped; see session.Config.Dropped.
func (h host) dropped(x *session.Session, n int) {
	safely.Log(h.logger.Warn().Str("session", visible.Line(x.ID(), visible.Name)).Str("principal", visible.Line(x.Principal(), visible.Name)).Int("messages", n),
		"messages were dropped: the client does not read those that wait for it")
}

// kindNotify is the kind of messages to other replicas that have a notification
// for their sessions.
const kindNotify = "notify"

// shared is such a notification.
type shared struct {
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
	Session string          `json:"session,omitempty"` // of a connection; "" for every session
}

// notifyOthers makes the other replicas send a notification to their sessions.
func (h host) notifyOthers(method string, params []byte) error {
	if h.post == nil {
		return nil
	}
	return h.hand(shared{Method: method, Params: params}, h.post.Broadcast)
}

// notifyElsewhere makes the replica that has the connection of a session send a
// notification to it. The error wraps bus.ErrNoReplica if there is no such replica.
func (h host) notifyElsewhere(id, method string, params []byte) error {
	node, ok := h.connections.Elsewhere(id)
	if !ok {
		return bus.ErrNoReplica
	}
	return h.hand(shared{method, params, id}, func(ctx context.Context, kind string, body []byte) error {
		return h.post.Send(ctx, node, kind, body)
	})
}

// hand gives a notification to other replicas.
func (h host) hand(s shared, give func(ctx context.Context, kind string, body []byte) error) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	if err := give(ctx, kindNotify, body); err != nil {
		return fmt.Errorf("mcp: notification %q: %w", s.Method, err)
	}
	return nil
}

// notifyTimeout bounds how long Notify and NotifyAll wait for the store.
const notifyTimeout = 5 * time.Second

// notified handles a message of hand. One for a resource waits for
// rules of visibility, which are users' code: what comes after it may overtake it.
func (h host) notified(m bus.Message) {
	var s shared
	err := json.Unmarshal(m.Body, &s)
	if err == nil {
		var n notification
		var params any
		if s.Params != nil {
			params = s.Params
		}
		switch n, err = newNotification(s.Method, params); {
		case err != nil:
		case s.Session == "":
			_, _ = h.notify(&n) // what is dropped is in the log
		case n.uri == "":
			_ = h.notifyOne(s.Session, &n) // a client that disconnected receives no more
		default:
			if task, ok := h.running.Begin(context.Background()); ok {
				go func() {
					defer task.End()
					_ = h.notifyOne(s.Session, &n) // the same
				}()
			}
		}
	}
	if err != nil {
		safely.Log(h.logger.Error().Err(visible.Error(err)), "a notification of another replica cannot be read")
	}
}

// newConnections makes what serves clients. NewServer calls it when the options
// are complete, and h has its sessions and its rounds.
func (h host) newConnections() *conn.Manager {
	o := &h.opts
	return conn.NewManager(conn.Config{
		Hooks: conn.Hooks{
			Server: h.Server, Dispatcher: h.Server.dispatch, InitializesSlowly: h.initializesSlowly, Names: h.names,
			Opened: h.opened, HeaderParams: h.headerParams, Offers: h.offers,
		},
		Running: &h.running, Sessions: h.sessions, Askers: h.rounds.Asker, Revisions: o.Revisions, Logger: h.logger,
		Guard: streamable.NewGuard(o.AllowedHosts, o.AllowedOrigins), Post: h.post,
		Max: o.Limits.Connections, MaxPerPrincipal: o.Limits.ConnectionsPerPrincipal,
		Concurrent: o.Limits.Concurrent, Subscriptions: o.Limits.SubscriptionsPerConnection, Batch: o.Limits.Batch,
		Questions: o.Limits.Questions, QuestionTimeout: o.Timeouts.Question, Grace: o.Timeouts.Grace, StreamAge: o.Timeouts.StreamAge, Polling: o.HTTP.Polling,
	})
}

// initializesSlowly is the InitializesSlowly of conn.Hooks.
func (h host) initializesSlowly() bool {
	return h.opts.OnSessionStart != nil || h.opts.OnSessionAttach != nil || h.opts.Discover != nil || len(h.middleware) > 0 || h.dispatch().Observed()
}

// maxLabels is how many names of components Frame.Labels tells.
const maxLabels = 500

// toolLabel returns the name of the tool that f calls, if that fits labels.
func (h host) toolLabel(f *frame.Frame) string {
	if name := f.Request().Params.Name; h.names(protocol.MethodToolsCall, name) {
		return name
	}
	return "_OTHER"
}

// names is the Names of conn.Hooks. Names are counted when they are first asked for, and
// stay counted when their components are removed: a name that was reported once is
// a series of a metric.
func (h host) names(method, name string) bool {
	kind := KindTool
	switch method {
	case protocol.MethodPromptsGet:
		kind = KindPrompt
	case wire.MethodEventsPoll:
		kind = KindEvent
	}
	if _, ok := h.catalog.Internal(facts.Private{}).Get(kind, name); !ok {
		return false
	}
	as := label{kind, name}
	for { // without a lock: it is called from wherever observers are
		known := h.labels.Load()
		if known != nil && ((*known)[as] || len(*known) >= maxLabels) {
			return (*known)[as]
		}
		all := map[label]bool{as: true}
		if known != nil {
			maps.Copy(all, *known)
		}
		if h.labels.CompareAndSwap(known, &all) {
			return true
		}
	}
}

// label is a component whose name Frame.Labels tells.
type label struct {
	kind Kind
	name string
}

// storeFailed returns what logs errors of the store, as logStore does, and tells
// the observers of each, soon. which is for the log, why for the Event.
func (h host) storeFailed(which, why string) func(error) {
	log := logStore(&h.logger, which)
	return func(err error) {
		log(err)
		h.failures.Add(Event{Kind: "store.failed", Reason: why, Err: err}, h.tell)
	}
}

// tell notifies the observers of an event. Events before the server serves are
// dropped, because observers may still be added.
func (h host) tell(e Event) {
	if d := h.dispatcher.Load(); d != nil {
		d.Tell(e)
	}
}

// opened is the Opened of conn.Hooks: Options.OnSessionEnd runs when x ends.
func (h host) opened(x *session.Session) {
	if h.opts.OnSessionEnd != nil || h.dispatch().Observed() {
		h.tell(Event{Kind: "session.opened", ID: x.ID()})
		x.OnEnd(func(reason error) { h.sessionEnded(x, reason) })
	}
}

// headerParams is the HeaderParams of conn.Hooks.
func (h host) headerParams(name string) (params []facts.Header, forAll bool) {
	if tool, ok := h.catalog.Internal(facts.Private{}).Get(KindTool, name); ok {
		params = tool.Headers
	}
	return params, h.catalog.View(nil, nil).Internal(facts.Private{}).Open(KindTool)
}

// offers is the Offers of conn.Hooks.
func (h host) offers(f *frame.Frame, name string) (ok bool) {
	_, err := h.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
		_, ok = h.Server.view(f).Get(KindTool, name)
		return nil, nil
	})
	return ok && err == nil
}

// whyEnded returns the word for why a session has ended.
func whyEnded(reason error) string {
	switch {
	case errors.Is(reason, ErrSessionDeleted):
		return "deleted"
	case errors.Is(reason, ErrSessionIdle):
		return "idle"
	case errors.Is(reason, ErrServerClosed):
		return "down"
	}
	return "closed"
}

// sessionEnded runs Options.OnSessionEnd for x, which has ended and whose last
// request is over, with a Frame that has the session and no peer: nothing
// reaches the client any more. A panic costs nothing but itself.
func (h host) sessionEnded(x *session.Session, reason error) {
	h.dispatch().Tell(Event{Kind: "session.ended", Reason: whyEnded(reason), ID: x.ID(), Err: reason})
	if h.opts.OnSessionEnd == nil {
		return
	}
	ctx := core.WithPrincipal(context.Background(), x.Principal())
	f := frame.Internal(facts.Private{}).New(ctx, core.Config{Request: &core.Request{Method: methodSessionEnd}, Revision: x.Revision(), Session: x})
	_, err := h.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
		h.opts.OnSessionEnd(f, reason)
		return nil, nil
	})
	if err != nil { // it panicked, which is in the log
		safely.Log(h.logger.Debug().Err(visible.Error(err)), "OnSessionEnd")
	}
}

// notification is one that belongs to no request, encoded once for all sessions
// that get it.
type notification struct {
	text   []byte
	params []byte         // encoded; nil if there are none
	uri    string         // of the resource that it is about, or ""
	level  protocol.Level // of a log message, or 0
}

// wanted reports whether a session wants it.
func (n *notification) wanted(x *session.Session) bool {
	return (n.level == 0 || n.level >= x.LogLevel()) && (n.uri == "" || x.Subscribed(n.uri))
}

// newNotification checks that the server may send such a notification, and
// encodes it. It rejects notifications that belong to a request or that
// clients send, and other names of the specification. Unknown names under
// notifications/ pass, because extensions define some.
func newNotification(method string, params any) (n notification, err error) {
	refuse := func(format string, args ...any) (notification, error) {
		return notification{}, fmt.Errorf("mcp: notification %q: %w", method, fmt.Errorf(format, args...))
	}
	var text []byte
	if params != nil {
		if text, err = jsonx.Append(nil, params); err != nil {
			return refuse("params: %w", err)
		}
		if text[0] != '{' {
			return refuse("params must encode to a JSON object, %T does not", params)
		}
	}
	var about struct {
		URI   string `json:"uri"`
		Level string `json:"level"`
	}
	if text != nil {
		_ = json.Unmarshal(text, &about) // other notifications may have other types there
	}
	switch method {
	case protocol.MethodProgress, protocol.MethodCancelled, protocol.MethodAcknowledged, protocol.MethodInitialized:
		return refuse("it belongs to a request, or to clients; see Frame.Progress")
	case protocol.MethodLog:
		if err := n.level.UnmarshalText([]byte(about.Level)); err != nil {
			return refuse("params: %w", err)
		}
	case protocol.MethodResourceUpdated:
		if about.URI == "" {
			return refuse("params need the resource's uri")
		}
		n.uri = about.URI
	default:
		if faults := methodFaults(method); faults != nil && !isNotification(method) {
			return refuse("%s", faults[0])
		}
	}
	n.text, n.params = wire.AppendNotification(nil, method, text), text
	return n, nil
}

// isNotification reports whether method is a name under notifications/.
func isNotification(method string) bool {
	return len(method) > len(notificationPrefix) && method[:len(notificationPrefix)] == notificationPrefix
}
