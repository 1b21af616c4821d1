package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// drain drains, and shuts down, a replica that has all streams, whose clients come back at the
// others.
func drain(o options, r *report) error {
	var err error
	if o.drained, err = affordable(o.drained, r); err != nil {
		return err
	}
	for _, sessions := range []bool{true, false} {
		if err := drainOf(o, r, sessions); err != nil {
			return err
		}
	}
	return nil
}

// herd are streams whose clients come back when they end.
type herd struct {
	others  fleet
	all     []*stream
	next    atomic.Int64
	refused atomic.Int64
	told    atomic.Int64 // streams that have received the change of the list of tools
	over    atomic.Bool

	mu   sync.Mutex
	away []time.Duration // how long each client was without stream
	back []time.Time     // when each was back
	errs []error
}

// live reads a stream until it ends, and opens it again at another replica.
func (h *herd) live(s *stream) {
	s.read()
	s.close()
	ended := time.Now()
	for !h.over.Load() {
		time.Sleep(s.retry)
		err := s.open(h.others[h.next.Add(1)%int64(len(h.others))].addr)
		if errors.Is(err, errRefused) {
			h.refused.Add(1)
			continue
		}
		h.mu.Lock()
		h.away, h.back, h.errs = append(h.away, time.Since(ended)), append(h.back, time.Now()), append(h.errs, err)
		h.mu.Unlock()
		if err == nil {
			s.read()
		}
		return
	}
}

func (h *herd) returned() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.back)
}

// drainOf is drain for the streams of sessions, or for subscriptions.
func drainOf(o options, r *report, sessions bool) error {
	e, f, stop, err := startAll(o.replicas)
	if err != nil {
		return err
	}
	defer stop()
	what := "streams of sessions"
	ids := make([]string, o.drained)
	if !sessions {
		what = "subscriptions"
	} else if ids, err = openSessions(f, o.drained); err != nil {
		return err
	}
	h := &herd{others: f[1:]}
	defer func() {
		h.over.Store(true)
		for _, s := range h.all {
			s.close()
		}
	}()
	for _, id := range ids {
		h.all = append(h.all, &stream{session: id, heard: func(_ *stream, c change, _ time.Time) { h.told.Add(1) }})
	}
	var living sync.WaitGroup
	err = each(len(h.all), func(i int) error {
		if err := retry(func() error { return h.all[i].open(f[0].addr) }); err != nil {
			return err
		}
		living.Go(func() { h.live(h.all[i]) })
		return nil
	})
	if err != nil {
		return err
	}
	r.title("a replica with %d %s shuts down; %.0f MiB are resident in it", o.drained, what, float64(f[0].stats().Resident)/(1<<20))
	time.Sleep(5 * time.Second) // all is quiet
	begun, cpu := time.Now(), e.stats().cpu
	if _, err := f[0].ask("end", nil); err != nil {
		return err
	}
	busiest := 0.0
	for at, before := begun, cpu; h.returned() < len(h.all); {
		time.Sleep(time.Second)
		now, used := time.Now(), e.stats().cpu
		busiest = max(busiest, (used-before)/float64(now.Sub(at).Microseconds()))
		at, before = now, used
		if now.Sub(begun) > 4*time.Minute {
			return fmt.Errorf("%d of %d streams are back after %v", h.returned(), len(h.all), now.Sub(begun))
		}
	}
	if err := errors.Join(h.errs...); err != nil {
		return err
	}
	took := slices.MaxFunc(h.back, time.Time.Compare).Sub(begun)
	slices.Sort(h.away)
	r.say("a client is without stream for %v, half of them; %v, 99 of 100; %v at most", h.away[len(h.away)/2].Round(time.Millisecond),
		h.away[len(h.away)*99/100].Round(time.Millisecond), h.away[len(h.away)-1].Round(time.Millisecond))
	r.say("the engine uses %.1f s of processor time", (e.stats().cpu-cpu)/1e6)
	r.limit("%% of a processor for the engine, in the second where it has most to do: %.1f", 100*busiest, maxDrainEngine)
	r.limit("streams that are refused: %.0f", float64(h.refused.Load()), 0)
	r.limit("s until all streams are back: %.1f", took.Seconds(), maxDrain)
	h.told.Store(0)
	if _, err := f[1].ask("grow", nil); err != nil {
		return err
	}
	for late := time.Now().Add(timeLimit); h.told.Load() < int64(len(h.all)); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			return fmt.Errorf("%d of %d streams that are back hear of a change", h.told.Load(), len(h.all))
		}
	}
	return nil
}
