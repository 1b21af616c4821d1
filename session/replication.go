package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// This file has what a Manager does if replicas share its sessions. The store has the
// session, and the table has a copy. Every request compares the copy with the store, and an
// unused copy leaves the table.
//
// A session in the store is in one of two states. Without an owner it lives, and any
// replica changes it. A replica that ends it becomes its owner, for endLeaseTTL at a time;
// no other replica uses it then. The owner deletes it after OnEnd has returned. A session
// becomes due if its owner dies, or if it was not used for Config.IdleTimeout; then another
// replica ends it.

const (
	partitions = 64    // parts of the store, over which sessions are spread
	dueIndex   = "due" // of idle sessions, and of those that end
	renewBatch = 256   // sessions that are renewed at once
)

// sessionKey returns where the state of a session is.
func sessionKey(id string) scale.Key { return replica.StoreKey("session", id, partitions) }

// partition returns the name of a part, counting around.
func partition(n int) string { return replica.Partition("session", n%partitions) }

// ttl is how long the state of a session is kept without being renewed.
func (m *Manager) ttl() time.Duration {
	if m.config.IdleTimeout < 0 {
		return 365 * stateRetention
	}
	return m.dueAfter(m.config.IdleTimeout) + stateRetention
}

// ttlToExtend returns the new TTL of the state of s; 0 if it was extended recently.
func (m *Manager) ttlToExtend(s *Session, now time.Time) time.Duration {
	if now.UnixNano()-s.kept.Load() < int64(retentionRefresh) {
		return 0
	}
	return m.ttl()
}

// dueAfter returns the time until a session that is used now becomes due after idle; 0 if
// never. It is longer than idle, so that uses in the first three eighths of idle need no
// write. A later use is written, perhaps a tick late, and lost with its replica.
func (m *Manager) dueAfter(idle time.Duration) time.Duration {
	if idle <= 0 {
		return 0
	}
	return m.minDue(idle) + idle*3/8
}

// minDue returns the least time from a use until a session may become due. A use is written
// if the stored time is sooner, perhaps a tick late. The clock may be that of another
// machine of the engine.
func (m *Manager) minDue(idle time.Duration) time.Duration {
	return idle + 2*m.renewInterval() + max(m.renewInterval(), replica.ClockSkew)
}

// idleTimeout returns how long an unused session lives.
func (m *Manager) idleTimeout(s *Session) time.Duration {
	if s.wasUsed() {
		return m.config.IdleTimeout
	}
	return min(m.config.IdleTimeout, unusedTTL) // however long initialize takes
}

// needsRenewal reports whether the store would end a used session too soon, by the last
// look. That may come before a renewal of another replica.
func (m *Manager) needsRenewal(s *Session, now time.Time) bool {
	used, idle := s.idleSince()
	if !idle {
		used = now
	}
	until, ok := m.clock.at(used.Add(m.minDue(m.idleTimeout(s))))
	return (!idle || s.wasUsed()) && (!ok || scale.Rev(s.due.Load()) < until)
}

// noteUse notes how a use of the Store has ended, and returns the error. A client that
// disconnects is not a failure of the Store.
func (m *Manager) noteUse(err error) error {
	switch {
	case err == nil, errors.Is(err, scale.ErrNotReader), errors.Is(err, scale.ErrFull): // it has answered
		m.contact.Record(true)
	case !errors.Is(err, context.Canceled):
		m.contact.Record(false)
		m.reportError(err)
	}
	return err
}

// getEntry asks the store for one entry.
func (m *Manager) getEntry(ctx context.Context, look scale.GetOp) (e scale.Entry, err error) {
	found, err := m.config.Store.Get(ctx, look)
	if m.noteUse(err) != nil {
		return e, err
	}
	return found[0], nil
}

// getEntries asks the store for many entries, of which some have an Err while machines of
// an engine do not answer. There are none if nothing is answered.
func (m *Manager) getEntries(looks []scale.GetOp) (found []scale.Entry) {
	found, err := m.config.Store.Get(m.ctx, looks...)
	if m.noteUse(err) != nil && !slices.ContainsFunc(found, func(e scale.Entry) bool { return e.Err == nil }) || len(found) != len(looks) {
		return nil
	}
	return found
}

// putEntry makes one write. The error leaves out the one in Entry.Err.
func (m *Manager) putEntry(ctx context.Context, w scale.Write) (e scale.Entry, err error) {
	asked := time.Now()
	written, err := m.config.Store.Put(ctx, w)
	if m.noteUse(err) != nil {
		return e, err
	}
	if e = written[0]; e.Err == nil {
		m.clock.set(asked, e.Due, w.DueIn)
	}
	return e, nil
}

// sealState returns a state as the store gets it.
func (m *Manager) sealState(key scale.Key, text []byte) []byte {
	return m.config.Seal.Seal(nil, text, seal.Binding(key.Name))
}

// openState opens an entry. One that does not open may be sealed with a key that only
// another replica has, so the session has not ended.
func (m *Manager) openState(key scale.Key, id string, value []byte) (text []byte, st *snapshot, err error) {
	text, old, err := m.config.Seal.Open(value, seal.Binding(key.Name))
	if err != nil {
		return nil, nil, fmt.Errorf("session: a state in the store does not open: %w", err)
	}
	if st, err = readState(text); err == nil {
		st.old = old
	}
	if err == nil && (sessionKey(st.ID) != key || id != "" && st.ID != id) {
		err = errors.New("session: the store has another session's state")
	}
	return text, st, err
}

// insertNew keeps a new session.
func (m *Manager) insertNew(ctx context.Context, s *Session) error {
	text, err := s.encode(nil)
	if err != nil {
		return err
	}
	s.key = sessionKey(s.id)
	key, in := s.key, m.dueAfter(m.idleTimeout(s))
	e, err := m.putEntry(ctx, scale.Write{
		Key: key, Value: m.sealState(key, text), TTL: m.ttl(), DueIn: in, Index: dueIndexFor(in),
		Limit: "sessions", Max: m.partitionLimit(),
	})
	switch {
	case err != nil:
		return err
	case errors.Is(e.Err, scale.ErrFull):
		return fmt.Errorf("%w: all replicas together have %d, which is about the limit", core.ErrTooManySessions, m.config.MaxSessions)
	case e.Err != nil:
		return e.Err
	}
	s.rev.Store(int64(e.Rev))
	s.base, s.subscriptions.mark = text, checkpointAt(e.Rev)
	s.noteTTL(e, true)
	return nil
}

// checkpointAt returns the mark of a session that was opened then. The machines of an
// engine may have several clocks.
func checkpointAt(opened scale.Rev) scale.Rev {
	return max(opened-scale.Rev(replica.ClockSkew.Microseconds()), 1)
}

// partitionLimit is how many sessions a part of the store may have. Their ids are random,
// so that of many sessions each part has nearly as many: all together may have
// Config.MaxSessions, and a few more.
func (m *Manager) partitionLimit() int {
	mean := float64(m.config.MaxSessions) / partitions
	return int(math.Ceil(mean + 3*math.Sqrt(mean) + 1))
}

// dueIndexFor names the index for what is due after in.
func dueIndexFor(in time.Duration) string {
	if in <= 0 {
		return ""
	}
	return dueIndex
}

// load finds a session in the store. s is the copy in the table, nil if there is
// none.
func (m *Manager) load(ctx context.Context, id string, s *Session, whose func(owner string) bool) (*Session, error) {
	var look scale.GetOp
	if s != nil {
		look = scale.GetOp{Key: s.key, Known: scale.Rev(s.rev.Load())}
	} else {
		look.Key = sessionKey(id)
	}
	if m.bounded {
		// Every request of a session looks. A watch of its connection would cost more than
		// a request that waits for one slow look.
		ctx = context.WithoutCancel(ctx)
	}
	e, err := m.getEntry(ctx, look)
	switch {
	case err != nil:
		return nil, err
	case e.Rev == 0 || e.Owner != "":
		m.dropEnded(id)
		return nil, nil
	case s != nil && e.Rev == look.Known:
		s.noteTTL(e, false)
		return s, nil
	}
	text, st, err := m.openState(look.Key, id, e.Value)
	if err != nil {
		m.reportError(err)
		return nil, err
	}
	if s == nil {
		if !whose(st.Principal) {
			return nil, nil
		}
		if s, err = m.attachCopy(st, e.Rev, text); err != nil {
			m.reportError(err)
			return nil, err
		}
	}
	s.noteTTL(e, false)
	return s, s.update(look.Known, e.Rev, text, st)
}

// existsInStore reports whether the store has a session that does not end. s is the copy in
// the table, nil if there is none.
func (m *Manager) existsInStore(ctx context.Context, id string, s *Session) (bool, error) {
	look := scale.GetOp{Key: sessionKey(id)}
	if s != nil {
		look.Known = scale.Rev(s.rev.Load())
	}
	e, err := m.getEntry(ctx, look)
	return e.Rev != 0 && e.Owner == "", err
}

// attachCopy adds a session of the store to the table, or returns the copy that was added
// first.
func (m *Manager) attachCopy(st *snapshot, rev scale.Rev, text []byte) (*Session, error) {
	restored, err := m.restore(st, rev, text)
	if err != nil {
		return nil, err
	}
	return m.add(restored)
}

// restore makes a session from its state in the store. The decoding is users' code.
func (m *Manager) restore(st *snapshot, rev scale.Rev, text []byte) (s *Session, err error) {
	err = safely.Try(func() (err error) { s, err = restore(m.ctx, st); return err })
	if err != nil {
		return nil, err
	}
	s.key = sessionKey(s.id)
	s.noteState(rev, text, st.old)
	if s.subscriptions.mark == 0 {
		s.subscriptions.mark = checkpointAt(rev)
	}
	if m.config.OnRestoredEnd != nil {
		s.OnEnd(func(reason error) { m.config.OnRestoredEnd(s, reason) })
	}
	return s, nil
}

// save keeps what requests have changed. After an error the session is as
// changed as before. That values do not encode is reported once.
func (m *Manager) save(ctx context.Context, s *Session) error {
	err := m.saveChanged(ctx, s)
	if unsaved := s.unsaved.Load(); unsaved != nil && s.saidUnsaved.CompareAndSwap(false, true) {
		m.reportError(fmt.Errorf("session: other replicas will miss what a handler has assigned: %w", *unsaved))
	}
	return err
}

// saveChanged is save without the report.
func (m *Manager) saveChanged(ctx context.Context, s *Session) error {
	// What another request has begun to save is not saved before that is over.
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.ending != "" || !s.takeChanged() || s.Ended() {
		return nil
	}
	gone, err := m.writeState(ctx, s, "", m.dueAfter(m.config.IdleTimeout), nil)
	if gone {
		m.evictCopy(s, core.ErrSessionDeleted)
	}
	switch {
	case err != nil:
		s.changed.Store(true)
	case !gone && m.tell != nil && s.resubscribed.Swap(false):
		m.tell(s.id, false)
	}
	return err
}

// updateValue makes a change of one value that no other replica comes between: what
// fn has made of a value is written on the condition that it is still that value,
// and is a value of s when that has worked. So two replicas that count never come
// to the same number. fn is code of users, and runs with s.saving held.
func (m *Manager) updateValue(s *Session, key any, fn func(old any, ok bool) any) (value any, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.ending != "" || s.Ended() { // it has ended for all replicas
		return s.assigns.Update(key, fn), nil
	}
	name, _ := core.Stored(key)
	gone, err := m.writeState(context.WithoutCancel(m.ctx), s, "", m.dueAfter(m.config.IdleTimeout), func() map[string]any {
		value = fn(s.assigns.Begin(key))
		return map[string]any{name: value}
	})
	switch {
	case gone:
		m.evictCopy(s, core.ErrSessionDeleted)
		return value, core.ErrSessionDeleted
	case err == nil:
		s.assigns.Commit(key, value)
	}
	return value, err
}

// reload reads a session, again and again while the store does not answer.
func (m *Manager) reload(s *Session) {
	if s.refreshes.Add(1) > 1 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.sweeping.Go(func() {
		for n := s.refreshes.Load(); ; n = s.refreshes.Load() {
			var err error
			m.runInBackground(func() { _, err = m.load(m.ctx, s.id, s, anyOwner) })
			switch {
			case !m.isLocal(s) || m.ctx.Err() != nil:
				return
			case err != nil:
				pause.For(m.ctx, retryInterval)
			case s.refreshes.CompareAndSwap(n, 0):
				return
			}
		}
	})
}

// writeState writes the state of s, merged with changes of other replicas, and with the
// values that with returns, if it is not nil. It may call with several times. gone means
// that the session ends or has ended elsewhere; then nothing is written. s.saving is held.
func (m *Manager) writeState(ctx context.Context, s *Session, owner string, in time.Duration, with func() map[string]any) (gone bool, err error) {
	key := s.key
	for {
		var values map[string]any
		if with != nil {
			values = with()
		}
		text, err := s.encode(values)
		if err != nil {
			return false, err
		}
		if owner == "" && bytes.Equal(text, s.base) && !s.reseal.Load() {
			return false, nil
		}
		ttl := m.ttlToExtend(s, time.Now())
		e, err := m.putEntry(ctx, scale.Write{
			Key: key, Prev: scale.Rev(s.rev.Load()), Value: m.sealState(key, text),
			Owner: owner, TTL: ttl, DueIn: in, Index: dueIndexFor(in),
		})
		switch {
		case err != nil:
			return false, err
		case e.Err == nil:
			s.rev.Store(int64(e.Rev))
			s.base = text
			s.reseal.Store(false)
			s.noteTTL(e, ttl > 0)
			return false, nil
		case !errors.Is(e.Err, scale.ErrChanged):
			return false, e.Err
		case e.Rev == 0 || e.Owner != "":
			return true, nil
		}
		text, st, err := m.openState(key, s.id, e.Value)
		if err != nil {
			return false, err
		}
		if err := s.rebase(e.Rev, text, st); err != nil {
			return false, err
		}
	}
}

// acquireEnd makes this replica the one that ends s. It returns false if another one
// does, or has.
func (m *Manager) acquireEnd(ctx context.Context, s *Session, reason error) (mine bool, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.ending = encodeReason(reason)
	gone, err := m.writeState(ctx, s, m.config.ReplicaID, endLeaseTTL, nil)
	if err != nil {
		s.ending = ""
	}
	return !gone && err == nil, err
}

// deleteEnded deletes a session whose end is over. If the Store fails, renew tries
// again; otherwise another replica would end it once more.
func (m *Manager) deleteEnded(s *Session) {
	m.resumer.answers.markEnded(s.id)
	ctx := context.WithoutCancel(m.ctx)
	_, err := m.putEntry(ctx, scale.Write{Key: s.key, Prev: scale.Rev(s.rev.Load())})
	if err == nil {
		_, err = m.takeBox(ctx, scale.Take{Box: boxOf(s.id)})
	}
	if err != nil {
		s.over.Store(true)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ending, s)
}

// HandleChange handles what another replica tells of a session: that it has ended, or
// has other subscriptions. It does not wait.
func (m *Manager) HandleChange(id string, ended bool) {
	if ended {
		m.dropEnded(id)
	} else if s := m.Local(id); s != nil && s.receivesChanges() {
		m.reload(s)
	}
}

// dropEnded lets a session go that has ended at another replica.
func (m *Manager) dropEnded(id string) {
	if s := m.Local(id); s != nil && !s.claimed.Load() {
		m.evictCopy(s, core.ErrSessionDeleted)
	}
	m.resumer.answers.markEnded(id)
}

// Local returns the copy of a session that this replica has; nil if there is none.
func (m *Manager) Local(id string) *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id]
}

// evictCopy takes a session out of the table and closes the copy. The session lives on at
// other replicas, or one of them ends it.
func (m *Manager) evictCopy(s *Session, reason error) {
	m.mu.Lock()
	if m.sessions[s.id] == s {
		m.remove(s)
	}
	m.mu.Unlock()
	s.OnEnd(nil)
	s.Close(reason)
	if s.inbox != nil {
		s.inbox.deleteEnded()
	}
	if errors.Is(reason, core.ErrSessionDeleted) {
		m.resumer.answers.markEnded(s.id)
	}
}

// renewInterval is the time between two rounds of renew.
func (m *Manager) renewInterval() time.Duration {
	if m.config.IdleTimeout < 0 {
		return endLeaseTTL / 3
	}
	return min(max(m.config.IdleTimeout/(4*partitions), 100*time.Millisecond), endLeaseTTL/3)
}

// everyTick calls do at every tick, until the Manager is closed.
func (m *Manager) everyTick(do func()) {
	timer := time.NewTicker(m.renewInterval())
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-timer.C:
			do()
		}
	}
}

// persistLoop does what waits for the store while renew does not: what that takes
// long for must not let the leases of ends be over.
func (m *Manager) persistLoop() {
	part := int(time.Now().UnixNano() % partitions)
	var wrote [partitions]bool // in the round before
	m.everyTick(func() {
		m.reconcile()
		m.resumer.answers.sweep(m.ctx, m.resumer.answers.overdue(""))
		m.resumer.checkReplicas()
		part = (part + 1) % partitions
		before := wrote[part]
		wrote[part] = m.isWritable(partition(part))
		// Otherwise a session may be due because no replica could renew it.
		if before && wrote[part] && m.contact.IsTrusted() {
			m.endDue(partition(part))
		}
	})
}

// isWritable reports whether a partition of the store accepts writes. It may answer reads
// only.
func (m *Manager) isWritable(part string) bool {
	e, err := m.putEntry(m.ctx, scale.Write{Key: scale.Key{Partition: part, Name: "contact"}, Prev: scale.Any, Value: []byte{}, TTL: endLeaseTTL})
	return err == nil && e.Err == nil
}

// renew lets sessions live on that are used here, and those that this replica
// ends.
func (m *Manager) renew() {
	now := time.Now()
	var looks []scale.GetOp
	var sessions []*Session
	add := func(s *Session, in time.Duration) {
		looks = append(looks, scale.GetOp{Key: s.key, Known: scale.Rev(s.rev.Load()), In: in, TTL: m.ttlToExtend(s, now)})
		sessions = append(sessions, s)
	}
	m.mu.Lock()
	for s := range m.ending {
		add(s, endLeaseTTL)
	}
	for _, s := range m.sessions {
		if m.config.IdleTimeout > 0 && !m.isStale(s, now) && m.needsRenewal(s, now) {
			add(s, m.dueAfter(m.idleTimeout(s)))
		}
	}
	m.mu.Unlock()
	var asked sync.WaitGroup
	room := make(chan struct{}, maxBackground)
	for chunk := range slices.Chunk(looks, renewBatch) { // at once: the last must not be too late where each takes long
		these := sessions[:len(chunk)]
		sessions = sessions[len(chunk):]
		room <- struct{}{}
		asked.Go(func() {
			defer func() { <-room }()
			asked := time.Now()
			for i, e := range m.getEntries(chunk) {
				if e.Err != nil {
					continue
				}
				if e.Rev == chunk[i].Known {
					m.clock.set(asked, e.Due, chunk[i].In)
				}
				m.applyRenewal(these[i], chunk[i], e)
			}
		})
	}
	asked.Wait()
}

// isStale reports whether the copy of a session leaves the table, because it was not used
// recently.
func (m *Manager) isStale(s *Session, now time.Time) bool {
	used, idle := s.idleSince()
	return m.config.IdleTimeout > 0 && idle && now.Sub(used) >= m.config.IdleTimeout/2
}

// reconcile retries what the store has not confirmed: readers that leave, streams that
// stand by, ends of sessions. It seals states again whose key is replaced, and evicts
// copies that are not used.
func (m *Manager) reconcile() {
	now := time.Now()
	var leave, over, look, unsettled, stale []*Session
	m.mu.Lock()
	for s := range m.ending {
		if s.over.Load() {
			over = append(over, s)
		}
	}
	for _, s := range m.sessions {
		switch settle, check := s.inbox.due(now); {
		case settle:
			unsettled = append(unsettled, s)
		case check:
			look = append(look, s)
		}
		if m.isStale(s, now) {
			leave = append(leave, s)
		}
		if _, idle := s.idleSince(); !idle && s.reseal.Load() && len(stale) < max(renewBatch, len(m.sessions)/partitions) {
			stale = append(stale, s)
		}
	}
	m.mu.Unlock()
	for _, s := range stale {
		if m.save(m.ctx, s) != nil {
			break
		}
	}
	for _, s := range unsettled {
		if s.inbox.leave(m.ctx, false) != nil {
			break
		}
	}
	for _, s := range look {
		if s.inbox.standIn(m.ctx) != nil {
			break
		}
	}
	for _, s := range leave {
		if m.isStale(s, time.Now()) { // the store may have been slow
			m.evictCopy(s, core.ErrSessionIdle)
		}
	}
	for _, s := range over {
		m.deleteEnded(s)
	}
}

// applyRenewal handles what a look of renew has found.
func (m *Manager) applyRenewal(s *Session, look scale.GetOp, e scale.Entry) {
	switch {
	case e.Rev == look.Known:
		s.noteTTL(e, look.TTL > 0)
	case !m.isLocal(s) || s.claimed.Load(): // this replica ends it
	case e.Rev == 0 || e.Owner != "":
		m.evictCopy(s, core.ErrSessionDeleted)
	default: // another replica has changed it: the next round renews it
		text, st, err := m.openState(look.Key, s.id, e.Value)
		if err == nil {
			err = s.update(look.Known, e.Rev, text, st)
		}
		m.reportError(err)
	}
}

// isLocal reports whether a session is in the table.
func (m *Manager) isLocal(s *Session) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[s.id] == s
}

// endDue ends the idle sessions of a partition, and those whose end another replica did not
// finish.
func (m *Manager) endDue(part string) {
	for range 10 {
		due, err := m.config.Store.ClaimDue(m.ctx, part, dueIndex, m.config.ReplicaID, 100, endLeaseTTL)
		if m.noteUse(err) != nil || len(due) == 0 {
			return
		}
		m.endClaimed(due)
	}
}

// endClaimed ends sessions that are due and now belong to this replica. Their ends are
// users' code; until they return, this replica renews the sessions.
func (m *Manager) endClaimed(due []scale.Entry) {
	type end struct {
		session *Session
		reason  error
	}
	var ends []end
	for _, e := range due {
		text, st, err := m.openState(e.Key, "", e.Value)
		if err != nil {
			m.reportError(err)
			continue
		}
		s := m.Local(st.ID)
		if s != nil {
			if _, idle := s.idleSince(); !idle && st.Ended == "" {
				m.revive(s, e, text, st)
				continue
			}
			m.evictCopy(s, core.ErrSessionIdle)
		}
		if s, err = m.restore(st, e.Rev, text); err != nil {
			m.reportError(err)
			continue
		}
		s.claimed.Store(true)
		m.mu.Lock()
		m.ending[s] = true
		m.mu.Unlock()
		ends = append(ends, end{s, decodeReason(st.Ended)})
	}
	m.sweeping.Go(func() {
		for _, e := range ends {
			m.finishHere(e.session, e.reason)
		}
	})
}

// revive gives a session back that is used here after all: it could not be
// renewed for long.
func (m *Manager) revive(s *Session, e scale.Entry, text []byte, st *snapshot) {
	s.saving.Lock()
	defer s.saving.Unlock()
	kept, err := m.putEntry(m.ctx, scale.Write{Key: e.Key, Prev: e.Rev, Value: e.Value, TTL: m.ttl(), DueIn: m.dueAfter(m.config.IdleTimeout), Index: dueIndex})
	if err == nil && kept.Err == nil {
		err = s.rebase(kept.Rev, text, st)
	}
	m.reportError(err)
}

// Why a session ends, as the store has it; "" means that it was idle.
const (
	endedClosed  = "closed"
	endedDeleted = "deleted"
)

// encodeReason returns how the store has a reason.
func encodeReason(reason error) string {
	if reason == core.ErrSessionDeleted {
		return endedDeleted
	}
	return endedClosed
}

// decodeReason returns the reason that the store has.
func decodeReason(name string) error {
	switch name {
	case "":
		return core.ErrSessionIdle
	case endedDeleted:
		return core.ErrSessionDeleted
	}
	return core.ErrSessionClosed
}
