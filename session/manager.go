package session

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"sync"
	"time"
)

// The limits that a zero Config stands for.
const (
	DefaultIdle = 30 * time.Minute
	DefaultMax  = 10_000
)

// ErrTooMany is the error of opening a session beyond the maximum.
var ErrTooMany = errors.New("session: too many sessions")

// Config limits the sessions of a Manager.
type Config struct {
	Idle time.Duration // unused for so long, a session ends; 0 means DefaultIdle, negative never
	Max  int           // sessions at a time; 0 means DefaultMax
	// History is how many bytes of events each session keeps for a client that
	// comes back to a broken stream, beside the last event, whatever its size.
	// A session that is not used for half of Idle drops them. 0 means
	// DefaultHistory; negative turns coming back off.
	History int
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
type Manager struct {
	config Config
	name   string // in the Store, among other processes
	ctx    context.Context
	stop   context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	sessions map[string]*Session
	attached map[*Session]func(error) // sessions of connections, and what ends them
	sweep    *time.Timer              // runs while there are sessions; nil else
	sweeping sync.WaitGroup
	onEnd    func(*Session, error)
}

// NewManager returns a Manager without sessions.
func NewManager(config Config) *Manager {
	if config.Idle == 0 {
		config.Idle = DefaultIdle
	}
	if config.Max <= 0 {
		config.Max = DefaultMax
	}
	if config.History == 0 {
		config.History = DefaultHistory
	}
	m := &Manager{config: config, name: rand.Text(), sessions: make(map[string]*Session), attached: make(map[*Session]func(error))}
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	return m
}

// OnRestore makes fn be called, with the reason, at the end of each session
// that was restored from the Store, as OnEnd of the others. It must be called
// before the Manager is used.
func (m *Manager) OnRestore(fn func(s *Session, reason error)) { m.onEnd = fn }

// Open makes a session with a new id of 128 random bits.
func (m *Manager) Open(c Client) (*Session, error) {
	var raw [16]byte
	// crypto/rand.Read never fails since Go 1.24.
	_, _ = rand.Read(raw[:])
	return m.add(New(m.ctx, base64.RawURLEncoding.EncodeToString(raw[:]), c))
}

// add takes a session in; if there is one of that id, it returns that.
func (m *Manager) add(s *Session) (*Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if there, ok := m.sessions[s.id]; ok {
		return there, nil
	}
	if len(m.sessions) >= m.config.Max {
		return nil, ErrTooMany
	}
	s.limit = m.config.History
	if m.config.Store != nil {
		s.save = m.save
	}
	m.sessions[s.id] = s
	m.schedule()
	return s, nil
}

// Get finds a session, in the Store if need be.
func (m *Manager) Get(id string) (*Session, bool) {
	m.mu.Lock()
	s, ok := m.sessions[id]
	m.mu.Unlock()
	if ok || m.config.Store == nil {
		return s, ok
	}
	return m.restore(id)
}

// restore takes a session in that another process has left in the Store.
func (m *Manager) restore(id string) (*Session, bool) {
	ctx, cancel := context.WithTimeout(m.ctx, storeTimeout)
	defer cancel()
	snapshot, err := m.config.Store.Load(ctx, id)
	if err != nil || snapshot == nil || snapshot.ID != id {
		m.failed(err)
		return nil, false
	}
	restored, err := Restore(m.ctx, snapshot)
	if err != nil {
		m.failed(err)
		return nil, false
	}
	foreign := snapshot.Owner != m.name
	restored.changed.Store(foreign)
	restored.unclaimed.Store(foreign) // until it is used: whoever asked may not be allowed to
	s, err := m.add(restored)
	if err != nil {
		m.failed(err)
		return nil, false
	}
	if s == restored && m.onEnd != nil {
		s.OnEnd(func(reason error) { m.onEnd(s, reason) })
	}
	return s, true
}

func (m *Manager) failed(err error) {
	if err != nil && m.config.StoreFailed != nil {
		m.config.StoreFailed(err)
	}
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), storeTimeout)
	defer cancel()
	// A session is used up to Idle/4 after it was saved, and then Idle long.
	snapshot := s.Snapshot()
	snapshot.Owner = m.name
	if err := m.config.Store.Save(ctx, snapshot, max(m.config.Idle+m.config.Idle/2, 0)); err != nil {
		s.changed.Store(true)
		m.failed(err)
	}
}

// End closes a session and tells whether there was one.
func (m *Manager) End(id string, reason error) bool {
	m.mu.Lock()
	s, ok := m.sessions[id]
	delete(m.sessions, id)
	m.mu.Unlock()
	if ok {
		m.close(s, reason)
	}
	return ok
}

// close ends a session that is out of the table already.
func (m *Manager) close(s *Session, reason error) {
	s.Close(reason)
	if m.config.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), storeTimeout)
	defer cancel()
	m.failed(m.config.Store.Delete(ctx, s.id))
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
	snapshot, err := m.config.Store.Load(ctx, s.id)
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

// Len returns the number of sessions.
func (m *Manager) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
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

// EndStreams ends the open streams of every session; the sessions live on.
func (m *Manager) EndStreams() { m.Each((*Session).endStream) }

// Close closes every session for that reason and opens no more. Sessions that
// a Store keeps are only let go.
func (m *Manager) Close(reason error) {
	m.mu.Lock()
	m.closed = true
	sessions := m.sessions
	m.sessions = make(map[string]*Session)
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
	for id, s := range m.sessions {
		used, idle := s.idleSince()
		switch since := now.Sub(used); {
		case idle && since >= m.config.Idle:
			delete(m.sessions, id)
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
	m.endExpired(expired)
	for _, s := range quiet {
		s.forget()
	}
}

// endExpired ends sessions that were not used for too long. Those that are, or
// may be, another process's it only lets go.
func (m *Manager) endExpired(expired []*Session) {
	known := true // the Store answers
	for _, s := range expired {
		own := false
		if known {
			own, known = m.owns(s)
		}
		if own {
			m.close(s, ErrIdle)
			continue
		}
		s.OnEnd(nil)
		s.Close(ErrIdle)
	}
}
