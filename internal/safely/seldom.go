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
	from    string // of the last line
	skipped Skipped
}

// Skipped is how many lines there were since the last that was written, and how many of
// them came from elsewhere than that one.
type Skipped struct{ Lines, Others int }

// SeldomPause is how long further lines of a kind are skipped after one is
// logged.
const SeldomPause = 10 * time.Second

// Due reports whether it is time for a line of that kind, and what was skipped since the
// last, which the line has to say. from names the peer that has caused it.
func (s *Seldom) Due(name, from string) (skipped Skipped, ok bool) {
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
		k.skipped.Lines++
		if from != k.from {
			k.skipped.Others++
		}
		return Skipped{}, false
	}
	skipped = k.skipped
	k.last, k.from, k.skipped = now, from, Skipped{}
	return skipped, true
}
