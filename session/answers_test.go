package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// Clients come back for the answers of calls, here and there, at one replica and at two at
// once, while events are made: each event reaches the client once and in order, and the
// answer comes in the end, whatever the store delays or loses. No other stream is disturbed.
func TestAnswerInterleavings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rounds int
		deaf   bool
		killed bool
		lost   float64 // of commands, and of replies
	}{
		{"as it is", testdep.Rounds(60, 1000), false, false, 0},
		{"without hints", testdep.Rounds(40, 300), true, false, 0},
		{"lost commands and replies", testdep.Rounds(40, 300), false, false, 0.05},
		{"the replica is killed", testdep.Rounds(20, 300), false, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			for round := range tt.rounds {
				synctest.Test(t, func(t *testing.T) {
					store := local()
					store.rand, store.deaf = rand.New(rand.NewPCG(seed, uint64(2*round))), tt.deaf
					r := newReplicas(t, 3, store)
					defer r.close()
					r.answers(rand.New(rand.NewPCG(seed, uint64(2*round+1))), tt.lost, tt.killed)
				})
				if t.Failed() {
					t.Logf("in round %d", round)
					return
				}
			}
		})
	}
}

// caller is a client that comes back for one answer until it has that.
type caller struct {
	last   string   // event
	events []string // messages, in their order
	tries  int
}

// take notes what a connection has brought. Not ok means that the answer is there, or was
// lost.
func (c *caller) take(t *testing.T, got []string) (ok bool) {
	for _, e := range got {
		id, message, _ := strings.Cut(e, "=")
		at, valid := parseEventID(id)
		from, _ := parseEventID(c.last)
		if id != "retry" && valid && (at.stream != from.stream || at.event <= from.event) {
			t.Errorf("%s comes after %s", id, c.last)
		}
		if valid {
			c.last = id
		}
		c.events = append(c.events, message)
		if message == "answer" || strings.Contains(message, "executed") {
			return false
		}
	}
	return true
}

// answers is one round of TestAnswerInterleavings.
func (r *replicas) answers(dice *rand.Rand, lost float64, killed bool) {
	t, store := r.t, r.store
	id := r.open(0)
	copies := []*Session{r.at(0, id), r.at(1, id), r.at(2, id)}
	store.within(10*time.Millisecond, lost)
	var mu sync.Mutex
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	pause := func(most int) { time.Sleep(time.Duration(roll(most)) * time.Millisecond) }
	var running sync.WaitGroup
	dead := make(chan struct{})
	const calls = 4
	var callers [calls]caller
	for n := range calls {
		st := copies[0].OpenStream(&sink{broken: true}, protocol.NewID(7))
		c, events, slow := &callers[n], 5+roll(20), []int{2, 30, 3000}[roll(3)]
		c.last = copies[0].history.idOf(st.(*answerStream).number, 1, protocol.NewID(7))
		running.Go(func() {
			for i := range events {
				pause(slow)
				_ = st.Send(fmt.Append(nil, i))
			}
			pause(slow)
			st.End([]byte("answer"))
		})
		running.Go(func() {
			ok := true
			for deadline := time.Now().Add(20 * time.Minute); ok && time.Now().Before(deadline); c.tries++ {
				at := roll(3)
				select {
				case <-dead:
					at = 1 + roll(2)
				default:
				}
				g := serve(copies[at], c.last)
				if roll(4) == 0 { // of two at once, one gets the stream, and the client listens to both
					pause(5)
					other := serve(copies[roll(2)+1], c.last)
					r.wait(other, roll(200))
					other.breakOff()
					other.leave()
					got := other.got
					g.breakOff()
					g.leave()
					if !slices.Equal(got, g.got) && len(got) > 0 && len(g.got) > 0 && got[0] == g.got[0] {
						got = nil // the same is sent to one that was overtaken before
					}
					if len(got) == 0 {
						got = g.got
					}
					ok = c.take(t, got)
					continue
				}
				r.wait(g, []int{10, 300, 20000}[roll(3)])
				g.breakOff() // a client that is gone reads nothing more
				g.leave()
				ok = c.take(t, g.got)
				fault, _ := errors.AsType[*protocol.Error](g.err)
				if fault != nil && fault.Code != protocol.CodeUnavailable && fault.Code != protocol.CodeBusy {
					t.Errorf("%v, after %s", fault, c.last)
					ok = false
				}
				if g.err != nil {
					pause(1000)
				}
			}
			if want := events; ok || !killed && len(c.events) != want+1 || killed && !c.inOrder() {
				t.Errorf("after %d tries there are %q of %d", c.tries, c.events, want)
			}
			for i, e := range c.events[:max(len(c.events)-1, 0)] {
				if !killed && e != fmt.Sprint(i) {
					t.Errorf("%q", c.events)
					break
				}
			}
		})
	}
	if killed {
		pause(3000)
		close(dead)
		r.all[0].resumer.mu.Lock()
		r.all[0].resumer.closed = true
		r.all[0].resumer.mu.Unlock()
		r.office[0].Close(t.Context())
		r.all[0].Close(t.Context(), core.ErrSessionClosed)
	}
	running.Wait()
	store.within(0, 0)
	time.Sleep(time.Minute)
	for i, m := range r.all {
		m.resumer.mu.Lock()
		if len(m.resumer.followers)+len(m.resumer.leaders) > 0 {
			t.Errorf("%d has %d followers and %d leaders", i, len(m.resumer.followers), len(m.resumer.leaders))
		}
		m.resumer.mu.Unlock()
	}
}

// inOrder reports whether the events are in order, and the last one is the answer, or says
// that the call is lost.
func (c *caller) inOrder() bool {
	for i, e := range c.events {
		if i == len(c.events)-1 {
			return e == "answer" || strings.Contains(e, "executed")
		}
		if e != fmt.Sprint(i) {
			return false
		}
	}
	return false
}

// wait waits for a stream to end, but no longer than ms.
func (r *replicas) wait(g *get, ms int) {
	select {
	case <-g.done:
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

// A client that comes back at another replica for an answer costs the store a few commands,
// and a silent call next to nothing.
func TestAnswerCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, 2, local())
		defer r.close()
		id := r.open(0)
		at0, at1 := r.at(0, id), r.at(1, id)
		st := at0.OpenStream(&sink{broken: true}, protocol.NewID(7))
		last := at0.history.idOf(st.(*answerStream).number, 1, protocol.NewID(7))
		asked := func() int64 { return r.store.calls.Load() + r.store.reads.Load() + r.store.mails.Load() }
		cost := func(what string, most int64, do func()) {
			t.Helper()
			synctest.Wait()
			before := asked()
			do()
			synctest.Wait()
			if n := asked() - before; n > most {
				t.Errorf("%s: %d commands, want %d", what, n, most)
			}
		}
		var g *get
		cost("coming back", 6, func() { g = serve(at1, last) })
		for i := range 5 {
			cost("an event", 2, func() { _ = st.Send(fmt.Append(nil, i)) })
		}
		g.wantMessages(t, "0", "1", "2", "3", "4")
		hour := func() int64 {
			synctest.Wait()
			before := r.store.looks.Load()
			time.Sleep(time.Hour)
			synctest.Wait() // timers that fire at this instant count
			return r.store.looks.Load() - before
		}
		with := hour()
		cost("the answer", 3, func() { st.End([]byte(`"answer"`)) })
		<-g.done
		g.wantMessages(t, "0", "1", "2", "3", "4", "answer")
		time.Sleep(time.Minute)
		// Beyond them a replica looks at each other one every 10 s, whatever calls there are.
		if n := with - hour(); n < 20 || n > 24 {
			t.Errorf("a silent call costs %d reads in an hour, want 24", n)
		}
	})
}
