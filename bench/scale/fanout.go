package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// heard is a change that a stream has received.
type heard struct {
	by *stream
	of change
	at time.Time
}

// audience are subscribers at replicas. Those of a number, one at each replica,
// have subscribed to the resource of that number, and all of them to the list of
// tools.
type audience struct {
	fleet fleet
	all   []*stream  // of the first replica, where things change, then of the next
	told  chan heard // changes that the streams of the others receive
}

// timeLimit is how long subscribers may take to receive a change.
const timeLimit = 30 * time.Second

// openAudience opens n subscriptions at each replica.
func openAudience(f fleet, n int) (*audience, error) {
	a := &audience{fleet: f, told: make(chan heard, 4*len(f)*n)}
	for i := range len(f) * n {
		s := &stream{uris: []string{number(i % n)}, heard: func(*stream, change, time.Time) {}}
		if i >= n {
			s.heard = func(s *stream, c change, at time.Time) { a.told <- heard{s, c, at} }
		}
		a.all = append(a.all, s)
	}
	err := each(len(a.all), func(i int) error {
		if err := retry(func() error { return a.all[i].open(f[i/n].addr) }); err != nil {
			return err
		}
		go a.all[i].read() // until close
		return nil
	})
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *audience) close() {
	for _, s := range a.all {
		s.close()
	}
}

func number(i int) string { return "bench://" + strconv.Itoa(i) }

// change has the first replica change something, waits until want subscribers have
// received it, and returns how long each of them has waited.
func (a *audience) change(what string, values url.Values, c change, want int) (took []time.Duration, err error) {
	text, err := a.fleet[0].ask(what, values)
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	return a.wait(time.Unix(0, at), c, want)
}

// wait waits until want subscribers have received a change since a time.
func (a *audience) wait(since time.Time, c change, want int) (took []time.Duration, err error) {
	late := time.After(timeLimit)
	known := map[*stream]bool{}
	for len(took) < want {
		select {
		case h := <-a.told:
			if h.of == c && !known[h.by] && !h.at.Before(since) {
				known[h.by] = true
				took = append(took, h.at.Sub(since))
			}
		case <-late:
			return nil, fmt.Errorf("%d of %d subscribers have heard of the change after %v", len(took), want, timeLimit)
		}
	}
	return took, nil
}

// fanOut changes things at one replica, and measures when subscribers of the others
// have received it, and the changes made while the engine was unavailable.
func fanOut(o options, r *report) error {
	all, err := affordable(o.replicas*o.subscribers, r)
	if err != nil {
		return err
	}
	o.subscribers = all / o.replicas
	e, f, stop, err := startAll(o.replicas)
	if err != nil {
		return err
	}
	defer stop()
	a, err := openAudience(f, o.subscribers)
	if err != nil {
		return err
	}
	defer a.close()
	time.Sleep(time.Second) // all is quiet
	idle, err := spend(f, e, func() error { time.Sleep(o.idle / 3); return nil })
	if err != nil {
		return err
	}
	r.title("%d subscribers at each of %d replicas, of which one changes something", o.subscribers, o.replicas)
	for _, test := range []struct {
		name, what string
		change     change
		n, hear    int
		pause      time.Duration // so that each change is sent separately
	}{
		{"a resource that one of them at each replica has subscribed to", "touch", resourceUpdated, o.changes, len(f) - 1, 10 * time.Millisecond},
		{"the list of tools", "grow", listChanged, max(o.changes/20, 1), len(a.all) - o.subscribers, 150 * time.Millisecond},
	} {
		var took []time.Duration
		busy, err := spend(f, e, func() error {
			for i := range test.n {
				one, err := a.change(test.what, url.Values{"uri": {number(i % o.subscribers)}}, test.change, test.hear)
				if err != nil {
					return fmt.Errorf("%s: %w", test.name, err)
				}
				took = append(took, one...)
				time.Sleep(test.pause)
			}
			return nil
		})
		if err != nil {
			return err
		}
		busy = busy.beyond(idle).each(test.n)
		slices.Sort(took)
		r.say("%s: p50 %v, p99 %v, the last after %v; %.2f commands and %.0f µs of the engine for each change", test.name,
			took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond),
			busy.commands, busy.cpu)
		if test.change == resourceUpdated {
			r.limit("ms until a subscriber elsewhere has heard of it, half of the time: %.2f", ms(took[len(took)/2]), maxHeard)
			r.limit("ms, 99 of 100 times: %.2f", ms(took[len(took)*99/100]), maxHeardLate)
		}
	}
	r.say("while nothing changes: %.0f commands a second", idle.commands/idle.seconds)
	return a.outage(o, e, r)
}

// outage changes all resources while the engine is unavailable.
func (a *audience) outage(o options, e *engine, r *report) error {
	e.kill()
	var uris []string
	for i := range o.subscribers {
		uris = append(uris, number(i))
	}
	if _, err := a.fleet[0].ask("touch", url.Values{"uri": uris}); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	if err := e.run(); err != nil {
		return err
	}
	took, err := a.wait(time.Now(), resourceUpdated, len(a.all)-o.subscribers)
	if err != nil {
		return err
	}
	r.say("the engine is killed, all resources change, and it comes back")
	r.limit("ms until all subscribers elsewhere have heard of that: %.0f", ms(slices.Max(took)), maxHeardBack)
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
