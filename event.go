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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/conn"
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
		name: name, in: reflect.TypeFor[In](), data: reflect.TypeFor[Data](), settings: &methodSettings{}, makes: newWebhooks,
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
// A server that is mounted has one if clients read it there, also before a restart: it has
// an Options.Store then.
func addEvent(ctx context.Context, s *Server, e *registry.Entry, o *Occurrence, data []byte) error {
	parents := s.mounts.into()
	var errs []error
	if len(parents) == 0 || s.opts.Store != nil || s.events.read.Load() {
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
	makes    func(events.WebhookConfig) webhookSet            // newWebhooks, which only programs with event types link
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
		Name: t.name, Description: set.doc, Delivery: c.server.opts.delivery(), InputSchema: sent, PayloadSchema: payload, Meta: set.meta,
	})
	data.typ, data.in = t, input{plan: plan}
	read, subscribe := t.serve(c.server, data), t.subscribe(c.server, data.in)
	e.Emits, e.Serve = data, func(f *frame.Frame) (protocol.Result, error) {
		if f.Request().Method == wire.MethodEventsSubscribe {
			return subscribe(f)
		}
		return read(f)
	}
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
	plain   bool               // a copy of a value shares nothing that can change
	typ     *eventType         // for webhooks, and what decodes the arguments of a subscription
	in      input
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
	d, known := &eventData{of: of, encoder: encoder, plain: isPlain(of)}, plan.Internal(facts.Private{})
	if known.Constrained {
		d.check = plan.Check
	}
	return d, known.Open(), nil
}

// isPlain reports whether copies of values of a type share nothing that can change.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return t == reflect.TypeFor[time.Time]()
			}
		}
		return true
	case reflect.String:
		return true
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Uintptr
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
	made   atomic.Pointer[events.Logs] // nil until then
	read   atomic.Bool                 // a client has read a log here
	failed func(error)                 // reports that the store does not answer a poll
	seldom safely.Seldom               // of lines that clients can cause
	// The functions that end to follow the log of a type that has streams here, by its name.
	followed sync.Map

	hooking sync.Once
	makes   atomic.Pointer[func(events.WebhookConfig) webhookSet] // of an event type; nil before there is one
	hooks   atomic.Pointer[webhookSet]                            // nil until it is needed
	closed  atomic.Bool                                           // there are no further ones

	leftMu sync.Mutex
	left   map[string]int // calls of match that have not returned in time, by event type and by webhook
}

// logs returns the logs of s.
func (x *serverEvents) logs(s *Server) *events.Logs {
	x.once.Do(func() {
		config := events.Config{Store: s.opts.Store, Seal: s.opts.sealer("events"), Keep: s.opts.Limits.EventLog}
		if s.post != nil {
			config.Now = s.post.StoreTime
		}
		x.failed = host{s}.storeFailed("events", "events")
		config.OnError = x.failed
		x.made.Store(events.New(config))
		if x.closed.Load() { // at the same time
			x.made.Load().Close(context.Background()) // nothing runs
		}
	})
	return x.made.Load()
}

// reading is logs for a client.
func (x *serverEvents) reading(s *Server) *events.Logs {
	x.read.Store(true)
	return x.logs(s)
}

// eventMethods are the rows of event types in the method table.
func eventMethods(s *Server) []dispatch.Method {
	return []dispatch.Method{
		{Name: wire.MethodEventsList, Revisions: dispatch.Both, Serve: s.lists(hasEvents, KindEvent)},
		{Name: wire.MethodEventsPoll, Revisions: dispatch.Both, Params: true, Serve: s.viewed(hasEvents, serveEvents)},
		{Name: wire.MethodEventsStream, Revisions: dispatch.Modern, Params: true, Serve: s.viewed(hasEvents, serveEvents)},
		{Name: wire.MethodEventsSubscribe, Revisions: dispatch.Both, Params: true, Serve: s.viewed(hasEvents, serveEvents)},
		{Name: wire.MethodEventsUnsubscribe, Revisions: dispatch.Both, Params: true, Serve: unsubscribeEvents(s)},
	}
}

// eventSettings are those of the extension.
type eventSettings struct {
	ListChanged bool `json:"listChanged"`
}

// serveEvents serves events/poll, events/stream and events/subscribe. An event type that
// the client must not see is as unknown as one that is not there.
func serveEvents(f *frame.Frame, view registry.View) (protocol.Result, error) {
	name := f.Request().Params.Name
	if name == "" {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.name is missing: it names the event type")
	}
	e, ok := view.Get(KindEvent, name)
	if !ok {
		return nil, unknownEvent(name, declaresEvents(f))
	}
	if err := f.RequireScopes(e.Scopes...); err != nil {
		return nil, err
	}
	return e.Serve(f)
}

// unknownEvent is the error for an event type that is not there, for a client that has
// declared the extension or not.
func unknownEvent(name string, declared bool) *protocol.Error {
	return &protocol.Error{Code: wire.EventCode(wire.CodeEventNotFound, declared), Message: "Unknown event: " + name, Data: map[string]string{"kind": "event"}}
}

// Numbers of events/poll.
const (
	pollEventsDefault = 100             // events of a page, if the client names no number
	pollEventsMost    = 1_000           // events of a page
	pollInterval      = 5 * time.Second // time between two polls that the server names
)

// serve returns what serves the methods of subscribers of the type, which s has.
func (t *eventType) serve(s *Server, data *eventData) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		host, prefix, ok := within(f, s)
		if !ok {
			return nil, wire.MethodNotFound(f.Request().Method)
		}
		p, fault := wire.ParseEventPoll(f.Request().Method, f.Request().Params.Raw)
		if fault != nil {
			return nil, fault
		}
		arguments := reflect.New(t.in).Interface()
		if err := data.in.arguments(f, arguments); err != nil {
			if bad, ok := errors.AsType[*inputError](err); ok {
				return nil, bad.invalidParams(fmt.Sprintf("event %q", prefix+t.name))
			}
			return nil, err
		}
		w := &watcher{server: host, of: t, data: data, name: prefix + t.name, in: arguments, as: aloneAs(f.Identity(), f.Principal()), revision: f.Revision()}
		page, err := w.read(f, p.Cursor, p.MaxAge)
		if err != nil {
			return nil, wire.Unavailable("events cannot be read", err)
		}
		if f.Request().Method == wire.MethodEventsStream {
			return w.stream(f, &page)
		}
		chosen, decided, err := w.choose(f, page.Events, min(cmp.Or(p.MaxEvents, pollEventsDefault), pollEventsMost))
		if f.Err() != nil {
			return nil, context.Cause(f)
		}
		if err != nil && decided == 0 {
			return nil, wire.Unavailable(fmt.Sprintf("event %q: who receives it cannot be decided", w.name), err)
		}
		result := wire.EventPage{
			Events: make([]json.RawMessage, len(chosen)), Cursor: page.Cursor, Truncated: page.Truncated, HasMore: page.More, NextPollMs: pollInterval.Milliseconds(),
		}
		for i, e := range chosen {
			result.Events[i] = e.Text
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

// leaves adds n to the calls of match that have not returned in time, of an event type or a
// webhook, and returns how many there are.
func (x *serverEvents) leaves(of string, n int) int {
	x.leftMu.Lock()
	defer x.leftMu.Unlock()
	if x.left == nil {
		x.left = map[string]int{}
	}
	if n += x.left[of]; n == 0 {
		delete(x.left, of)
	} else {
		x.left[of] = n
	}
	return n
}

// watcher is a subscriber of an event type.
type watcher struct {
	server   *Server
	of       *eventType
	data     *eventData      // of the type
	name     string          // of the type at server
	in       any             // a pointer to the arguments
	as       context.Context // who it is
	revision protocol.Revision
}

// read reads the log. Its errors, and events that no key opens, are in the log of the server.
func (w *watcher) read(ctx context.Context, cursor string, maxAge time.Duration) (events.Page, error) {
	x := &w.server.events
	page, err := x.reading(w.server).Read(ctx, w.name, cursor, maxAge)
	if err != nil && ctx.Err() == nil {
		x.failed(err)
	}
	if page.Unread > 0 {
		w.noteUnread(page.Unread)
	}
	return page, err
}

// noteUnread logs that no key opens some events.
func (w *watcher) noteUnread(n int) {
	w.server.events.note(w.server, w.name, fmt.Errorf("%d events are not sealed with one of Options.StateKeys", n))
}

// choose returns the events that the subscriber receives, most at most, and how many are
// decided. err is why the next one is not.
func (w *watcher) choose(ctx context.Context, all []events.Event, most int) (chosen []events.Event, decided int, err error) {
	as, cancel := context.WithCancel(w.as)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	f := w.frame(as)
	note := func(err error) { w.server.events.note(w.server, w.name, err) }
	asker := events.Asker{
		Go: w.server.running.Go, Note: note, Left: func(n int) int { return w.server.events.leaves(w.name, n) },
		Ask: func(event []byte) (bool, error) { return w.ask(f, event) },
	}
	if chosen, decided, err = asker.Choose(ctx, all, most); err != nil {
		note(err)
	}
	return chosen, decided, err
}

// frame returns the Frame in which rules about the subscriber run.
func (w *watcher) frame(ctx context.Context) *frame.Frame {
	return frame.Internal(facts.Private{}).New(ctx, core.Config{
		Revision: w.revision, Request: &core.Request{Method: wire.MethodEventsPoll, Params: protocol.Params{Name: w.name}},
	})
}

// ask calls match. A panic is logged, with its stack once in a while, and means no.
func (w *watcher) ask(f *frame.Frame, event []byte) (yes bool, err error) {
	safely.Do(func() {
		data := reflect.New(w.of.data).Interface()
		if err = jsonx.Unmarshal(jsonx.Lookup(event, []string{"data"}), data); err != nil {
			err = fmt.Errorf("%w: %w", events.ErrUnfit, err)
			return
		}
		yes, err = w.of.match(f, w.in, data)
	}, func(failure *safely.Failure) {
		yes, err = false, nil
		kind := "panic " + w.name
		if failure.Exited() {
			kind = "exit " + w.name
		}
		if skipped, due := w.server.events.seldom.Due(kind, ""); due {
			logPanic(&w.server.logger)(f, failure)
			if skipped.Lines > 0 {
				safely.Log(w.server.logger.Error().Str("event", w.name).Int("skipped", skipped.Lines), "further panics were not logged")
			}
		}
	})
	return yes, err
}

// Numbers of events/stream.
const (
	heartbeatAfter = 20 * time.Second // without a message, at the next look at the log
	heartbeatLeast = time.Second      // without a message, where Timeouts.KeepAlive asks for a sign of life
	storeAgain     = 5 * time.Second  // until a stream that needs the store asks it again
)

// undecidedWaits are how long a stream waits before it asks again about an event that could
// not be decided. Then it leaves the event out, and says that one is missing.
var undecidedWaits = [...]time.Duration{time.Second, 10 * time.Second, time.Minute}

// eventTopic is the topic of a type in the broker.
func eventTopic(name string) string { return "events " + name }

// eventsLook is published when a log may have more. It is not sent.
var eventsLook = wire.NewChange(wire.MethodEventsEvent, nil)

// follow follows the log of a type that has streams here, or no longer.
func (x *serverEvents) follow(s *Server, name string, wanted bool) {
	if wanted {
		x.followed.Store(name, x.reading(s).Follow(name, func() { s.subscriptions.broker.Publish(eventTopic(name), eventsLook) }))
	} else if stop, ok := x.followed.LoadAndDelete(name); ok {
		stop.(func())()
	}
}

// stream opens a stream that begins where page does.
func (w *watcher) stream(f *frame.Frame, page *events.Page) (protocol.Result, error) {
	sub := conn.SubscriptionOf(f)
	if sub == nil || sub.IsOpen() {
		return nil, protocol.Errorf(protocol.CodeInternal, "a request opens one subscription, on a transport that carries it")
	}
	x := &eventStream{watcher: w, declared: declaresEvents(f), cursor: page.From, truncated: page.Truncated}
	join := conn.Subscribing{Owner: f.Principal(), Topics: []string{eventTopic(w.name)}}
	var until time.Time
	if id := f.Identity(); id != nil {
		until = id.Expiry
	}
	if err := sub.OpenFeed(w.server.subscriptions.broker, join, f.Request().ID, x, until); err != nil {
		return nil, protocol.Errorf(protocol.CodeBusy, "%w", err)
	}
	return wire.ListenResult{Subscription: f.Request().ID}, nil
}

// eventStream is an open events/stream. One goroutine uses it, which conn has.
type eventStream struct {
	*watcher
	declared  bool   // the client has declared the extension
	cursor    string // the client has everything up to it
	truncated bool   // events before it are missing, which the client does not know
	active    bool   // the client knows that the stream is open
	sent      time.Time
	tries     int       // at the event behind cursor, or at the rules
	ruled     bool      // the tries were at the rules
	after     time.Time // when the next try is
}

// Send implements conn.Feed.
func (x *eventStream) Send(send func(method string, members []byte) error, signs conn.Signs) (again time.Duration, over bool, err error) {
	now := time.Now()
	to := func(method string, members []byte) error {
		x.sent = now
		return send(method, members)
	}
	var page events.Page
	unread, waits := error(nil), x.after.After(now)
	if !waits {
		page, unread = x.recall()
	}
	fault, undecided := x.refused() // after the events came, as rights may have changed before them
	if fault != nil {
		return 0, true, to(wire.MethodEventsTerminated, errorMember(fault))
	}
	if !x.active || x.truncated {
		if err := x.sendActive(to); err != nil {
			return 0, false, err
		}
	}
	switch {
	case waits:
		again = x.after.Sub(now)
	case unread != nil:
		again = storeAgain
	case undecided != nil:
		again, err = x.wait(to, undecided, "")
	default:
		again, err = x.sendEvents(to, &page)
	}
	if quiet := now.Sub(x.sent); err == nil && (quiet >= heartbeatAfter || signs&conn.KeepAlive != 0 && quiet >= heartbeatLeast) {
		err = to(wire.MethodEventsHeartbeat, x.position())
	}
	return again, false, err
}

// position returns the member cursor.
func (x *eventStream) position() []byte { return jsonx.AppendString([]byte(`"cursor":`), x.cursor) }

// errorMember returns the member error.
func errorMember(fault *protocol.Error) []byte {
	text, err := jsonx.Append([]byte(`"error":`), fault)
	if err != nil { // an error of ours encodes
		return []byte(`"error":{"code":-32603,"message":"Internal error"}`)
	}
	return text
}

// sendActive tells the client where the stream is.
func (x *eventStream) sendActive(to func(string, []byte) error) error {
	members := append(x.position(), `,"truncated":`...)
	members = strconv.AppendBool(members, x.truncated)
	x.active, x.truncated = true, false
	return to(wire.MethodEventsActive, members)
}

// recall returns what follows the cursor, from memory if that has it.
func (x *eventStream) recall() (events.Page, error) {
	page, ok := x.server.events.reading(x.server).Recall(x.name, x.cursor)
	if !ok {
		return x.read(x.as, x.cursor, -1)
	}
	if page.Unread > 0 {
		x.noteUnread(page.Unread)
	}
	return page, nil
}

// sendEvents sends the events of a page that the client receives.
func (x *eventStream) sendEvents(to func(string, []byte) error, page *events.Page) (again time.Duration, err error) {
	if page.Truncated {
		x.cursor, x.truncated = page.From, true
		if err := x.sendActive(to); err != nil {
			return 0, err
		}
	}
	chosen, decided, undecided := x.choose(x.as, page.Events, pollEventsDefault)
	for _, e := range chosen {
		members := jsonx.AppendString(append(e.Text[1:len(e.Text)-1:len(e.Text)-1], `,"cursor":`...), e.Cursor)
		if err := to(wire.MethodEventsEvent, members); err != nil {
			return 0, err
		}
	}
	if decided == len(page.Events) {
		x.cursor, x.tries = page.Cursor, 0
		if page.More && len(page.Events) > 0 { // else what is read next wakes the stream
			return -1, nil
		}
		return 0, nil
	}
	if decided > 0 {
		x.cursor, x.tries = page.Events[decided-1].Cursor, 0
	}
	if undecided != nil {
		return x.wait(to, undecided, page.Events[decided].Cursor)
	}
	return -1, nil
}

// wait says that the stream waits, as it cannot be decided now who receives the event that
// ends at next, "" for no event. After the last try the event is left out.
func (x *eventStream) wait(to func(string, []byte) error, undecided error, next string) (again time.Duration, err error) {
	if rules := next == ""; rules != x.ruled {
		x.ruled, x.tries = rules, 0
	}
	if x.tries == len(undecidedWaits) && next != "" {
		x.server.events.note(x.server, x.name, fmt.Errorf("an event is left out: %w", undecided))
		x.cursor, x.truncated, x.tries = next, true, 0
		return -1, x.sendActive(to)
	}
	again = undecidedWaits[min(x.tries, len(undecidedWaits)-1)]
	if x.tries++; x.tries == 1 {
		err = to(wire.MethodEventsError, errorMember(&protocol.Error{
			Code: protocol.CodeInternal, Message: fmt.Sprintf("event %q: who receives it cannot be decided now", x.name),
		}))
	}
	x.tries = min(x.tries, len(undecidedWaits))
	x.after = time.Now().Add(again)
	return again, err
}

// refused returns why the stream is over: the type is gone, or the client must not see it
// any more. undecided is set if a rule cannot tell now.
func (x *eventStream) refused() (fault *protocol.Error, undecided error) {
	e, ok := x.server.catalog.Internal(facts.Private{}).Get(KindEvent, x.name)
	if !ok || e.Emits != any(x.data) {
		return unknownEvent(x.name, x.declared), nil
	}
	if x.server.catalog.View(nil, nil).Internal(facts.Private{}).Open(KindEvent) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(x.as, mayHearTimeout)
	defer cancel()
	f, may := x.frame(ctx), false
	err := safely.Apart(func() { // rules are users' code
		_, undecided = x.server.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
			own, ok := x.server.view(f).Get(KindEvent, x.name)
			may = ok && f.HasScope(own.Scopes...)
			return nil, nil
		})
	})
	if undecided = cmp.Or(undecided, err); undecided == nil && !may {
		return &protocol.Error{Code: wire.EventCode(wire.CodeEventForbidden, x.declared), Message: "you may not receive the event " + x.name + " any more"}, nil
	}
	return nil, undecided
}
