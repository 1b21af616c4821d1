package main

import (
	"fmt"
	"slices"
	"time"
)

// figure is what one part of the calls has cost, for each call.
type figure struct {
	replica, engine, commands float64 // µs, µs, number
	p50                       time.Duration
}

// kinds are the calls that are measured.
var kinds = []kind{
	{name: "modern", modern: true, tool: "add"},
	{name: "legacy", tool: "add"},
	{name: "legacy that changes the session", tool: "visit"},
}

// calls compares calls at a replica with those at a server without a store.
func calls(o options, r *report) error {
	e, f, stop, err := startAll(1)
	if err != nil {
		return err
	}
	defer stop()
	shared := f[0]
	alone, err := startReplica("", defaultIdle)
	if err != nil {
		return err
	}
	defer alone.stop()
	r.title("%-36s %12s %12s %12s %12s %10s %10s", "calls", "replica µs", "without", "engine µs", "commands", "p50 µs", "without")
	var all [][2]figure
	for _, k := range kinds {
		with, without, err := compare(o, k, shared, alone, e)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		all = append(all, [2]figure{with, without})
		r.say("%-32s %12.1f %12.1f %12.2f %12.4f %10d %10d", k.name, with.replica, without.replica, with.engine, with.commands,
			with.p50.Microseconds(), without.p50.Microseconds())
	}
	modern, legacy, changed := all[0], all[1], all[2]
	r.limit("commands of modern calls: %.4f", modern[0].commands, 0.001) // what a replica does by itself
	r.limit("processor time of modern calls with a store, as a multiple of without: %.3f", modern[0].replica/modern[1].replica, maxModern)
	r.limit("commands of a legacy call: %.3f", legacy[0].commands, 1.01)
	r.limit("µs of the replica for a legacy call: %.1f", legacy[0].replica-legacy[1].replica, maxReplica)
	r.limit("µs of the engine for a legacy call: %.2f", legacy[0].engine, maxEngine)
	r.limit("commands of a legacy call that changes the session: %.3f", changed[0].commands, 2.01)
	return waits(o, r, shared, alone)
}

// waits compares how long legacy calls take where processors are idle: one at a time,
// and those of many clients that each make a few in a second.
func waits(o options, r *report, shared, alone *replica) error {
	const calls = 2000 // of a round
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
		for round := range o.rounds {
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
		with, without := took[0][o.rounds/2], took[1][o.rounds/2]
		r.say("%s: %.2f ms, %.2f ms without", test.name, with, without)
		r.limit("of which for the store: %.3f ms", with-without, test.most)
	}
	return nil
}

// compare makes calls of one kind, in turn at the replica with and at that
// without a store, and returns the medians.
func compare(o options, k kind, shared, alone *replica, e *engine) (with, without figure, err error) {
	var figures [2][]figure
	clients := [2]*clients{}
	for i, r := range []*replica{shared, alone} {
		if clients[i], err = newClients(r.addr, k, inflight); err != nil {
			return with, without, err
		}
		defer clients[i].close()
		if _, err := clients[i].call(2000, 0); err != nil { // warms up
			return with, without, err
		}
	}
	each := o.calls / o.rounds
	replicas := []*replica{shared, alone}
	for round := range o.rounds {
		for turn := range replicas {
			i := (round + turn) % len(replicas) // each goes first as often as the other
			r := replicas[i]
			before, busy, err := r.stats(), e.stats(), error(nil)
			took, err := clients[i].call(each, 0)
			if err != nil {
				return with, without, err
			}
			after, later := r.stats(), e.stats()
			n := float64(each)
			figures[i] = append(figures[i], figure{
				replica: float64(after.CPU-before.CPU) / n, engine: (later.cpu - busy.cpu) / n, commands: float64(after.Commands-before.Commands) / n, p50: took[len(took)/2],
			})
		}
	}
	return medians(figures[0]), medians(figures[1]), nil
}

// medians returns the median of each figure.
func medians(all []figure) figure {
	of := func(value func(f figure) float64) float64 {
		var values []float64
		for _, f := range all {
			values = append(values, value(f))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figure{
		replica:  of(func(f figure) float64 { return f.replica }),
		engine:   of(func(f figure) float64 { return f.engine }),
		commands: of(func(f figure) float64 { return f.commands }),
		p50:      time.Duration(of(func(f figure) float64 { return float64(f.p50) })),
	}
}
