package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/events"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/schema"
)

// EventType makes an event type; [Server.Emit] adds its events. Clients list the types,
// and ask for the events that concern them (extension io.modelcontextprotocol/events).
//
// The first parameter of match is that of a [Tool]. In has the arguments of a
// subscription, described and checked by tags as those of a tool; struct{} takes none.
// Data, a struct or a map, is the content of an event.
//
// match reports whether a subscriber with these arguments receives an event. An error
// means that it cannot be known now: the subscriber waits, and match is called again. A
// panic counts as false. match is called for each subscriber and event, possibly by many
// goroutines at once, and must return soon; 5 s are the limit. Its Frame has the
// principal and the identity of the subscriber as they are then, and nothing of a request.
// data is decoded from what Emit has encoded, possibly in an older version of the program.
//
// Names have 1 to 128 letters, digits, '_', '-', '.' and '/'. The options Title, Icons and
// Timeout do not apply. Faults are reported by Server.Add. An event type cannot be added
// to a session or a set.
func EventType[Ctx context.Context, In, Data any](name string, match func(ctx Ctx, in In, data Data) (bool, error), opts ...Option) Component {
	t := &eventType{
		name: name, in: reflect.TypeFor[In](), data: reflect.TypeFor[Data](), settings: &methodSettings{},
		match: func(f *frame.Frame, in, data any) (bool, error) {
			return match(any(f).(Ctx), *in.(*In), *data.(*Data))
		},
	}
	t.settings.faults = handlerFaults[Ctx](match == nil)
	apply(&t.settings.settings, opts, Option.methodOption, t.settings)
	return t
}

// Occurrence is an event, for Server.Emit.
type Occurrence struct {
	Name string // of the event type
	Data any    // what EventType has as Data, or a pointer to it
	// ID is the ID of the event at its source, by which subscribers recognize a repetition:
	// 1 to 128 visible ASCII characters, different for each event of the type. "" means a
	// new one.
	ID   string
	Time time.Time // when it happened; zero means now
}

// emit is Server.Emit; its errors do not have the name of the event type.
func emit(ctx context.Context, s *Server, o Occurrence) error {
	e, ok := s.catalog.Internal(facts.Private{}).Get(KindEvent, o.Name)
	if !ok {
		return errors.New("there is no such event type; add it with EventType, also where no clients are served")
	}
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	o.Time = o.Time.UTC()
	switch {
	case o.ID == "":
		o.ID = "evt_" + rand.Text()
	case !validEventID(o.ID):
		return fmt.Errorf("invalid ID %.40q: it has 1 to 128 visible ASCII characters", o.ID)
	}
	if year := o.Time.Year(); year < 0 || year > 9999 {
		return fmt.Errorf("invalid Time: the year %d cannot be written", year)
	}
	data, err := e.Emits.(*eventData).encode(o.Data)
	if err != nil {
		return err
	}
	return addEvent(ctx, s, e, &o, data)
}

// validEventID reports whether id can be in a header.
func validEventID(id string) bool {
	return len(id) <= 128 && !slices.ContainsFunc([]byte(id), func(c byte) bool { return c <= ' ' || c > '~' })
}

// maxEvent is how many bytes an event has at most. A delivery has 256 KiB.
const maxEvent = 255 << 10

// addEvent adds an event to the log of s, and to those of the servers that offer e as theirs.
// A server that is mounted and serves no clients itself has no log.
func addEvent(ctx context.Context, s *Server, e *registry.Entry, o *Occurrence, data []byte) error {
	parents := s.mounts.into()
	var errs []error
	if len(parents) == 0 || s.dispatcher.Load() != nil {
		text := appendEvent(o, e.Key(), data)
		if len(text) > maxEvent {
			return fmt.Errorf("the event has %d bytes, which exceeds the limit of %d: emit what is needed to find the rest", len(text), maxEvent)
		}
		err := s.events.logs(s).Append(ctx, e.Key(), text)
		if errors.Is(err, scale.ErrFull) {
			err = fmt.Errorf("the event has %d bytes, for which the log has no room: raise Limits.EventLog", len(text))
		}
		errs = append(errs, err)
	}
	for _, m := range parents {
		name := m.prefix + e.Key()
		if own, ok := m.parent.catalog.Internal(facts.Private{}).Get(KindEvent, name); ok && own.Emits == e.Emits {
			errs = append(errs, addEvent(ctx, m.parent, own, o, data))
		}
	}
	return errors.Join(errs...)
}

// appendEvent encodes an event as subscribers receive it.
func appendEvent(o *Occurrence, name string, data []byte) []byte {
	text := jsonx.AppendString([]byte(`{"eventId":`), o.ID)
	text = jsonx.AppendString(append(text, `,"name":`...), name)
	text = append(o.Time.AppendFormat(append(text, `,"timestamp":"`...), time.RFC3339Nano), `","data":`...)
	return append(append(text, data...), '}')
}

// eventType is an event type with the types of its function erased.
type eventType struct {
	name     string
	in, data reflect.Type
	settings *methodSettings
	match    func(f *frame.Frame, in, data any) (bool, error) // in and data are pointers
	left     atomic.Int64                                     // goroutines in a match that no poll waits for any more
}

// compile implements Component.
func (t *eventType) compile(c *compiler) error {
	set := t.settings
	faults := slices.Clone(set.faults)
	if !validEventName(t.name) {
		faults = append(faults, "a name has 1 to 128 letters, digits, '_', '-', '.' or '/'")
	}
	if set.title != "" || set.icons != nil || set.timeout != 0 {
		faults = append(faults, "an event type has no Title, Icons or Timeout; leave them out")
	}
	opts := c.schemaOptions()
	opts.Output = false
	plan, err := schema.Compile(t.in, &opts)
	faults.note(err)
	data, payload, err := newEventData(c, t.data)
	faults.note(err)
	if err := faults.of("event", t.name); err != nil {
		return err
	}
	for _, warning := range plan.Warnings() {
		c.notes = append(c.notes, note{fmt.Sprintf("event %q", t.name), warning.String()})
	}
	sent := plan.Internal(facts.Private{}).Narrow
	if c.server.opts.ExactSchemas {
		sent = plan.JSON()
	}
	e := set.entry(&protocol.EventType{
		Name: t.name, Description: set.doc, Delivery: []string{"poll"}, InputSchema: sent, PayloadSchema: payload, Meta: set.meta,
	})
	e.Emits, e.Serve = data, t.poll(c.server, input{plan: plan})
	c.entries = append(c.entries, e)
	return nil
}

// validEventName reports whether a name is one of an event type: one of a tool, or of
// several that slashes separate.
func validEventName(name string) bool {
	return len(name) > 0 && len(name) <= 128 && !slices.ContainsFunc([]byte(name), func(c byte) bool { return c != '/' && !validName(string(c)) })
}

// eventData encodes the data of an event type.
type eventData struct {
	of      reflect.Type
	encoder *jsonx.Encoder
	check   func([]byte) error // against the schema; nil if the encoder can write nothing that it forbids
}

// newEventData returns the eventData of a type, and the schema that clients receive.
func newEventData(c *compiler, of reflect.Type) (*eventData, json.RawMessage, error) {
	if of.Kind() != reflect.Struct && (of.Kind() != reflect.Map || of.Key().Kind() != reflect.String) {
		return nil, nil, fmt.Errorf("its data is %v, which is not a JSON object: use a struct or a map", of)
	}
	encoder, err := jsonx.NewEncoder(of)
	if err != nil {
		return nil, nil, fmt.Errorf("its data: %w", err)
	}
	opts := c.schemaOptions()
	opts.Output, opts.Strict = true, true
	plan, err := schema.Compile(of, &opts)
	if err != nil {
		return nil, nil, fmt.Errorf("its data: %w", err)
	}
	d := &eventData{of: of, encoder: encoder}
	if plan.Internal(facts.Private{}).Constrained {
		d.check = plan.Check
	}
	return d, plan.JSON(), nil
}

// encode returns the data of an event as JSON.
func (d *eventData) encode(data any) ([]byte, error) {
	of := reflect.TypeOf(data)
	if of != nil && of.Kind() == reflect.Pointer && of != d.of {
		of = of.Elem()
	}
	if of != d.of {
		return nil, fmt.Errorf("its data is %v; got %T", d.of, data)
	}
	text, err := d.encoder.Append(nil, data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("its data cannot be encoded: %w", err)
	case string(text) == "null" && d.of.Kind() == reflect.Map:
		return []byte("{}"), nil
	case text[0] != '{':
		return nil, fmt.Errorf("its data is a JSON object; got %.40s", text)
	case d.check != nil:
		if err := d.check(text); err != nil {
			return nil, fmt.Errorf("its data does not match its schema: %w", err)
		}
	}
	return jsonx.Paired(text), nil
}

// serverEvents is what a server has of events: their logs, which the first event or poll
// makes. The zero value is ready.
type serverEvents struct {
	once   sync.Once
	made   *events.Logs
	failed func(error)   // reports that the store does not answer a poll
	seldom safely.Seldom // of lines that clients can cause
}

// logs returns the logs of s.
func (x *serverEvents) logs(s *Server) *events.Logs {
	x.once.Do(func() {
		config := events.Config{Store: s.opts.Store, Seal: s.opts.sealer("events"), Keep: s.opts.Limits.EventLog}
		if s.post != nil {
			config.Now = s.post.StoreTime
		}
		x.made, x.failed = events.New(config), host{s}.storeFailed("events", "events")
	})
	return x.made
}

// eventMethods are the rows of event types in the method table.
func eventMethods(s *Server) []dispatch.Method {
	return []dispatch.Method{
		{Name: wire.MethodEventsList, Revisions: dispatch.Both, Serve: s.lists(hasEvents, KindEvent)},
		{Name: wire.MethodEventsPoll, Revisions: dispatch.Both, Params: true, Serve: s.viewed(hasEvents, pollEvents)},
	}
}

// pollEvents serves events/poll. An event type that the client must not see is as unknown
// as one that is not there.
func pollEvents(f *frame.Frame, view registry.View) (protocol.Result, error) {
	name := f.Request().Params.Name
	if name == "" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.name is missing: it names the event type")
	}
	e, ok := view.Get(KindEvent, name)
	if !ok {
		_, declared := f.ClientCapabilities().Extensions[wire.EventsExtension]
		return nil, &protocol.Error{Code: wire.EventCode(wire.CodeEventNotFound, declared), Message: "Unknown event: " + name, Data: map[string]string{"kind": "event"}}
	}
	if err := f.RequireScopes(e.Scopes...); err != nil {
		return nil, err
	}
	return e.Serve(f)
}

// Numbers of events/poll.
const (
	pollEventsDefault = 100             // events of a page, if the client names no number
	pollEventsMost    = 1_000           // events of a page
	pollInterval      = 5 * time.Second // time between two polls that the server names
	matchTimeout      = 5 * time.Second // how long one call of match may take
	pageTime          = 5 * time.Second // after it, no further event of a page is asked about
	maxLeft           = 64              // calls of match that do not return, of a type; further polls are 503
)

// poll returns what serves events/poll for the type, which s has.
func (t *eventType) poll(s *Server, in input) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		host, prefix, ok := within(f, s)
		if !ok {
			return nil, wire.MethodNotFound(f.Request().Method)
		}
		p, fault := wire.ParseEventPoll(f.Request().Params.Raw)
		if fault != nil {
			return nil, fault
		}
		arguments := reflect.New(t.in).Interface()
		if err := in.arguments(f, arguments); err != nil {
			if bad, ok := errors.AsType[*inputError](err); ok {
				return nil, bad.invalidParams(fmt.Sprintf("event %q", prefix+t.name))
			}
			return nil, err
		}
		page, err := host.events.logs(host).Read(f, prefix+t.name, p.Cursor, p.MaxAge)
		if err != nil {
			if f.Err() == nil {
				host.events.failed(err)
			}
			return nil, wire.Unavailable("events cannot be read", err)
		}
		if page.Unread > 0 {
			host.events.note(host, prefix+t.name, fmt.Errorf("%d events are not sealed with one of Options.StateKeys", page.Unread))
		}
		c := &choice{server: host, of: t, name: prefix + t.name, in: arguments, events: page.Events, most: min(cmp.Or(p.MaxEvents, pollEventsDefault), pollEventsMost)}
		texts, decided, err := c.make(f)
		if err != nil {
			return nil, err
		}
		result := wire.EventPage{
			Events: texts, Cursor: page.Cursor, Truncated: page.Truncated, HasMore: page.More, NextPollMs: pollInterval.Milliseconds(),
		}
		if n := decided; n < len(page.Events) {
			result.HasMore = true
			if result.Cursor = p.Cursor; n > 0 {
				result.Cursor = page.Events[n-1].Cursor
			}
		}
		return protocol.JSONResult{Value: result}, nil
	}
}

// note logs why subscribers do not receive an event of a type.
func (x *serverEvents) note(s *Server, name string, err error) {
	if skipped, due := x.seldom.Due(name, ""); due {
		safely.Log(s.logger.Warn().Str("event", name).Err(visible.Error(err)).Int("skipped", skipped.Lines), "events wait or are left out")
	}
}

// choice is the events of a page that one subscriber receives. match is users' code: it
// runs on a goroutine of its own, and may end it, or not return. The goroutine asks about
// one event after the other; mu guards the fields below it, between that goroutine and
// the one that waits.
type choice struct {
	server *Server
	of     *eventType
	name   string // of the type at server
	in     any    // a pointer to the arguments
	most   int    // events that are wanted
	began  time.Time

	mu      sync.Mutex
	events  []events.Event    // nil when make has returned, as match may not
	texts   []json.RawMessage // of the events that the subscriber receives
	asked   int               // events that match was called for
	since   time.Time         // when it was last called
	decided int               // events of which is known whether the subscriber receives them
	err     error             // why the next one is not decided
	over    bool              // make has returned
	ended   bool              // the goroutine asks no more
}

// make asks about the events, and returns those that the subscriber receives and how many
// are decided. It stops before an event that is not decided, and returns an error if that
// is the first one.
func (c *choice) make(f *frame.Frame) (texts []json.RawMessage, decided int, err error) {
	if len(c.events) == 0 {
		return []json.RawMessage{}, 0, nil
	}
	undecided := fmt.Sprintf("event %q: who receives it cannot be decided", c.name)
	if n := c.of.left.Load(); n >= maxLeft {
		err := fmt.Errorf("%d calls of match have not returned", n)
		c.server.events.note(c.server, c.name, err)
		return nil, 0, wire.Unavailable(undecided, err)
	}
	ctx, cancel := context.WithCancel(aloneAs(f.Identity(), f.Principal()))
	defer cancel()
	defer context.AfterFunc(f, cancel)()
	as := frame.Internal(facts.Private{}).New(ctx, core.Config{
		Revision: f.Revision(), Request: &core.Request{Method: wire.MethodEventsPoll, Params: protocol.Params{Name: c.of.name}},
	})
	c.texts, c.began = []json.RawMessage{}, time.Now()
	done := make(chan struct{})
	c.server.running.Go(func() { c.run(as, done) })
	c.wait(done)
	if texts, decided, err = c.leave(); f.Err() != nil {
		return nil, 0, context.Cause(f)
	}
	if err == nil {
		return texts, decided, nil
	}
	c.server.events.note(c.server, c.name, err)
	if decided > 0 {
		return texts, decided, nil
	}
	return nil, 0, wire.Unavailable(undecided, err)
}

// wait returns when done is closed, or one call of match has used up its time. That the
// client gives up ends no wait: the request counts as running until match returns.
func (c *choice) wait(done <-chan struct{}) {
	timer := time.NewTimer(matchTimeout)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			c.mu.Lock()
			rest := time.Until(c.since.Add(matchTimeout))
			c.mu.Unlock()
			if rest <= 0 {
				return
			}
			timer.Reset(rest)
		}
	}
}

// leave ends the choice, and returns what is decided and why the next event is not. A
// match that does not return keeps nothing but its own event.
func (c *choice) leave() (texts []json.RawMessage, decided int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	texts, decided, err = c.texts, c.decided, c.err
	c.over, c.events, c.texts = true, nil, nil
	if !c.ended {
		c.of.left.Add(1)
		err = fmt.Errorf("match has not returned within %v", matchTimeout)
	}
	return texts, decided, err
}

// run asks until nothing is left, and closes done. If match ends the goroutine, another one
// continues.
func (c *choice) run(f *frame.Frame, done chan struct{}) {
	finished := false
	defer func() {
		if finished {
			c.end()
			close(done)
			return
		}
		c.decide(nil, false, nil)
		c.server.running.Go(func() { c.run(f, done) })
	}()
	for text := c.next(f); text != nil; text = c.next(f) {
		yes, failed := false, error(nil)
		// A panic is logged, and means no.
		if _, err := c.server.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
			data := reflect.New(c.of.data).Interface()
			if failed = jsonx.Unmarshal(jsonx.Lookup(text, []string{"data"}), data); failed == nil {
				yes, failed = c.of.match(f, c.in, data)
			}
			return nil, nil
		}); err != nil {
			yes, failed = false, nil
		}
		c.decide(text, yes, failed)
	}
	finished = true
}

// end notes that the goroutine asks no more.
func (c *choice) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.over {
		c.of.left.Add(-1)
	}
}

// next returns the next event to ask about; nil if there is none.
func (c *choice) next(f *frame.Frame) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.over || c.err != nil || c.asked == len(c.events) || len(c.texts) == c.most || f.Err() != nil || c.asked > 0 && now.Sub(c.began) >= pageTime {
		return nil
	}
	c.asked++
	c.since = now
	return c.events[c.asked-1].Text
}

// decide notes what match has returned.
func (c *choice) decide(text []byte, yes bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over: // the page is sent
	case err != nil:
		c.err = err
	case yes:
		c.texts = append(c.texts, text)
		fallthrough
	default:
		c.decided++
	}
}
