// Command scale measures what a store that replicas share costs: commands of the
// engine, its processor time and that of the replica for each call, beside the
// same server without a store; what an idle stream costs, and how much memory a
// session takes in the engine. It starts redis-server on the loopback address,
// and the servers, as processes of their own. Linux only.
//
//	go run ./scale -calls 100000 -sessions 200000
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

// What the store may cost.
const (
	maxReplica = 12.0 // µs of processor time of a replica, for an unchanged legacy call
	maxEngine  = 5.0  // µs of the engine's, for the same
	maxModern  = 1.02 // processor time of a modern call with a store, as a multiple of one without
	maxIdle    = 0.01 // commands a second of an idle stream
	maxMemory  = 1229 // bytes of an idle session in the engine
	inflight   = 64   // calls at a time
)

func main() {
	o := options{}
	flag.IntVar(&o.calls, "calls", 100_000, "`number` of calls of each kind")
	flag.IntVar(&o.rounds, "rounds", 5, "`number` of parts that the calls are made in, in turn with and without store")
	flag.IntVar(&o.sessions, "sessions", 20_000, "`number` of idle sessions")
	flag.IntVar(&o.streams, "streams", 500, "`number` of idle streams")
	flag.DurationVar(&o.idle, "idle", 30*time.Second, "how long the streams are watched")
	flag.BoolVar(&o.enforce, "enforce", false, "exit with status 1 if a limit is missed")
	serve := flag.Bool("serve", false, "be a server for the measurement")
	store := flag.String("store", "", "the `URL` of the engine that the server shares with others; none without")
	flag.Parse()
	var err error
	if *serve {
		err = runServer(*store)
	} else {
		err = measure(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	calls, rounds, sessions, streams int
	idle                             time.Duration
	enforce                          bool
}

// kinds are the calls that are measured.
var kinds = []kind{
	{name: "modern", modern: true, tool: "add"},
	{name: "legacy", tool: "add"},
	{name: "legacy that changes the session", tool: "visit"},
}

// figure is what one part of the calls has cost, for each call.
type figure struct {
	replica, engine, commands float64 // µs, µs, number
	p50                       time.Duration
}

func measure(o options) error {
	e, err := startEngine()
	if err != nil {
		return err
	}
	defer e.stop()
	alone, err := startReplica("")
	if err != nil {
		return err
	}
	defer alone.stop()
	shared, err := startReplica(e.url())
	if err != nil {
		return err
	}
	defer shared.stop()
	missed := false
	limit := func(format string, value, most float64) {
		word := "within"
		if value > most {
			word, missed = "over", true
		}
		fmt.Printf("    "+format+", %s the limit of %.4g\n", value, word, most)
	}

	fmt.Printf("%-32s %12s %12s %12s %12s %10s %10s\n", "calls", "replica µs", "without", "engine µs", "commands", "p50 µs", "without")
	var all [][2]figure
	for _, k := range kinds {
		with, without, err := compare(o, k, shared, alone, e)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		all = append(all, [2]figure{with, without})
		fmt.Printf("%-32s %12.1f %12.1f %12.2f %12.4f %10d %10d\n", k.name, with.replica, without.replica, with.engine, with.commands,
			with.p50.Microseconds(), without.p50.Microseconds())
	}
	modern, legacy, changed := all[0], all[1], all[2]
	limit("commands of modern calls: %.4f", modern[0].commands, 0.001) // what a replica does by itself
	limit("processor time of modern calls with a store, as a multiple of without: %.3f", modern[0].replica/modern[1].replica, maxModern)
	limit("commands of a legacy call: %.3f", legacy[0].commands, 1.01)
	limit("µs of the replica for a legacy call: %.1f", legacy[0].replica-legacy[1].replica, maxReplica)
	limit("µs of the engine for a legacy call: %.2f", legacy[0].engine, maxEngine)
	limit("commands of a legacy call that changes the session: %.3f", changed[0].commands, 2.01)

	idle, err := idleStreams(o, shared)
	if err != nil {
		return err
	}
	fmt.Printf("%d idle streams\n", o.streams)
	limit("commands a second of each: %.5f", idle, maxIdle)
	bytes, err := memory(o, shared, e)
	if err != nil {
		return err
	}
	fmt.Printf("%d idle sessions\n", o.sessions)
	limit("bytes of each in the engine: %.0f", bytes, maxMemory)
	if missed && o.enforce {
		return errors.New("a limit is missed")
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
		if _, err := clients[i].call(2000); err != nil { // warms up
			return with, without, err
		}
	}
	each := o.calls / o.rounds
	for range o.rounds {
		for i, r := range []*replica{shared, alone} {
			before, busy, err := r.stats(), e.stats(), error(nil)
			p50, err := clients[i].call(each)
			if err != nil {
				return with, without, err
			}
			after, later := r.stats(), e.stats()
			n := float64(each)
			figures[i] = append(figures[i], figure{
				replica: float64(after.cpu-before.cpu) / n, engine: (later.cpu - busy.cpu) / n, commands: float64(after.commands-before.commands) / n, p50: p50,
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

// idleStreams opens streams of sessions and returns how many commands a second
// each costs beyond what a replica without any does by itself.
func idleStreams(o options, r *replica) (perSecond float64, err error) {
	rate := func() float64 {
		before := r.stats().commands
		time.Sleep(o.idle)
		return float64(r.stats().commands-before) / o.idle.Seconds()
	}
	base := rate()
	streams, err := openStreams(r.addr, o.streams)
	if err != nil {
		return 0, err
	}
	defer streams.close()
	return (rate() - base) / float64(o.streams), nil
}

// memory opens sessions that nobody uses, and returns what each takes in the
// engine.
func memory(o options, r *replica, e *engine) (bytes float64, err error) {
	before := e.stats().memory
	if err := openSessions(r.addr, o.sessions); err != nil {
		return 0, err
	}
	return (e.stats().memory - before) / float64(o.sessions), nil
}
