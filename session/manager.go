package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/opaque"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/share"
)

// The limits that a zero Config stands for.
const (
	defaultIdle     = 30 * time.Minute
	DefaultMax      = 10_000
	defaultHistory  = 16 << 10 // bytes
	DefaultMaxEvent = 1 << 20  // bytes
	DefaultMemory   = 64 << 20 // bytes
)

// ErrTooMany is the error of opening a session beyond the maximum.
var ErrTooMany = errors.New("session: too many sessions")

// Config limits the sessions of a Manager.
type Config struct {
	Idle time.Duration // unused for so long, a session ends; 0 means defaultIdle, negative never
	Max  int           // sessions at a time; 0 means DefaultMax
	// MaxPerPrincipal is how many of them one principal may have; 0 means a
	// tenth of Max, at least one, negative no limit. Anonymous clients, who are
	// one principal, may have all, but make room for others while they have more
	// than half. Where there is no room, sessions that were never used after
	// initialize end first, the oldest first.
	MaxPerPrincipal int
	// History is how many bytes of events each session keeps for a client that
	// comes back to a broken stream; the last event is kept beyond that, if it
	// has no more than MaxEvent. A session that is not used drops
	// them between half of Idle and the whole. 0 means defaultHistory; negative turns coming back off.
	History int
	// MaxEvent is how many bytes an event may have to be kept. A client that
	// comes back for a longer one is refused, and told why. 0 means
	// DefaultMaxEvent.
	MaxEvent int
	// Memory is how many bytes all sessions together keep of messages: in their
	// histories, and while they wait for streams. When it is used up, sessions
	// drop their histories, the least recently added to first; when that is not
	// enough, messages that belong to no request are dropped. As much again is
	// for the URIs of resources that they subscribed to; beyond that no session
	// subscribes. And as much for what clients say of themselves, beyond 2 KiB each,
	// of which a principal may have a tenth: where there is no room, sessions that
	// were never used after initialize end. 0 means DefaultMemory.
	Memory int
	// Store keeps the state of sessions outside the process. nil means that
	// they end with it. With a Store, sessions that live when the server shuts
	// down are saved and not ended: another process goes on with them.
	Store Store
	// StoreFailed is told of errors of Store. A request goes on without the
	// Store if it can. nil drops them.
	StoreFailed func(error)
}

// storeTimeout bounds each use of the Store, for which a client waits.
const storeTimeout = 5 * time.Second

// Manager holds the HTTP sessions of a server. It is safe for concurrent use.
//
// mu guards the fields below it but onEnd, which is set before the Manager is
// used. A session in the table has a place in places, and its cost in clients;
// makeRoom takes both and remove gives them back. Sessions are taken out of the
// table while mu is held and are closed after that: their end may run the
// Store's code.
type Manager struct {
	config  Config
	name    string        // in the Store, among other processes
	budget  budget        // of all sessions
	uris    budget        // the same, of what they subscribed to
	places  *share.Shares // sessions
	clients *share.Shares // bytes of what clients say of themselves
	ctx     context.Context
	stop    context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	sessions map[string]*Session
	ended    map[string]bool          // ids that End has ended lately, which the Store may still have
	fresh    []*Session               // the oldest first: all that were never used, and others
	attached map[*Session]func(error) // sessions of connections, and what ends them
	sweep    *time.Timer              // runs while there are sessions; nil else
	sweeping sync.WaitGroup
	onEnd    func(*Session, error)
}

// NewManager returns a Manager without sessions.
func NewManager(config Config) *Manager {
	if config.Idle == 0 {
		config.Idle = defaultIdle
	}
	if config.Max <= 0 {
		config.Max = DefaultMax
	}
	if config.MaxPerPrincipal == 0 {
		config.MaxPerPrincipal = max(1, config.Max/10)
	}
	if config.History == 0 {
		config.History = defaultHistory
	}
	if config.MaxEvent <= 0 {
		config.MaxEvent = DefaultMaxEvent
	}
	if config.Memory <= 0 {
		config.Memory = DefaultMemory
	}
	m := &Manager{config: config, name: rand.Text(), sessions: make(map[string]*Session), ended: make(map[string]bool), attached: make(map[*Session]func(error))}
	m.budget.limit, m.uris.limit = config.Memory, config.Memory
	m.places = share.New("sessions", config.Max, config.MaxPerPrincipal, share.Always)
	m.clients = share.New("bytes of what clients say of themselves", config.Memory, min(config.MaxPerPrincipal, 0), share.Half)
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	return m
}

// OnRestore makes fn be called, with the reason, at the end of each session
// that was restored from the Store, as OnEnd of the others. It must be called
// before the Manager is used.
func (m *Manager) OnRestore(fn func(s *Session, reason error)) { m.onEnd = fn }

// Open makes a session with a new id of 128 random bits.
func (m *Manager) Open(c Client) (*Session, error) {
	return m.add(New(m.ctx, opaque.NewID(), c))
}

// add takes a session in; if there is one of that id, it returns that. When
// there is no room, another one may have to end.
func (m *Manager) add(s *Session) (*Session, error) {
	there, crowded, err := m.enter(s)
	m.endUnused(crowded, errCrowded)
	return there, err
}

// enter is what add does while m.mu is held. there is nil, without an error,
// for a session that End has ended since the Store was asked for it. crowded
// are those that were taken out of the table and that the caller has to end,
// also if there is an error.
func (m *Manager) enter(s *Session) (there *Session, crowded []*Session, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, ErrClosed
	}
	if there, ok := m.sessions[s.id]; ok {
		return there, nil, nil
	}
	if m.ended[s.id] {
		return nil, nil, nil // it was read from the Store before it ended
	}
	if crowded, err = m.makeRoom(s); err != nil {
		return nil, crowded, err
	}
	s.join(m)
	if m.config.Store != nil {
		s.save = m.save
		s.begin()
	}
	m.sessions[s.id] = s
	if len(m.fresh) > 2*len(m.sessions)+16 { // most have ended, or are used
		m.fresh = slices.DeleteFunc(m.fresh, func(s *Session) bool { return !m.isFresh(s) })
	}
	m.fresh = append(m.fresh, s)
	m.schedule()
	return s, crowded, nil
}

// makeRoom takes sessions out of the table, which are to end, until there is a
// place for s and for what its client says. With an error it has taken neither;
// those that it took out until then are to end all the same. m.mu is held.
func (m *Manager) makeRoom(s *Session) (crowded []*Session, err error) {
	own := func(other *Session) bool { return other.principal == s.principal }
	out := func(first *Session, format string, args ...any) error {
		if first == nil {
			return fmt.Errorf("%w"+format, append([]any{ErrTooMany}, args...)...)
		}
		m.remove(first)
		crowded = append(crowded, first)
		return nil
	}
	for most := m.config.MaxPerPrincipal; m.places.Take(s.principal, 1) != nil; {
		if s.principal != "" && most > 0 && m.places.Of(s.principal) >= most { // then nobody else has to end
			err = out(m.unused(own), " of this user: %d, which is the limit", most)
		} else {
			err = out(m.dispensable(s.principal), ": %d, which is the limit", m.config.Max)
		}
		if err != nil {
			return crowded, err
		}
	}
	for {
		full := m.clients.Take(s.principal, s.cost)
		if full == nil {
			return crowded, nil
		}
		if err = out(m.unused(func(other *Session) bool { return other.cost > 0 && (!full.Own || own(other)) }), ": %w", full); err != nil {
			m.places.Give(s.principal, 1)
			return crowded, err
		}
	}
}

// unused returns the oldest such session that was never used; nil if there is
// none. m.mu is held.
func (m *Manager) unused(such func(s *Session) bool) *Session {
	for len(m.fresh) > 0 && !m.isFresh(m.fresh[0]) {
		m.fresh[0], m.fresh = nil, m.fresh[1:]
	}
	for _, s := range m.fresh {
		if m.isFresh(s) && s.unused() && such(s) {
			return s
		}
	}
	return nil
}

// isFresh tells whether a session is there, and has not been used. m.mu is held.
func (m *Manager) isFresh(s *Session) bool { return m.sessions[s.id] == s && !s.used() }

// dispensable returns the session that ends first to make room for one of
// principal: the oldest that was never used, or, for somebody with a name, the
// anonymous one that was not used for the longest time, as long as anonymous
// clients have more than half of the room. It returns nil if there is none.
// m.mu is held.
func (m *Manager) dispensable(principal string) (first *Session) {
	if first = m.unused(func(*Session) bool { return true }); first != nil {
		return first
	}
	if principal == "" || m.places.Of("") <= m.config.Max/2 {
		return nil
	}
	var oldest time.Time
	for _, s := range m.sessions {
		if s.principal != "" {
			continue
		}
		if used, idle := s.idleSince(); idle && (first == nil || used.Before(oldest)) {
			first, oldest = s, used
		}
	}
	return first
}

// remove takes a session out of the table. m.mu is held.
func (m *Manager) remove(s *Session) {
	delete(m.sessions, s.id)
	m.clients.Give(s.principal, s.cost)
	m.places.Give(s.principal, 1)
}

// Get finds a session, in the Store if need be; nil if there is none. The error
// is that of the Store, or ErrTooMany for a session of the Store that finds no
// room here.
func (m *Manager) Get(id string) (*Session, error) {
	m.mu.Lock()
	s, ended := m.sessions[id], m.ended[id]
	m.mu.Unlock()
	if s != nil || ended || m.config.Store == nil || !opaque.IsID(id) { // whatever clients send, a Store is asked for ids alone
		return s, nil
	}
	return m.restore(id)
}

// restore takes a session in that another process has left in the Store. One
// that cannot be read is none.
func (m *Manager) restore(id string) (*Session, error) {
	ctx, cancel := context.WithTimeout(m.ctx, storeTimeout)
	defer cancel()
	snapshot, err := m.load(ctx, id)
	if err != nil {
		m.failed(err)
		return nil, err
	}
	if snapshot == nil || snapshot.ID != id {
		return nil, nil
	}
	var restored *Session
	err = safely.Try(func() (err error) { restored, err = restore(m.ctx, snapshot); return err })
	if err != nil {
		m.failed(err)
		return nil, nil
	}
	foreign := snapshot.Owner != m.name
	restored.changed.Store(foreign)
	restored.unclaimed.Store(foreign) // until it is used: whoever asked may not be allowed to
	s, err := m.add(restored)
	if err != nil {
		m.failed(err)
		return nil, err
	}
	if s == restored && m.onEnd != nil {
		s.OnEnd(func(reason error) { m.onEnd(s, reason) })
	}
	return s, nil
}

// failed tells of an error of the Store. The Store, StoreFailed, and what a
// session keeps are users' code, which runs on goroutines of its own: sessions
// are saved, and end, on goroutines that have more to do.
func (m *Manager) failed(err error) {
	if err != nil && m.config.StoreFailed != nil {
		_ = safely.Apart(func() { m.config.StoreFailed(safely.Known(err)) }) // there is nobody else to tell
	}
}

// load asks the Store for a session; nil if it has none.
func (m *Manager) load(ctx context.Context, id string) (snapshot *Snapshot, err error) {
	err = safely.Try(func() (err error) { snapshot, err = m.config.Store.Load(ctx, id); return err })
	return snapshot, err
}

// save keeps the state of s in the Store if it has changed, or so long ago
// that the Store may forget it soon.
func (m *Manager) save(s *Session) {
	changed := s.changed.Swap(false)
	if s.assigns.TakeChanged() {
		changed = true
	}
	s.mu.Lock()
	stale := m.config.Idle > 0 && time.Since(s.saved) >= m.config.Idle/4
	if s.reason != nil || !changed && !stale {
		s.mu.Unlock()
		return
	}
	s.saved = time.Now()
	s.mu.Unlock()
	s.saving.Lock() // so that what is saved last is the last state, and nothing is after the end
	defer s.saving.Unlock()
	if s.Ended() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), storeTimeout)
	defer cancel()
	// A session is used up to Idle/4 after it was saved, and then Idle long.
	if err := safely.Try(func() error {
		snapshot := s.snapshot()
		snapshot.Owner = m.name
		return m.config.Store.Save(ctx, snapshot, max(m.config.Idle+m.config.Idle/2, 0))
	}); err != nil {
		s.changed.Store(true)
		m.failed(err)
	}
}

// End closes a session and tells whether there was one.
func (m *Manager) End(id string, reason error) bool {
	m.mu.Lock()
	s, ok := m.sessions[id]
	if ok {
		m.remove(s)
	}
	if ok && m.config.Store != nil {
		m.ended[id] = true
	}
	m.mu.Unlock()
	if ok {
		m.close(s, reason)
	}
	if ok && m.config.Store != nil {
		// Until then somebody may have read it who is about to take it in.
		time.AfterFunc(storeTimeout, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.ended, id)
		})
	}
	return ok
}

// close ends a session that is out of the table already, and deletes what the
// Store has of it. It waits for a save that is under way, which would otherwise
// bring the session back. m.mu is not held.
func (m *Manager) close(s *Session, reason error) {
	s.Close(reason)
	if m.config.Store == nil {
		return
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), storeTimeout)
	defer cancel()
	m.failed(safely.Try(func() error { return m.config.Store.Delete(ctx, s.id) }))
}

// owns tells whether a session is this process's to end: no other one has taken
// it over, or ended it. ok is false if the Store cannot tell.
func (m *Manager) owns(s *Session) (yes, ok bool) {
	if m.config.Store == nil {
		return true, true
	}
	// Not m.ctx: Close, too, ends no session that lives on elsewhere.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), storeTimeout)
	defer cancel()
	snapshot, err := m.load(ctx, s.id)
	switch {
	case err != nil:
		m.failed(err)
		return false, false
	case snapshot == nil:
		// It was never saved, or it has ended elsewhere.
		return s.changed.Load() && !s.unclaimed.Load(), true
	}
	return snapshot.Owner == m.name, true
}

// Attach makes Each find a session that lives with a connection, until detach
// is called. It has no id that Get would find, and none of the limits hold.
// Stop calls stop, which ends the connection and with it the session.
func (m *Manager) Attach(s *Session, stop func(reason error)) (detach func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attached[s] = stop
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.attached, s)
	}
}

// Stop ends a session that the Manager has, be it its own or that of a
// connection.
func (m *Manager) Stop(s *Session, reason error) {
	m.mu.Lock()
	stop, attached := m.attached[s]
	m.mu.Unlock()
	if attached {
		stop(reason)
	} else {
		m.End(s.id, reason)
	}
}

// Each calls fn for every session that there is now.
func (m *Manager) Each(fn func(*Session)) {
	m.mu.Lock()
	list := make([]*Session, 0, len(m.sessions)+len(m.attached))
	for _, s := range m.sessions {
		list = append(list, s)
	}
	for s := range m.attached {
		list = append(list, s)
	}
	m.mu.Unlock()
	for _, s := range list {
		fn(s)
	}
}

// EndStreams ends the open streams of the sessions; these live on. That of a
// connection is left to the connection: no other one comes for what waits in it.
func (m *Manager) EndStreams() {
	m.mu.Lock()
	list := slices.Collect(maps.Values(m.sessions))
	m.mu.Unlock()
	for _, s := range list {
		s.endStreams()
	}
}

// Close closes every session for that reason and opens no more. Sessions that
// a Store keeps are only let go.
func (m *Manager) Close(reason error) {
	m.mu.Lock()
	m.closed = true
	sessions := m.sessions
	m.sessions, m.fresh = make(map[string]*Session), nil
	if m.sweep != nil && m.sweep.Stop() {
		m.sweeping.Done()
	}
	m.sweep = nil
	m.mu.Unlock()
	for _, s := range sessions {
		if m.config.Store != nil {
			m.save(s)
			s.OnEnd(nil)
		}
		s.Close(reason)
	}
	m.stop(reason)
	m.sweeping.Wait()
}

// schedule arms the one timer that ends idle sessions. m.mu is held.
func (m *Manager) schedule() {
	if m.sweep == nil && m.config.Idle > 0 && len(m.sessions) > 0 {
		m.sweeping.Add(1)
		m.sweep = time.AfterFunc(m.config.Idle/2, m.endIdle)
	}
}

// endIdle ends the sessions that were not used for the idle time.
func (m *Manager) endIdle() {
	defer m.sweeping.Done()
	var expired, quiet []*Session
	now := time.Now()
	m.mu.Lock()
	for _, s := range m.sessions {
		used, idle := s.idleSince()
		switch since := now.Sub(used); {
		case idle && since >= m.config.Idle:
			m.remove(s)
			expired = append(expired, s)
		case idle && since >= m.config.Idle/2:
			quiet = append(quiet, s)
		}
	}
	m.sweep = nil
	if !m.closed {
		m.schedule()
	}
	m.mu.Unlock()
	m.endUnused(expired, ErrIdle)
	for _, s := range quiet {
		s.history.forget()
	}
}

// endUnused ends sessions that nobody uses. Those that are, or may be, another
// process's it only lets go.
func (m *Manager) endUnused(unused []*Session, reason error) {
	known := true // the Store answers
	for _, s := range unused {
		own := false
		if known {
			own, known = m.owns(s)
		}
		if own {
			m.close(s, reason)
			continue
		}
		s.OnEnd(nil)
		s.Close(reason)
	}
}
