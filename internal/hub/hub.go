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

	mu     sync.RWMutex // held for writing to join and leave
	topics map[string]map[*Subscriber]struct{}
	all    map[*Subscriber]struct{}
	closed bool
	beat   *time.Timer // runs while there are subscribers, if there are beats
}

// New returns a Hub for at most so many subscribers at a time, of which those
// that want it get a beat at every interval; 0 means no beats.
func New(max int, every time.Duration) *Hub {
	return &Hub{
		max: max, every: every,
		topics: make(map[string]map[*Subscriber]struct{}), all: make(map[*Subscriber]struct{}),
	}
}

// Subscriber is told of changes to some topics.
type Subscriber struct {
	hub    *Hub
	topics []string
	beats  bool
	wake   func() // told when there is something to Take

	mu      sync.Mutex
	pending []change
	signs   Signs
}

// Signs are what a subscriber is told beside changes.
type Signs uint8

// The signs.
const (
	Beat Signs = 1 << iota // an interval is over
	Over                   // the hub is closed, or End was called
)

type change struct {
	topic string
	what  *protocol.Change
}

// Join adds a subscriber to topics, none of which may be there twice; beats
// says whether it wants a sign of life at every interval. wake is called when
// there is something to Take: it must not block, nor use the Hub. Leave must be
// called when the subscriber goes. The errors are ErrClosed and *FullError.
func (h *Hub) Join(topics []string, beats bool, wake func()) (*Subscriber, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if len(h.all) >= h.max {
		return nil, &FullError{h.max}
	}
	s := &Subscriber{hub: h, topics: topics, beats: beats, wake: wake}
	h.all[s] = struct{}{}
	for _, topic := range topics {
		if h.topics[topic] == nil {
			h.topics[topic] = make(map[*Subscriber]struct{})
		}
		h.topics[topic][s] = struct{}{}
	}
	if h.beat == nil && h.every > 0 {
		h.beat = time.AfterFunc(h.every, h.tick)
	}
	return s, nil
}

// Leave takes the subscriber out of its hub.
func (s *Subscriber) Leave() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, s)
	for _, topic := range s.topics {
		if delete(h.topics[topic], s); len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
	}
	if len(h.all) == 0 && h.beat != nil {
		h.beat.Stop()
		h.beat = nil
	}
}

// End tells the subscriber that it is over.
func (s *Subscriber) End() { s.sign(Over) }

// Len returns the number of subscribers.
func (h *Hub) Len() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.all)
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
	for s := range h.all {
		if s.beats {
			s.sign(Beat)
		}
	}
}

// Close tells every subscriber that it is over, and nobody can join any more.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.all {
		s.sign(Over)
	}
}

// put queues a change, in place of an older one of its topic that waits.
func (s *Subscriber) put(topic string, what *protocol.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.pending {
		if s.pending[i].topic == topic {
			s.pending[i].what = what
			return // it was woken for the older one
		}
	}
	s.pending = append(s.pending, change{topic, what})
	s.wake()
}

func (s *Subscriber) sign(sign Signs) {
	s.mu.Lock()
	s.signs |= sign
	s.mu.Unlock()
	s.wake()
}

// Take appends the changes that wait to dst, oldest topic first, and returns
// what else is to tell. There may be nothing after all.
func (s *Subscriber) Take(dst []*protocol.Change) (changes []*protocol.Change, signs Signs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.pending {
		dst = append(dst, c.what)
	}
	clear(s.pending)
	if s.pending = s.pending[:0]; cap(s.pending) > maxKept {
		s.pending = nil
	}
	signs, s.signs = s.signs, 0
	return dst, signs
}

// maxKept is the number of changes from which a subscriber gives the memory of
// its queue back.
const maxKept = 16
