// Package hub tells subscribers of changes. Whoever publishes a change never
// waits for a subscriber: each has a queue of its own, in which the newest
// change of a topic takes the place of the one before, so that it can never
// hold more than the subscriber's topics.
package hub

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// ErrClosed is the error of joining a hub after Close.
var ErrClosed = errors.New("the server shuts down")

// FullError is the error of joining a hub that has all the subscribers it may.
type FullError struct {
	Max int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the server has %d subscriptions open, which is the limit", e.Max)
}

// Hub is safe for concurrent use. It starts no goroutine.
type Hub struct {
	max   int
	every time.Duration
	done  chan struct{}

	mu     sync.RWMutex // held for writing to join and leave
	topics map[string]map[*Subscriber]struct{}
	quiet  map[*Subscriber]struct{} // who wants beats
	count  int
	closed bool
	beat   *time.Timer // runs while quiet has members; nil else
}

// New returns a Hub for at most so many subscribers at a time, of which those
// that want it get a beat at every interval; 0 means no beats.
func New(max int, every time.Duration) *Hub {
	return &Hub{
		max: max, every: every, done: make(chan struct{}),
		topics: make(map[string]map[*Subscriber]struct{}), quiet: make(map[*Subscriber]struct{}),
	}
}

// Subscriber is told of changes to some topics.
type Subscriber struct {
	hub    *Hub
	topics []string
	wake   chan struct{} // has room for one; filled when there is something to Take

	mu      sync.Mutex
	pending []change
	beat    bool
}

type change struct {
	topic string
	what  *protocol.Change
}

// Join adds a subscriber to topics, none of which may be there twice; beats
// says whether it wants a sign of life at every interval. Leave must be called
// when it goes. The errors are ErrClosed and *FullError.
func (h *Hub) Join(topics []string, beats bool) (*Subscriber, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.count >= h.max {
		return nil, &FullError{h.max}
	}
	h.count++
	s := &Subscriber{hub: h, topics: topics, wake: make(chan struct{}, 1)}
	for _, topic := range topics {
		if h.topics[topic] == nil {
			h.topics[topic] = make(map[*Subscriber]struct{})
		}
		h.topics[topic][s] = struct{}{}
	}
	if beats && h.every > 0 {
		h.quiet[s] = struct{}{}
		if h.beat == nil {
			h.beat = time.AfterFunc(h.every, h.tick)
		}
	}
	return s, nil
}

// Leave takes the subscriber out of its hub.
func (s *Subscriber) Leave() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	for _, topic := range s.topics {
		if delete(h.topics[topic], s); len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
	}
	delete(h.quiet, s)
	if len(h.quiet) == 0 && h.beat != nil {
		h.beat.Stop()
		h.beat = nil
	}
}

// Len returns the number of subscribers.
func (h *Hub) Len() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.count
}

// Publish tells the subscribers of a topic of a change. It does not wait for
// any of them.
func (h *Hub) Publish(topic string, what *protocol.Change) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.topics[topic] {
		s.put(topic, what)
	}
}

// tick gives everybody who wants one a beat.
func (h *Hub) tick() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.beat == nil {
		return // the last one left meanwhile
	}
	h.beat.Reset(h.every)
	for s := range h.quiet {
		s.mu.Lock()
		s.beat = true
		s.mu.Unlock()
		s.rouse()
	}
}

// Close ends every subscription: Done is closed and nobody can join.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
}

// Done is closed when the hub is.
func (h *Hub) Done() <-chan struct{} { return h.done }

// put queues a change, in place of an older one of its topic that waits.
func (s *Subscriber) put(topic string, what *protocol.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.pending {
		if s.pending[i].topic == topic {
			s.pending[i].what = what
			return // it was roused for the older one
		}
	}
	s.pending = append(s.pending, change{topic, what})
	s.rouse()
}

func (s *Subscriber) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // awake already
	}
}

// Wake has an element when there is something to Take.
func (s *Subscriber) Wake() <-chan struct{} { return s.wake }

// Take appends what waits to dst, oldest topic first, and tells whether a beat
// is due. Nothing may wait after all.
func (s *Subscriber) Take(dst []*protocol.Change) (changes []*protocol.Change, beat bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.pending {
		dst = append(dst, c.what)
	}
	clear(s.pending)
	if s.pending = s.pending[:0]; cap(s.pending) > maxKept {
		s.pending = nil
	}
	beat, s.beat = s.beat, false
	return dst, beat
}

// maxKept is the number of changes from which a subscriber gives the memory of
// its queue back.
const maxKept = 16
