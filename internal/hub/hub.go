// Package hub tells subscribers of changes. Whoever publishes a change never
// waits for a subscriber: each has a queue of its own, in which the newest
// change of a topic takes the place of the one before, so that it can never
// hold more than the subscriber's topics.
package hub

import (
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/protocol"
)

// ErrClosed is the error of joining a hub after Close.
var ErrClosed = errors.New("the server shuts down")

// Hub is safe for concurrent use. It starts no goroutine.
type Hub struct {
	every time.Duration
	many  *share.Shares // subscribers
	bytes *share.Shares // of their topics

	mu     sync.RWMutex // held for writing to join and leave
	topics map[string]map[*Subscriber]struct{}
	all    map[*Subscriber]struct{}
	closed bool
	beat   *time.Timer // runs while there are subscribers, if there are beats
}

// New returns a Hub for at most so many subscribers at a time, and own of one
// principal (see share.New), of which those that want it get a beat at every
// interval; 0 means no beats.
func New(max, own int, every time.Duration) *Hub {
	return &Hub{
		every: every, many: share.New("subscriptions open", max, own), bytes: share.New("bytes of what subscriptions name", MaxTopics, min(own, 0)),
		topics: make(map[string]map[*Subscriber]struct{}), all: make(map[*Subscriber]struct{}),
	}
}

// MaxTopics is how many bytes the topics of all subscribers may have, and those
// of one principal a tenth of them. Each topic counts topicCost beside its name.
const (
	MaxTopics = 128 << 20
	topicCost = 512
)

// Subscriber is told of changes to some topics.
type Subscriber struct {
	hub  *Hub
	join Join

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

// Join is what a subscriber wants.
type Join struct {
	Owner  string   // the principal, "" for an anonymous client
	Topics []string // none of them twice
	Beats  bool     // a sign of life at every interval
	// Wake is called when there is something to Take: it must not block, nor use
	// the Hub.
	Wake func()
	// May tells whether changes of a topic may be taken now; nil means yes. It is
	// called by Take.
	May func(topic string) bool
}

// Join adds a subscriber. Leave must be called when it goes. The errors are
// ErrClosed, and that there is no room.
func (h *Hub) Join(join Join) (*Subscriber, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if err := h.many.Take(join.Owner, 1); err != nil {
		return nil, err
	}
	if err := h.bytes.Take(join.Owner, join.cost()); err != nil {
		h.many.Give(join.Owner, 1)
		return nil, err
	}
	s := &Subscriber{hub: h, join: join}
	h.all[s] = struct{}{}
	for _, topic := range join.Topics {
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

// cost returns what the topics count.
func (j *Join) cost() (bytes int) {
	for _, topic := range j.Topics {
		bytes += len(topic) + topicCost
	}
	return bytes
}

// Leave takes the subscriber out of its hub.
func (s *Subscriber) Leave() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.all[s]; !ok {
		return
	}
	for _, topic := range s.join.Topics {
		if delete(h.topics[topic], s); len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
	}
	delete(h.all, s)
	h.many.Give(s.join.Owner, 1)
	h.bytes.Give(s.join.Owner, s.join.cost())
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

// Publish tells the subscribers of a topic of a change, and whether there are
// any. It does not wait for them.
func (h *Hub) Publish(topic string, what *protocol.Change) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.topics[topic] {
		s.put(topic, what)
	}
	return len(h.topics[topic]) > 0
}

// End tells those subscribers that they are over whose topics are such.
func (h *Hub) End(such func(topics []string) bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.all {
		if such(s.join.Topics) {
			s.sign(Over)
		}
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
		if s.join.Beats {
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
	s.join.Wake()
}

func (s *Subscriber) sign(sign Signs) {
	s.mu.Lock()
	s.signs |= sign
	s.mu.Unlock()
	s.join.Wake()
}

// Take appends the changes that wait to dst, oldest topic first, and returns
// what else is to tell. There may be nothing after all.
func (s *Subscriber) Take(dst []*protocol.Change) (changes []*protocol.Change, signs Signs) {
	if s.join.May == nil {
		return s.take(dst)
	}
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	signs, s.signs = s.signs, 0
	s.mu.Unlock()
	for _, c := range pending {
		if s.join.May(c.topic) {
			dst = append(dst, c.what)
		}
	}
	return dst, signs
}

// take is Take for who may take all.
func (s *Subscriber) take(dst []*protocol.Change) (changes []*protocol.Change, signs Signs) {
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
