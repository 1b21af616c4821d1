package mcp

import "slices"

// Unmount takes back what Mount did with the same arguments: what s offers of
// child's goes, and nothing of child's comes any more. Calls that are under way
// end as they would. It tells whether child was mounted under prefix.
func (s *Server) Unmount(prefix string, child *Server) bool {
	if prefix != "" {
		prefix += "."
	}
	s.adding.Lock()
	at := slices.IndexFunc(s.mounts, func(m *mount) bool { return m.child == child && m.prefix == prefix })
	if at < 0 {
		s.adding.Unlock()
		return false
	}
	m := s.mounts[at]
	s.mounts = slices.Delete(s.mounts, at, at+1)
	s.adding.Unlock()
	m.end()
	child.family.leave(s)
	return true
}

// end takes everything back. What the child has begun to tell finds that.
func (m *mount) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.unwatch()
	m.parent.adding.Lock()
	defer m.parent.adding.Unlock()
	m.tools.clear()
	m.resources.clear()
	m.templates.clear()
	m.prompts.clear()
}

// unwatch makes the child tell no more. m.mu is held.
func (m *mount) unwatch() {
	for _, stop := range m.stop {
		stop()
	}
	m.stop = nil
}

// clear takes back what is mounted, but not what stands in its place.
func (b *branch[E]) clear() {
	keys := make([]string, 0, len(b.here))
	for key, source := range b.here {
		if e, ok := b.to.Get(key); ok && e == source.grafted {
			keys = append(keys, key)
		}
	}
	b.to.Remove(keys...)
	b.here = nil
}
