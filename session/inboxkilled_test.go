package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/scale"
)

// cut is the Store of one replica, which can be killed: nothing reaches the store any more,
// and nothing of it the replica.
type cut struct {
	scale.Store
	killed atomic.Bool
}

func (c *cut) do(fn func() error) error {
	if c.killed.Load() {
		return errDown
	}
	err := fn()
	if c.killed.Load() {
		return errDown
	}
	return err
}

func (c *cut) Get(ctx context.Context, looks ...scale.GetOp) (found []scale.Entry, err error) {
	err = c.do(func() (err error) { found, err = c.Store.Get(ctx, looks...); return err })
	return found, err
}

func (c *cut) Put(ctx context.Context, writes ...scale.Write) (made []scale.Entry, err error) {
	err = c.do(func() (err error) { made, err = c.Store.Put(ctx, writes...); return err })
	return made, err
}

func (c *cut) Append(ctx context.Context, p scale.AppendOp) (rev scale.Rev, reader string, err error) {
	err = c.do(func() (err error) { rev, reader, err = c.Store.Append(ctx, p); return err })
	return rev, reader, err
}

func (c *cut) Read(ctx context.Context, box string, after scale.Rev, reader string) (m []scale.Message, now string, err error) {
	err = c.do(func() (err error) { m, now, err = c.Store.Read(ctx, box, after, reader); return err })
	return m, now, err
}

func (c *cut) Take(ctx context.Context, t scale.Take) (found scale.Box, err error) {
	err = c.do(func() (err error) { found, err = c.Store.Take(ctx, t); return err })
	return found, err
}

func (c *cut) Watch(fn func(string, scale.Message), gap func()) scale.Watcher {
	return c.Store.Watch(func(subject string, m scale.Message) {
		if !c.killed.Load() {
			fn(subject, m)
		}
	}, gap)
}

// The client of a replica that is killed at any time gets, at another one, each message that
// any replica has accepted, once: it names the last event that it got.
func TestInboxOfKilledReplica(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	rounds, accepted := testdep.Rounds(60, 300), 0
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) { accepted += killWhileItReads(t, dice) })
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d messages of %d were accepted", accepted, 40*rounds)
	if accepted < 15*rounds {
		t.Error("too few messages were accepted")
	}
}

// killWhileItReads is one round of TestInboxOfKilledReplica. It returns how many of 40 messages were accepted:
// the rest was sent to killed replicas.
func killWhileItReads(t *testing.T, dice *rand.Rand) int {
	store := newShaky()
	store.rand = rand.New(rand.NewPCG(dice.Uint64(), 1))
	var cuts [4]*cut
	r := newReplicasWith(t, len(cuts), store, func(i int, c *Config) {
		cuts[i] = &cut{Store: store}
		c.Store = cuts[i]
	})
	defer r.close()
	id := r.open(0)
	var copies []*Session
	for i := range cuts {
		copies = append(copies, r.at(i, id))
	}
	store.within(10*time.Millisecond, 0)
	g := serve(copies[0], "")
	time.Sleep(100 * time.Millisecond) // it has its first event
	streams, last := []*get{g}, ""
	var mu sync.Mutex
	var accepted []string
	var running sync.WaitGroup
	for n := range 40 {
		s, m, wait := copies[dice.IntN(len(copies))], fmt.Sprint("m", n), time.Duration(dice.IntN(400))*time.Millisecond
		running.Go(func() {
			time.Sleep(wait)
			if sent, err := s.Route(t.Context(), []byte(`"`+m+`"`)); sent && err == nil {
				mu.Lock()
				defer mu.Unlock()
				accepted = append(accepted, m)
			}
		})
	}
	for at := range len(cuts) - 1 { // of which the last survives
		time.Sleep(time.Duration(50+dice.IntN(80)) * time.Millisecond)
		cuts[at].killed.Store(true)
		g.breakOff()
		if id := g.last(dice.IntN(3)); id != "" {
			last = id
		}
		was := g
		g = serve(copies[at+1], last)
		streams = append(streams, g)
		was.leave()
	}
	running.Wait()
	time.Sleep(time.Minute)
	under := make(map[string]map[string]bool) // the ids of each message
	for _, g := range streams {
		messages, ids := g.messages()
		for i, m := range messages {
			if under[m] == nil {
				under[m] = make(map[string]bool)
			}
			under[m][ids[i]] = true
		}
	}
	for _, m := range accepted {
		if len(under[m]) != 1 {
			t.Errorf("the message %s has come under %d ids", m, len(under[m]))
		}
	}
	g.leave()
	store.within(0, 0)
	return len(accepted)
}
