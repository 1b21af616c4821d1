package main

import (
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// steps are what messages measures of the stream of a session, with the commands that each
// may cost, beyond the look at its session that each message makes.
var steps = [5]struct {
	name string
	most float64
}{
	{"a stream that opens", 3},
	{"a message, made at the replica of the stream", 1},
	{"a message, made at another replica", 2},
	{"a stream that moves to another replica", 4},
	{"a message while no stream is open", 1},
}

// spare is what a replica may send by itself while a step is measured, for each stream.
const spare = 0.1

// messages measures how many commands the streams of sessions cost, and their messages.
func messages(o options, r *report) error {
	var err error
	if o.streams, err = affordable(o.streams, r); err != nil {
		return err
	}
	_, f, stop, err := startAll(2)
	if err != nil {
		return err
	}
	defer stop()
	costs, err := messageCosts(f, o.streams)
	if err != nil {
		return err
	}
	r.title("commands of the streams of %d sessions, at 2 replicas", o.streams)
	for i, step := range steps {
		r.limit(step.name+": %.3f", costs[i], step.most+spare)
	}
	return nil
}

// messageCosts returns the commands of each step for one stream: the fewest of three rounds,
// as replicas also send some by themselves.
func messageCosts(f fleet, n int) (least [len(steps)]float64, err error) {
	for round := range 3 {
		costs, err := messageRound(f, n)
		if err != nil {
			return least, err
		}
		for i, cost := range costs {
			if round == 0 || cost < least[i] {
				least[i] = cost
			}
		}
	}
	return least, nil
}

// messageRound measures each step once, with n new sessions.
func messageRound(f fleet, n int) (costs [len(steps)]float64, err error) {
	ids, err := openSessions(f[:1], n)
	if err != nil {
		return costs, err
	}
	var received atomic.Int64
	heard := func(*stream, change, time.Time) { received.Add(1) }
	var olds, news streams
	for _, id := range ids {
		olds = append(olds, &stream{session: id, heard: heard})
	}
	defer func() { olds.close(); news.close() }()
	open := func(all streams, at *replica) error {
		return each(len(all), func(i int) error {
			if err := retry(func() error { return all[i].open(at.addr) }); err != nil {
				return err
			}
			go all[i].read() // until close
			return nil
		})
	}
	// message has a message sent to each session, which all streams receive if arrives is set.
	message := func(at *replica, arrives bool) error {
		received.Store(0)
		if text, err := at.ask("notify", url.Values{"session": ids}); err != nil || text != "" {
			return fmt.Errorf("%v%s", err, text)
		}
		for late := time.Now().Add(timeLimit); arrives && received.Load() < int64(n); time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				return fmt.Errorf("%d of %d streams have received a message", received.Load(), n)
			}
		}
		return nil
	}
	for i, step := range [len(steps)]func() error{
		func() error { return open(olds, f[0]) },
		func() error { return message(f[0], true) },
		func() error { return message(f[1], true) },
		func() error { // the old connections stay open
			for _, old := range olds {
				news = append(news, &stream{session: old.session, event: old.event, heard: heard})
			}
			return open(news, f[1])
		},
		func() error { return message(f[0], false) },
	} {
		if i == len(steps)-1 {
			olds.close()
			news.close()
			f.settled()
		}
		before := f.commands()
		if err := step(); err != nil {
			return costs, fmt.Errorf("%s: %w", steps[i].name, err)
		}
		costs[i] = float64(f.settled()-before) / float64(n)
		if strings.HasPrefix(steps[i].name, "a message") {
			costs[i]-- // the look at the session
		}
	}
	return costs, nil
}

// settled waits until the replicas send no more commands, and returns how many there were.
func (f fleet) settled() int64 {
	for last := f.commands(); ; {
		time.Sleep(200 * time.Millisecond)
		now := f.commands()
		if now == last {
			return now
		}
		last = now
	}
}
