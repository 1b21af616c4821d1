package session

// Len returns the number of sessions.
func (m *Manager) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// ownsStream reports whether a stream here receives the messages of the session.
func (s *Session) ownsStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbox.state == reading
}
