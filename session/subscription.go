package session

import "github.com/talaria-go/mcp/protocol"

// Subscribe notes that the client wants to hear of changes to the resource at
// uri. It returns false when the session has max subscriptions already, or
// their URIs come to protocol.MaxSubscribed bytes.
func (s *Session) Subscribe(uri string, max int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.subscriptions[uri]; ok {
		return true
	}
	if len(s.subscriptions) >= max || s.subscribed+len(uri) > protocol.MaxSubscribed {
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
	s.changed.Store(true)
}

// Subscribed tells whether it does.
func (s *Session) Subscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscriptions[uri]
	return ok
}
