package events

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits of asking who receives an event.
const (
	AskTimeout = 5 * time.Second  // how long one call of Asker.Ask may take
	pageTime   = 5 * time.Second  // after it, no further event of a page is asked about
	MaxLeft    = 64               // calls of a type that have not returned in time; at it, no further one begins
	maxUnfit   = 71 * time.Second // age at which an event is passed over whose data does not decode
)

// ErrUnfit is in the chain of an error of Asker.Ask about data that does not decode in this
// version of the program. It may in that of another replica, while a deploy replaces them.
var ErrUnfit = errors.New("its data does not decode in this version of the program")

// errSlow is why an event is not decided about which a call has not returned.
var errSlow = fmt.Errorf("match has not returned within %v", AskTimeout)

// Asker asks whether subscribers receive the events of a type. Its functions may be called
// by many goroutines at once.
type Asker struct {
	// Ask is code of users: it may end its goroutine, or not return. An error means that it
	// cannot be known now.
	Ask  func(event []byte) (yes bool, err error)
	Go   func(func())    // starts a goroutine that the server counts
	Note func(error)     // logs why subscribers do not receive an event
	Left func(n int) int // adds to the calls of Ask of the type that have not returned in time
}

// choice is whether a subscriber receives an event.
type choice struct {
	event Event
	yes   bool
	err   error // why it is not known
}

// Choose returns those of events that a subscriber receives, most at most, and how many
// are decided. err is why the next one is not. The end of the context ends no wait: a
// request counts as running until Ask returns.
func (a *Asker) Choose(ctx context.Context, events []Event, most int) (chosen []Event, decided int, err error) {
	if len(events) == 0 {
		return nil, 0, nil
	}
	if n := a.Left(0); n >= MaxLeft {
		return nil, 0, fmt.Errorf("%d calls of match have not returned", n)
	}
	began, asked := time.Now(), 0
	answered := (&Questions[Event, choice]{
		Go: a.Go, Left: func(_ Event, n int) { a.Left(n) }, Ask: a.choose,
		Next: func() (Event, bool) {
			if err != nil || asked == len(events) || len(chosen) == most || ctx.Err() != nil || asked > 0 && time.Since(began) >= pageTime {
				return Event{}, false
			}
			asked++
			return events[asked-1], true
		},
		Take: func(c choice, _ bool) {
			if err = c.err; err == nil {
				decided++
			}
			if c.yes {
				chosen = append(chosen, c.event)
			}
		},
	}).Run()
	if !answered {
		err = errSlow
	}
	return chosen, decided, err
}

// choose asks about one event.
func (a *Asker) choose(event Event) choice {
	yes, err := a.Ask(event.Text)
	if errors.Is(err, ErrUnfit) && time.Since(time.UnixMicro(int64(event.At))) >= maxUnfit {
		a.Note(fmt.Errorf("an event is left out: %w", err))
		err = nil
	}
	return choice{event, yes && err == nil, err}
}
