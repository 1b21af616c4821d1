package events

import (
	"context"
	"sort"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// feedTail is how many bytes of the newest events of a type a feed has.
const feedTail = 1 << 20

// happening is an event of a log with its position.
type happening struct {
	text []byte // nil if no key opens it
	rev  scale.Rev
	prev scale.Rev // of the one before
}

// feed has the newest events of a type, for the subscriptions that this replica owns. Its
// goroutine lasts as long as there are some. Webhooks.mu guards it.
type feed struct {
	name, box   string
	subscribers map[*subscriber]bool
	wake        chan struct{} // has room for one
	stop        context.CancelFunc

	birth  string      // of the log that the events are from; "" before the first look
	from   scale.Rev   // tail has everything behind it
	last   scale.Rev   // up to which it has everything
	tail   []happening // the oldest first
	size   int         // of tail
	hints  []scale.Message
	waits  int // bytes of hints
	missed bool
}

// hint notes a message of the log. It reports whether it is the next one.
func (f *feed) hint(m scale.Message) {
	if f.waits += len(m.Data); f.waits > feedTail || m.Data == nil {
		f.hints, f.waits, f.missed = nil, 0, true
	} else {
		f.hints = append(f.hints, m)
	}
	f.look()
}

// look wakes the goroutine.
func (f *feed) look() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

// add adds what follows the tail, and drops its oldest events beyond feedTail.
func (f *feed) add(h happening) {
	f.tail = append(f.tail, h)
	f.size += len(h.text)
	f.last = h.rev
	n := 0
	for ; f.size > feedTail && n < len(f.tail)-1; n++ {
		f.size -= len(f.tail[n].text)
		f.from = f.tail[n].rev
	}
	f.tail = f.tail[n:] // readers may have it
}

// after returns the events of the tail behind a position. ok is false if it does not have
// them all.
func (f *feed) after(at scale.Rev) (events []happening, ok bool) {
	if at < f.from {
		return nil, false
	}
	i := sort.Search(len(f.tail), func(i int) bool { return f.tail[i].rev > at })
	return f.tail[i:len(f.tail):len(f.tail)], true
}

// open returns a message of a log as an event.
func (l *Logs) open(box string, m scale.Message) happening {
	text, _, err := l.config.Seal.Open(m.Data, seal.Binding(sealedUse, box))
	if err != nil {
		text = nil
	}
	return happening{text, m.Rev, m.Prev}
}

// readFrom returns what follows a position in a log, or the age that is read at most. quiet
// is a position with nothing before it, if there is nothing.
func (l *Logs) readFrom(ctx context.Context, box string, after scale.Rev) (read []happening, quiet scale.Rev, err error) {
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
	now, err := l.now(ctx) // before the messages, as in Read
	if err != nil {
		return nil, 0, err
	}
	messages, _, err := l.config.Store.Read(ctx, box, max(after, now-micros(retention)), "")
	if err != nil {
		return nil, 0, err
	}
	for _, m := range messages {
		read = append(read, l.open(box, m))
	}
	return read, now - micros(clockSkew), nil
}

// start returns the position at which a subscription begins that asks for cursor, as Read
// does. truncated reports that it is behind the cursor.
func (l *Logs) start(ctx context.Context, name, cursor string, maxAge time.Duration) (at scale.Rev, birth string, truncated bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
	page, err := l.Read(ctx, name, cursor, maxAge)
	if err != nil {
		return 0, "", false, err
	}
	if birth, err = l.born(ctx); err != nil {
		return 0, "", false, err
	}
	at, ok := position(page.Cursor, birth)
	if cursor == "" || !ok {
		return at, birth, cursor != "" && page.Truncated, nil
	}
	now, err := l.now(ctx)
	if err != nil {
		return 0, "", false, err
	}
	from, truncated, fresh := place(cursor, birth, now, maxAge)
	if fresh {
		return at, birth, true, nil
	}
	if page.Truncated && page.Unread == 0 && !truncated { // the log has lost some
		if messages, _, err := l.config.Store.Read(ctx, boxOf(name), from, ""); err == nil && len(messages) > 0 {
			from = max(from, messages[0].Prev)
		}
		truncated = true
	}
	return from, birth, truncated, nil
}

// cursorNow returns a cursor for a position: a later one if nothing follows it.
func (l *Logs) cursorNow(ctx context.Context, name, birth string, at scale.Rev) string {
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
	now, err := l.now(ctx)
	if err != nil {
		return cursorAt(birth, at)
	}
	messages, _, err := l.config.Store.Read(ctx, boxOf(name), at, "")
	if err == nil && len(messages) == 0 {
		at = max(at, now-micros(clockSkew))
	}
	return cursorAt(birth, at)
}
