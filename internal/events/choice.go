package events

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of asking who receives an event.
const (
	AskTimeout = 5 * time.Second  // how long one call of Asker.Ask may take
	pageTime   = 5 * time.Second  // after it, no further event of a page is asked about
	maxLeft    = 64               // calls of a type that do not return; further choices fail at once
	maxUnfit   = 71 * time.Second // age at which an event is passed over whose data does not decode
)

// ErrUnfit is in the chain of an error of Asker.Ask about data that does not decode in this
// version of the program. It may in that of another replica, while a deploy replaces them.
var ErrUnfit = errors.New("its data does not decode in this version of the program")

// Asker asks whether subscribers receive the events of a type. Its functions may be called
// by many goroutines at once.
type Asker struct {
	// Ask is code of users: it may end its goroutine, or not return. An error means that it
	// cannot be known now.
	Ask  func(event []byte) (yes bool, err error)
	Go   func(func())  // starts a goroutine that the server counts
	Note func(error)   // logs why subscribers do not receive an event
	Left *atomic.Int64 // calls of Ask of the type that outlasted their Choose
}

// choice is the events of a page that one subscriber receives. It runs on a goroutine of
// its own, which asks about one event after the other; mu guards the fields below it,
// between that goroutine and the one that waits.
type choice struct {
	*Asker
	ctx   context.Context
	most  int // events that are wanted
	began time.Time

	mu      sync.Mutex
	events  []Event   // nil when Choose has returned, as Ask may not
	chosen  []Event   // those that the subscriber receives
	asked   int       // events that Ask was called for
	since   time.Time // when it was last called
	decided int       // events of which is known whether the subscriber receives them
	err     error     // why the next one is not decided
	over    bool      // Choose has returned
	ended   bool      // the goroutine asks no more
}

// Choose returns those of events that a subscriber receives, most at most, and how many
// are decided. err is why the next one is not.
func (a *Asker) Choose(ctx context.Context, events []Event, most int) (chosen []Event, decided int, err error) {
	if len(events) == 0 {
		return nil, 0, nil
	}
	if n := a.Left.Load(); n >= maxLeft {
		return nil, 0, fmt.Errorf("%d calls of match have not returned", n)
	}
	c := &choice{Asker: a, ctx: ctx, most: most, began: time.Now(), events: events}
	done := make(chan struct{})
	a.Go(func() { c.run(done) })
	c.wait(done)
	return c.leave()
}

// wait returns when done is closed, or one call of Ask has used up its time. The end of
// the context ends no wait: a request counts as running until Ask returns.
func (c *choice) wait(done <-chan struct{}) {
	timer := time.NewTimer(AskTimeout)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			c.mu.Lock()
			rest := time.Until(c.since.Add(AskTimeout))
			c.mu.Unlock()
			if rest <= 0 {
				return
			}
			timer.Reset(rest)
		}
	}
}

// leave ends the choice, and returns what is decided and why the next event is not. A call
// that does not return keeps nothing but its own event.
func (c *choice) leave() (chosen []Event, decided int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chosen, decided, err = c.chosen, c.decided, c.err
	c.over, c.events, c.chosen = true, nil, nil
	if !c.ended {
		c.Left.Add(1)
		err = fmt.Errorf("match has not returned within %v", AskTimeout)
	}
	return chosen, decided, err
}

// run asks until nothing is left, and closes done. If Ask ends the goroutine, another one
// continues.
func (c *choice) run(done chan struct{}) {
	finished := false
	defer func() {
		if finished {
			c.end()
			close(done)
			return
		}
		c.decide(Event{}, false, nil)
		c.Go(func() { c.run(done) })
	}()
	for event := c.next(); event.Text != nil; event = c.next() {
		yes, err := c.Ask(event.Text)
		if errors.Is(err, ErrUnfit) && time.Since(time.UnixMicro(int64(event.At))) >= maxUnfit {
			c.Note(fmt.Errorf("an event is left out: %w", err))
			err = nil
		}
		c.decide(event, yes && err == nil, err)
	}
	finished = true
}

// end notes that the goroutine asks no more.
func (c *choice) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.over {
		c.Left.Add(-1)
	}
}

// next returns the next event to ask about, without a text if there is none.
func (c *choice) next() Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.over || c.err != nil || c.asked == len(c.events) || len(c.chosen) == c.most || c.ctx.Err() != nil || c.asked > 0 && now.Sub(c.began) >= pageTime {
		return Event{}
	}
	c.asked++
	c.since = now
	return c.events[c.asked-1]
}

// decide notes the answer of Ask.
func (c *choice) decide(event Event, yes bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over: // the page is sent
	case err != nil:
		c.err = err
	case yes:
		c.chosen = append(c.chosen, event)
		fallthrough
	default:
		c.decided++
	}
}
