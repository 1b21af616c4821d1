// Package subscriptions keeps the subscriptions of a client to resources, by
// their URIs.
package subscriptions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/client"
)

// ErrRefused is the error of a resource whose changes the server does not tell.
var ErrRefused = errors.New("the server does not tell of changes of this resource")

// Set is a set of subscriptions. The zero value is empty and ready; it is safe
// for concurrent use.
type Set struct {
	mu    sync.Mutex
	byURI map[string]*client.Subscription
}

// Add subscribes to a resource, unless the set has it; added tells whether it has
// it now, and had not before.
func (s *Set) Add(ctx context.Context, c *client.Client, uri string) (added bool, err error) {
	s.mu.Lock()
	old := s.byURI[uri]
	s.mu.Unlock()
	if old != nil && old.Err() == nil {
		return false, nil
	}
	sub, err := c.Listen(ctx, client.Filter{ResourceSubscriptions: []string{uri}}, nil)
	if err != nil {
		return false, err
	}
	if !slices.Contains(sub.Accepted().ResourceSubscriptions, uri) {
		return false, errors.Join(ErrRefused, sub.Close())
	}
	s.mu.Lock()
	if s.byURI == nil {
		s.byURI = map[string]*client.Subscription{}
	}
	other := s.byURI[uri]
	s.byURI[uri] = sub
	s.mu.Unlock()
	if other != nil {
		return false, other.Close() // another goroutine was faster, or it had ended
	}
	return true, nil
}

// Remove ends the subscription to a resource; found is false if there is none.
func (s *Set) Remove(uri string) (found bool, err error) {
	s.mu.Lock()
	sub := s.byURI[uri]
	delete(s.byURI, uri)
	s.mu.Unlock()
	if sub == nil {
		return false, nil
	}
	return true, sub.Close()
}

// URIs returns the resources of the set, sorted.
func (s *Set) URIs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.byURI))
}

// Clear forgets all of them, because their client is closed.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byURI)
}
