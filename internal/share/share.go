// Package share bounds what a server has of something for its clients, in all
// and for each principal, so that none of them can have it all.
package share

import (
	"fmt"
	"sync"
)

// Shares count what is in use, and who has it. They are safe for concurrent use.
type Shares struct {
	what  string // for errors
	limit int    // of all
	own   int    // of a principal; less than 1 means no such limit

	mu    sync.Mutex
	used  int
	of    map[string]int // by principal, of those who have any
	named bool           // whether a client with a name has come
}

// New returns Shares of at most limit of what that names, of which a principal may have own; 0
// means a tenth, at least one, negative no limit. Anonymous clients, who are one
// principal, may have all until the first client with a name comes, and half of
// it from then on.
func New(what string, limit, own int) *Shares {
	if own == 0 {
		own = max(1, limit/10)
	}
	return &Shares{what: what, limit: limit, own: own, of: make(map[string]int)}
}

// FullError is the error of taking what there is no room for.
type FullError struct {
	What  string
	Limit int
	Own   bool // it is the limit of the principal, not that of all
}

func (e *FullError) Error() string {
	if e.Own {
		return fmt.Sprintf("this user has %d %s, which is the limit", e.Limit, e.What)
	}
	return fmt.Sprintf("the server has %d %s, which is the limit", e.Limit, e.What)
}

// Take takes n for a principal, "" for an anonymous client, or returns a
// *FullError. Give must be called with the same when it is used no more.
func (s *Shares) Take(principal string, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named = s.named || principal != ""
	if s.used+n > s.limit {
		return &FullError{What: s.what, Limit: s.limit}
	}
	own := s.own
	switch {
	case principal != "":
	case s.named && s.own > 0:
		own = max(1, s.limit/2)
	default:
		own = 0
	}
	if own > 0 && s.of[principal]+n > own {
		return &FullError{What: s.what, Limit: own, Own: true}
	}
	s.used += n
	s.of[principal] += n
	return nil
}

// Give gives n back that the principal has taken.
func (s *Shares) Give(principal string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	if s.of[principal] -= n; s.of[principal] == 0 {
		delete(s.of, principal)
	}
}
