package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Occurrence is an event that a server delivers. Its JSON form is that of the extension
// io.modelcontextprotocol/events.
type Occurrence struct {
	ID   string          `json:"eventId"`   // the same for a repetition
	Name string          `json:"name"`      // of the event type
	Time time.Time       `json:"timestamp"` // when it happened
	Data json.RawMessage `json:"data"`      // an object; as untrusted as the result of a tool
	// Cursor is where to continue when this event and all before it are processed: as
	// WatchOptions.Cursor, it begins with the next one. "" means that the server keeps no
	// positions.
	Cursor string `json:"cursor,omitempty"`
}

// WatchOptions say where Watch begins. The zero value begins now.
type WatchOptions struct {
	Cursor string        // from Occurrence.Cursor or Moved; "" means now
	MaxAge time.Duration // with Cursor, the greatest age of an event at the first poll; 0 means any
	// Moved receives a new position that came without an occurrence, so that it can be
	// saved. missed reports that events may be missing, as the server does not have them any
	// more: read the current state from the source. It runs on the goroutine of the loop.
	Moved func(cursor string, missed bool)
}

// Limits of Watch.
const (
	leastWatch   = time.Second     // between two polls, whatever the server wants
	defaultWatch = 5 * time.Second // between two polls, if the server names no interval
	mostWatch    = 5 * time.Minute // between two polls, whatever the server wants
	repeats      = 1024            // events that a repetition is recognized of
)

// watch is one loop of Client.Watch. It belongs to the goroutine of the loop.
type watch struct {
	WatchOptions // Cursor is that of the next poll
	client       *Client
	name         string
	op           string
	members      []byte // of the params, without the position
	failed       int    // polls in a row

	seed  maphash.Seed
	seen  map[uint64]bool // hashes of the last IDs
	order []uint64        // the same, the oldest first; a ring when it is full
	at    int             // the oldest one in it
}

// newWatch returns the loop for an event type, of which o may be nil.
func newWatch(c *Client, name string, o *WatchOptions) *watch {
	w := &watch{client: c, name: name, op: "watch " + name, members: named("name", name), seed: maphash.MakeSeed(), seen: make(map[uint64]bool)}
	if o != nil {
		w.WatchOptions = *o
	}
	return w
}

// begin encodes the arguments, which may be nil.
func (w *watch) begin(arguments any) error {
	if arguments == nil {
		return nil
	}
	var err error
	if w.members, err = w.client.encoders.object(append(w.members, `,"arguments":`...), "arguments", arguments); err != nil {
		return &Error{Op: w.op, Method: wire.MethodEventsPoll, Err: err}
	}
	return nil
}

// run receives by streams, or polls where there are none, until the end.
func (w *watch) run(ctx context.Context, arguments any, yield func(Occurrence, error) bool) {
	if err := w.begin(arguments); err != nil {
		yield(Occurrence{}, err)
		return
	}
	for {
		done, err := w.stream(ctx, yield)
		switch {
		case done:
			return
		case errors.Is(err, errNoStreamNow):
			done = !w.polls(ctx, time.Now().Add(streamAgain), yield)
		case errors.Is(err, errNoStream):
			done = !w.polls(ctx, time.Time{}, yield)
		case err != nil:
			done = !w.pause(ctx, err, yield)
		case pause.For(ctx, leastWatch) != nil: // the server has ended it in order
			yield(Occurrence{}, wrap(w.op, wire.MethodEventsStream, stopped(ctx)))
			done = true
		}
		if done {
			return
		}
	}
}

// polls polls until a time, or to the end of the loop if that is zero. It returns false if
// the loop is over.
func (w *watch) polls(ctx context.Context, until time.Time, yield func(Occurrence, error) bool) bool {
	for w.failed = 0; until.IsZero() || time.Now().Before(until); {
		page, err := w.poll(ctx)
		var wait time.Duration
		if err != nil {
			w.failed++
			var again bool
			if wait, again = w.again(ctx, err); !again {
				yield(Occurrence{}, err)
				return false
			}
		} else {
			w.failed, w.MaxAge = 0, 0 // what follows is what happens from now on
			yielded, ok := w.deliver(page, yield)
			if !ok {
				return false
			}
			switch wait = page.wait(); {
			case page.HasMore && yielded:
				wait = 0
			case page.HasMore:
				wait = leastWatch
			}
		}
		if wait > 0 && pause.For(ctx, wait) != nil {
			yield(Occurrence{}, wrap(w.op, wire.MethodEventsPoll, stopped(ctx)))
			return false
		}
	}
	return true
}

// pause waits before the next attempt after an error. It yields the error that ends the
// loop, and returns false then.
func (w *watch) pause(ctx context.Context, err error, yield func(Occurrence, error) bool) bool {
	w.failed++
	wait, again := w.again(ctx, err)
	if again && pause.For(ctx, wait) != nil {
		again, err = false, wrap(w.op, wire.MethodEventsStream, stopped(ctx))
	}
	if !again {
		yield(Occurrence{}, err)
	}
	return again
}

// again returns how long to wait after an error before the next poll; ok is false if it
// would not help.
func (w *watch) again(ctx context.Context, err error) (wait time.Duration, ok bool) {
	var own *Error
	switch {
	case ctx.Err() != nil, !Retriable(err),
		errors.As(err, &own) && wire.EventCodeOf(wire.MethodEventsPoll, own.Code) != 0,
		w.client.opts.NoReconnect && errors.Is(err, ErrConnection):
		return 0, false
	}
	wait, ok = w.client.opts.Reconnect.wait(w.failed)
	return min(max(wait, retryAfter(err)), mostWatch), ok
}

// deliver yields the events of a page, and reports whether there was a new one. ok is
// false if the loop has ended.
func (w *watch) deliver(page *eventPage, yield func(Occurrence, error) bool) (yielded, ok bool) {
	next := ""
	if page.Cursor != nil {
		next = *page.Cursor
	}
	if w.Moved != nil && page.Truncated && len(page.Events) > 0 {
		w.Moved(w.Cursor, true)
	}
	for i, e := range page.Events {
		if i == len(page.Events)-1 {
			w.Cursor = next
		}
		if w.repeated(e.ID) {
			if w.Moved != nil && i == len(page.Events)-1 {
				w.Moved(w.Cursor, false)
			}
			continue
		}
		if !yield(Occurrence{ID: e.ID, Name: e.Name, Time: e.Time.Time, Data: e.Data, Cursor: w.Cursor}, nil) {
			return true, false
		}
		yielded = true
	}
	if len(page.Events) == 0 && w.Moved != nil && (next != w.Cursor || page.Truncated) {
		w.Moved(next, page.Truncated)
	}
	w.Cursor = next
	return yielded, true
}

// repeated reports whether an event was there, and keeps its ID. Without an ID none is a
// repetition.
func (w *watch) repeated(id string) bool {
	if id == "" {
		return false
	}
	hash := maphash.String(w.seed, id) // an ID may be long
	if w.seen[hash] {
		return true
	}
	if len(w.order) < repeats {
		w.order = append(w.order, hash)
	} else {
		delete(w.seen, w.order[w.at])
		w.order[w.at] = hash
		w.at = (w.at + 1) % repeats
	}
	w.seen[hash] = true
	return false
}

// eventPage is the result of events/poll.
type eventPage struct {
	Events []struct {
		ID   string          `json:"eventId"`
		Name string          `json:"name"`
		Time jsonx.Time      `json:"timestamp"`
		Data json.RawMessage `json:"data"`
	} `json:"events"`
	Cursor     *string     `json:"cursor"`
	Truncated  bool        `json:"truncated"`
	HasMore    bool        `json:"hasMore"`
	NextPollMs json.Number `json:"nextPollMs"`
}

// wait returns how long the server wants the client to wait, within limits.
func (p *eventPage) wait() time.Duration {
	wait := milliseconds(p.NextPollMs)
	if wait == 0 {
		return defaultWatch
	}
	return min(max(wait, leastWatch), mostWatch)
}

// poll asks once.
func (w *watch) poll(ctx context.Context) (*eventPage, error) {
	raw, err := w.client.ask(ctx, w.op, wire.MethodEventsPoll, "", w.params(), nil)
	if err != nil {
		return nil, err
	}
	page := new(eventPage)
	if err := jsonx.Unmarshal(raw, page); err != nil {
		return nil, wrap(w.op, wire.MethodEventsPoll, invalid(err))
	}
	for i, e := range page.Events {
		switch {
		case len(e.Data) == 0 || e.Data[0] != '{':
			err = fmt.Errorf("events[%d].data is not an object", i)
		case e.Name != w.name:
			err = fmt.Errorf("events[%d].name is %.40q; want %q", i, e.Name, w.name)
		}
		if err != nil {
			return nil, wrap(w.op, wire.MethodEventsPoll, invalid(err))
		}
	}
	return page, nil
}

// params returns the members of the params at the present position.
func (w *watch) params() []byte {
	members := w.members[:len(w.members):len(w.members)]
	if w.Cursor == "" {
		members = append(members, `,"cursor":null`...)
	} else {
		members = jsonx.AppendString(append(members, `,"cursor":`...), w.Cursor)
		if w.MaxAge > 0 {
			members = jsonx.AppendInt(append(members, `,"maxAgeMs":`...), max(w.MaxAge.Milliseconds(), 1))
		}
	}
	return members
}

// Limits of a stream of events.
const (
	openStream   = 10 * time.Second // for the stream to open; after it, Watch polls
	streamAgain  = 5 * time.Minute  // of polls, after which a stream is tried again that had no room
	quietStream  = 60 * time.Second // without a message, after which a stream is dead
	maxStreamed  = 1024             // messages that wait for the loop; beyond it the stream is opened again behind them
	streamedSize = 1 << 20          // bytes of them
)

// Ends of a stream.
var (
	errStreamQuiet = errors.New("the stream of events has sent nothing for 60 s")
	errStreamOver  = errors.New("the loop is over")
	errNoStream    = errors.New("the server opens no stream of events")
	errNoStreamNow = fmt.Errorf("%w now", errNoStream)
)

// eventQueue is what the server sends on an events/stream, until the loop takes it. mu guards
// the fields below it.
type eventQueue struct {
	wake chan struct{} // holds one
	over chan struct{} // closed when the request is over, with err

	mu    sync.Mutex
	queue []*protocol.Message
	size  int
	full  bool
	err   error
}

// put queues a message of the stream. It does not wait: the goroutine that reads a
// connection calls it.
func (s *eventQueue) put(m *protocol.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full = s.full || len(s.queue) == maxStreamed || s.size > streamedSize; s.full {
		return
	}
	s.queue = append(s.queue, &protocol.Message{Method: m.Method, Params: clone(m.Params)})
	s.size += len(m.Params)
	s.signal()
}

// signal wakes the loop.
func (s *eventQueue) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // it is about to look
	}
}

// take returns what waits. full reports that more was dropped behind it.
func (s *eventQueue) take() (messages []*protocol.Message, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages, s.queue, s.size = s.queue, nil, 0
	return messages, s.full
}

// stream opens an events/stream and yields what it delivers, until it ends. done reports
// that the loop is over. An error that wraps errNoStream means that the server has none.
func (w *watch) stream(ctx context.Context, yield func(Occurrence, error) bool) (done bool, err error) {
	c := w.client
	conn, err := c.life.current(ctx)
	if err != nil {
		return false, wrap(w.op, wire.MethodEventsStream, err)
	}
	if !conn.revision().Modern() {
		return false, errNoStream
	}
	r := &request{client: c, op: w.op, method: wire.MethodEventsStream, members: w.params(), options: &callOptions{timeout: -1, maxTimeout: -1}}
	if r.offered(conn) != nil {
		return false, errNoStream // a poll says why
	}
	s := &eventQueue{wake: make(chan struct{}, 1), over: make(chan struct{})}
	p := &call{method: r.method, conn: conn, events: s}
	within, end := p.begin(lasting{c.life.ctx, ctx}, 0, 0)
	if !c.life.spawn(func() {
		defer close(s.over)
		defer end()
		c.calls.enter(p)
		m := &link.Message{Body: r.encode(within, conn, p.id, round{}, false), ID: protocol.NewID(p.id), Method: r.method, Revision: conn.revision(), Modern: true}
		err := conn.carry(within, m)
		if err == nil && !conn.sync {
			p.wait(within)
		}
		_, err = p.settle(within, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
	}) {
		end()
		return false, &Error{Op: w.op, Method: r.method, kind: ErrClosed, Err: errClientClosed}
	}
	defer func() { // also where the loop panics
		p.abort(&Error{kind: ErrCancelled, Err: errStreamOver})
		<-s.over
	}()
	return w.receive(ctx, s, yield)
}

// receive yields what a stream delivers.
func (w *watch) receive(ctx context.Context, s *eventQueue, yield func(Occurrence, error) bool) (done bool, err error) {
	timer := time.NewTimer(openStream)
	defer timer.Stop()
	active := false
	for {
		ended := false
		select {
		case <-s.wake:
		case <-s.over:
			ended = true
		case <-timer.C:
			if !active {
				return false, errNoStream
			}
			return false, &Error{Op: w.op, Method: wire.MethodEventsStream, kind: ErrConnection, Err: errStreamQuiet}
		case <-ctx.Done():
			return false, wrap(w.op, wire.MethodEventsStream, stopped(ctx))
		}
		messages, full := s.take()
		for _, m := range messages {
			active, w.failed = true, 0
			if done, err := w.streamed(m, yield); done || err != nil {
				return done, err
			}
		}
		switch {
		case ended && s.err != nil:
			return false, w.unstreamed(s.err, active)
		case ended || full: // the server has ended it in order: it opens again
			return false, nil
		case active:
			timer.Reset(quietStream)
		}
	}
}

// unstreamed returns the error of a stream: errNoStream if the server does not have it, and
// errNoStreamNow if it has no room, or something on the way lets no stream pass. Polls may do.
func (w *watch) unstreamed(err error, active bool) error {
	err = wrap(w.op, wire.MethodEventsStream, err)
	own, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	code := wire.EventCodeOf(wire.MethodEventsStream, own.Code)
	_, status := errors.AsType[*origin.StatusError](err)
	_, fault := errors.AsType[*protocol.Error](err)
	switch {
	case active:
	case own.Code == protocol.CodeMethodNotFound, code == wire.CodeEventsUnsupported:
		return fmt.Errorf("%w: %w", errNoStream, err)
	case own.Code == protocol.CodeBusy, own.Code == protocol.CodeInvalidRequest, code == wire.CodeEventsExhausted, status && own.kind == nil:
		return fmt.Errorf("%w: %w", errNoStreamNow, err)
	}
	if own.kind == nil && !fault { // the answer broke off: the loop continues behind what came
		return &Error{Op: w.op, Method: wire.MethodEventsStream, kind: ErrConnection, Err: err}
	}
	return err
}

// streamed handles one message of a stream.
func (w *watch) streamed(m *protocol.Message, yield func(Occurrence, error) bool) (done bool, err error) {
	var p struct {
		Occurrence
		At        jsonx.Time      `json:"timestamp"`
		Cursor    *string         `json:"cursor"`
		Truncated bool            `json:"truncated"`
		Error     *protocol.Error `json:"error"`
	}
	if err := jsonx.Unmarshal(m.Params, &p); err != nil {
		return false, wrap(w.op, m.Method, invalid(err))
	}
	cursor := w.Cursor
	if p.Cursor != nil {
		cursor = *p.Cursor
	}
	switch m.Method {
	case wire.MethodEventsActive, wire.MethodEventsHeartbeat:
		if w.Moved != nil && (cursor != w.Cursor || p.Truncated) {
			w.Moved(cursor, p.Truncated)
		}
		w.Cursor, w.MaxAge = cursor, 0
	case wire.MethodEventsEvent:
		switch {
		case len(p.Data) == 0 || p.Data[0] != '{':
			return false, wrap(w.op, m.Method, invalid(errors.New("data is not an object")))
		case p.Name != w.name:
			return false, wrap(w.op, m.Method, invalid(fmt.Errorf("name is %.40q; want %q", p.Name, w.name)))
		}
		w.Cursor, w.MaxAge = cursor, 0
		if w.repeated(p.ID) {
			if w.Moved != nil {
				w.Moved(cursor, false)
			}
			return false, nil
		}
		return !yield(Occurrence{ID: p.ID, Name: p.Name, Time: p.At.Time, Data: p.Data, Cursor: cursor}, nil), nil
	case wire.MethodEventsTerminated:
		if p.Error == nil {
			return false, wrap(w.op, m.Method, invalid(errors.New("error is missing")))
		}
		return false, wrap(w.op, wire.MethodEventsStream, p.Error)
	}
	return false, nil
}
