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
// Truncated. A store has replica.StoreTimeout to answer.
func (l *Logs) Read(ctx context.Context, name, cursor string, maxAge time.Duration) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
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
	ctx, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
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
