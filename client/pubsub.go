package client

import (
	"slices"
	"strings"
	"sync"
)

// eventQueue is how many events wait for one subscriber.
const eventQueue = 256

// PubSub gives notifications to whoever subscribed to their topics. One may
// serve many clients. It is safe for concurrent use.
type PubSub struct {
	mu      sync.Mutex
	subs    map[*subscriber]struct{}
	dropped int64
}

type subscriber struct {
	topics
	events chan Event
}

// topics are methods, or beginnings of them followed by *; none means all.
type topics []string

// NewPubSub returns a PubSub without subscribers.
func NewPubSub() *PubSub { return &PubSub{subs: map[*subscriber]struct{}{}} }

// Subscribe returns a channel of the events of these topics. A topic is a
// method, or the beginning of one followed by *; none means all. 256 events may
// wait in the channel; then the oldest make room. cancel ends the subscription
// and closes the channel.
func (p *PubSub) Subscribe(topics ...string) (events <-chan Event, cancel func()) {
	s := &subscriber{topics: slices.Clone(topics), events: make(chan Event, eventQueue)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs[s] = struct{}{}
	return s.events, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, ok := p.subs[s]; ok {
			delete(p.subs, s)
			close(s.events)
		}
	}
}

// Publish gives an event to the subscribers of its topic. It does not wait for
// them.
func (p *PubSub) Publish(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		if !s.wants(e.Method) {
			continue
		}
		for sent := false; !sent; {
			select {
			case s.events <- e:
				sent = true
			default:
				select {
				case <-s.events:
					p.dropped++
				default:
				}
			}
		}
	}
}

// Dropped returns how many events made room for later ones.
func (p *PubSub) Dropped() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

func (t topics) wants(method string) bool {
	if len(t) == 0 {
		return true
	}
	for _, topic := range t {
		if start, ok := strings.CutSuffix(topic, "*"); ok && strings.HasPrefix(method, start) || topic == method {
			return true
		}
	}
	return false
}
