package session

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

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
	var stores []*shaky
	r := newReplicasWith(t, 4, store, func(_ int, c *Config) { stores = append(stores, c.Store.(*shaky)) })
	defer r.close()
	id := r.open(0)
	var copies []*Session
	for i := range stores {
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
	for at := range len(stores) - 1 { // of which the last survives
		time.Sleep(time.Duration(50+dice.IntN(80)) * time.Millisecond)
		for _, gone := range []*atomic.Bool{&stores[at].down, &stores[at].deaf, &stores[at].silent} {
			gone.Store(true)
		}
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
