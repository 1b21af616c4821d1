package session

import (
	"bytes"
	"slices"
)

// outboxSize is how many messages wait for a client that reads slowly, and how
// many for one whose stream is not open yet, before they are dropped.
const outboxSize = 64

// Outbox is the open stream of a session. Messages arrive on C; Done is closed
// when the stream is over, as when another has taken its place.
type Outbox struct {
	C    chan []byte
	Done chan struct{}

	sent [][]byte // what went into C; its end is what C still holds
}

// Listen opens the stream of s. A stream that was open before ends: one
// message must never go out on two. What that one has not taken waits in the
// new one. leave must be called when the stream ends.
func (s *Session) Listen() (out *Outbox, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endStreamLocked()
	out = &Outbox{C: make(chan []byte, outboxSize), Done: make(chan struct{})}
	for _, message := range s.waiting {
		out.C <- message
	}
	out.sent, s.waiting = s.waiting, nil
	s.stream = out
	return out, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stream == out {
			s.endStreamLocked()
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
	queue := &s.waiting
	if s.stream != nil {
		s.stream.sent = s.stream.sent[len(s.stream.sent)-len(s.stream.C):]
		queue = &s.stream.sent
	}
	if slices.ContainsFunc(*queue, func(m []byte) bool { return bytes.Equal(m, message) }) {
		return true
	}
	if len(*queue) == outboxSize {
		return false
	}
	if s.stream != nil {
		s.stream.C <- message // has room: nobody else sends
	}
	*queue = append(*queue, message)
	return true
}

// endStream ends the open stream, if there is one.
func (s *Session) endStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endStreamLocked()
}

// endStreamLocked ends the open stream and takes back what nobody has taken
// from it. s.mu is held.
func (s *Session) endStreamLocked() {
	if s.stream == nil {
		return
	}
	close(s.stream.Done)
	for {
		select {
		case message := <-s.stream.C:
			s.waiting = append(s.waiting, message)
		default:
			s.stream = nil
			return
		}
	}
}
