package conn

import (
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/internal/wire"
)

// ErrBrokerClosed is returned by Join after Close.
var ErrBrokerClosed = errors.New("the server shuts down")

// Broker passes changes from the parts of a server to the subscriptions of modern
// clients. It is open until Close. It is safe for concurrent use and starts no
// goroutine except that of its timer, which runs while there are subscribers.
//
// Publishing never waits for a subscriber. In its queue the newest change of a topic
// replaces the one before it, so that a slow client misses intermediate changes and
// never the last one. A subscriber is woken through a function, not a channel:
// thousands of subscriptions wait without a goroutine.
//
// Broker.mu is taken before Subscriber.mu. Interest may be called with the first held,
// and must not block nor use the Broker. Subscribing.Wake may be called with either
// held and must neither block nor call back; Subscribing.May is called with none held.
type Broker struct {
	// Interest, if not nil, is called with a topic when its first subscriber
	// joins, and when its last one leaves. It must be set before there are any.
	Interest func(topic string, wanted bool)

	every time.Duration
	many  *share.Shares // subscribers
	bytes *share.Shares // of their topics

	mu     sync.RWMutex // held for writing to join and leave
	topics map[string]map[*Subscriber]struct{}
	all    map[*Subscriber]struct{}
	closed bool
	timer  *time.Timer // runs while there are subscribers, if there is an interval
}

// NewBroker returns a Broker for at most max subscribers at a time, and own of one
// principal (see share.New). Every interval those that want it must send a sign
// of life; 0 means never.
func NewBroker(max, own int, every time.Duration) *Broker {
	return &Broker{
		every: every, many: share.New("subscriptions open", max, own, share.Half), bytes: share.New("bytes of what subscriptions name", MaxTopics, min(own, 0), share.Half),
		topics: make(map[string]map[*Subscriber]struct{}), all: make(map[*Subscriber]struct{}),
	}
}

// MaxTopics limits the bytes of the topics of all subscribers; one principal
// can use a tenth of that. Each topic also counts topicCost, for the maps that
// it is kept in.
const (
	MaxTopics = 128 << 20
	topicCost = 512
)

// Subscriber is notified of changes to its topics from Join until Leave. It is
// safe for concurrent use, but only one goroutine should call Take.
type Subscriber struct {
	broker *Broker
	join   Subscribing

	mu      sync.Mutex
	pending []change
	signs   Signs
}

// Signs is a set of notifications of a subscriber other than changes.
type Signs uint8

// The signs.
const (
	KeepAlive Signs = 1 << iota // an interval is over
	Over                        // the Broker is closed, or End was called
)

// change is one entry in the queue of a subscriber.
type change struct {
	topic string
	what  *wire.Change
}

// Subscribing is what a subscriber wants.
type Subscribing struct {
	Owner     string   // the principal, "" for an anonymous client
	Topics    []string // none of them twice
	KeepAlive bool     // a sign of life at every interval
	// Wake is called when there is something to Take: it must not block, nor use
	// the Broker.
	Wake func()
	// May reports whether changes of a topic may be taken now; nil means yes. It
	// is called by Take.
	May func(topic string) bool
}

// Join adds a subscriber, for which Leave must be called when it goes. It fails
// with ErrBrokerClosed, or with an error of package share, whose text is for the
// client, if there is no room.
func (b *Broker) Join(join Subscribing) (*Subscriber, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrBrokerClosed
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
			b.interest(topic, true)
		}
		b.topics[topic][s] = struct{}{}
	}
	if b.timer == nil && b.every > 0 {
		b.timer = time.AfterFunc(b.every, b.tick)
	}
	return s, nil
}

// cost returns what the topics count for against MaxTopics.
func (j *Subscribing) cost() (bytes int) {
	for _, topic := range j.Topics {
		bytes += len(topic) + topicCost
	}
	return bytes
}

// Leave removes the subscriber from its Broker. It may be called again. Changes
// that still wait can be taken.
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
			b.interest(topic, false)
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

// interest tells Interest. b.mu is held.
func (b *Broker) interest(topic string, wanted bool) {
	if b.Interest != nil {
		b.Interest(topic, wanted)
	}
}

// End tells the subscriber that its subscription is over. It stays in the
// Broker until Leave.
func (s *Subscriber) End() { s.sign(Over) }

// Len returns the number of subscribers.
func (b *Broker) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.all)
}

// Publish tells the subscribers of a topic of a change and reports whether
// there are any. It keeps what, which must not change any more.
func (b *Broker) Publish(topic string, what *wire.Change) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.topics[topic] {
		s.put(topic, what)
	}
	return len(b.topics[topic]) > 0
}

// End notifies all subscribers with topics for which such returns true that
// they are over. such must not use the Broker.
func (b *Broker) End(such func(topics []string) bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for s := range b.all {
		if such(s.join.Topics) {
			s.sign(Over)
		}
	}
}

// tick tells every subscriber that wants it that an interval has passed, and
// starts the timer again.
func (b *Broker) tick() {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.timer == nil {
		return // the last one left in the meantime
	}
	b.timer.Reset(b.every)
	for s := range b.all {
		if s.join.KeepAlive {
			s.sign(KeepAlive)
		}
	}
}

// Close tells every subscriber that it is over, and makes Join fail from then
// on. It may be called again.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for s := range b.all {
		s.sign(Over)
	}
}

// put queues a change, or replaces the waiting one of the same topic, for which
// the subscriber has been woken already.
func (s *Subscriber) put(topic string, what *wire.Change) {
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

// sign adds to the signs and wakes the subscriber.
func (s *Subscriber) sign(sign Signs) {
	s.mu.Lock()
	s.signs |= sign
	s.mu.Unlock()
	s.join.Wake()
}

// Take appends the changes that wait to dst, in the order in which their topics
// were first changed, and returns the signs. There may be neither: a wake-up
// can come without reason. With Subscribing.May, which decides at this moment, changes
// that the client may not see are dropped.
func (s *Subscriber) Take(dst []*wire.Change) (changes []*wire.Change, signs Signs) {
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

// take is Take for a subscriber without Subscribing.May. It keeps the memory of the
// queue, unless that has grown large.
func (s *Subscriber) take(dst []*wire.Change) (changes []*wire.Change, signs Signs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.pending {
		dst = append(dst, c.what)
	}
	clear(s.pending)
	if s.pending = s.pending[:0]; cap(s.pending) > maxPendingKept {
		s.pending = nil
	}
	signs, s.signs = s.signs, 0
	return dst, signs
}

// maxPendingKept is the number of changes beyond which a subscriber does not keep the
// memory of its queue.
const maxPendingKept = 16
