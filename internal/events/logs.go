// Package events keeps what happened at a server, for subscribers that ask for it
// later. Each event type has a log: a box of a scale.Store that no reader takes, so
// that all read it. An event is one message in it, and costs nothing per subscriber.
// A cursor is a position in a log, and holds no right to read it.
//
// The package knows neither requests nor rights. Package mcp encodes events, and
// decides who receives one.
//
// Specification: extension io.modelcontextprotocol/events (SEP-3415).
package events

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// DefaultKeep is how many bytes a log keeps, if Config.Keep is 0: some 7,000 events of
// 500 bytes.
const DefaultKeep = 4 << 20

// Times of a log.
const (
	retention  = 24 * time.Hour                  // age of the oldest event that is read
	boxTTL     = 25 * time.Hour                  // how long the store keeps a log after its last event
	birthTTL   = 48 * time.Hour                  // how long the store keeps the birth after its last look; more than boxTTL
	birthLook  = 5 * time.Second                 // interval at which a replica looks whether the birth has changed
	birthKnown = 2*birthLook + time.Second       // after it, a replica that follows a log has noticed a new birth
	clockSkew  = replica.ClockSkew               // by how much a quiet cursor stays behind the store's clock
	clockAhead = replica.ClockSkew + time.Second // by how much a cursor may be ahead of the store's clock
	maxCursor  = 64                              // bytes of a cursor; a longer one cannot be read
	clockBox   = "events-clock"                  // a box that never keeps a message; an Append to it returns the time
	sealedUse  = "event"                         // binds a sealed event to its log
	birthUse   = "events birth"                  // binds the sealed birth to its entry
	cursorForm = "e1"                            // begins every cursor
	maxEntropy = 1<<62 - 1                       // keeps births positive
	base       = 36                              // of the numbers in a cursor
	boxPrefix  = "events-"                       // begins the name of the box of a log
	digestSize = 20                              // bytes of the digest of a type's name
)

// birthKey is where replicas have the birth of their logs.
var birthKey = scale.Key{Partition: "events", Name: "birth"}

// Config says where logs are.
type Config struct {
	Store   scale.Store      // that replicas share; nil is one within the process
	Seal    *seal.Sealer     // seals what the store gets
	Keep    int              // bytes of a log; 0 means DefaultKeep
	Now     func() scale.Rev // the time of the store's clock, or a little less; nil, or 0, asks the store
	OnError func(error)      // called when the store does not answer for a type that is followed; may be nil
}

// Times of followers.
const (
	lookInterval = 5 * time.Second // between two looks at the log of a type that is followed
	beatEvery    = 5               // looks after which followers are called in any case
)

// followed is a type whose new events come into memory as they are appended.
type followed struct {
	name  string
	looks map[*func()]bool // of the followers
	seen  scale.Rev        // the newest event that they were called for
	due   bool             // there may be more
	fresh bool             // there is a new follower
	// The messages that the store has sent since, and their bytes. If some are missing, the
	// log has to be read.
	hints  []scale.Message
	waits  int
	missed bool
}

// Logs are the logs of a server. They are safe for concurrent use and have no goroutine
// but that of Follow. mu guards the fields below it, and is not held while the store is
// asked.
type Logs struct {
	config Config
	ctx    context.Context // of the goroutine
	stop   context.CancelFunc
	wake   chan struct{} // holds one
	ended  sync.WaitGroup

	mu     sync.Mutex
	birth  string             // tells these logs from those that the store has lost; "" until known
	rev    scale.Rev          // of the entry that has the birth
	looked time.Time          // when it was last compared
	memory map[string]*memory // of logs that are read here, by their boxes; not nil once the birth is known

	followed  map[string]*followed // by box
	following bool                 // there is a goroutine
	closed    bool
}

// New returns the logs in a store.
func New(config Config) *Logs {
	if config.Keep == 0 {
		config.Keep = DefaultKeep
	}
	if config.Store == nil {
		config.Store = scale.NewLocal()
	}
	l := &Logs{config: config, wake: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Event is one event of a page. Pages share it, so it must not change.
type Event struct {
	Text   []byte    // what Append was given
	Cursor string    // the position behind it
	At     scale.Rev // the same position
}

// Page is a part of a log.
type Page struct {
	Events []Event // the oldest first
	// Cursor is the position behind all of Events. Without any it moves with time, so
	// that it stays within what the log keeps.
	Cursor string
	// Truncated reports that the page starts behind the position that was asked for:
	// events may be missing.
	Truncated bool
	More      bool   // reports that the log probably has more
	From      string // the position at which the page begins
	Unread    int    // how many events no key opens, which are left out
}

// Append adds an event to the log of a type. It waits for the store, and for no reader.
// After an error that wraps scale.ErrUnavailable the log may have it.
func (l *Logs) Append(ctx context.Context, name string, event []byte) error {
	box := boxOf(name)
	_, _, err := l.config.Store.Append(ctx, scale.AppendOp{
		Box: box, Data: l.config.Seal.Seal(nil, event, seal.Binding(sealedUse, box)), Keep: l.config.Keep, TTL: boxTTL,
	})
	return err
}

// Read returns what follows cursor in the log of a type; "" stands for now. maxAge
// bounds the age of events if it is not negative, and counts only with a cursor. From
// a cursor that cannot be served, the page begins as close to it as it can, and is
// Truncated. Each use of the store has a time; see bus.Guard.
func (l *Logs) Read(ctx context.Context, name, cursor string, maxAge time.Duration) (Page, error) {
	birth, err := l.born(ctx)
	if err != nil {
		return Page{}, err
	}
	// The time comes before the messages: one that is appended in between, and missed,
	// would be behind a cursor that is later than it.
	now, err := l.now(ctx)
	if at, _ := position(cursor, birth); err == nil && at > now+micros(clockAhead) {
		now, err = l.ask(ctx) // a time that is estimated may be late
	}
	if err != nil {
		return Page{}, err
	}
	after, truncated, fresh := place(cursor, birth, now, maxAge)
	found, err := l.load(ctx, boxOf(name), birth, after, after, now)
	if err != nil {
		return Page{}, err
	}
	return found.page(birth, after, now, truncated, fresh), nil
}

// page makes the page of what follows a position.
func (p *part) page(birth string, after, now scale.Rev, truncated, fresh bool) Page {
	page := Page{Truncated: truncated || !fresh && p.from > after, More: p.more}
	size := 0
	for i, e := range p.events {
		if size += len(e.Text); size > scale.MaxValue && i > 0 {
			p.events, page.More = p.events[:i], true
			break
		}
	}
	page.From = cursorAt(birth, max(after, p.from))
	if n := len(p.events); n == 0 {
		after = max(after, now-micros(clockSkew))
	} else {
		after = p.events[n-1].At
	}
	page.Cursor = cursorAt(birth, after)
	if fresh {
		page.From, page.More = page.Cursor, false
		return page
	}
	for i, e := range p.events {
		if e.Text == nil && page.Unread == 0 {
			page.Events = slices.Clone(p.events[:i])
		}
		switch {
		case e.Text == nil:
			page.Unread++
			page.Truncated = true
		case page.Unread > 0:
			page.Events = append(page.Events, e)
		}
	}
	if page.Unread == 0 {
		page.Events = p.events
	}
	return page
}

// place returns the position of a cursor, or the closest one that is served. truncated
// reports that they differ; fresh, that the page begins now.
func place(cursor, birth string, now scale.Rev, maxAge time.Duration) (after scale.Rev, truncated, fresh bool) {
	quiet := now - micros(clockSkew)
	if cursor == "" {
		return quiet, false, true
	}
	after, ok := position(cursor, birth)
	truncated = !ok
	if after > now+micros(clockAhead) {
		return quiet, true, true
	}
	floor := now - micros(retention)
	if maxAge >= 0 && maxAge < retention {
		floor = now - micros(maxAge)
	}
	if after < floor {
		after, truncated = floor, true
	}
	return after, truncated, false
}

// born returns the birth of the logs, a random number that the first replica makes. It
// changes when the store loses its logs: all cursors are then truncated.
func (l *Logs) born(ctx context.Context) (string, error) {
	l.mu.Lock()
	birth, rev, looked := l.birth, l.rev, l.looked
	l.mu.Unlock()
	now := time.Now()
	if birth != "" && now.Sub(looked) < birthLook {
		return birth, nil
	}
	found, err := l.config.Store.Get(ctx, scale.GetOp{Key: birthKey, Known: rev, TTL: birthTTL})
	if err != nil {
		return "", err
	}
	if entry := found[0]; entry.Rev == 0 || entry.Value != nil {
		if birth, rev, err = l.bear(ctx, entry); err != nil {
			return "", err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if birth != l.birth {
		l.memory = make(map[string]*memory)
	}
	l.birth, l.rev, l.looked = birth, rev, now
	return birth, nil
}

// bear returns the birth that an entry has, and the Rev of the entry afterwards. A birth
// under an old key is sealed again before that key goes. If there is none, or no key opens
// it, a new one replaces it. If another replica is faster, its birth counts.
func (l *Logs) bear(ctx context.Context, entry scale.Entry) (string, scale.Rev, error) {
	text, old, err := l.config.Seal.Open(entry.Value, seal.Binding(birthUse))
	if err == nil && !old {
		return string(text), entry.Rev, nil
	}
	if err != nil {
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // never fails since Go 1.24
		text = strconv.AppendUint(nil, binary.BigEndian.Uint64(raw[:])&maxEntropy, base)
	}
	made, err := l.config.Store.Put(ctx, scale.Write{
		Key: birthKey, Prev: entry.Rev, Value: l.config.Seal.Seal(nil, text, seal.Binding(birthUse)), TTL: birthTTL,
	})
	if err != nil {
		return "", 0, err
	}
	if made[0].Err != nil {
		if text, _, err = l.config.Seal.Open(made[0].Value, seal.Binding(birthUse)); err != nil {
			return "", 0, fmt.Errorf("events: the logs in the store: %w", err)
		}
	}
	return string(text), made[0].Rev, nil
}

// quiet returns a later cursor for the same position, if nothing follows it.
func (l *Logs) quiet(ctx context.Context, name, cursor string) string {
	page, err := l.Read(ctx, name, cursor, -1)
	if err != nil || page.Truncated || len(page.Events) > 0 {
		return cursor
	}
	return page.Cursor
}

// behind returns what follows a position in a log, which begins later if events are
// missing. last is a position up to which it has everything.
func (l *Logs) behind(ctx context.Context, name, birth string, at scale.Rev) (found part, last scale.Rev, err error) {
	now, err := l.now(ctx) // before the messages, as in Read
	if err != nil {
		return part{}, 0, err
	}
	if found, err = l.load(ctx, boxOf(name), birth, at, now-micros(retention), now); err != nil {
		return part{}, 0, err
	}
	return found, max(found.to, now-micros(clockSkew)), nil
}

// now returns the time of the store's clock, or a little less.
func (l *Logs) now(ctx context.Context) (scale.Rev, error) {
	if l.config.Now != nil {
		if now := l.config.Now(); now != 0 {
			return now, nil
		}
	}
	return l.ask(ctx)
}

// ask returns the time of the store's clock.
func (l *Logs) ask(ctx context.Context) (scale.Rev, error) {
	now, _, err := l.config.Store.Append(ctx, scale.AppendOp{Box: clockBox})
	return now, err
}

// cursorAt returns the cursor of a position.
func cursorAt(birth string, at scale.Rev) string {
	return cursorForm + birth + "." + strconv.FormatInt(int64(at), base)
}

// position returns the position of a cursor. ok is false for one of other logs, and
// for a text that is not a cursor.
func position(cursor, birth string) (at scale.Rev, ok bool) {
	if len(cursor) > maxCursor {
		return 0, false
	}
	own, is := strings.CutPrefix(cursor, cursorForm)
	born, number, _ := strings.Cut(own, ".")
	rev, err := strconv.ParseInt(number, base, 64)
	if !is || born != birth || err != nil || rev < 0 {
		return 0, false
	}
	return scale.Rev(rev), true
}

// boxOf returns the box that is the log of a type.
func boxOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return boxPrefix + base64.RawURLEncoding.EncodeToString(sum[:digestSize])
}

// micros returns a duration in the unit of a Rev.
func micros(d time.Duration) scale.Rev { return scale.Rev(d.Microseconds()) }

// Follow makes look be called when the log of a type has new events, which are in memory
// then, and every 25 s. look must not block. stop ends it, without waiting for a call. The
// first Follow starts a goroutine, which ends with the last.
func (l *Logs) Follow(name string, look func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	box := boxOf(name)
	if l.followed == nil {
		l.followed = make(map[string]*followed)
	}
	f := l.followed[box]
	if f == nil {
		f = &followed{name: name, looks: make(map[*func()]bool)}
		l.followed[box] = f
	}
	f.looks[&look], f.fresh, f.due, f.missed = true, true, true, true
	if !l.following && !l.closed {
		l.following = true
		l.ended.Go(l.follow)
	}
	l.signal()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(f.looks, &look); len(f.looks) == 0 && l.followed[box] == f {
			delete(l.followed, box)
		}
		l.signal()
	}
}

// Close ends the goroutine, and waits for it until ctx ends. It may be called again.
func (l *Logs) Close(ctx context.Context) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	ended := make(chan struct{})
	go func() {
		l.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// signal wakes the goroutine.
func (l *Logs) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // it is about to look
	}
}

// onAppend notes a message of a box. It runs on the goroutine of the Watcher.
func (l *Logs) onAppend(box string, m scale.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.followed[box]
	if f == nil {
		return
	}
	if f.waits += len(m.Data); m.Data == nil || f.waits > maxTail {
		f.hints, f.waits, f.missed = nil, 0, true
	} else {
		f.hints = append(f.hints, m)
	}
	f.due = true
	l.signal()
}

// onGap notes that messages may have been missed. It runs on the goroutine of the Watcher.
func (l *Logs) onGap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.followed {
		f.due, f.missed = true, true
	}
	l.signal()
}

// follow brings the new events of the logs that are followed into memory: when the store
// says that there are some, and every 5 s.
func (l *Logs) follow() {
	watcher := l.config.Store.Watch(l.onAppend, l.onGap)
	defer watcher.Close()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	watched, beat := make(map[string]bool), 0
	for {
		all := false
		select {
		case <-l.ctx.Done():
			return
		case <-l.wake:
		case <-ticker.C:
			all = true
			beat = (beat + 1) % beatEvery
		}
		if !l.sync(watcher, watched) {
			return
		}
		for _, f := range l.take(all) {
			moved, err := l.refresh(f)
			if err != nil && l.ctx.Err() == nil && l.config.OnError != nil {
				l.config.OnError(err)
			}
			if moved || all && beat == 0 {
				l.mu.Lock()
				looks := slices.Collect(maps.Keys(f.looks))
				l.mu.Unlock()
				for _, look := range looks {
					(*look)()
				}
			}
		}
	}
}

// sync makes the Watcher watch what is followed, and no more. It returns false if that is
// nothing: the goroutine ends. It runs before the logs are read, so that nothing is missed.
func (l *Logs) sync(watcher scale.Watcher, watched map[string]bool) bool {
	l.mu.Lock()
	if l.following = len(l.followed) > 0; !l.following {
		l.mu.Unlock()
		return false
	}
	var more, less []string
	for box := range l.followed {
		if !watched[box] {
			more = append(more, box)
		}
	}
	for box := range watched {
		if l.followed[box] == nil {
			less = append(less, box)
		}
	}
	l.mu.Unlock()
	watcher.Remove(less...)
	for _, box := range less {
		delete(watched, box)
	}
	if len(more) > 0 {
		if watcher.Add(l.ctx, more...) == nil { // the reads tell what is wrong; it is tried again in 5 s
			for _, box := range more {
				watched[box] = true
			}
		}
	}
	return true
}

// take returns the types that are due, or all, of which the logs are then read.
func (l *Logs) take(all bool) (due []*followed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, box := range slices.Sorted(maps.Keys(l.followed)) {
		if f := l.followed[box]; f.due || all {
			f.due, f.missed = false, f.missed || all
			due = append(due, f)
		}
	}
	return due
}

// refresh brings the end of a log into memory. moved reports that it has events that the
// followers were not called for.
func (l *Logs) refresh(f *followed) (moved bool, err error) {
	birth, err := l.born(l.ctx)
	box := boxOf(f.name)
	l.mu.Lock()
	hints, missed, fresh := f.hints, f.missed, f.fresh
	f.hints, f.waits, f.missed, f.fresh = nil, 0, false, false
	l.mu.Unlock()
	var last scale.Rev
	if err == nil {
		var known bool
		if last, known = l.learn(box, birth, hints); missed || !known {
			last, err = l.readOn(l.ctx, box, birth, last)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil { // the next look tries again
		f.missed, f.fresh = true, f.fresh || fresh
		return false, err
	}
	moved = fresh || last > f.seen
	f.seen = max(f.seen, last)
	return moved, nil
}

// learn adds messages that the store has sent to the tail of a log. It returns up to where
// the tail has everything; known is false if the log has to be read, as some are missing.
func (l *Logs) learn(box, birth string, hints []scale.Message) (last scale.Rev, known bool) {
	l.mu.Lock()
	m := l.memoryOf(box, birth)
	last, known = m.tail.to, m.known
	l.mu.Unlock()
	for len(hints) > 0 && hints[0].Rev <= last {
		hints = hints[1:]
	}
	if !known || len(hints) == 0 {
		return last, known
	}
	n := 1
	for n < len(hints) && hints[n].Prev == hints[n-1].Rev {
		n++
	}
	if hints[0].Prev > last {
		return last, false
	}
	read, _ := l.open(box, birth, last, hints[:n])
	l.mu.Lock()
	defer l.mu.Unlock()
	if m = l.memoryOf(box, birth); !m.known || m.tail.to < read.from {
		return m.tail.to, false
	}
	all := m.tail
	all.join(read)
	m.tail = all.newest()
	m.now = max(m.now, m.tail.to)
	return m.tail.to, n == len(hints)
}

// readOn reads what follows a position of a log, 0 for its end, into memory.
func (l *Logs) readOn(ctx context.Context, box, birth string, after scale.Rev) (last scale.Rev, err error) {
	now, err := l.now(ctx)
	if err != nil {
		return 0, err
	}
	if after == 0 {
		after = now - micros(clockSkew)
	}
	for more := true; more; {
		found, err := l.load(ctx, box, birth, after, after, now)
		if err != nil {
			return 0, err
		}
		after, more = found.to, found.more
	}
	return after, nil
}

// newest returns the newest events of a type that is followed, and the birth of their log.
// ok is false if none were read yet.
func (l *Logs) newest(name string) (birth string, tail part, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.memory[boxOf(name)]
	if m == nil || !m.known {
		return "", part{}, false
	}
	return l.birth, m.tail, true
}

// Recall is Read from memory. ok is false if the memory does not reach back to the cursor,
// or is behind it: Read has to ask the store. It is for types that are followed, of which
// the memory has all events that the followers were called for.
func (l *Logs) Recall(name, cursor string) (page Page, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.memory[boxOf(name)]
	if m == nil || !m.known {
		return Page{}, false
	}
	at, valid := position(cursor, l.birth)
	if !valid || at < m.tail.from || at > m.now+micros(clockAhead) {
		return Page{}, false
	}
	after, truncated, fresh := place(cursor, l.birth, m.now, -1)
	found := m.tail.behind(after)
	return found.page(l.birth, after, m.now, truncated, fresh), true
}

// memoryOf returns the memory of a box, and drops those that have no reader any more. If
// the logs were born again since birth, it is an empty one, which is not kept. l.mu is held.
func (l *Logs) memoryOf(box, birth string) *memory {
	if birth != l.birth {
		return new(memory)
	}
	now := time.Now()
	m := l.memory[box]
	if m == nil {
		m = new(memory)
		l.memory[box] = m
		for other, old := range l.memory {
			if other != box && now.Sub(old.used) > memoryTime {
				delete(l.memory, other)
			}
		}
	}
	m.used = now
	return m
}

// load returns what follows a position of a box, but nothing up to oldest. now is a time of
// the store's clock before the call.
func (l *Logs) load(ctx context.Context, box, birth string, after, oldest, now scale.Rev) (part, error) {
	l.mu.Lock()
	m, base := l.memoryOf(box, birth), part{from: after, to: max(after, oldest)}
	switch {
	case m.known && after >= m.tail.from:
		base = m.tail
	case after >= m.old.from && after < m.old.to:
		defer l.mu.Unlock()
		return m.old.behind(after), nil
	}
	l.mu.Unlock()
	messages, _, err := l.config.Store.Read(ctx, box, base.to, "")
	if err != nil {
		return part{}, err
	}
	if len(messages) > 0 && len(base.events) == 0 && messages[0].Prev > base.from { // some are missing
		base.from = base.to
	}
	read, size := l.open(box, birth, base.to, messages)
	// A page ends at about scale.MaxValue. That there is no more is known for certain
	// only if a Read returns nothing.
	read.more = size > scale.MaxValue/2
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memoryOf(box, birth).keep(base, read, after, now).behind(after), nil
}

// open returns messages of a box, of which the first follows a position. size is what the
// store has sent.
func (l *Logs) open(box, birth string, after scale.Rev, messages []scale.Message) (read part, size int) {
	read = part{from: after, to: after, events: make([]Event, 0, len(messages))}
	for i, m := range messages {
		if i == 0 {
			read.from = max(after, m.Prev)
		}
		size += len(m.Data)
		text, _, err := l.config.Seal.Open(m.Data, seal.Binding(sealedUse, box))
		if err != nil {
			text = nil
		}
		read.add(Event{text, cursorAt(birth, m.Rev), m.Rev})
	}
	return read, size
}
