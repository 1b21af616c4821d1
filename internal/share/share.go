// Package share bounds what a server keeps for its clients, in total and for
// each principal, so that none of them can have all of it. Sessions,
// subscriptions, tasks and connections are counted with it.
//
// The rule for anonymous clients, who are one principal, is that they may have
// everything as long as no client with a name has come, and half of it from
// then on: a server without authorization has only them.
package share

import (
	"fmt"
	"sync"
)

// Shares counts what is in use, and by whom. It is safe for concurrent use. mu
// guards the fields below it.
type Shares struct {
	what  string // for errors
	limit int    // of all
	own   int    // of a principal; less than 1 means no such limit

	mu    sync.Mutex
	used  int
	of    map[string]int // by principal, of those who have any
	named bool           // whether a client with a name has come
}

// New returns Shares of up to limit, of which a principal may have own. what
// names them in errors. An own of 0 means a tenth of limit, at least one; a
// negative one means no limit for a principal.
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

// Error says which limit has been reached.
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
