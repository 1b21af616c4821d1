package session

import "bytes"

// outboxSize is how many messages wait for a client that reads slowly, and how
// many for one whose stream is not open yet, before they are dropped.
const outboxSize = 64

// Outbox is the open stream of a session. Messages arrive on C; Done is closed
// when another stream has taken its place.
type Outbox struct {
	C    chan []byte
	Done chan struct{}
}

// Listen opens the stream of s. A stream that was open before ends: one
// message must never go out on two. leave must be called when the stream ends.
func (s *Session) Listen() (out *Outbox, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		close(s.stream.Done)
	}
	out = &Outbox{C: make(chan []byte, outboxSize), Done: make(chan struct{})}
	for _, message := range s.waiting {
		out.C <- message
	}
	s.waiting = nil
	s.stream = out
	return out, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stream == out {
			s.stream = nil
		}
	}
}

// Send puts a message that belongs to no request on the session's stream, or
// keeps it for the next one. It never blocks: it returns false when the client
// is too far behind and the message is dropped. A message that waits already
// is not queued a second time.
func (s *Session) Send(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		select {
		case s.stream.C <- message:
			return true
		default:
			return false
		}
	}
	for _, m := range s.waiting {
		if bytes.Equal(m, message) {
			return true
		}
	}
	if len(s.waiting) == outboxSize {
		return false
	}
	s.waiting = append(s.waiting, message)
	return true
}

// endStream ends the open stream, if there is one.
func (s *Session) endStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		close(s.stream.Done)
		s.stream = nil
	}
}
