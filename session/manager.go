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
}

// Manager holds the HTTP sessions of a server. It is safe for concurrent use.
type Manager struct {
	config Config
	ctx    context.Context
	stop   context.CancelCauseFunc

	mu       sync.Mutex
	sessions map[string]*Session
	attached map[*Session]struct{} // sessions of connections
	sweep    *time.Timer           // runs while there are sessions; nil else
}

// NewManager returns a Manager without sessions.
func NewManager(config Config) *Manager {
	if config.Idle == 0 {
		config.Idle = DefaultIdle
	}
	if config.Max <= 0 {
		config.Max = DefaultMax
	}
	m := &Manager{config: config, sessions: make(map[string]*Session), attached: make(map[*Session]struct{})}
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	return m
}

// Open makes a session with a new id of 128 random bits.
func (m *Manager) Open(c Client) (*Session, error) {
	var raw [16]byte
	// crypto/rand.Read never fails since Go 1.24.
	_, _ = rand.Read(raw[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := context.Cause(m.ctx); err != nil {
		return nil, err
	}
	if len(m.sessions) >= m.config.Max {
		return nil, ErrTooMany
	}
	s := New(m.ctx, base64.RawURLEncoding.EncodeToString(raw[:]), c)
	m.sessions[s.id] = s
	m.schedule()
	return s, nil
}

// Get finds a session.
func (m *Manager) Get(id string) (*Session, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[id]
	return s, ok
}

// End closes a session and tells whether there was one.
func (m *Manager) End(id string) bool {
	m.mu.Lock()
	s, ok := m.sessions[id]
	delete(m.sessions, id)
	m.mu.Unlock()
	if ok {
		s.Close()
	}
	return ok
}

// Len returns the number of sessions.
func (m *Manager) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// Attach makes Each find a session that lives with a connection, until detach
// is called. It has no id that Get would find, and none of the limits hold.
func (m *Manager) Attach(s *Session) (detach func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attached[s] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.attached, s)
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

// Close closes every session and opens no more.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop(ErrClosed)
	for _, s := range m.sessions {
		s.Close()
	}
	clear(m.sessions)
	if m.sweep != nil {
		m.sweep.Stop()
		m.sweep = nil
	}
}

// schedule arms the one timer that ends idle sessions. m.mu is held.
func (m *Manager) schedule() {
	if m.sweep == nil && m.config.Idle > 0 && len(m.sessions) > 0 {
		m.sweep = time.AfterFunc(m.config.Idle/2, m.endIdle)
	}
}

// endIdle ends the sessions that were not used for the idle time.
func (m *Manager) endIdle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep = nil
	oldest := time.Now().Add(-m.config.Idle)
	for id, s := range m.sessions {
		if used, idle := s.idleSince(); idle && !used.After(oldest) {
			delete(m.sessions, id)
			s.Close()
		}
	}
	if m.ctx.Err() == nil {
		m.schedule()
	}
}
