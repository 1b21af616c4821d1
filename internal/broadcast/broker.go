// Package broadcast tells subscribers of changes. Whoever publishes a change never
// waits for a subscriber: each has a queue of its own, in which the newest
// change of a topic takes the place of the one before, so that it can never
// hold more than the subscriber's topics.
package broadcast

import (
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/protocol"
)

// ErrClosed is the error of joining a Broker after Close.
var ErrClosed = errors.New("the server shuts down")

// Broker is safe for concurrent use. It starts no goroutine.
type Broker struct {
	every time.Duration
	many  *share.Shares // subscribers
	bytes *share.Shares // of their topics

	mu     sync.RWMutex // held for writing to join and leave
	topics map[string]map[*Subscriber]struct{}
	all    map[*Subscriber]struct{}
	closed bool
	timer  *time.Timer // runs while there are subscribers, if there is an interval
}

// New returns a Broker for at most so many subscribers at a time, and own of one
// principal (see share.New), of which those that want it are told at every
// interval to send a sign of life; 0 means never.
func New(max, own int, every time.Duration) *Broker {
	return &Broker{
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
	broker *Broker
	join   Join

	mu      sync.Mutex
	pending []change
	signs   Signs
}

// Signs are what a subscriber is told beside changes.
type Signs uint8

// The signs.
const (
	KeepAlive Signs = 1 << iota // an interval is over
	Over                        // the Broker is closed, or End was called
)

type change struct {
	topic string
	what  *protocol.Change
}

// Join is what a subscriber wants.
type Join struct {
	Owner     string   // the principal, "" for an anonymous client
	Topics    []string // none of them twice
	KeepAlive bool     // a sign of life at every interval
	// Wake is called when there is something to Take: it must not block, nor use
	// the Broker.
	Wake func()
	// May tells whether changes of a topic may be taken now; nil means yes. It is
	// called by Take.
	May func(topic string) bool
}

// Join adds a subscriber. Leave must be called when it goes. The errors are
// ErrClosed, and that there is no room.
func (b *Broker) Join(join Join) (*Subscriber, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	if err := b.many.Take(join.Owner, 1); err != nil {
		return nil, err
	}
	if err := b.bytes.Take(join.Owner, join.cost()); err != nil {
		b.many.Give(join.Owner, 1)
		return nil, err
	}
	s := &Subscriber{broker: b, join: join}
	b.all[s] = struct{}{}
	for _, topic := range join.Topics {
		if b.topics[topic] == nil {
			b.topics[topic] = make(map[*Subscriber]struct{})
		}
		b.topics[topic][s] = struct{}{}
	}
	if b.timer == nil && b.every > 0 {
		b.timer = time.AfterFunc(b.every, b.tick)
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

// Leave takes the subscriber out of its Broker.
func (s *Subscriber) Leave() {
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.all[s]; !ok {
		return
	}
	for _, topic := range s.join.Topics {
		if delete(b.topics[topic], s); len(b.topics[topic]) == 0 {
			delete(b.topics, topic)
		}
	}
	delete(b.all, s)
	b.many.Give(s.join.Owner, 1)
	b.bytes.Give(s.join.Owner, s.join.cost())
	if len(b.all) == 0 && b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// End tells the subscriber that it is over.
func (s *Subscriber) End() { s.sign(Over) }

// Len returns the number of subscribers.
func (b *Broker) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.all)
}

// Publish tells the subscribers of a topic of a change, and whether there are
// any. It does not wait for them.
func (b *Broker) Publish(topic string, what *protocol.Change) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.topics[topic] {
		s.put(topic, what)
	}
	return len(b.topics[topic]) > 0
}

// End tells those subscribers that they are over whose topics are such.
func (b *Broker) End(such func(topics []string) bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.all {
		if such(s.join.Topics) {
			s.sign(Over)
		}
	}
}

// tick tells everybody who wants to know that an interval is over.
func (b *Broker) tick() {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.timer == nil {
		return // the last one left meanwhile
	}
	b.timer.Reset(b.every)
	for s := range b.all {
		if s.join.KeepAlive {
			s.sign(KeepAlive)
		}
	}
}

// Close tells every subscriber that it is over, and nobody can join any more.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for s := range b.all {
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
