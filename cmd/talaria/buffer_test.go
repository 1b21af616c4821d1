package main

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"time"
)

// syncBuffer is a buffer that may be written to while it is read. The zero
// value is empty.
type syncBuffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{} // closed at the next write; nil if nobody waits
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// wait waits until something in the buffer matches, and returns it.
func (s *syncBuffer) wait(t *testing.T, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern)
	limit := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		found := match.FindString(s.b.String())
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if found != "" {
			return found
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s does not come: %s", pattern, s.String())
		}
	}
}
