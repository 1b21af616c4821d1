// Package share bounds what a server keeps for its clients, in total and for
// each principal, so that none of them can have all of it. Sessions,
// subscriptions, tasks and connections are counted with it.
//
// Anonymous clients are one principal. They may have everything as long as no
// client with a name has come, since a server without authorization has only
// them; Anonymous says what they may have from then on.
//
// The caller chooses the unit: places, or bytes. Shares only count. They hold
// nothing, wait for nothing and start no goroutines; a caller that finds no
// room refuses, or ends something of its own and tries again.
package share

import (
	"fmt"
	"sync"
)

// Shares counts what is in use by each principal. It is safe for concurrent
// use. mu guards the fields below it.
type Shares struct {
	what      string // for errors
	limit     int    // of all
	own       int    // of a principal; less than 1 means no such limit
	anonymous Anonymous

	mu    sync.Mutex
	used  int
	of    map[string]int // by principal, of those who have any
	named bool           // whether a client with a name has come
}

// Anonymous says what anonymous clients may have, who are one principal. It does
// not matter where principals have no limit.
type Anonymous int

// Each may use all until the first client with a name comes.
const (
	Half   Anonymous = iota // half of all from then on
	Same                    // what any other principal may have from then on
	Always                  // all from then on, too
)

// New returns Shares of up to limit, of which a principal may have own. what
// names them in errors. An own of 0 means a tenth of limit, at least one; a
// negative one means no limit for a principal.
func New(what string, limit, own int, anonymous Anonymous) *Shares {
	if own == 0 {
		own = max(1, limit/10)
	}
	return &Shares{what: what, limit: limit, own: own, anonymous: anonymous, of: make(map[string]int)}
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
		return fmt.Sprintf("this user has %d %s, the limit", e.Limit, e.What)
	}
	return fmt.Sprintf("the server has %d %s, the limit", e.Limit, e.What)
}

// Take takes n for a principal, "" for an anonymous client; full is not nil, and
// nothing is taken, if there is no room. Where both limits are reached, it names
// that of all. Give must be called with the same when it is used no more.
func (s *Shares) Take(principal string, n int) (full *FullError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named = s.named || principal != ""
	own := s.own
	switch {
	case principal != "" || s.own < 1:
	case !s.named || s.anonymous == Always:
		own = 0
	case s.anonymous == Half:
		own = max(1, s.limit/2)
	}
	switch {
	case s.used+n > s.limit:
		return &FullError{What: s.what, Limit: s.limit}
	case own > 0 && s.of[principal]+n > own:
		return &FullError{What: s.what, Limit: own, Own: true}
	}
	s.used += n
	s.of[principal] += n
	return nil
}

// Of returns how much a principal has.
func (s *Shares) Of(principal string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[principal]
}

// Used returns how much is taken in total.
func (s *Shares) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
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
