package conn

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/talaria-go/mcp/frame"
)

// streamSet has the streams that are open at a server, of every kind: so that they
// are counted, told of, end at their age, and end one after the other when the
// server drains. mu guards open and draining, and asked of the streams.
type streamSet struct {
	age  time.Duration // of a stream, about; 0 is any
	tell func(frame.Event)

	mu       sync.Mutex
	open     map[*stream]struct{}
	draining bool // what enters is asked to end at once
}

// The kinds of streams.
const (
	streamSubscription = "subscription" // subscriptions/listen over HTTP
	streamSession      = "session"      // the GET of a legacy session
	streamConnection   = "connection"   // HTTP+SSE, WebSocket and sockets
)

// stream is one that is open, from enter until leave.
type stream struct {
	set   *streamSet
	event frame.Event
	began time.Time
	timer *time.Timer
	// end asks the stream to end, with the time at which its client reconnects, if
	// that can be sent. It does not wait.
	end   func(retry time.Duration)
	late  bool // the others were asked to end when it was noted
	asked bool
}

// enter notes a stream that opens, and tells of it. leave must be called once, when
// it is over.
func (s *streamSet) enter(kind string, via frame.Transport, id string, end func(retry time.Duration)) *stream {
	one := s.note(kind, via, id, end)
	one.tellOpened()
	return one
}

// note notes a stream that opens; tellOpened reports that it is open. It does
// not wait.
func (s *streamSet) note(kind string, via frame.Transport, id string, end func(retry time.Duration)) *stream {
	one := &stream{set: s, event: frame.Event{Reason: kind, Transport: via, ID: id}, began: time.Now(), end: end}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*stream]struct{})
	}
	s.open[one] = struct{}{}
	if s.age > 0 {
		one.timer = time.AfterFunc(s.age*9/10+rand.N(s.age/5+1), func() { one.ask(aged) })
	}
	one.late = s.draining
	return one
}

// tellOpened reports that the stream is open, and asks it to end if the others
// were already.
func (one *stream) tellOpened() {
	opened := one.event
	opened.Kind = "stream.opened"
	one.set.tell(opened)
	if one.late {
		one.ask(time.Millisecond + rand.N(comeBack))
	}
}

// ask asks the stream to end, unless that was done.
func (one *stream) ask(retry time.Duration) {
	one.set.mu.Lock()
	asked := one.asked
	one.asked = true
	one.set.mu.Unlock()
	if !asked {
		one.end(retry)
	}
}

// leave notes that the stream is over.
func (one *stream) leave(err error) {
	s := one.set
	s.mu.Lock()
	delete(s.open, one)
	if one.timer != nil {
		one.timer.Stop()
	}
	s.mu.Unlock()
	ended := one.event
	ended.Kind, ended.Duration, ended.Err = "stream.ended", time.Since(one.began), err
	s.tell(ended)
}

// count returns how many there are.
func (s *streamSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// those returns the streams that were not asked to end. Those that enter from now
// on are by enter, so that none is missed.
func (s *streamSet) those() (list []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for one := range s.open {
		if !one.asked {
			list = append(list, one)
		}
	}
	return list
}

// endRate is how many streams end in a second if no time is given. Each is asked to
// reconnect at a different time within comeBack, or longer if they are many for the
// time. They are checked every beat.
const endRate = 2000

// drain asks all streams to end, evenly over the time that there is until the
// deadline of ctx; the rest at once when ctx ends before.
func (s *streamSet) drain(ctx context.Context) {
	list := s.those()
	least := time.Duration(len(list)) * time.Second / endRate
	took := least
	if deadline, ok := ctx.Deadline(); ok {
		took = time.Until(deadline)
		took -= min(took/10, beat*10) // or the last ones would end with it
	}
	spread := max(time.Second, min(comeBack, comeBack-took), least-took)
	began := time.Now()
	for i := 0; i < len(list); {
		due := len(list)
		if since := time.Since(began) + beat; since < took && ctx.Err() == nil {
			due = int(float64(len(list)) * float64(since) / float64(took))
		}
		for ; i < due; i++ {
			list[i].ask(time.Millisecond + rand.N(spread))
		}
		if i < len(list) {
			pause(ctx, nil, beat) // the rest ends at once when ctx does
		}
	}
}
