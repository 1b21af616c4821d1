package session

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

var pairs = flag.Int("pairs", 150, "how many pairs of streams TestTwoAtOnce opens")

// Of two streams that are opened at once, at two replicas or at one, one listens a
// second later, and each message that is made meanwhile has gone out on one of them.
func TestTwoAtOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		store := newShaky()
		r := newReplicas(t, 3, store)
		defer r.close()
		dice := rand.New(rand.NewPCG(seed, 1))
		for n := range *pairs {
			store.within(0, 0)
			id := r.open(2)
			copies := []*Session{r.at(0, id), r.at(n%2, id)}
			store.within(10*time.Millisecond, 0)
			var streams [2]*get
			var running sync.WaitGroup
			apart := func(do func()) {
				d := time.Duration(dice.IntN(30)) * time.Millisecond
				running.Go(func() {
					time.Sleep(d)
					do()
				})
			}
			var want []string
			for i := range 8 {
				m, at := fmt.Sprint("m", i), r.at(dice.IntN(3), id)
				want = append(want, m)
				apart(func() {
					if sent, err := at.Route(t.Context(), []byte(`"`+m+`"`)); !sent || err != nil {
						t.Errorf("post %s: %v, %v", m, sent, err)
					}
				})
			}
			begin := time.Duration(dice.IntN(20)) * time.Millisecond
			for i, s := range copies {
				running.Go(func() {
					time.Sleep(begin)
					streams[i] = serve(s, "")
				})
			}
			running.Wait()
			time.Sleep(time.Second)
			if holders := r.holders(id); len(holders) != 1 {
				t.Errorf("%d listen", len(holders))
			}
			var got, ids []string
			for _, g := range streams {
				messages, names := g.messages()
				got, ids = append(got, messages...), append(ids, names...)
			}
			slices.Sort(got)
			slices.Sort(ids)
			if !slices.Equal(got, want) || len(slices.Compact(ids)) != len(want) {
				t.Errorf("got %q under the ids %q, want %q", got, ids, want)
			}
			store.within(0, 0)
			if err := r.all[0].Stop(r.at(0, id), core.ErrSessionDeleted); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if t.Failed() {
				t.Fatalf("in round %d", n)
			}
		}
	})
}

// No two events on the streams of a session have the same id, wherever they are made,
// and however often the stream goes to another replica.
func TestIDsOfManyEvents(t *testing.T) {
	const events = 1000
	moves := testdep.Rounds(10, 100)
	withStream(t, 3, func(t *testing.T, r *replicas, id string, g *get) {
		ids, primed := make(map[string]bool), 0
		for n := range moves {
			at, before := (n+1)%3, g
			g = r.get(at, id, "")
			synctest.Wait()
			for range events / 20 {
				for i := range 20 {
					r.post((at+i%2*(1+n%2))%3, id, fmt.Sprint(i)) // here, and elsewhere
				}
				synctest.Wait()
			}
			before.leave()
			messages, names := g.messages()
			if primed += len(g.primed); len(messages) != events || !r.at(at, id).ownsStream() {
				t.Fatalf("replica %d has sent %d events, want %d", at, len(messages), events)
			}
			for _, name := range append(names, g.primed...) {
				if name == "" || ids[name] {
					t.Fatalf("the id %q twice", name)
				}
				ids[name] = true
			}
		}
		g.leave()
		if len(ids) != moves*events+primed || primed != moves {
			t.Errorf("%d ids, %d of them of streams that began", len(ids), primed)
		}
	})
}
