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
	answerTTL           = 15 * time.Minute // lifetime of an answer in the store while its client is disconnected
	maxSavedAnswers     = 8                // of them for a session, from each replica
	savedAnswerOverhead = 512              // bytes that one counts in addition to the answer
	maxSavedAtShutdown  = 32 << 20         // bytes of them when the server shuts down
)

// This file stores answers of calls for clients that resume after the replica is gone.
//
// An entry holds the id of its event, a newline, and the answer, sealed. Its key consists
// of the session, the replica and a place, so a session has at most maxSavedAnswers entries
// from each replica. A new entry overwrites an old one. The place is the number of the
// stream modulo maxSavedAnswers, and the id in the entry identifies the answer.
//
// The replica deletes an entry when it receives the end of the session. Otherwise the entry
// expires. The replica cannot detect that a client has received the answer, so the client
// can resume again.
//
// Each entry counts at its replica until then, also if its write failed, as the store may
// have it.

// savedAnswers stores the answers of clients that are disconnected, so that they can resume
// after this replica has ended. A session has maxSavedAnswers places; a new answer replaces
// the oldest.
//
// Their bytes have two limits: one for all sessions and one for each principal. Beyond
// these no answer is stored. Its lock is the last in the order.
type savedAnswers struct {
	m     *Manager
	node  uint64 // of m
	bytes *share.Shares

	mu   sync.Mutex
	of   map[string]*sessionAnswers // by session
	to   int                        // how many answers are to come, or on their way into the store
	none chan struct{}              // closed when there are none; nil unless wait was called
}

// sessionAnswers is what the store has of the answers of a session, from this replica.
type sessionAnswers struct {
	principal string
	sizes     [maxSavedAnswers]int
	until     time.Time // the store has forgotten it then
	over      bool      // the session has ended
}

// newSavedAnswers returns savedAnswers without an answer.
func newSavedAnswers(m *Manager) *savedAnswers {
	own := min(m.config.MaxPerPrincipal, 0)
	node, _ := strconv.ParseUint(m.config.ReplicaID, 36, 64)
	return &savedAnswers{m: m, node: node, bytes: share.New("bytes of answers whose clients are away", m.config.AnswerMemory, own, share.Half), of: make(map[string]*sessionAnswers)}
}

// expect notes that there will be an answer, which the end of this replica waits
// for. end must be called when it is kept: in the history, from which keepAll takes
// it, or in the store. l may be nil, without a Store.
func (l *savedAnswers) expect() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to++
}

// settle takes back one begin.
func (l *savedAnswers) settle() {
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
func (l *savedAnswers) wait() {
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

// answerKey returns the key of the saved answer of a stream.
func answerKey(session string, node, stream uint64) scale.Key {
	name := session + " " + eventID{node: node, stream: stream % maxSavedAnswers}.String()
	return scale.Key{Partition: replica.StoreKey("late", session, partitions).Partition, Name: replica.StoreKey("late", name, partitions).Name}
}

// ttl is how long an answer is kept: no longer than its session.
func (l *savedAnswers) ttl() time.Duration {
	if idle := l.m.config.IdleTimeout; idle > 0 {
		return min(idle, answerTTL)
	}
	return answerTTL
}

// save stores an answer whose client is disconnected, unless there is no room or it is too
// long.
func (l *savedAnswers) save(s *Session, a event) {
	l.expect() // a shutdown waits for it
	defer l.settle()
	if s.Ended() && !l.m.relay.isClosed() {
		return // the client cannot resume
	}
	if w, ok := l.saveOp(s, a); ok {
		e, err := l.m.putEntry(context.WithoutCancel(l.m.ctx), w)
		if err == nil {
			l.m.reportError(e.Err)
		}
	}
}

// saveOp returns what keeps an answer, which counts from then on.
func (l *savedAnswers) saveOp(s *Session, a event) (w scale.Write, ok bool) {
	if len(a.message) > maxFollowBytes || !l.reserve(s, a.stream%maxSavedAnswers, len(a.message)+savedAnswerOverhead) {
		return w, false
	}
	key := answerKey(s.id, s.history.node, a.stream)
	text := append([]byte(s.history.idOf(a.stream, a.event, a.request)+"\n"), a.message...)
	return scale.Write{Key: key, Prev: scale.Any, Value: l.m.config.Seal.Seal(nil, text, seal.Binding(key.Name)), TTL: l.ttl()}, true
}

// reserve makes a place of a session count size, if there is room for that. If there is
// none, what was there stays: an older answer is kept in place of a newer one, as
// its client may come back, too.
func (l *savedAnswers) reserve(s *Session, place uint64, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.of[s.id]
	if kept == nil {
		kept = &sessionAnswers{principal: s.principal}
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

// markEnded notes that a session has ended. It waits for nothing.
func (l *savedAnswers) markEnded(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.of[id]; kept != nil {
		kept.over = true
	}
}

// deleteEnded deletes what the store has of sessions that have ended, and gives back
// what that counts for, and what the store has forgotten.
func (l *savedAnswers) deleteEnded() {
	writes := l.endedWrites(time.Now())
	if len(writes) == 0 {
		return
	}
	// An entry that is not deleted expires.
	_ = l.m.callStore(l.m.ctx, func(ctx context.Context) error { _, err := l.m.config.Store.Put(ctx, writes...); return err })
}

// endedWrites returns what sweep deletes: a batch.
func (l *savedAnswers) endedWrites(now time.Time) (writes []scale.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, kept := range l.of {
		there := now.Before(kept.until)
		if there && (!kept.over || len(writes) > renewBatch-maxSavedAnswers) {
			continue
		}
		for place, size := range kept.sizes {
			if size > 0 {
				l.bytes.Give(kept.principal, size)
			}
			if size > 0 && there {
				writes = append(writes, scale.Write{Key: answerKey(id, l.node, uint64(place)), Prev: scale.Any})
			}
		}
		delete(l.of, id)
	}
	return writes
}

// find returns the answer that the store has of a stream, and its id, which are
// empty if there is none.
func (l *savedAnswers) find(ctx context.Context, s *Session, from eventID) (id string, answer []byte, err error) {
	key := answerKey(s.id, from.node, from.stream)
	e, err := l.m.getEntry(ctx, scale.GetOp{Key: key})
	if err != nil || e.Rev == 0 {
		return "", nil, err
	}
	text, _, err := l.m.config.Seal.Open(e.Value, seal.Binding(key.Name))
	if err != nil {
		l.m.reportError(err)
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
func (l *savedAnswers) send(s *Session, from eventID, to core.EventWriter) (found bool, err error) {
	id, answer, err := l.find(l.m.ctx, s, from)
	if err != nil || id == "" {
		return false, err
	}
	if at, ok := parseEventID(id); ok && at.event > from.event {
		_ = to.Event(id, answer) // a client that is gone may come back
	}
	return true, nil
}

// saveAll keeps, when the server shuts down, the answers that the clients of
// sessions may not have got, the newest of each session first, as far as there
// is room and time.
func (l *savedAnswers) saveAll(sessions map[string]*Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.m.ctx), replica.StoreTimeout)
	defer cancel()
	var writes []scale.Write
	size, room := 0, maxSavedAtShutdown
	flush := func() bool {
		if len(writes) == 0 {
			return true
		}
		var written []scale.Entry
		err := l.m.callStore(ctx, func(ctx context.Context) (err error) { written, err = l.m.config.Store.Put(ctx, writes...); return err })
		for _, e := range written {
			if err == nil && e.Err != nil {
				l.m.reportError(e.Err)
				break
			}
		}
		writes, size = nil, 0
		return err == nil
	}
	for _, s := range sessions {
		var used [maxSavedAnswers]bool
		for _, a := range s.history.answers(maxSavedAnswers) {
			if place := a.stream % maxSavedAnswers; used[place] || len(a.message) > room {
				continue
			} else {
				used[place] = true
			}
			w, ok := l.saveOp(s, a)
			if !ok {
				continue
			}
			room -= len(a.message)
			size += len(w.Value)
			if writes = append(writes, w); (len(writes) == renewBatch || size > scale.MaxValue) && !flush() {
				return
			}
		}
	}
	flush()
}
