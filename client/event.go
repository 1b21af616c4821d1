package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/wire"
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

// run polls until the end.
func (w *watch) run(ctx context.Context, arguments any, yield func(Occurrence, error) bool) {
	if err := w.begin(arguments); err != nil {
		yield(Occurrence{}, err)
		return
	}
	for {
		page, err := w.poll(ctx)
		var wait time.Duration
		if err != nil {
			w.failed++
			var again bool
			if wait, again = w.again(ctx, err); !again {
				yield(Occurrence{}, err)
				return
			}
		} else {
			w.failed, w.MaxAge = 0, 0 // what follows is what happens from now on
			yielded, ok := w.deliver(page, yield)
			if !ok {
				return
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
			return
		}
	}
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
	Cursor     *string  `json:"cursor"`
	Truncated  bool     `json:"truncated"`
	HasMore    bool     `json:"hasMore"`
	NextPollMs *float64 `json:"nextPollMs"`
}

// wait returns how long the server wants the client to wait, within limits.
func (p *eventPage) wait() time.Duration {
	if p.NextPollMs == nil || math.IsNaN(*p.NextPollMs) {
		return defaultWatch
	}
	ms := min(max(*p.NextPollMs, 0), float64(mostWatch.Milliseconds()))
	return max(time.Duration(ms)*time.Millisecond, leastWatch)
}

// poll asks once.
func (w *watch) poll(ctx context.Context) (*eventPage, error) {
	members := w.members[:len(w.members):len(w.members)]
	if w.Cursor == "" {
		members = append(members, `,"cursor":null`...)
	} else {
		members = jsonx.AppendString(append(members, `,"cursor":`...), w.Cursor)
		if w.MaxAge > 0 {
			members = jsonx.AppendInt(append(members, `,"maxAgeMs":`...), max(w.MaxAge.Milliseconds(), 1))
		}
	}
	raw, err := w.client.ask(ctx, w.op, wire.MethodEventsPoll, "", members, nil)
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
