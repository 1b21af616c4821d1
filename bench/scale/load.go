package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ids "github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/scale/redis"
)

// mix is how often replicas ask the store each thing about sessions.
type mix [5]float64

// The things: what a call looks at, and when it keeps the session for longer; who
// listens to an open stream; and the latter two where the store is also told how long
// it keeps the entry.
const (
	look = iota
	touch
	check
	lastingTouch
	lastingCheck
)

// kindOf returns which of them a look is; -1 if it is about something else.
func kindOf(l scale.GetOp) int {
	switch lasts := l.TTL > 0; {
	case !strings.HasPrefix(l.Key.Partition, "session-"):
		return -1
	case strings.HasPrefix(l.Key.Name, "mail:") && lasts:
		return lastingCheck
	case strings.HasPrefix(l.Key.Name, "mail:"):
		return check
	case l.In > 0 && lasts:
		return lastingTouch
	case l.In > 0:
		return touch
	default:
		return look
	}
}

// add adds others, n times.
func (m *mix) add(others mix, times float64) {
	for kind, n := range others {
		m[kind] += times * n
	}
}

const (
	million    = 1_000_000
	slots      = 64                // parts of the store that sessions are spread over
	checkEvery = 150 * time.Second // for a stream that is open
	together   = 256               // looks that no call waits for
	lastEvery  = 3 * time.Hour     // each replica tells how long an entry is kept
)

// lives is how long a session lives after a renewal, and touchEvery the time until the
// call that renews it again, at one replica, if calls come that often. So an index has
// to be renewed after moveEvery.
func lives(idle time.Duration) time.Duration {
	return idle*11/8 + 2*tick(idle) + max(tick(idle), 2*time.Second)
}
func touchEvery(idle, calls time.Duration) time.Duration { return idle*3/8 + (calls+tick(idle))/2 }
func moveEvery(idle, calls time.Duration) time.Duration {
	return lives(idle) - touchEvery(idle, calls)/2
}

// tick is the time between two rounds of a replica, in each of which it asks what is
// due in one of the parts.
func tick(idle time.Duration) time.Duration { return idle / 256 }

// mixOf is the load of a second of a million sessions with open streams and a
// call a minute, each at this number of replicas: one of these renews a session.
func mixOf(replicas int) mix {
	every, n := touchEvery(defaultIdle, time.Minute), time.Duration(replicas)
	touches := million / every.Seconds()
	lasting := float64(replicas) * million / (lastEvery + n*every).Seconds()
	checks, lastingChecks := million/checkEvery.Seconds(), million/lastEvery.Seconds()
	return mix{look: million / 60, touch: touches - lasting, check: checks - lastingChecks, lastingTouch: lasting, lastingCheck: lastingChecks}
}

// stored are entries of sessions as replicas make them, and of the streams of
// each.
type stored struct {
	stores         []*redis.Store // as replicas have one each
	keys, mails    []scale.Key
	revs, mailRevs []scale.Rev
}

// store makes n entries with values of this many bytes. As many of them as of a million
// become due while replicas ask once for the due ones of each part; or all are due by
// their index, and were postponed.
func store(e *engine, replicas, n, size int) (s *stored, err error) {
	s = &stored{}
	for range replicas {
		one, err := redis.Open(context.Background(), redis.Options{URL: e.url(), Prefix: "load", Timeout: timeLimit})
		if err != nil {
			s.close()
			return nil, err
		}
		s.stores = append(s.stores, one)
	}
	for range n {
		key := ids.StoreKey("session", ids.NewID(), slots)
		s.keys = append(s.keys, key)
		s.mails = append(s.mails, scale.Key{Partition: key.Partition, Name: "mail:" + key.Name})
	}
	s.revs, s.mailRevs = make([]scale.Rev, n), make([]scale.Rev, n)
	value := make([]byte, size)
	moved := int(million * slots * tick(defaultIdle) / time.Duration(replicas) / moveEvery(defaultIdle, time.Minute))
	const some = 20 // at a time, or the last ones would have to wait for too many
	err = each(n/some, func(i int) error {
		var writes []scale.Write
		var looks []scale.GetOp
		for j := i * some; j < (i+1)*some; j++ {
			in := lives(defaultIdle)
			if j < moved {
				in = 1
			}
			writes = append(writes,
				scale.Write{Key: s.keys[j], Value: value, TTL: kept, DueIn: in, Index: "due", Limit: "sessions", Max: million},
				scale.Write{Key: s.mails[j], Value: []byte{}, TTL: kept, Owner: "1z141z4hkzcxs.1z141z"})
		}
		made, err := s.stores[i%replicas].Put(context.Background(), writes...)
		for j, e := range made {
			s.revs[i*some+j/2], s.mailRevs[i*some+j/2] = made[j/2*2].Rev, e.Rev
			err = errors.Join(err, e.Err)
			if j%2 == 0 {
				looks = append(looks, scale.GetOp{Key: e.Key, Known: e.Rev, In: lives(defaultIdle)})
			}
		}
		return errors.Join(err, s.get(s.stores[i%replicas], looks...))
	})
	return s, err
}

// kept is how long sessions are kept.
const kept = defaultIdle + 24*time.Hour

func (s *stored) close() {
	for _, one := range s.stores {
		one.Close()
	}
}

// ask asks something about n sessions at random.
func (s *stored) ask(one *redis.Store, kind, n int) error {
	first := rand.IntN(len(s.keys) - n + 1)
	looks := make([]scale.GetOp, n)
	for i := range looks {
		looks[i] = scale.GetOp{Key: s.keys[first+i], Known: s.revs[first+i]}
		if kind == check || kind == lastingCheck {
			looks[i] = scale.GetOp{Key: s.mails[first+i], Known: s.mailRevs[first+i]}
		}
		if kind == touch || kind == lastingTouch {
			looks[i].In = lives(defaultIdle)
		}
		if kind == lastingTouch || kind == lastingCheck {
			looks[i].TTL = kept
		}
	}
	return s.get(one, looks...)
}

func (s *stored) get(one *redis.Store, looks ...scale.GetOp) error {
	found, err := one.Get(context.Background(), looks...)
	for i, e := range found {
		if err == nil && e.Rev != looks[i].Known {
			err = fmt.Errorf("the entry %s is another one", e.Key.Name)
		}
	}
	return err
}

// move asks what is due in a part, which is nothing, as all was put off.
func (s *stored) move(one *redis.Store, part int) error {
	due, err := one.ClaimDue(context.Background(), ids.Partition("session", part), "due", "bench", 100, time.Minute)
	if len(due) > 0 {
		err = fmt.Errorf("%d are due", len(due))
	}
	return err
}

// expect returns what a mix is for the engine, by its commands.
func (s *stored) expect(e *engine, m mix) (commands, error) {
	const n = 10
	all := commands{}
	for kind, many := range m {
		err := s.ask(s.stores[0], kind, 1) // which tells the engine the script
		before := e.calls()
		for range n {
			err = errors.Join(err, s.ask(s.stores[0], kind, 1))
		}
		if err != nil {
			return nil, err
		}
		all.add(e.calls(), many/n)
		all.add(before, -many/n)
	}
	return all, nil
}

// under has the stores ask a mix in each second, and returns what the engine has done
// in the meantime. As those of clients do, calls come at random times.
func (s *stored) under(e *engine, m mix, within time.Duration) (spent, error) {
	var made atomic.Int64
	var running sync.WaitGroup
	var failed atomic.Pointer[error]
	began, before := time.Now(), e.stats()
	// paced asks about n sessions at a time, at this rate, until the time is over.
	paced := func(one *redis.Store, kind, n int, rate float64) {
		running.Go(func() {
			for at := time.Duration(0); ; {
				at += time.Duration(rand.ExpFloat64() / rate * float64(time.Second))
				if at > within {
					return
				}
				time.Sleep(time.Until(began.Add(at)))
				if err := s.ask(one, kind, n); err != nil {
					failed.Store(&err)
					return
				}
				made.Add(int64(n))
			}
		})
	}
	for _, one := range s.stores {
		for kind, rate := range m {
			rate /= float64(len(s.stores))
			if kind != look {
				n := min(together, len(s.keys))
				paced(one, kind, n, rate/float64(n))
				continue
			}
			for range inflight {
				paced(one, kind, 1, rate/inflight)
			}
		}
	}
	for i, one := range s.stores {
		running.Go(func() {
			for at := tick(defaultIdle) * time.Duration(i) / time.Duration(len(s.stores)); at < within; at += tick(defaultIdle) {
				time.Sleep(time.Until(began.Add(at)))
				if err := s.move(one, rand.IntN(slots)); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	running.Wait()
	if err := failed.Load(); err != nil {
		return spent{}, *err
	}
	after := e.stats()
	return spent{cpu: after.cpu - before.cpu, commands: float64(made.Load()), seconds: time.Since(began).Seconds(), reads: after.reads - before.reads}, nil
}

// underMillion measures what the engine does for a million sessions: entries of as
// many as there is memory for are asked what replicas ask, which is seen of some.
func underMillion(o options, r *report) error {
	e, err := startEngine()
	if err != nil {
		return err
	}
	defer e.stop()
	seen, sent, size, err := observe(o, e)
	if err != nil {
		return err
	}
	before := e.stats().memory
	s, err := store(e, o.replicas, o.entries, size)
	if err != nil {
		return err
	}
	defer s.close()
	r.title("%d entries of sessions with values of %d bytes, and of their streams, of %.0f bytes together", o.entries, size, (e.stats().memory-before)/float64(o.entries))
	expected, err := s.expect(e, seen)
	if err != nil {
		return err
	}
	off, all := 0.0, 0.0
	for name, n := range expected {
		off, all = off+math.Abs(n-sent[name]), all+n
	}
	r.say("replicas have asked %.0f looks of calls, %.0f that keep a session for longer, and %.0f of open streams",
		seen[look], seen[touch]+seen[lastingTouch], seen[check]+seen[lastingCheck])
	r.limit("%% of the engine's commands for them that are others than the load is: %.1f", 100*off/all, maxOff)
	for _, replicas := range []int{1, o.replicas} {
		m := mixOf(replicas)
		did, err := s.under(e, m, o.load)
		if err != nil {
			return err
		}
		wanted := 0.0
		for _, rate := range m {
			wanted += rate
		}
		r.say("%.0f looks a second of %.0f, of which %.0f keep the session for longer and %.0f are of streams: %.2f µs of the engine each, %.2f of them at once",
			did.commands/did.seconds, wanted, m[touch]+m[lastingTouch], m[check]+m[lastingCheck], did.cpu/did.commands, did.commands/did.reads)
		r.limit(fmt.Sprintf("processors of the engine for a million sessions with open streams and a call a minute, each at any of %d replicas: %%.2f", replicas),
			did.cpu/did.commands*wanted/1e6, maxMillion) // also where this machine could not send as many
	}
	return nil
}

// brief is how long sessions may be idle where it is seen what keeps them.
const brief = time.Minute

// observe returns what replicas ask the store for sessions with open streams and a call
// every ten seconds, each at one replica, what commands of the engine that is, and how
// many bytes the value of a session has.
func observe(o options, e *engine) (seen mix, sent commands, size int, err error) {
	f, err := startFleet(e, o.replicas, brief)
	if err != nil {
		return seen, nil, 0, err
	}
	defer f.stop()
	idle := min(o.idle, brief*2/3)
	time.Sleep(idle)    // then they are in touch with the store for a lease, and do what they do then
	alone := commands{} // what they do by themselves
	alone.add(e.calls(), -1)
	time.Sleep(idle)
	alone.add(e.calls(), 1)
	ids, err := openSessions(f, min(o.streams, 1000))
	if err != nil {
		return seen, nil, 0, err
	}
	open, err := openStreams(f, ids)
	if err != nil {
		return seen, nil, 0, err
	}
	defer open.close()
	each := min(o.idle, 10*time.Second)
	if err := callEach(f, ids, each, 0); err != nil { // from then on they are used
		return seen, nil, 0, err
	}
	sent = commands{}
	sent.add(e.calls(), -1)
	was, began := f.asked(), time.Now()
	for time.Since(began) < o.idle && err == nil {
		err = callEach(f, ids, each, 0)
	}
	sent.add(e.calls(), 1)
	sent.add(alone, -time.Since(began).Seconds()/idle.Seconds())
	moved := float64(len(ids)) * time.Since(began).Seconds() / moveEvery(brief, each).Seconds()
	sent.add(commands{"hmget": 1, "zadd": 1}, -moved) // of sessions in their indexes, as the load does besides
	seen = f.asked()
	seen.add(was, -1)
	return seen, sent, f[0].stats().Size, err
}

// commands are how often each command of the engine was called.
type commands map[string]float64

// add adds others, n times.
func (c commands) add(others commands, times float64) {
	for name, n := range others {
		c[name] += times * n
	}
}

// calls asks the engine how often each command was called, except for those that
// tell.
func (e *engine) calls() commands {
	all := commands{}
	for line := range strings.Lines(e.say("INFO commandstats")) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		text, _, _ := strings.Cut(rest, ",")
		if n, err := strconv.ParseFloat(text, 64); ok && err == nil && name != "info" && name != "quit" && name != "ping" {
			all[name] = n
		}
	}
	return all
}
