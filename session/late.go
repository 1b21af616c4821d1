package session

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/scale"
)

const (
	lateFor  = 15 * time.Minute // is an answer kept in the store whose client is away
	maxLate  = 8                // of them for a session, from each replica
	lateSize = 512              // bytes that one counts beside the answer
	lastLate = 32 << 20         // bytes of them when the server shuts down
)

// This file has what is left of a call when its replica is gone: the answer, if
// nobody was there for it.
//
// The entry of one holds the id of its event, a newline, and the answer, sealed.
// Its key is made of the session, the replica and a place, so that a session never
// has more than maxLate entries from each replica, whatever becomes of them: what
// is written overwrites. A stream's place is its number modulo maxLate, which
// history.begin gives out in turn; the id inside tells whose answer it is.
//
// An entry goes with its session, if the replica that wrote it hears of the end,
// or else when its time is over. That its client has got it is not known: a client
// that loses the answer once more comes back once more.
//
// What a replica has in the store counts there until then. After an error of the
// store it counts as well, as the write may have happened.

// lates keeps answers in the store whose clients are away, or may be, so that
// they get them when this replica is gone. Those of a session have maxLate
// places, of which the newest answer takes one from an older one. What they count
// has a limit, in all and of a principal, beyond which none is kept. Its lock may
// be taken while any other is held.
type lates struct {
	m     *Manager
	node  uint64 // of m
	bytes *share.Shares

	mu   sync.Mutex
	of   map[string]*late // by session
	to   int              // how many answers are to come, or on their way into the store
	none chan struct{}    // closed when there are none; nil unless wait was called
}

// late is what the store has of the answers of a session, from this replica.
type late struct {
	principal string
	sizes     [maxLate]int
	until     time.Time // the store has forgotten it then
	over      bool      // the session has ended
}

// newLates returns lates of which there are none.
func newLates(m *Manager) *lates {
	own := min(m.config.MaxPerPrincipal, 0)
	node, _ := strconv.ParseUint(m.config.Node, 36, 64)
	return &lates{m: m, node: node, bytes: share.New("bytes of answers whose clients are away", m.config.Memory, own, share.Half), of: make(map[string]*late)}
}

// begin notes that there will be an answer, which the end of this replica waits
// for. end must be called when it is kept: in the history, from which keepAll takes
// it, or in the store. l may be nil, without a Store.
func (l *lates) begin() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to++
}

// end takes back one begin.
func (l *lates) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to--; l.to == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

// wait waits until no answer is to come, since all calls have returned, but no
// longer than the store may need for one: between the return of a call and its
// answer the session is saved.
func (l *lates) wait() {
	l.mu.Lock()
	if l.to == 0 {
		l.mu.Unlock()
		return
	}
	if l.none == nil {
		l.none = make(chan struct{})
	}
	none := l.none
	l.mu.Unlock()
	timer := time.NewTimer(replica.StoreTimeout)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}

// lateKey returns where the answer of a stream is that nobody was there for.
func lateKey(session string, node, stream uint64) scale.Key {
	name := session + " " + eventID{node: node, stream: stream % maxLate}.String()
	return scale.Key{Part: replica.StoreKey("late", session, slots).Part, Name: replica.StoreKey("late", name, slots).Name}
}

// ttl is how long an answer is kept: no longer than its session.
func (l *lates) ttl() time.Duration {
	if idle := l.m.config.Idle; idle > 0 {
		return min(idle, lateFor)
	}
	return lateFor
}

// keep keeps an answer whose client is away, unless there is no room, or it is too
// long for an entry.
func (l *lates) keep(s *Session, a record) {
	l.begin() // a shutdown waits for it
	defer l.end()
	if s.Ended() && !l.m.relay.isClosed() {
		return // nobody comes back
	}
	if w, ok := l.write(s, a); ok {
		e, err := l.m.put(context.WithoutCancel(l.m.ctx), w)
		if err == nil {
			l.m.failed(e.Err)
		}
	}
}

// write returns what keeps an answer, which counts from then on.
func (l *lates) write(s *Session, a record) (w scale.Write, ok bool) {
	if len(a.message) > maxTailed || !l.take(s, a.stream%maxLate, len(a.message)+lateSize) {
		return w, false
	}
	key := lateKey(s.id, s.history.node, a.stream)
	text := append([]byte(s.history.idOf(a.stream, a.event, a.request)+"\n"), a.message...)
	return scale.Write{Key: key, Prev: scale.Any, Value: l.m.config.Seal.Seal(nil, text, seal.Binding(key.Name)), TTL: l.ttl()}, true
}

// take makes a place of a session count size, if there is room for that. If there is
// none, what was there stays: an older answer is kept in place of a newer one, as
// its client may come back, too.
func (l *lates) take(s *Session, place uint64, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.of[s.id]
	if kept == nil {
		kept = &late{principal: s.principal}
	}
	switch more := size - kept.sizes[place]; {
	case more < 0:
		l.bytes.Give(s.principal, -more)
	case l.bytes.Take(s.principal, more) != nil:
		return false
	}
	kept.sizes[place], kept.until = size, time.Now().Add(l.ttl())
	l.of[s.id] = kept
	return true
}

// over notes that a session has ended. It waits for nothing.
func (l *lates) over(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.of[id]; kept != nil {
		kept.over = true
	}
}

// sweep deletes what the store has of sessions that have ended, and gives back
// what that counts for, and what the store has forgotten.
func (l *lates) sweep() {
	writes := l.ended(time.Now())
	if len(writes) == 0 {
		return
	}
	// What is not deleted goes when its time is over.
	_ = l.m.use(l.m.ctx, func(ctx context.Context) error { _, err := l.m.config.Store.Put(ctx, writes...); return err })
}

// ended returns what sweep deletes: a batch.
func (l *lates) ended(now time.Time) (writes []scale.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, kept := range l.of {
		there := now.Before(kept.until)
		if there && (!kept.over || len(writes) > batch-maxLate) {
			continue
		}
		for place, size := range kept.sizes {
			if size > 0 {
				l.bytes.Give(kept.principal, size)
			}
			if size > 0 && there {
				writes = append(writes, scale.Write{Key: lateKey(id, l.node, uint64(place)), Prev: scale.Any})
			}
		}
		delete(l.of, id)
	}
	return writes
}

// find returns the answer that the store has of a stream, and its id, which are
// empty if there is none.
func (l *lates) find(ctx context.Context, s *Session, from eventID) (id string, answer []byte, err error) {
	key := lateKey(s.id, from.node, from.stream)
	e, err := l.m.get(ctx, scale.Look{Key: key})
	if err != nil || e.Rev == 0 {
		return "", nil, err
	}
	text, _, err := l.m.config.Seal.Open(e.Value, seal.Binding(key.Name))
	if err != nil {
		l.m.failed(err)
		return "", nil, err
	}
	header, answer, _ := bytes.Cut(text, []byte("\n"))
	if at, ok := parseEventID(string(header)); !ok || at.stream != from.stream { // it was there, and made room
		return "", nil, nil
	}
	return string(header), answer, nil
}

// send sends the answer that the store has of a stream to a client that has got
// what comes up to from; nothing, if the client has it. found is false if there is
// none.
func (l *lates) send(s *Session, from eventID, to core.EventWriter) (found bool, err error) {
	id, answer, err := l.find(l.m.ctx, s, from)
	if err != nil || id == "" {
		return false, err
	}
	if at, ok := parseEventID(id); ok && at.event > from.event {
		_ = to.Event(id, answer) // a client that is gone may come back
	}
	return true, nil
}

// keepAll keeps, when the server shuts down, the answers that the clients of
// sessions may not have got, the newest of each session first, as far as there
// is room and time.
func (l *lates) keepAll(sessions map[string]*Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.m.ctx), replica.StoreTimeout)
	defer cancel()
	var writes []scale.Write
	size, room := 0, lastLate
	flush := func() bool {
		if len(writes) == 0 {
			return true
		}
		var written []scale.Entry
		err := l.m.use(ctx, func(ctx context.Context) (err error) { written, err = l.m.config.Store.Put(ctx, writes...); return err })
		for _, e := range written {
			if err == nil && e.Err != nil {
				l.m.failed(e.Err)
				break
			}
		}
		writes, size = nil, 0
		return err == nil
	}
	for _, s := range sessions {
		var used [maxLate]bool
		for _, a := range s.history.answers(maxLate) {
			if place := a.stream % maxLate; used[place] || len(a.message) > room {
				continue
			} else {
				used[place] = true
			}
			w, ok := l.write(s, a)
			if !ok {
				continue
			}
			room -= len(a.message)
			size += len(w.Value)
			if writes = append(writes, w); (len(writes) == batch || size > scale.MaxValue) && !flush() {
				return
			}
		}
	}
	flush()
}
