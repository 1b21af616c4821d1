package session

import (
	"bytes"
	"slices"
)

// outboxSize is how many messages wait for a client that reads slowly, or
// whose stream is not open yet, and outboxBytes how many bytes, before they are
// dropped.
const (
	outboxSize  = 64
	outboxBytes = 4 << 20
)

// maxStreams is how many streams of a session are open at a time.
const maxStreams = 8

// Outbox is an open stream of a session. The session's mu guards it.
type Outbox struct {
	wake   func()   // called when there is a message for it, or it is over
	number uint64   // in the ids of events; 0 until it has one
	queue  [][]byte // what its client has not got yet, oldest first
	over   bool
}

// Listen opens a stream of s. last is the id of the event from which the client
// comes back, "" if it does not; see Missed. wake is called when Next has
// something to tell that it had not before: it must not block, nor use s.
//
// A client may have several streams open, of which one gets each message
// (basic/transports of 2025-03-26 to 2025-11-25, "Multiple Connections"). That
// is the newest. The others stay open in silence: a client that opens a stream
// whenever one ends would otherwise do so for ever, with two of them. What the
// stream before has not taken waits in the new one, and goes back to it when the
// new one ends. Of more than maxStreams the oldest ends. leave must be called
// when the stream ends.
func (s *Session) Listen(last string, wake func()) (out *Outbox, leave func()) {
	out = &Outbox{wake: wake}
	if from, ok := s.own(last); ok {
		out.number = from.stream
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != nil {
		out.over = true
		return out, func() {}
	}
	if newest := s.newest(); newest != nil {
		out.queue, newest.queue = newest.queue, nil
	} else {
		out.queue, s.waiting = s.waiting, nil
	}
	if len(s.open) == maxStreams {
		s.open[0].end()
		s.open = slices.Delete(s.open, 0, 1)
	}
	s.open = append(s.open, out)
	return out, func() { s.endStream(out) }
}

// end tells whoever carries the stream that it is over. s.mu is held.
func (out *Outbox) end() {
	out.over = true
	out.wake()
}

// newest returns the stream that gets the messages, nil if none is open. s.mu
// is held.
func (s *Session) newest() *Outbox {
	if len(s.open) == 0 {
		return nil
	}
	return s.open[len(s.open)-1]
}

// queue returns where messages wait: in the newest stream, or for the next one.
// s.mu is held.
func (s *Session) queue() *[][]byte {
	if out := s.newest(); out != nil {
		return &out.queue
	}
	return &s.waiting
}

// endStream ends a stream. What its client has not got goes to the one before,
// which goes on, or waits for the next.
func (s *Session) endStream(out *Outbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.over = true
	if i := slices.Index(s.open, out); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
	if len(out.queue) == 0 || s.reason != nil {
		return
	}
	queue := s.queue()
	*queue, out.queue = append(out.queue, *queue...), nil
	if next := s.newest(); next != nil {
		next.wake()
	}
}

// endStreams ends all streams, once they have sent what they have.
func (s *Session) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endOpen()
}

// endOpen ends the streams that are open. s.mu is held.
func (s *Session) endOpen() {
	for _, out := range s.open {
		out.end()
	}
	s.open = nil
}

// Send puts a message that belongs to no request on the session's stream, or
// keeps it for the next one. It never blocks: it returns false when the client
// is too far behind and the message is dropped. A message that waits already
// is not queued a second time.
func (s *Session) Send(message []byte) bool {
	if !s.budget.reserve(len(message)) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, queued := s.enqueue(message)
	if !queued {
		s.budget.release(len(message))
	}
	return sent
}

// enqueue is Send for a message that the budget has room for, and tells whether
// the message needed that. s.mu is held.
func (s *Session) enqueue(message []byte) (sent, queued bool) {
	queue := s.queue()
	switch {
	case slices.ContainsFunc(*queue, func(m []byte) bool { return bytes.Equal(m, message) }):
		return true, false
	case s.reason != nil || len(*queue) >= outboxSize || // more, where those of two streams came together
		s.queued+len(message) > outboxBytes:
		return false, false
	}
	*queue = append(*queue, message)
	s.queued += len(message)
	if out := s.newest(); out != nil {
		out.wake()
	}
	return true, true
}

// Next takes the next message from out, and keeps it under the id that it
// returns, which is empty if the session keeps no events. The message is nil if
// none waits; over says then that none will come.
func (s *Session) Next(out *Outbox) (id string, message []byte, over bool) {
	s.mu.Lock()
	if len(out.queue) == 0 {
		out.queue = nil // what it had room for
		over = out.over
		s.mu.Unlock()
		return "", nil, over
	}
	message = out.queue[0]
	out.queue[0] = nil
	out.queue = out.queue[1:]
	var h *history
	if s.reason == nil {
		s.queued -= len(message)
		s.budget.release(len(message))
		h = s.kept()
	}
	if h == nil {
		s.mu.Unlock()
		return "", message, false
	}
	if out.number == 0 {
		out.number = ownStream | h.own
		h.own++
	}
	h.unasked++
	stream, event := out.number, h.unasked
	s.mu.Unlock()
	r, room := s.reserved(stream, message)
	r.event, r.question = event, questionOf(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(r, room)
	return s.idOf(stream, event), message, false
}
