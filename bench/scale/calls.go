package main

import (
	"fmt"
	"slices"
	"time"
)

// figure is what one part of the calls has cost, for each call.
type figure [4]float64

// The parts of a figure.
const (
	replicaTime = iota // µs of its processor time
	engineTime         // the same of the engine
	asked              // commands of the engine
	p50                // µs that half of the calls took at most
)

// compared are the figures of each round, with and without a store.
type compared [][2]figure

// median returns the median of something about each round.
func (c compared) median(of func(with, without figure) float64) float64 {
	var values []float64
	for _, pair := range c {
		values = append(values, of(pair[0], pair[1]))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func (c compared) with(part int) float64 {
	return c.median(func(with, _ figure) float64 { return with[part] })
}

func (c compared) without(part int) float64 {
	return c.median(func(_, without figure) float64 { return without[part] })
}

// kinds are the calls that are measured.
var kinds = []kind{
	{name: "modern", modern: true, tool: "add"},
	{name: "legacy", tool: "add"},
	{name: "legacy that changes the session", tool: "visit"},
}

// calls compares calls at replicas with those at servers without a store.
func calls(o options, r *report) error {
	e, f, stop, err := startAll(1)
	if err != nil {
		return err
	}
	defer stop()
	r.title("%-36s %12s %12s %12s %12s %10s %10s", "calls", "replica µs", "without", "engine µs", "commands", "p50 µs", "without")
	var all []compared
	for _, k := range kinds {
		c, err := compare(o, k, e)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		all = append(all, c)
		r.say("%-32s %12.1f %12.1f %12.2f %12.4f %10.0f %10.0f", k.name, c.with(replicaTime), c.without(replicaTime), c.with(engineTime), c.with(asked),
			c.with(p50), c.without(p50))
	}
	modern, legacy, changed := all[0], all[1], all[2]
	r.limit("commands of modern calls: %.4f", modern.with(asked), 0.001) // what a replica does by itself
	r.limit("processor time of modern calls with a store, as a multiple of without: %.3f",
		modern.median(func(with, without figure) float64 { return with[replicaTime] / without[replicaTime] }), maxModern)
	r.limit("commands of a legacy call: %.3f", legacy.with(asked), 1.01)
	r.limit("µs of the replica for a legacy call: %.1f",
		legacy.median(func(with, without figure) float64 { return with[replicaTime] - without[replicaTime] }), maxReplica)
	r.limit("µs of the engine for a legacy call: %.2f", legacy.with(engineTime), maxEngine)
	r.limit("commands of a legacy call that changes the session: %.3f", changed.with(asked), 2.01)
	alone, err := startReplica("", defaultIdle)
	if err != nil {
		return err
	}
	defer alone.stop()
	return waits(o, r, f[0], alone)
}

// waits compares how long legacy calls take where processors are idle: one at a time,
// and those of many clients that each make a few in a second.
func waits(o options, r *report, shared, alone *replica) error {
	const calls = 2000 // of a round
	rounds := min(o.rounds, 9)
	for _, test := range []struct {
		name    string
		clients int
		every   time.Duration
		place   int // of 100 calls, from the fastest
		most    float64
	}{
		{"half of the calls, one at a time", 1, 0, 50, maxWait},
		{"99 of 100 calls of 64 clients with 16 a second each", inflight, time.Second / 16, 99, maxWaitLate},
	} {
		var took [2][]float64 // ms
		for round := range rounds {
			for turn := range took {
				i := (round + turn) % len(took)
				c, err := newClients([]*replica{shared, alone}[i].addr, kinds[1], test.clients)
				if err != nil {
					return err
				}
				all, err := c.call(calls, test.every)
				c.close()
				if err != nil {
					return err
				}
				took[i] = append(took[i], float64(all[len(all)*test.place/100].Microseconds())/1000)
			}
		}
		slices.Sort(took[0])
		slices.Sort(took[1])
		with, without := took[0][rounds/2], took[1][rounds/2]
		r.say("%s: %.2f ms, %.2f ms without", test.name, with, without)
		r.limit("of which for the store: %.3f ms", with-without, test.most)
	}
	return nil
}

// compare makes calls of one kind, in turn at a replica with and at one without a
// store. Each round has processes of its own: of two that are the same, one may take some
// percent more than the other for as long as it runs.
func compare(o options, k kind, e *engine) (c compared, err error) {
	for round := range o.rounds {
		pair, err := comparePair(max(o.calls/o.rounds, 2), k, e, round%2)
		if err != nil {
			return nil, err
		}
		c = append(c, pair)
	}
	return c, nil
}

// comparePair makes n calls at each of two processes, half of them between those at the
// other one. That with a store is first if first is 0.
func comparePair(n int, k kind, e *engine, first int) (pair [2]figure, err error) {
	var replicas [2]*replica
	var clients [2]*clients
	for i, url := range []string{e.url(), ""} {
		if replicas[i], err = startReplica(url, defaultIdle); err != nil {
			return pair, err
		}
		defer replicas[i].stop()
		if clients[i], err = newClients(replicas[i].addr, k, inflight); err != nil {
			return pair, err
		}
		defer clients[i].close()
		if _, err := clients[i].call(5000, 0); err != nil { // warms up
			return pair, err
		}
	}
	var took [2][]time.Duration
	for _, i := range []int{first, 1 - first, 1 - first, first} {
		r := replicas[i]
		before, busy := r.stats(), e.stats()
		each, err := clients[i].call(n/2, 0)
		if err != nil {
			return pair, err
		}
		after, later := r.stats(), e.stats()
		pair[i][replicaTime] += float64(after.CPU-before.CPU) / float64(n)
		pair[i][engineTime] += (later.cpu - busy.cpu) / float64(n)
		pair[i][asked] += float64(after.Commands-before.Commands) / float64(n)
		took[i] = append(took[i], each...)
	}
	for i, all := range took {
		slices.Sort(all)
		pair[i][p50] = float64(all[len(all)/2].Microseconds())
	}
	return pair, nil
}
