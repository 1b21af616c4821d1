package conn

import (
	"sync"

	"github.com/talaria-go/mcp/internal/streamable"
)

// toldStream is the stream of a GET, which is noted when it opens: it may be refused.
// The goroutine of an answer may send on it while that of the GET opens it. Only the
// latter waits for observers: the other one holds a lock of the session.
type toldStream struct {
	*streamable.Events
	note func() *stream
	told bool // that it is open; only the goroutine of the GET uses it

	mu   sync.Mutex
	open *stream // nil before it is
	over bool    // it does not open any more
}

// Open implements core.StreamConn.
func (s *toldStream) Open() error {
	s.opens()
	s.tells()
	return s.Events.Open()
}

// Wait implements core.StreamConn.
func (s *toldStream) Wait() bool {
	s.tells()
	return s.Events.Wait()
}

// Event implements core.EventWriter.
func (s *toldStream) Event(id string, message []byte) error {
	s.opens()
	return s.Events.Event(id, message)
}

// opens notes the stream, the first time.
func (s *toldStream) opens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil && !s.over {
		s.open = s.note()
	}
}

// tells tells of the stream, once it is open.
func (s *toldStream) tells() {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if open != nil && !s.told {
		s.told = true
		open.tellOpened()
	}
}

// leave notes that the stream is over, if it was ever open.
func (s *toldStream) leave(err error) {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.tells()
	if s.open != nil {
		s.open.leave(err)
	}
}
