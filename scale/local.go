package scale

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// local is a Store within the process. One lock guards all of it: a call takes
// about a microsecond, and calls no code of others while it has the lock.
//
// Its memory is bounded by what is in it: an entry leaves when its time is over,
// at the latest with the first call of any method after that, and a box as well.
type local struct {
	start time.Time // times are counted from here, by the monotonic clock
	base  Rev       // that of start

	mu       sync.Mutex
	last     Rev // given to an entry or a message
	entries  map[Key]*entry
	indexes  map[Key]*schedule // by Part and name; none is empty
	limits   map[Key]int       // entries that count, by Part and name; none is 0
	boxes    map[string]*box
	ends     schedule // of entries and boxes
	watchers map[string]map[*watcher]int
}

// entry is one of a local. end is in local.ends, due in the index if there is
// one.
type entry struct {
	key          Key
	rev          Rev
	owner        string
	value        []byte
	index, limit string
	end, due     alarm
}

// NewLocal returns a Store within the process, which begins empty and ends with
// it. Its clock is that of package time, so that in a bubble of testing/synctest
// it is the bubble's. It has no goroutine but one for each Watcher, and never
// returns ErrUnavailable. A Watcher has up to 4 MiB of messages that wait for
// its fn, beyond which it drops them and calls gap. It is [Bounded].
func NewLocal() Store { return bounded{checked{newLocal()}} }

// bounded is a checked local.
type bounded struct{ checked }

// HasTimeout implements Bounded: a call waits for one lock, which is never held for long.
func (bounded) HasTimeout() {}

func newLocal() *local {
	now := time.Now()
	return &local{
		start: now, base: Rev(now.UnixMicro()),
		entries: map[Key]*entry{}, indexes: map[Key]*schedule{}, limits: map[Key]int{},
		boxes: map[string]*box{}, watchers: map[string]map[*watcher]int{},
	}
}

// lock locks l, unless ctx has ended, and returns the time, with everything gone
// whose time is over.
func (l *local) lock(ctx context.Context) (now time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("scale: %w", err)
	}
	l.mu.Lock()
	now = time.Since(l.start)
	for a := l.ends.first(now); a != nil; a = l.ends.first(now) {
		if a.entry != nil {
			l.drop(a.entry)
		} else {
			l.ends.remove(a)
			delete(l.boxes, a.box.name)
		}
	}
	return now, nil
}

// next returns a Rev that no entry and no message has had. l.mu is held.
func (l *local) next(now time.Duration) Rev {
	l.last = max(l.last+1, l.base+Rev(now.Microseconds()))
	return l.last
}

// Get implements Store.
func (l *local) Get(ctx context.Context, looks ...GetOp) ([]Entry, error) {
	found := make([]Entry, len(looks))
	now, err := l.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	for i := range looks {
		found[i] = l.look(&looks[i], now)
	}
	return found, nil
}

func (l *local) look(look *GetOp, now time.Duration) Entry {
	e := l.entries[look.Key]
	if e == nil {
		return Entry{Key: look.Key}
	}
	if e.rev != look.Known {
		return l.copy(e, nil)
	}
	l.live(e, now, look.TTL, look.In)
	return Entry{Key: e.key, Rev: e.rev, Owner: e.owner, Due: l.due(e)}
}

// live lets an entry live on: each of the times changes if it is not 0. l.mu is
// held.
func (l *local) live(e *entry, now, ttl, in time.Duration) {
	if ttl > 0 {
		l.ends.set(&e.end, later(now, ttl))
	}
	if in > 0 && e.index != "" {
		l.indexes[Key{e.key.Partition, e.index}].set(&e.due, later(now, in))
	}
}

// later returns now + d, or the end of time.
func later(now, d time.Duration) time.Duration {
	const end = 1<<63 - 1
	return now + min(d, end-now)
}

// copy returns an entry with its value.
func (l *local) copy(e *entry, err error) Entry {
	return Entry{Key: e.key, Rev: e.rev, Owner: e.owner, Due: l.due(e), Value: e.value, Err: err}
}

// due returns when an entry is due, as callers see it.
func (l *local) due(e *entry) Rev {
	if e.index == "" {
		return 0
	}
	return l.base + Rev(e.due.at.Microseconds())
}

// Put implements Store.
func (l *local) Put(ctx context.Context, writes ...Write) ([]Entry, error) {
	made := make([]Entry, len(writes))
	now, err := l.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	for i := range writes {
		made[i] = l.write(&writes[i], now)
	}
	return made, nil
}

func (l *local) write(w *Write, now time.Duration) Entry {
	e := l.entries[w.Key]
	var prev Rev
	if e != nil {
		prev = e.rev
	}
	switch {
	case w.Prev != Any && w.Prev != prev:
		if e == nil {
			return Entry{Key: w.Key, Err: ErrChanged}
		}
		return l.copy(e, ErrChanged)
	case w.Value == nil:
		if e != nil {
			l.drop(e)
			l.told(w, 0, prev)
		}
		return Entry{Key: w.Key}
	case e == nil:
		limit := Key{w.Key.Partition, w.Limit}
		if w.Limit != "" && l.limits[limit] >= w.Max {
			return Entry{Key: w.Key, Err: ErrFull}
		}
		e = &entry{key: w.Key, limit: w.Limit}
		e.end.entry, e.due.entry = e, e
		l.entries[w.Key] = e
		if w.Limit != "" {
			l.limits[limit]++
		}
	}
	e.rev, e.owner, e.value = l.next(now), w.Owner, w.Value
	if w.DueIn < 0 || w.DueIn > 0 && e.index != w.Index {
		l.leave(e)
	}
	if w.DueIn > 0 {
		l.join(e, w.Index)
	}
	l.live(e, now, w.TTL, w.DueIn)
	l.told(w, e.rev, prev)
	return Entry{Key: e.key, Rev: e.rev, Owner: e.owner, Due: l.due(e)}
}

// told tells the watchers of a write.
func (l *local) told(w *Write, rev, prev Rev) {
	if w.Notify != "" {
		l.tell(w.Notify, Message{Key: w.Key, Rev: rev, Prev: prev})
	}
}

// join puts an entry into an index, of which it is in that one or none. When it
// is due, live says. l.mu is held.
func (l *local) join(e *entry, index string) {
	e.index = index
	key := Key{e.key.Partition, index}
	if l.indexes[key] == nil {
		l.indexes[key] = &schedule{}
	}
}

// leave takes an entry out of its index. l.mu is held.
func (l *local) leave(e *entry) {
	if e.index == "" {
		return
	}
	key := Key{e.key.Partition, e.index}
	index := l.indexes[key]
	if index.remove(&e.due); index.Len() == 0 {
		delete(l.indexes, key)
	}
	e.index = ""
}

// drop deletes an entry. l.mu is held.
func (l *local) drop(e *entry) {
	delete(l.entries, e.key)
	l.ends.remove(&e.end)
	l.leave(e)
	if e.limit == "" {
		return
	}
	limit := Key{e.key.Partition, e.limit}
	if l.limits[limit]--; l.limits[limit] == 0 {
		delete(l.limits, limit)
	}
}

// ClaimDue implements Store.
func (l *local) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]Entry, error) {
	now, err := l.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	s := l.indexes[Key{part, index}]
	if s == nil {
		return nil, nil
	}
	var due []Entry
	size := 0
	for a := s.first(now); a != nil && len(due) < max; a = s.first(now) {
		e := a.entry
		if size += len(e.value); size > MaxValue && len(due) > 0 {
			break
		}
		e.rev, e.owner = l.next(now), owner
		s.set(a, later(now, lease))
		due = append(due, l.copy(e, nil))
	}
	return due, nil
}

// Append implements Store.
func (l *local) Append(ctx context.Context, p AppendOp) (Rev, string, error) {
	now, err := l.lock(ctx)
	if err != nil {
		return 0, "", err
	}
	defer l.mu.Unlock()
	b := l.boxes[p.Box]
	if p.From != "" {
		if b == nil || p.From != b.reader || p.After != b.last {
			return 0, "", ErrNotReader
		}
		b.read = max(b.read, p.After)
	}
	if p.Keep == 0 {
		rev, prev, reader := l.next(now), Rev(0), ""
		if b != nil {
			prev, reader = b.last, b.reader
		}
		l.tell(p.Box, Message{Rev: rev, Prev: prev, Data: p.Data})
		return rev, reader, nil
	}
	if size(p.Data) > p.Keep || b != nil && !b.makeRoom(p) {
		return 0, "", ErrFull
	}
	b = l.keep(p.Box, now, p.TTL)
	m := Message{Rev: l.next(now), Prev: b.last, Data: p.Data}
	b.add(m)
	if p.From != "" {
		b.given = m.Rev
	} else if to, ok := subject(b.reader); ok {
		l.tell(to, Message{Key: Key{Name: p.Box}, Rev: m.Rev, Prev: m.Prev})
	} else {
		l.tell(p.Box, m)
	}
	return m.Rev, b.reader, nil
}

// keep returns a box, made if there is none, and keeps it for ttl at least. l.mu
// is held.
func (l *local) keep(name string, now, ttl time.Duration) *box {
	b := l.boxes[name]
	if b == nil {
		b = &box{name: name}
		b.end.box = b
		l.boxes[name] = b
	}
	l.ends.set(&b.end, max(b.end.at, later(now, ttl)))
	return b
}

// Read implements Store.
func (l *local) Read(ctx context.Context, box string, after Rev, reader string) ([]Message, string, error) {
	now, err := l.lock(ctx)
	if err != nil {
		return nil, "", err
	}
	defer l.mu.Unlock()
	b := l.boxes[box]
	switch {
	case b == nil && reader == "":
		return nil, "", nil
	case b == nil:
		return nil, "", ErrNotReader
	case reader != "" && reader != b.reader:
		return nil, b.reader, ErrNotReader
	}
	after = b.position(after)
	messages := b.after(after)
	if reader != "" {
		l.keep(box, now, b.ttl)
		b.read = max(b.read, after)
		if len(messages) > 0 {
			b.given = max(b.given, messages[len(messages)-1].Rev)
		}
	}
	return messages, b.reader, nil
}

// Take implements Store.
func (l *local) Take(ctx context.Context, t Take) (found Box, err error) {
	now, err := l.lock(ctx)
	if err != nil {
		return found, err
	}
	defer l.mu.Unlock()
	b := l.boxes[t.Box]
	if b != nil {
		found = Box{Reader: b.reader, Given: b.given, Last: b.last, Resumed: b.again}
	}
	if t.From != "" && t.From != found.Reader {
		return found, ErrNotReader
	}
	resumes := t.Resume != "" && stream(t.Resume) != "" && stream(t.Resume) == stream(found.Reader)
	switch {
	case resumes:
		t.Reader = t.Resume
	case t.Resume != "":
		t.After = Unread
	}
	if to, ok := subject(found.Reader); ok && found.Reader != t.Reader {
		l.tell(to, Message{Key: Key{Name: t.Box}, Rev: l.next(now)})
	}
	if t.TTL == 0 {
		if b != nil {
			l.ends.remove(&b.end)
			delete(l.boxes, t.Box)
		}
		return found, nil
	}
	b = l.keep(t.Box, now, t.TTL)
	b.reader, b.ttl, b.read = t.Reader, t.TTL, min(b.position(t.After), b.last)
	if t.From != "" || resumes {
		b.given = b.read
	}
	if resumes {
		b.resume(t.Resume)
	}
	return found, nil
}

// Watch implements Store.
func (l *local) Watch(fn func(subject string, m Message), gap func()) Watcher {
	w := &watcher{local: l, fn: fn, gap: gap, wake: make(chan struct{}, 1)}
	w.ended.Go(w.run)
	return w
}

// forget lets a watcher watch a subject no more. l.mu is held.
func (l *local) forget(subject string, w *watcher) {
	counts := l.watchers[subject]
	if delete(counts, w); len(counts) == 0 {
		delete(l.watchers, subject)
	}
}

// tell notifies the watchers of a subject. l.mu is held, so that all of them receive one
// order.
func (l *local) tell(subject string, m Message) {
	for w := range l.watchers[subject] {
		w.receive(subject, m)
	}
}
