package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// openSessions opens sessions that stay unused, at all replicas in turn, and
// returns their ids.
func openSessions(f fleet, n int) (ids []string, err error) {
	all, err := everywhere(f, kind{})
	if err != nil {
		return nil, err
	}
	defer all.close()
	ids = make([]string, n)
	err = each(n, func(i int) error {
		return retry(func() (err error) { ids[i], err = all[i%len(all)].open(); return err })
	})
	return ids, err
}

// placed are clients of every replica.
type placed []*clients

// everywhere returns clients without sessions of their own.
func everywhere(f fleet, k kind) (all placed, err error) {
	for _, r := range f {
		c, err := newClients(r.addr, k, 0)
		if err != nil {
			return nil, err
		}
		c.http.Transport.(*http.Transport).MaxIdleConnsPerHost = inflight
		all = append(all, c)
	}
	return all, nil
}

func (p placed) close() {
	for _, c := range p {
		c.close()
	}
}

// callEach makes one call in each of the sessions, evenly within a time. Rounds that
// follow each other are at different replicas.
func callEach(f fleet, ids []string, within time.Duration, round int) error {
	k := kind{tool: "add"}
	all, err := everywhere(f, k)
	if err != nil {
		return err
	}
	defer all.close()
	begun, body := time.Now(), k.body()
	var made atomic.Int64
	return each(len(ids), func(i int) error {
		time.Sleep(time.Until(begun.Add(within * time.Duration(made.Add(1)) / time.Duration(len(ids)))))
		return retry(func() error { _, _, err := all[(i+round)%len(all)].do(ids[i], body); return err })
	})
}

// spent is what replicas have used of the engine within a time.
type spent struct{ cpu, commands, seconds, reads float64 } // µs

// spend runs fn and returns what the engine has done in the meantime.
func spend(f fleet, e *engine, fn func() error) (spent, error) {
	commands, cpu, begun := f.commands(), e.stats().cpu, time.Now()
	err := fn()
	return spent{cpu: e.stats().cpu - cpu, commands: float64(f.commands() - commands), seconds: time.Since(begun).Seconds()}, err
}

// each is the share of one of n.
func (s spent) each(n int) spent {
	return spent{cpu: s.cpu / float64(n), commands: s.commands / float64(n), seconds: s.seconds}
}

// beyond is what was spent in as long a time beyond what idle replicas spend.
func (s spent) beyond(idle spent) spent {
	return spent{cpu: s.cpu - idle.cpu/idle.seconds*s.seconds, commands: s.commands - idle.commands/idle.seconds*s.seconds, seconds: s.seconds}
}

// later is how long replicas may wait before they tell the engine that a session is
// used, and more.
const later = 10 * time.Second

// manySessions measures what sessions cost the engine that are used as people do:
// its memory for each, a call a minute, and an open stream of some; and then what a
// million ask of it.
func manySessions(o options, r *report) error {
	var err error
	if o.streams, err = affordable(o.streams, r); err != nil {
		return err
	}
	e, f, stop, err := startAll(o.replicas)
	if err != nil {
		return err
	}
	defer stop()
	idle, err := spend(f, e, func() error { time.Sleep(min(o.idle, brief/2)); return nil })
	if err != nil {
		return err
	}
	before := e.stats().memory
	ids, err := openSessions(f, o.sessions)
	if err != nil {
		return err
	}
	memory := (e.stats().memory - before) / float64(o.sessions)
	r.title("%d sessions at %d replicas", o.sessions, o.replicas)
	r.limit("bytes of an idle session in the engine: %.0f", memory, maxMemory)

	// The first call makes the engine keep a session as used, and the first call at
	// each replica loads it there. Only then its cost is stable.
	var call spent
	next := 0
	for _, phase := range []struct {
		what   string
		rounds int
	}{{"the first call in each of them", 1}, {"the first at each other replica", o.replicas - 1}, {"from then on, at any replica", 2}} {
		call, err = spend(f, e, func() error {
			for range phase.rounds {
				if err := callEach(f, ids, o.minute, next); err != nil {
					return err
				}
				next++
			}
			time.Sleep(min(o.idle, later)) // for what replicas do of it
			return nil
		})
		if err != nil {
			return err
		}
		if phase.rounds > 0 {
			call = call.beyond(idle).each(o.sessions * phase.rounds)
			r.say("%s: %.2f commands and %.1f µs of the engine", phase.what, call.commands, call.cpu)
		}
	}
	quiet, err := quietStreams(f, e, ids[:o.streams], o.idle)
	if err != nil {
		return err
	}
	quiet = quiet.beyond(idle).each(o.streams)
	r.limit(fmt.Sprintf("commands a second of each of %d idle streams: %%.5f", o.streams), quiet.commands/quiet.seconds, maxIdle)
	r.say("an idle stream costs the engine %.2f µs a second", max(quiet.cpu/quiet.seconds, 0))
	return nil
}

// quietStreams opens the streams of sessions, and returns what the engine has done
// for them in a time in which nothing happens.
func quietStreams(f fleet, e *engine, ids []string, idle time.Duration) (spent, error) {
	open, err := openStreams(f, ids)
	if err != nil {
		return spent{}, err
	}
	defer open.close()
	return spend(f, e, func() error { time.Sleep(idle); return nil })
}

// streams are open, and their messages are not read.
type streams []*stream

// openStreams opens the streams of sessions, at all replicas in turn.
func openStreams(f fleet, ids []string) (all streams, err error) {
	for _, id := range ids {
		all = append(all, &stream{session: id, heard: func(*stream, change, time.Time) {}})
	}
	err = each(len(all), func(i int) error {
		if err := retry(func() error { return all[i].open(f[i%len(f)].addr) }); err != nil {
			return err
		}
		go all[i].read() // until close
		return nil
	})
	if err != nil {
		all.close()
		return nil, err
	}
	return all, nil
}

func (s streams) close() {
	for _, one := range s {
		one.close()
	}
}
