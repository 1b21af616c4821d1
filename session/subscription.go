package session

import "github.com/talaria-go/mcp/protocol"

// uriCost is what one subscription counts in the budget of all sessions.
func uriCost(uri string) int { return 128 + len(uri) }

// countURIs makes subscriptions count in uris from now on, and those that were
// restored as well. Ones for which there is no room are dropped. Nobody else
// has the session yet.
func (s *Session) countURIs(uris *budget) {
	all := s.subscriptions
	s.unsubscribeAll()
	s.uris = uris
	changed := s.changed.Load()
	for uri := range all {
		s.Subscribe(uri, len(all))
	}
	s.changed.Store(changed)
}

// unsubscribeAll forgets all subscriptions. s.mu is held.
func (s *Session) unsubscribeAll() {
	for uri := range s.subscriptions {
		s.uris.release(uriCost(uri))
	}
	s.subscriptions, s.subscribed = nil, 0
}

// Subscribe notes that the client wants to hear of changes to the resource at
// uri. It returns false when the session has max subscriptions already,
// their URIs come to protocol.MaxSubscribed bytes, or those of all sessions to
// Config.Memory.
func (s *Session) Subscribe(uri string, max int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.subscriptions[uri]; ok {
		return true
	}
	if len(s.subscriptions) >= max || s.subscribed+len(uri) > protocol.MaxSubscribed || s.reason != nil || !s.uris.reserve(uriCost(uri)) {
		return false
	}
	if s.subscriptions == nil {
		s.subscriptions = make(map[string]struct{})
	}
	s.subscriptions[uri] = struct{}{}
	s.subscribed += len(uri)
	s.changed.Store(true)
	return true
}

// Unsubscribe notes that it no longer does.
func (s *Session) Unsubscribe(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.subscriptions[uri]; !ok {
		return
	}
	delete(s.subscriptions, uri)
	s.subscribed -= len(uri)
	s.uris.release(uriCost(uri))
	s.changed.Store(true)
}

// Subscribed tells whether it does.
func (s *Session) Subscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscriptions[uri]
	return ok
}
