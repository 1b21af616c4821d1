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
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// This file has what a Manager does when replicas share its sessions. What is in
// the store is the session; what is in the table is a copy, which every request
// compares with the store before it is used, and which leaves the table when
// nobody here uses it.
//
// A session in the store is in one of two states. While it has no owner it
// lives, and any replica changes it. Whoever ends it becomes its owner, for
// endLease at a time; then nobody else uses it, and it is deleted when OnEnd has
// returned. If the owner dies before, the session becomes due, as one does that
// was not used for Config.Idle, and another replica ends it.

const (
	slots    = 64               // parts of the store, over which sessions are spread
	index    = "due"            // of those that nobody uses, and of those that end
	endLease = 30 * time.Second // of who ends a session
	freshFor = time.Minute      // lives what was never used after initialize
	keepDay  = 24 * time.Hour   // is the state kept after it became due, so that OnEnd gets it
	keepNews = keepDay / 8      // of that may pass before it is told again that the state is to be kept, which costs a store most
	batch    = 256              // sessions that are renewed at once
	again    = time.Second      // between attempts to read a session that has changed
)

// keyOf returns where the state of a session is.
func keyOf(id string) scale.Key { return replica.StoreKey("session", id, slots) }

// partOf returns the name of a part, counting around.
func partOf(n int) string { return replica.Partition("session", n%slots) }

// ttl is how long the state of a session is kept without being renewed.
func (m *Manager) ttl() time.Duration {
	if m.config.Idle < 0 {
		return 365 * keepDay
	}
	return m.lifetime(m.config.Idle) + keepDay
}

// keeping is how long the state of s is to be kept from now on; 0 if the store was told
// not long ago.
func (m *Manager) keeping(s *Session, now time.Time) time.Duration {
	if now.UnixNano()-s.kept.Load() < int64(keepNews) {
		return 0
	}
	return m.ttl()
}

// lifetime is when a session becomes due that is used now and then not for idle;
// 0 if never. What uses it in the first three eighths of idle need not be told to
// the store, at whichever replica: the session ends late rather than early. What
// uses it later is told, a tick late perhaps, and never if the replica is gone by then.
func (m *Manager) lifetime(idle time.Duration) time.Duration {
	if idle <= 0 {
		return 0
	}
	return m.least(idle) + idle*3/8
}

// least is how long after a use a session may become due at the earliest: that has
// to be told if it would be sooner, and is a tick late perhaps. The clock may be that
// of another machine of the engine.
func (m *Manager) least(idle time.Duration) time.Duration {
	return idle + 2*m.tick() + max(m.tick(), replica.ClockSkew)
}

// idle is how long a session lives that nobody uses any more.
func (m *Manager) idle(s *Session) time.Duration {
	if s.used() {
		return m.config.Idle
	}
	return min(m.config.Idle, freshFor) // however long initialize takes
}

// wantsRenewal tells whether the store should hear that a session is used, here: it
// would end it too soon, as far as the last look knows, which may have been after
// another replica told it.
func (m *Manager) wantsRenewal(s *Session, now time.Time) bool {
	used, idle := s.idleSince()
	if !idle {
		used = now
	}
	until, ok := m.clock.at(used.Add(m.least(m.idle(s))))
	return (!idle || s.used()) && (!ok || scale.Rev(s.due.Load()) < until)
}

// use runs code of the Store, for which a client may wait: no longer than
// replica.StoreTimeout, unless the Store has a bound of its own. That the client has left is
// no failure of the Store.
func (m *Manager) use(ctx context.Context, fn func(ctx context.Context) error) error {
	if !m.bounded {
		short, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
		defer cancel()
		ctx = short
	}
	err := fn(ctx)
	switch {
	case err == nil:
		m.contact.Note(true)
	case !errors.Is(err, context.Canceled):
		m.contact.Note(false)
		m.failed(err)
	}
	return err
}

// get asks the store for one entry.
func (m *Manager) get(ctx context.Context, look scale.Look) (e scale.Entry, err error) {
	err = m.use(ctx, func(ctx context.Context) error {
		found, err := m.config.Store.Get(ctx, look)
		if err == nil {
			e = found[0]
		}
		return err
	})
	return e, err
}

// lookAll asks the store for many entries, of which some have an Err while machines of
// an engine do not answer. There are none if nothing is answered.
func (m *Manager) lookAll(looks []scale.Look) (found []scale.Entry) {
	err := m.use(m.ctx, func(ctx context.Context) (err error) { found, err = m.config.Store.Get(ctx, looks...); return err })
	if err != nil && !slices.ContainsFunc(found, func(e scale.Entry) bool { return e.Err == nil }) || len(found) != len(looks) {
		return nil
	}
	return found
}

// put makes one write. The error is none that Entry.Err tells.
func (m *Manager) put(ctx context.Context, w scale.Write) (e scale.Entry, err error) {
	asked := time.Now()
	err = m.use(ctx, func(ctx context.Context) error {
		written, err := m.config.Store.Put(ctx, w)
		if err == nil {
			e = written[0]
		}
		return err
	})
	if err == nil && e.Err == nil {
		m.clock.set(asked, e.Due, w.In)
	}
	return e, err
}

// sealed returns a state as the store gets it.
func (m *Manager) sealed(key scale.Key, text []byte) []byte {
	return m.config.Seal.Seal(nil, text, seal.Binding(key.Name))
}

// open reads an entry. One that cannot be opened is no session that has ended:
// it may have been sealed with a key that another replica has already.
func (m *Manager) open(key scale.Key, id string, value []byte) (text []byte, st *state, err error) {
	text, old, err := m.config.Seal.Open(value, seal.Binding(key.Name))
	if err != nil {
		return nil, nil, fmt.Errorf("session: a state in the store does not open: %w", err)
	}
	if st, err = readState(text); err == nil {
		st.old = old
	}
	if err == nil && (keyOf(st.ID) != key || id != "" && st.ID != id) {
		err = errors.New("session: the store has another session's state")
	}
	return text, st, err
}

// create keeps a new session.
func (m *Manager) create(ctx context.Context, s *Session) error {
	text, err := s.encode(nil)
	if err != nil {
		return err
	}
	s.key = keyOf(s.id)
	key, in := s.key, m.lifetime(m.idle(s))
	e, err := m.put(ctx, scale.Write{
		Key: key, Value: m.sealed(key, text), TTL: m.ttl(), In: in, Index: indexFor(in),
		Limit: "sessions", Max: m.share(),
	})
	switch {
	case err != nil:
		return err
	case errors.Is(e.Err, scale.ErrFull):
		return fmt.Errorf("%w: all replicas together have %d, which is about the limit", core.ErrTooManySessions, m.config.Max)
	case e.Err != nil:
		return e.Err
	}
	s.rev.Store(int64(e.Rev))
	s.base, s.subscriptions.mark = text, markAt(e.Rev)
	s.noteTold(e, true)
	return nil
}

// markAt returns the mark of a session that was opened then. The machines of an
// engine may have several clocks.
func markAt(opened scale.Rev) scale.Rev {
	return max(opened-scale.Rev(replica.ClockSkew.Microseconds()), 1)
}

// share is how many sessions a part of the store may have. Their ids are random,
// so that of many sessions each part has nearly as many: all together may have
// Config.Max, and a few more.
func (m *Manager) share() int {
	mean := float64(m.config.Max) / slots
	return int(math.Ceil(mean + 3*math.Sqrt(mean) + 1))
}

// indexFor names the index for what is due after in.
func indexFor(in time.Duration) string {
	if in <= 0 {
		return ""
	}
	return index
}

// look finds a session in the store. s is the copy in the table, nil if there is
// none.
func (m *Manager) look(ctx context.Context, id string, s *Session, whose func(owner string) bool) (*Session, error) {
	var look scale.Look
	if s != nil {
		look = scale.Look{Key: s.key, Known: scale.Rev(s.rev.Load())}
	} else {
		look.Key = keyOf(id)
	}
	if m.bounded {
		// Every request of a session looks. To see that its client leaves meanwhile
		// would cost more than a request does that waits for one look too long.
		ctx = context.WithoutCancel(ctx)
	}
	e, err := m.get(ctx, look)
	switch {
	case err != nil:
		return nil, err
	case e.Rev == 0 || e.Owner != "":
		m.ended(id)
		return nil, nil
	case s != nil && e.Rev == look.Known:
		s.noteTold(e, false)
		return s, nil
	}
	text, st, err := m.open(look.Key, id, e.Value)
	if err != nil {
		m.failed(err)
		return nil, err
	}
	if s == nil {
		if !whose(st.Principal) {
			return nil, nil
		}
		if s, err = m.copyOf(st, e.Rev, text); err != nil {
			m.failed(err)
			return nil, err
		}
	}
	s.noteTold(e, false)
	return s, s.update(look.Known, e.Rev, text, st)
}

// stands tells whether the store has a session, which nobody ends. s is the copy in
// the table, nil if there is none.
func (m *Manager) stands(ctx context.Context, id string, s *Session) (bool, error) {
	look := scale.Look{Key: keyOf(id)}
	if s != nil {
		look.Known = scale.Rev(s.rev.Load())
	}
	e, err := m.get(ctx, look)
	return e.Rev != 0 && e.Owner == "", err
}

// copyOf takes a session of the store into the table, or returns the one that
// has come there meanwhile.
func (m *Manager) copyOf(st *state, rev scale.Rev, text []byte) (*Session, error) {
	restored, err := m.restore(st, rev, text)
	if err != nil {
		return nil, err
	}
	return m.add(restored)
}

// restore makes a session of what the store has. What it decodes is users' code.
func (m *Manager) restore(st *state, rev scale.Rev, text []byte) (s *Session, err error) {
	err = safely.Try(func() (err error) { s, err = restore(m.ctx, st); return err })
	if err != nil {
		return nil, err
	}
	s.key = keyOf(s.id)
	s.known(rev, text, st.old)
	if s.subscriptions.mark == 0 {
		s.subscriptions.mark = markAt(rev)
	}
	if m.config.RestoredEnd != nil {
		s.OnEnd(func(reason error) { m.config.RestoredEnd(s, reason) })
	}
	return s, nil
}

// save keeps what requests have changed. After an error the session is as
// changed as before. That values do not encode is reported once.
func (m *Manager) save(ctx context.Context, s *Session) error {
	err := m.saveChanged(ctx, s)
	if unsaved := s.unsaved.Load(); unsaved != nil && s.saidUnsaved.CompareAndSwap(false, true) {
		m.failed(fmt.Errorf("session: other replicas will miss what a handler has assigned: %w", *unsaved))
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
	gone, err := m.write(ctx, s, "", m.lifetime(m.config.Idle), nil)
	if gone {
		m.letGo(s, core.ErrSessionDeleted)
	}
	switch {
	case err != nil:
		s.changed.Store(true)
	case !gone && m.tell != nil && s.resubscribed.Swap(false):
		m.tell(s.id, false)
	}
	return err
}

// change makes a change of one value that no other replica comes between: what
// fn has made of a value is written on the condition that it is still that value,
// and is a value of s when that has worked. So two replicas that count never come
// to the same number. fn is code of users, and runs with s.saving held.
func (m *Manager) change(s *Session, key any, fn func(old any, ok bool) any) (value any, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.ending != "" || s.Ended() { // nobody shares it any more
		return s.assigns.Update(key, fn), nil
	}
	name, _ := core.Stored(key)
	gone, err := m.write(context.WithoutCancel(m.ctx), s, "", m.lifetime(m.config.Idle), func() map[string]any {
		value = fn(s.assigns.Begin(key))
		return map[string]any{name: value}
	})
	switch {
	case gone:
		m.letGo(s, core.ErrSessionDeleted)
		return value, core.ErrSessionDeleted
	case err == nil:
		s.assigns.Commit(key, value)
	}
	return value, err
}

// resubscribed reads a session whose subscriptions another replica has changed, if
// its client is told of changes here.
func (m *Manager) resubscribed(id string) {
	if s := m.Here(id); s != nil && s.hears() {
		m.refresh(s)
	}
}

// refresh reads a session, again and again while the store does not answer.
func (m *Manager) refresh(s *Session) {
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
			m.aside(func() { _, err = m.look(m.ctx, s.id, s, everybody) })
			switch {
			case !m.isHere(s) || m.ctx.Err() != nil:
				return
			case err != nil:
				pause.For(m.ctx, again)
			case s.refreshes.CompareAndSwap(n, 0):
				return
			}
		}
	})
}

// write writes the state of s, together with what other replicas have changed
// meanwhile, and with the values that with returns each time, if it is not nil. It
// tells if the session ends or has ended elsewhere; then nothing is written.
// s.saving is held.
func (m *Manager) write(ctx context.Context, s *Session, owner string, in time.Duration, with func() map[string]any) (gone bool, err error) {
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
		ttl := m.keeping(s, time.Now())
		e, err := m.put(ctx, scale.Write{
			Key: key, Prev: scale.Rev(s.rev.Load()), Value: m.sealed(key, text),
			Owner: owner, TTL: ttl, In: in, Index: indexFor(in),
		})
		switch {
		case err != nil:
			return false, err
		case e.Err == nil:
			s.rev.Store(int64(e.Rev))
			s.base = text
			s.reseal.Store(false)
			s.noteTold(e, ttl > 0)
			return false, nil
		case !errors.Is(e.Err, scale.ErrChanged):
			return false, e.Err
		case e.Rev == 0 || e.Owner != "":
			return true, nil
		}
		text, st, err := m.open(key, s.id, e.Value)
		if err != nil {
			return false, err
		}
		if err := s.rebase(e.Rev, text, st); err != nil {
			return false, err
		}
	}
}

// claim makes this replica the one that ends s. It returns false if another one
// does, or has.
func (m *Manager) claim(ctx context.Context, s *Session, reason error) (mine bool, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.ending = reasonName(reason)
	gone, err := m.write(ctx, s, m.config.Node, endLease, nil)
	if err != nil {
		s.ending = ""
	}
	return !gone && err == nil, err
}

// finish deletes a session whose end is over. If the Store fails, renew tries
// again; otherwise another replica would end it once more.
func (m *Manager) finish(s *Session) {
	m.relay.late.over(s.id)
	err := m.use(context.WithoutCancel(m.ctx), func(ctx context.Context) error {
		_, err := m.config.Store.Put(ctx, scale.Write{Key: s.key, Prev: scale.Rev(s.rev.Load())})
		if err == nil {
			_, err = m.config.Store.Take(ctx, scale.Take{Box: boxOf(s.id)})
		}
		return err
	})
	if err != nil {
		s.over.Store(true)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ending, s)
}

// Changed handles what another replica tells of a session: that it has ended, or
// has other subscriptions. It does not wait.
func (m *Manager) Changed(id string, ended bool) {
	if ended {
		m.ended(id)
	} else {
		m.resubscribed(id)
	}
}

// ended lets a session go that has ended at another replica.
func (m *Manager) ended(id string) {
	m.relay.late.over(id)
	if s := m.Here(id); s != nil && !s.claimed.Load() {
		m.letGo(s, core.ErrSessionDeleted)
	}
}

// Delivered handles a message of another replica, and reports whether it is one
// about the streams of sessions. It waits for nothing.
func (m *Manager) Delivered(message post.Message) bool {
	return m.relay != nil && m.relay.delivered(message)
}

// Here returns the copy of a session that this replica has; nil if there is none.
func (m *Manager) Here(id string) *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id]
}

// letGo takes a session out of the table and closes the copy. The session itself
// lives on elsewhere, or somebody else ends it.
func (m *Manager) letGo(s *Session, reason error) {
	m.mu.Lock()
	if m.sessions[s.id] == s {
		m.remove(s)
	}
	m.mu.Unlock()
	s.OnEnd(nil)
	s.Close(reason)
}

// tick is the time between two rounds of renew.
func (m *Manager) tick() time.Duration {
	if m.config.Idle < 0 {
		return endLease / 3
	}
	return min(max(m.config.Idle/(4*slots), 100*time.Millisecond), endLease/3)
}

// each calls do at every tick, until the Manager is closed.
func (m *Manager) each(do func()) {
	timer := time.NewTicker(m.tick())
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

// keepShared does what waits for the store while renew does not: what that takes
// long for must not let the leases of ends be over.
func (m *Manager) keepShared() {
	part := int(time.Now().UnixNano() % slots)
	var wrote [slots]bool // in the round before
	m.each(func() {
		m.tend()
		m.relay.late.sweep()
		part = (part + 1) % slots
		before := wrote[part]
		wrote[part] = m.writes(partOf(part))
		// Otherwise what is due may be so because nobody could renew it.
		if before && wrote[part] && m.contact.Held() {
			m.endDue(partOf(part))
		}
	})
}

// writes tells whether a part of the store can be written to, which it may not be while
// it answers what only reads.
func (m *Manager) writes(part string) bool {
	e, err := m.put(m.ctx, scale.Write{Key: scale.Key{Part: part, Name: "contact"}, Prev: scale.Any, Value: []byte{}, TTL: endLease})
	return err == nil && e.Err == nil
}

// renew lets sessions live on that are used here, and those that this replica
// ends.
func (m *Manager) renew() {
	now := time.Now()
	var looks []scale.Look
	var sessions []*Session
	add := func(s *Session, in time.Duration) {
		looks = append(looks, scale.Look{Key: s.key, Known: scale.Rev(s.rev.Load()), In: in, TTL: m.keeping(s, now)})
		sessions = append(sessions, s)
	}
	m.mu.Lock()
	for s := range m.ending {
		add(s, endLease)
	}
	for _, s := range m.sessions {
		if m.config.Idle > 0 && !m.leaves(s, now) && m.wantsRenewal(s, now) {
			add(s, m.lifetime(m.idle(s)))
		}
	}
	m.mu.Unlock()
	var asked sync.WaitGroup
	room := make(chan struct{}, maxAside)
	for chunk := range slices.Chunk(looks, batch) { // at once: the last must not be too late where each takes long
		these := sessions[:len(chunk)]
		sessions = sessions[len(chunk):]
		room <- struct{}{}
		asked.Go(func() {
			defer func() { <-room }()
			asked := time.Now()
			for i, e := range m.lookAll(chunk) {
				if e.Err != nil {
					continue
				}
				if e.Rev == chunk[i].Known {
					m.clock.set(asked, e.Due, chunk[i].In)
				}
				m.renewed(these[i], chunk[i], e)
			}
		})
	}
	asked.Wait()
}

// leaves tells whether the copy of a session has not been used for so long that it
// leaves the table.
func (m *Manager) leaves(s *Session, now time.Time) bool {
	used, idle := s.idleSince()
	return m.config.Idle > 0 && idle && now.Sub(used) >= m.config.Idle/2
}

// tend finds out who listens to the sessions where that is not certain, deletes
// those whose end is over, seals those anew whose key goes and for which no request
// does, and lets copies that are not used leave the table.
func (m *Manager) tend() {
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
		if m.leaves(s, now) {
			leave = append(leave, s)
		}
		if _, idle := s.idleSince(); !idle && s.reseal.Load() && len(stale) < max(batch, len(m.sessions)/slots) {
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
		if m.leaves(s, time.Now()) { // the store may have taken its time meanwhile
			m.letGo(s, core.ErrSessionIdle)
		}
	}
	for _, s := range over {
		m.finish(s)
	}
}

// renewed handles what a look of renew has found.
func (m *Manager) renewed(s *Session, look scale.Look, e scale.Entry) {
	switch {
	case e.Rev == look.Known:
		s.noteTold(e, look.TTL > 0)
	case !m.isHere(s) || s.claimed.Load(): // this replica ends it
	case e.Rev == 0 || e.Owner != "":
		m.letGo(s, core.ErrSessionDeleted)
	default: // another replica has changed it: the next round renews it
		text, st, err := m.open(look.Key, s.id, e.Value)
		if err == nil {
			err = s.update(look.Known, e.Rev, text, st)
		}
		m.failed(err)
	}
}

// isHere reports whether a session is in the table.
func (m *Manager) isHere(s *Session) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[s.id] == s
}

// endDue ends the sessions of a part that nobody uses, and those whose end
// another replica did not finish.
func (m *Manager) endDue(part string) {
	for range 10 {
		var due []scale.Entry
		err := m.use(m.ctx, func(ctx context.Context) (err error) {
			due, err = m.config.Store.Due(ctx, part, index, m.config.Node, 100, endLease)
			return err
		})
		if err != nil || len(due) == 0 {
			return
		}
		m.endAll(due)
	}
}

// endAll ends sessions whose time has come to this replica. Their ends are code
// of users: meanwhile this replica renews them.
func (m *Manager) endAll(due []scale.Entry) {
	type end struct {
		session *Session
		reason  error
	}
	var ends []end
	for _, e := range due {
		text, st, err := m.open(e.Key, "", e.Value)
		if err != nil {
			m.failed(err)
			continue
		}
		s := m.Here(st.ID)
		if s != nil {
			if _, idle := s.idleSince(); !idle && st.Ended == "" {
				m.keepAlive(s, e, text, st)
				continue
			}
			m.letGo(s, core.ErrSessionIdle)
		}
		if s, err = m.restore(st, e.Rev, text); err != nil {
			m.failed(err)
			continue
		}
		s.claimed.Store(true)
		m.mu.Lock()
		m.ending[s] = true
		m.mu.Unlock()
		ends = append(ends, end{s, reasonNamed(st.Ended)})
	}
	m.sweeping.Go(func() {
		for _, e := range ends {
			m.finishHere(e.session, e.reason)
		}
	})
}

// keepAlive gives a session back that is used here after all: it could not be
// renewed for long.
func (m *Manager) keepAlive(s *Session, e scale.Entry, text []byte, st *state) {
	s.saving.Lock()
	defer s.saving.Unlock()
	kept, err := m.put(m.ctx, scale.Write{Key: e.Key, Prev: e.Rev, Value: e.Value, TTL: m.ttl(), In: m.lifetime(m.config.Idle), Index: index})
	if err == nil && kept.Err == nil {
		err = s.rebase(kept.Rev, text, st)
	}
	m.failed(err)
}

// Why a session ends, as the store has it; "" is that nobody used it.
const (
	endedClosed  = "closed"
	endedDeleted = "deleted"
)

// reasonName returns how the store has a reason.
func reasonName(reason error) string {
	if reason == core.ErrSessionDeleted {
		return endedDeleted
	}
	return endedClosed
}

// reasonNamed returns the reason that the store has.
func reasonNamed(name string) error {
	switch name {
	case "":
		return core.ErrSessionIdle
	case endedDeleted:
		return core.ErrSessionDeleted
	}
	return core.ErrSessionClosed
}
