package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// answerRound is a kind of rounds of TestAnswerInterleavings.
type answerRound struct {
	name   string
	rounds int
	calls  int
	lost   float64 // of commands, and of replies
	deaf   bool    // without hints
	killed bool    // the replica of the calls, at some time
	ends   bool    // the session, at some time and replica
	drops  bool    // the replica of the calls drops its history again and again, and no client comes there
	late   bool    // clients come back a minute after the answers
}

// Clients come back for the answers of calls, here and there, at one replica and at two at
// once, while events are made: each event reaches the client once and in order, and the
// answer comes in the end, whatever the store delays or loses. No other stream is disturbed.
// Nothing is left in the end.
func TestAnswerInterleavings(t *testing.T) {
	for _, tt := range []answerRound{
		{name: "as it is", rounds: testdep.Rounds(60, 1000), calls: 4},
		{name: "without hints", rounds: testdep.Rounds(40, 300), calls: 4, deaf: true},
		{name: "lost commands and replies", rounds: testdep.Rounds(40, 300), calls: 4, lost: 0.05},
		{name: "the replica is killed", rounds: testdep.Rounds(20, 300), calls: 4, killed: true},
		{name: "the session ends", rounds: testdep.Rounds(40, 300), calls: 4, ends: true},
		{name: "the session ends, lost commands and replies", rounds: testdep.Rounds(20, 300), calls: 4, ends: true, lost: 0.05},
		{name: "histories are dropped", rounds: testdep.Rounds(40, 300), calls: 4, drops: true},
		{name: "histories are dropped, lost commands and replies", rounds: testdep.Rounds(20, 300), calls: 4, drops: true, lost: 0.05},
		{name: "more answers than the store keeps", rounds: testdep.Rounds(20, 300), calls: maxSavedAnswers + 4, late: true},
		{name: "more, and histories are dropped", rounds: testdep.Rounds(20, 300), calls: maxSavedAnswers + 4, late: true, drops: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			for round := range tt.rounds {
				synctest.Test(t, func(t *testing.T) {
					store := newShaky()
					store.rand = rand.New(rand.NewPCG(seed, uint64(2*round)))
					store.deaf.Store(tt.deaf)
					r := newReplicas(t, 3, store)
					defer r.close()
					r.answers(rand.New(rand.NewPCG(seed, uint64(2*round+1))), tt)
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
	// How it ends: with the answer or the news that the call is lost; with the session; or
	// nothing is known of the stream.
	done, ended, unknown bool
}

// take notes what a connection has brought.
func (c *caller) take(t *testing.T, got []string) {
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
			c.done = true
			return
		}
	}
}

// answers is one round of TestAnswerInterleavings.
func (r *replicas) answers(dice *rand.Rand, how answerRound) {
	t, store := r.t, r.store
	id := r.open(0)
	copies := []*Session{r.at(0, id), r.at(1, id), r.at(2, id)}
	store.within(10*time.Millisecond, how.lost)
	var mu sync.Mutex
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	pause := func(most int) { time.Sleep(time.Duration(roll(most)) * time.Millisecond) }
	var running, dropping sync.WaitGroup
	dead, over := make(chan struct{}), make(chan struct{})
	callers := make([]caller, how.calls)
	for n := range callers {
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
			if how.late {
				time.Sleep(2 * time.Minute)
			}
			at := func() int {
				select {
				case <-dead:
				default:
					if !how.drops {
						return roll(3)
					}
				}
				return 1 + roll(2)
			}
			c.comesBack(r, copies, roll, at)
			c.check(t, events, how)
		})
	}
	switch {
	case how.killed:
		pause(3000)
		close(dead)
		r.all[0].resumer.closed.Store(true)
		r.office[0].Close(t.Context())
		r.all[0].Close(t.Context(), core.ErrSessionClosed)
	case how.ends:
		pause(10000)
		for i := roll(3); r.all[i].Stop(copies[i], core.ErrSessionDeleted) != nil; {
			pause(100)
		}
	case how.drops:
		dropping.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(roll(2000)) * time.Millisecond):
					copies[0].history.mu.Lock()
					copies[0].history.drop()
					copies[0].history.mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	close(over)
	dropping.Wait()
	if unknown := len(slices.DeleteFunc(slices.Clone(callers), func(c caller) bool { return !c.unknown })); !how.ends && how.lost == 0 && unknown > max(0, how.calls-maxSavedAnswers) {
		t.Errorf("%d answers of %d are unknown", unknown, how.calls)
	}
	store.within(0, 0)
	time.Sleep(time.Minute)
	r.nothingLeft(id, how)
}

// nothingLeft wants no follower and no leader to be left, and no box of a session that has
// ended.
func (r *replicas) nothingLeft(id string, how answerRound) {
	ended := how.ends && how.lost == 0 // otherwise a replica may learn of the end later
	for i, m := range r.all {
		m.resumer.mu.Lock()
		if n := m.resumer.following.Used(); n+len(m.resumer.leaders) > 0 {
			r.t.Errorf("%d has %d followers and %d leaders", i, n, len(m.resumer.leaders))
		}
		m.resumer.mu.Unlock()
		answers := m.resumer.answers
		answers.mu.Lock()
		if n := len(answers.of[id]); ended && n > 0 || n > maxSavedAnswers+how.calls {
			r.t.Errorf("%d has %d boxes", i, n)
		}
		answers.mu.Unlock()
		for stream := range uint64(how.calls) {
			list, reader, err := r.store.Read(r.t.Context(), answerBoxName(id, answers.node, stream+1), 0, "")
			if ended && (len(list) > 0 || reader != "") || err != nil {
				r.t.Errorf("the store has %d messages of stream %d for %q, %v", len(list), stream+1, reader, err)
			}
		}
	}
}

// comesBack comes back for the answer until it is there, or no longer can be. at says
// where.
func (c *caller) comesBack(r *replicas, copies []*Session, roll func(int) int, at func() int) {
	pause := func(most int) { time.Sleep(time.Duration(roll(most)) * time.Millisecond) }
	for deadline := time.Now().Add(20 * time.Minute); !c.done && time.Now().Before(deadline); c.tries++ {
		g := serve(copies[at()], c.last)
		got := &g.got
		if roll(4) == 0 { // of two at once, one gets the stream, and the client listens to both
			pause(5)
			other := serve(copies[roll(2)+1], c.last)
			r.wait(other, roll(200))
			other.breakOff()
			other.leave()
			g.breakOff()
			g.leave()
			// The same may have been sent to one that was overtaken before.
			if same := !slices.Equal(other.got, g.got) && len(other.got) > 0 && len(g.got) > 0 && other.got[0] == g.got[0]; !same && len(other.got) > 0 {
				got = &other.got
			}
			c.take(r.t, *got)
			continue
		}
		r.wait(g, []int{10, 300, 20000}[roll(3)])
		g.breakOff() // a client that is gone reads nothing more
		g.leave()
		c.take(r.t, *got)
		fault, _ := errors.AsType[*protocol.Error](g.err)
		switch {
		case errors.Is(g.err, core.ErrSessionClosed):
			c.ended = true
			return
		case fault != nil && fault.Code == protocol.CodeInvalidRequest:
			c.unknown = true
			return
		case fault != nil && fault.Code != protocol.CodeUnavailable && fault.Code != protocol.CodeBusy:
			r.t.Errorf("%v, after %s", fault, c.last)
			return
		case g.err != nil:
			pause(1000)
		}
	}
}

// check wants the events that the client may have in such a round.
func (c *caller) check(t *testing.T, events int, how answerRound) {
	whole := !how.drops
	last := -1
	for i, e := range c.events {
		n, err := strconv.Atoi(e)
		switch end := i == len(c.events)-1; {
		case end && e == "answer" && (!whole || how.killed || how.ends || i == events):
		case end && strings.Contains(e, "executed") && (how.killed || how.ends || how.drops && how.lost > 0): // the save may be lost
		case err != nil || n <= last || whole && n != last+1:
			t.Errorf("%q", c.events)
			return
		default:
			last = n
		}
	}
	if !c.done && !(how.ends && c.ended) && !((how.drops || how.ends) && c.unknown) {
		t.Errorf("after %d tries there are %q of %d", c.tries, c.events, events)
	}
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
		r := newReplicas(t, 2, newShaky())
		defer r.close()
		id := r.open(0)
		at0, at1 := r.at(0, id), r.at(1, id)
		st := at0.OpenStream(&sink{broken: true}, protocol.NewID(7))
		last := at0.history.idOf(st.(*answerStream).number, 1, protocol.NewID(7))
		cost := func(what string, most int64, do func()) {
			t.Helper()
			synctest.Wait()
			before := r.store.commands()
			do()
			synctest.Wait()
			if n := r.store.commands() - before; n > most {
				t.Errorf("%s: %d commands, want %d", what, n, most)
			}
		}
		var g *get
		cost("coming back", 4, func() { g = serve(at1, last) })
		for i := range 5 {
			cost("an event", 2, func() { _ = st.Send(fmt.Append(nil, i)) })
		}
		g.wantMessages(t, "0", "1", "2", "3", "4")
		hour := func() int64 {
			synctest.Wait()
			before := r.store.answers.Load()
			time.Sleep(time.Hour)
			synctest.Wait() // timers that fire at this instant count
			return r.store.answers.Load() - before
		}
		with := hour()
		cost("the answer", 3, func() { st.End([]byte(`"answer"`)) })
		<-g.done
		g.wantMessages(t, "0", "1", "2", "3", "4", "answer")
		time.Sleep(time.Minute)
		// Beyond them a replica looks at each other one every 10 s, whatever calls there are.
		if n := with - hour(); n < 20 || n > 30 { // 36 would be 0.01 a second
			t.Errorf("a silent call costs %d reads in its first hour", n)
		}
	})
}
