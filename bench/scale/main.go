// Command scale measures what a store that replicas share costs, and how soon
// changes reach other replicas: see the cases. It starts redis-server on the
// loopback address, and the servers, as processes of their own. Linux only.
//
//	go run ./scale -cases calls -calls 100000
//	go run ./scale -cases sessions -sessions 200000 -streams 20000
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// What the store may cost, and how long others may wait.
const (
	maxReplica     = 12.0 // µs of processor time of a replica, for an unchanged legacy call
	maxEngine      = 5.0  // µs of the engine's, for the same
	maxModern      = 1.02 // processor time of a modern call with a store, as a multiple of one without
	maxWait        = 0.15 // ms that a legacy call takes longer, half of the time, where processors are idle
	maxWaitLate    = 2.0  // ms, 99 of 100 times, with 64 clients
	maxIdle        = 0.01 // commands a second of an idle stream
	maxMemory      = 1229 // bytes of an idle session in the engine
	maxOff         = 5.0  // % of commands that replicas send, and the load does not
	maxMillion     = 0.3  // processors of the engine for a million sessions with streams, and a call a minute each
	maxHeard       = 2.0  // ms until a subscriber of another replica has received a change, half of the time
	maxHeardLate   = 20.0 // ms, 99 of 100 times
	maxHeardBack   = 1000 // ms until all have received the changes made while the engine was unavailable
	maxAnswer      = 20.0 // ms until an answer at another replica reaches its call, 99 of 100 times
	maxAnswerLost  = 5500 // ms, where no hint arrives
	maxDrainEngine = 30.0 // % of a processor, for the engine while the streams of a replica go elsewhere
	maxDrain       = 30.0 // s until they are back
	inflight       = 64   // calls at a time
	defaultIdle    = 30 * time.Minute
)

// cases are what is measured, in this order.
var cases = []struct {
	name    string
	measure func(o options, r *report) error
}{{"calls", calls}, {"sessions", manySessions}, {"messages", messages}, {"million", underMillion}, {"fanout", fanOut}, {"answers", answers}, {"drain", drain}}

// options are the flags.
type options struct {
	calls, rounds, sessions, streams, replicas, subscribers, changes, asked, drained, entries int
	idle, minute, load                                                                        time.Duration
}

// report prints what was measured, and knows whether a limit was missed.
type report struct{ missed bool }

func (r *report) title(format string, values ...any) { fmt.Printf("\n"+format+"\n", values...) }
func (r *report) say(format string, values ...any)   { fmt.Printf("    "+format+"\n", values...) }

// limit prints a value that is not to be more than most.
func (r *report) limit(format string, value, most float64) {
	word := "within"
	if value > most {
		word, r.missed = "over", true
	}
	r.say(format+", %s the limit of %.4g", value, word, most)
}

func main() {
	var o options
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	chosen := flag.String("cases", strings.Join(names, ","), "what is measured, by `names`")
	flag.IntVar(&o.calls, "calls", 900_000, "calls: `number` of calls of each kind")
	flag.IntVar(&o.rounds, "rounds", 45, "calls: `number` of parts that they are made in, each by two processes, with and without a store")
	flag.IntVar(&o.sessions, "sessions", 20_000, "sessions: `number` of sessions")
	flag.IntVar(&o.streams, "streams", 2000, "sessions, messages: `number` of those that have an open stream")
	flag.DurationVar(&o.idle, "idle", 160*time.Second, "sessions, million: how long they are watched; what is done for an open stream every 150 s should be seen")
	flag.DurationVar(&o.minute, "within", time.Minute, "sessions: how long one call in each of them takes")
	flag.IntVar(&o.entries, "entries", 1_000_000, "million: `number` of entries of sessions in the engine, of 1.5 KB")
	flag.DurationVar(&o.load, "load", 20*time.Second, "million: how long the load lasts")
	flag.IntVar(&o.replicas, "replicas", 4, "sessions, million, fanout, answers, drain: `number` of replicas")
	flag.IntVar(&o.subscribers, "subscribers", 1000, "fanout: `number` of subscribers at each replica")
	flag.IntVar(&o.changes, "changes", 1000, "fanout: `number` of changes")
	flag.IntVar(&o.asked, "asked", 1000, "answers: `number` of calls that are answered, and that are cancelled; a tenth of it without hints")
	flag.IntVar(&o.drained, "drained", 20_000, "drain: `number` of streams")
	enforce := flag.Bool("enforce", false, "exit with status 1 if a limit is missed")
	serve := flag.Bool("serve", false, "be a server for the measurement")
	session := flag.Duration("session", defaultIdle, "how long sessions of the server may be idle")
	deaf := flag.Bool("deaf", false, "the server gets no hint of the store")
	store := flag.String("store", "", "the `URL` of the engine that the server shares with others; none without")
	flag.Parse()
	var err error
	if *serve {
		err = runServer(*store, *session, *deaf)
	} else {
		err = measure(o, strings.Split(*chosen, ","), *enforce)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// measure measures the cases of these names.
func measure(o options, names []string, enforce bool) error {
	if o.streams > o.sessions {
		return errors.New("-streams: there are not so many -sessions")
	}
	r := &report{}
	for _, c := range cases {
		i := slices.Index(names, c.name)
		if i < 0 {
			continue
		}
		names = slices.Delete(names, i, i+1)
		if err := c.measure(o, r); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("-cases: there is no %q", names)
	}
	if r.missed && enforce {
		return errors.New("a limit is missed")
	}
	return nil
}
