package safely

import (
	"sync"
	"time"
)

// Seldom keeps lines that a peer can cause as often as it likes from filling a log: one
// of a kind in SeldomPause is written. The zero value is ready; it is safe for concurrent
// use. There are as many kinds as the program has names for.
type Seldom struct {
	mu    sync.Mutex
	kinds map[string]*kind
}

// kind is what Seldom has of the lines of a kind.
type kind struct {
	last    time.Time
	skipped int
}

// SeldomPause is how long the log is silent about a kind after a line of it.
const SeldomPause = 10 * time.Second

// Due reports whether it is time for a line of that kind, and how many were skipped since
// the last, which the line has to say.
func (s *Seldom) Due(name string) (skipped int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[name]
	if k == nil {
		if s.kinds == nil {
			s.kinds = make(map[string]*kind)
		}
		k = &kind{}
		s.kinds[name] = k
	}
	now := time.Now()
	if !k.last.IsZero() && now.Sub(k.last) < SeldomPause {
		k.skipped++
		return 0, false
	}
	skipped, k.last, k.skipped = k.skipped, now, 0
	return skipped, true
}
