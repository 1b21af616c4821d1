package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/events"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// WebhookOptions let clients have events sent to URLs of theirs, which are signed as
// Standard Webhooks says (extension io.modelcontextprotocol/events, "Webhook security").
// Only clients with an identity can subscribe. A URL receives events after it has
// returned a signed challenge. Requests go to public addresses, by https and without
// redirects.
type WebhookOptions struct {
	// TTL is the longest time for which a client subscribes before it has to refresh the
	// subscription. 0 means 24 h with Options.Store, and 15 min without: subscriptions
	// then end with the process, and their clients receive nothing until they refresh.
	TTL time.Duration
	// Loopback allows loopback addresses, and http to them. It is for tests.
	Loopback bool
	// Transport sends the requests in place of the default transport, which checks each
	// address when it connects. It has to check addresses itself, as a proxy may do. It
	// may be called by many goroutines at once, and must end with the request's context.
	Transport http.RoundTripper
}

// delivery returns the ways in which clients can receive events of s.
func (o *Options) delivery() []string {
	if o.Webhooks == nil {
		return []string{wire.DeliveryPoll, wire.DeliveryPush}
	}
	return []string{wire.DeliveryPoll, wire.DeliveryPush, wire.DeliveryWebhook}
}

// webhookSet is *events.Webhooks. A program without EventType does not link that, nor the
// client for HTTP that it needs, as only newWebhooks names it.
type webhookSet interface {
	Start() error
	Subscribe(ctx context.Context, r events.Request) (wire.EventSubscription, error)
	Unsubscribe(ctx context.Context, s *events.Subscription) (bool, error)
	Removed(name string, removed bool)
	Drain()
	Close(ctx context.Context) (waiting int)
}

func newWebhooks(config events.WebhookConfig) webhookSet { return events.NewWebhooks(config) }

// webhooks returns the webhook subscriptions of s, which has Options.Webhooks and had an
// event type.
func (x *serverEvents) webhooks(s *Server) webhookSet {
	logs := x.logs(s)
	x.hooking.Do(func() {
		o := s.opts.Webhooks
		config := events.WebhookConfig{
			Logs: logs, Replica: "local", Seal: s.opts.sealer("webhooks"), Max: s.opts.Limits.Webhooks,
			TTL: o.TTL, Loopback: o.Loopback, Transport: o.Transport,
			Identity: func(claims json.RawMessage) any {
				var id *Identity
				_ = jsonx.Unmarshal(claims, &id) // an identity that was encoded
				return id
			},
			Ask:    func(ctx context.Context, asks []*events.Ask) { x.ask(ctx, s, asks) },
			Failed: host{s}.storeFailed("webhooks", "webhooks"),
			Waits:  func(name string, err error) { x.note(s, name, err) },
			Tell: func(o events.Observed) {
				if s.dispatch().Observed() {
					host{s}.tell(Event{Kind: o.Kind, Reason: o.Reason, ID: o.ID, Name: host{s}.eventLabel(o.Name), Duration: o.Duration})
				}
			},
		}
		if s.post != nil {
			config.Shared, config.Replica = true, s.post.ReplicaID()
		}
		made := (*x.makes.Load())(config)
		x.hooks.Store(&made)
		if x.closed.Load() { // at the same time
			made.Close(context.Background()) // nothing runs
		}
	})
	return *x.hooks.Load()
}

// eventLabel returns the name of an event type, if it fits labels.
func (h host) eventLabel(name string) string {
	if h.names(wire.MethodEventsPoll, name) {
		return name
	}
	return "_OTHER"
}

// serve begins to deliver events for subscriptions that other replicas have left. It does
// nothing before the server serves clients and has an event type.
func (x *serverEvents) serve(s *Server) {
	if s.opts.Webhooks != nil && s.post != nil && s.dispatcher.Load() != nil && x.makes.Load() != nil {
		_ = x.webhooks(s).Start() // after Shutdown there is nothing to do
	}
}

// changed handles event types that were added or removed. Streams look: their type may be
// gone.
func (x *serverEvents) changed(s *Server, entries []*registry.Entry) {
	for _, e := range entries {
		if e.Kind() == KindEvent {
			x.makes.Store(&e.Emits.(*eventData).typ.makes)
			s.subscriptions.broker.Publish(eventTopic(e.Key()), eventsLook)
		}
	}
	if s.opts.Webhooks == nil {
		return
	}
	for _, e := range entries {
		if _, ok := e.Definition.(*protocol.EventType); ok {
			_, there := s.catalog.Internal(facts.Private{}).Get(KindEvent, e.Key())
			x.webhooks(s).Removed(e.Key(), !there)
		}
	}
	x.serve(s)
}

// drain gives subscriptions to other replicas.
func (x *serverEvents) drain() {
	if hooks := x.hooks.Load(); hooks != nil {
		(*hooks).Drain()
	}
}

// close ends all deliveries; those that have begun may finish until ctx ends.
func (x *serverEvents) close(ctx context.Context, s *Server) {
	x.closed.Store(true)
	if made := x.made.Load(); made != nil {
		defer made.Close(ctx)
	}
	hooks := x.hooks.Load()
	if hooks == nil {
		return
	}
	if waiting := (*hooks).Close(ctx); waiting > 0 && s.post == nil {
		safely.Log(s.logger.Warn().Int("subscriptions", waiting), "events of webhook subscriptions were not delivered: the server has shut down")
	}
}

// eventFault returns an error about events with the code that the client of f knows.
// Errors of the store become a request to try again.
func (x *serverEvents) eventFault(f *frame.Frame, err error) error {
	fault, ok := errors.AsType[*protocol.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok && f.Err() != nil:
		return context.Cause(f)
	case !ok:
		x.failed(err)
		return wire.Unavailable("webhook subscriptions cannot be changed", err)
	case wire.EventCodeOf(wire.MethodEventsSubscribe, fault.Code) == 0:
		return fault
	}
	own := *fault
	own.Code = wire.EventCode(fault.Code, declaresEvents(f))
	return &own
}

// declaresEvents reports whether the client of f has declared the extension.
func declaresEvents(f *frame.Frame) bool {
	_, declared := f.ClientCapabilities().Extensions[wire.EventsExtension]
	return declared
}

// noWebhooks is the error for a type that is not delivered in a mode.
func noWebhooks(name, mode string) *protocol.Error {
	return &protocol.Error{Code: wire.CodeEventsUnsupported, Message: fmt.Sprintf("%s is not delivered by %.40q", name, mode), Data: map[string]string{"feature": "deliveryMode", "value": visible.Line(mode, visible.Name)}}
}

// errAnonymous is the error for a client without an identity. It must not be changed.
var errAnonymous = &protocol.Error{Code: wire.CodeEventForbidden, Message: "webhooks are for clients that have authenticated themselves"}

// subscribe returns what serves events/subscribe for the type, which s has.
func (t *eventType) subscribe(s *Server, in input) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		host, prefix, ok := within(f, s)
		if !ok {
			return nil, wire.MethodNotFound(f.Request().Method)
		}
		x, name := &host.events, prefix+t.name
		if host.opts.Webhooks == nil {
			return nil, x.eventFault(f, noWebhooks(name, wire.DeliveryWebhook))
		}
		p, fault := wire.ParseEventSubscribe(f.Request().Params.Raw, true)
		switch {
		case fault != nil:
			return nil, fault
		case p.Mode != wire.DeliveryWebhook:
			return nil, x.eventFault(f, noWebhooks(name, p.Mode))
		case f.Principal() == "" || f.Identity() == nil:
			return nil, x.eventFault(f, errAnonymous)
		}
		if err := in.arguments(f, reflect.New(t.in).Interface()); err != nil {
			if bad, ok := errors.AsType[*inputError](err); ok {
				return nil, bad.invalidParams(fmt.Sprintf("event %q", name))
			}
			return nil, err
		}
		identity, err := json.Marshal(f.Identity())
		if err != nil {
			return nil, fmt.Errorf("the identity cannot be kept with a subscription: %w", err)
		}
		x.reading(host)
		x.makes.CompareAndSwap(nil, &t.makes) // the change of the catalog may come later
		result, err := x.webhooks(host).Subscribe(f, events.Request{
			Subscription: events.Subscription{
				Principal: f.Principal(), Identity: identity, Revision: f.Revision().String(), Declared: declaresEvents(f),
				Name: name, Arguments: p.Arguments, URL: p.URL, Secret: p.Secret,
			},
			Cursor: p.Cursor, MaxAge: p.MaxAge, TTL: p.TTL,
		})
		if err != nil {
			return nil, x.eventFault(f, err)
		}
		return protocol.JSONResult{Value: result}, nil
	}
}

// unsubscribeEvents returns what serves events/unsubscribe. It needs no event type, as the
// type may be gone, or hidden from the client by now.
func unsubscribeEvents(s *Server) frame.Handler {
	return s.viewed(hasEvents, func(f *frame.Frame, _ registry.View) (protocol.Result, error) {
		x, name := &s.events, f.Request().Params.Name
		switch {
		case name == "":
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.name is missing: it names the event type")
		case s.opts.Webhooks == nil || x.makes.Load() == nil:
			return nil, x.eventFault(f, noWebhooks(name, wire.DeliveryWebhook))
		case f.Principal() == "" || f.Identity() == nil:
			return nil, x.eventFault(f, errAnonymous)
		}
		p, fault := wire.ParseEventSubscribe(f.Request().Params.Raw, false)
		if fault != nil {
			return nil, fault
		}
		found, err := x.webhooks(s).Unsubscribe(f, &events.Subscription{Principal: f.Principal(), Name: name, Arguments: p.Arguments, URL: p.URL})
		switch {
		case err != nil:
			return nil, x.eventFault(f, err)
		case !found && declaresEvents(f): // hosts without the extension expect no error
			return nil, x.eventFault(f, &protocol.Error{Code: wire.CodeEventNotFound, Message: "there is no such subscription", Data: map[string]string{"kind": "subscription"}})
		}
		return wire.EmptyResult{}, nil
	})
}

// maxLeftOf is how many calls of match for one webhook may not have returned in time; at that
// number no further call begins for it.
const maxLeftOf = 8

// ask answers whether subscriptions get events.
func (x *serverEvents) ask(ctx context.Context, s *Server, asks []*events.Ask) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a call that has not returned in time may still watch its context
	next, full := 0, ""
	var last decodedEvent // of the goroutine that asks
	answered := (&events.Questions[events.Ask, events.Verdict]{
		Go: s.running.Go, Until: ctx.Done(),
		Next: func() (events.Ask, bool) {
			for ; next < len(asks) && ctx.Err() == nil; next++ {
				of := asks[next].Of
				switch {
				case next > 0 && asks[next-1].Of == of && asks[next-1].Verdict != events.No: // it is decided later
				case x.leaves(of.Name, 0) >= events.MaxLeft, x.leaves(hookOf(of), 0) >= maxLeftOf:
					full = of.Name
				default:
					next++
					return *asks[next-1], true
				}
			}
			return events.Ask{}, false
		},
		Ask: func(ask events.Ask) events.Verdict {
			verdict, err := x.decide(ctx, s, &ask, &last)
			if err != nil {
				x.note(s, ask.Of.Name, err)
			}
			return verdict
		},
		Take: func(verdict events.Verdict, exited bool) {
			if exited {
				verdict = events.No
			}
			asks[next-1].Verdict = verdict
		},
		Left: func(ask events.Ask, n int) {
			x.leaves(ask.Of.Name, n)
			x.leaves(hookOf(ask.Of), n)
		},
	}).Run()
	if full != "" {
		x.note(s, full, errors.New("too many calls of match have not returned"))
	}
	if !answered && ctx.Err() == nil {
		asks[next-1].Verdict = events.Later
		x.note(s, asks[next-1].Of.Name, fmt.Errorf("match has not returned within %v", events.AskTimeout))
	}
}

// hookOf names a webhook for serverEvents.leaves. No event type has that name.
func hookOf(s *events.Subscription) string { return "webhook " + s.ID }

// decodedEvent is the event that was decoded last.
type decodedEvent struct {
	event []byte
	of    *eventData
	data  any
	err   error
}

// decode returns a pointer to the data of an event. Data without anything that match could
// change is decoded once for all that are asked about the event in a row.
func (l *decodedEvent) decode(event []byte, d *eventData) (any, error) {
	if l.of != d || &l.event[0] != &event[0] || !d.plain {
		data := reflect.New(d.of).Interface()
		*l = decodedEvent{event, d, data, jsonx.Unmarshal(jsonx.Lookup(event, []string{"data"}), data)}
	}
	return l.data, l.err
}

// decide returns whether a subscription gets an event, with the rights of now. It runs users'
// code, which may end the goroutine.
func (x *serverEvents) decide(ctx context.Context, s *Server, ask *events.Ask, last *decodedEvent) (verdict events.Verdict, err error) {
	sub := ask.Of
	id, _ := sub.Prepared.(*Identity)
	rev, _ := protocol.ParseRevision(sub.Revision)
	ctx = core.WithGrant(ctx, &core.Grant{Name: sub.Principal, Identity: id})
	f := frame.Internal(facts.Private{}).New(ctx, core.Config{
		Revision: rev, Request: &core.Request{Method: wire.MethodEventsSubscribe, Params: protocol.Params{Name: sub.Name, Arguments: sub.Arguments}},
	})
	matching := false
	verdict = events.Later
	_, failed := s.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
		e, ok := s.catalog.View(f, nil).Get(KindEvent, sub.Name)
		if !ok {
			if _, there := s.catalog.Internal(facts.Private{}).Get(KindEvent, sub.Name); there {
				verdict = events.Forbidden
				return nil, nil
			}
			verdict = events.Unknown
			return nil, nil
		}
		if !f.HasScope(e.Scopes...) {
			verdict = events.Forbidden
			return nil, nil
		}
		d := e.Emits.(*eventData)
		arguments := reflect.New(d.typ.in).Interface()
		if d.in.decode(f, sub.Arguments, arguments) != nil {
			verdict = events.Unknown
			return nil, nil
		}
		var data any
		if data, err = last.decode(ask.Event, d); err != nil {
			return nil, nil
		}
		matching = true
		var yes bool
		if yes, err = d.typ.match(f, arguments, data); err == nil {
			verdict = events.No
			if yes {
				verdict = events.Yes
			}
		}
		return nil, nil
	})
	switch {
	case failed != nil && matching: // it is in the log
		return events.No, nil
	case failed != nil:
		return events.Later, nil
	}
	return verdict, err
}
