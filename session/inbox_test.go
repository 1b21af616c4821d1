package session

import (
	"context"
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
	"github.com/talaria-go/mcp/scale"
)

// A message reaches the stream, wherever both are, and waits where none is open.
func TestPost(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf=", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newShaky()
				store.deaf.Store(deaf)
				r := newReplicas(t, 3, store)
				defer r.close()
				soon := func() { synctest.Wait() }
				if deaf {
					soon = func() { time.Sleep(11 * time.Second) }
				}
				id := r.open(0)
				r.post(1, id, "a", "b") // nobody listens
				r.post(0, id, "c")
				first := r.get(2, id, "")
				soon()
				first.wantMessages(t, "a", "b", "c")
				r.post(2, id, "d") // here
				r.post(1, id, "e") // elsewhere
				soon()
				first.wantMessages(t, "a", "b", "c", "d", "e")

				second := r.get(0, id, "") // another replica takes over
				soon()
				r.post(2, id, "f")
				r.post(1, id, "g")
				r.post(0, id, "h")
				soon()
				first.wantMessages(t, "a", "b", "c", "d", "e")
				if got, _ := second.messages(); len(got) != 3 {
					t.Errorf("the second stream has brought %q", got)
				}
				second.leave() // the first one goes on, when it looks
				time.Sleep(11 * time.Second)
				r.post(1, id, "i")
				soon()
				first.wantMessages(t, "a", "b", "c", "d", "e", "i")
				first.leave()
				r.post(2, id, "j")
				third := r.get(1, id, "")
				soon()
				third.wantMessages(t, "j")
				third.leave()
			})
		})
	}
}

// What a stream costs the store: nothing while it is open, nor for messages that
// are made beside it.
func TestPostCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, 2, newShaky())
		defer r.close()
		id := r.open(0)
		at0, at1 := r.at(0, id), r.at(1, id)
		cost := func(what string, most int64, do func()) {
			t.Helper()
			synctest.Wait()
			before := r.store.commands()
			do()
			synctest.Wait()
			if n := r.store.commands() - before; n != most {
				t.Errorf("%s: %d commands, want %d", what, n, most)
			}
		}
		send := func(s *Session, m string) {
			if sent, err := s.Route(t.Context(), []byte(m)); !sent || err != nil {
				t.Error(sent, err)
			}
		}
		cost("nobody has listened yet", 1, func() { send(at1, `"a"`) })
		cost("nobody listens", 1, func() { send(at1, `"b"`) })
		g := r.get(0, id, "")
		synctest.Wait()
		cost("here", 100, func() {
			for i := range 100 {
				send(at0, fmt.Sprint(i))
				synctest.Wait()
			}
		})
		cost("elsewhere", 2, func() { send(at1, `"b"`) })
		cost("the end", 1, g.leave)
		g = r.get(0, id, "")
		synctest.Wait()
		// Beyond that and what the session costs, it is looked up who listens.
		before := r.store.inboxLooks()
		time.Sleep(idle / 2)
		if n := r.store.inboxLooks() - before; n < 10 || n > 16 { // 18 would be 0.01 a second
			t.Errorf("an idle stream costs %d looks in %v", n, idle/2)
		}
		g.leave()
		before = r.store.inboxLooks()
		time.Sleep(idle / 2)
		if n := r.store.inboxLooks() - before; n != 0 {
			t.Errorf("without a stream there are %d looks", n)
		}
	})
}

// Streams come and go at several replicas while messages are made: afterwards
// there is one listener, and each message has gone out once; or at least once, where
// the store loses commands and replies.
func TestPostInterleavings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rounds int
		deaf   bool
		resume bool          // clients come back after an event that they got
		lost   float64       // of commands, and of replies
		wait   time.Duration // until all is settled
	}{
		{"as it is", testdep.Rounds(200, 1000), false, false, 0, 30 * time.Second},
		{"clients come back", testdep.Rounds(100, 1000), false, true, 0, 30 * time.Second},
		{"without hints", testdep.Rounds(60, 300), true, true, 0, 60 * time.Second},
		{"lost commands and replies", testdep.Rounds(60, 300), false, true, 0.05, 3 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			synctest.Test(t, func(t *testing.T) {
				store := newShaky()
				store.rand = rand.New(rand.NewPCG(seed, 1))
				store.deaf.Store(tt.deaf)
				r := newReplicas(t, 3, store)
				defer r.close()
				dice := rand.New(rand.NewPCG(seed, 2))
				for round := range tt.rounds {
					r.interleave(dice, tt.resume, tt.lost, tt.wait)
					if t.Failed() {
						t.Logf("in round %d", round)
						return
					}
				}
			})
		})
	}
}

// interleave is one round of TestPostInterleavings.
func (r *replicas) interleave(dice *rand.Rand, resume bool, lost float64, wait time.Duration) {
	t, store := r.t, r.store
	// A mutex is held while the state of a session is written, for which a bubble
	// does not let time pass.
	store.within(0, 0)
	id := r.open(dice.IntN(3))
	copies := []*Session{r.at(0, id), r.at(1, id), r.at(2, id)}
	store.within(10*time.Millisecond, lost)
	var mu sync.Mutex
	var streams []*get
	var running sync.WaitGroup
	var accepted []string
	apart := func(most int, do func()) {
		d := time.Duration(dice.IntN(most)) * time.Millisecond
		running.Go(func() {
			time.Sleep(d)
			do()
		})
	}
	for range 2 + dice.IntN(3) {
		s, stays := copies[dice.IntN(3)], time.Duration(dice.IntN(40))*time.Millisecond
		leaves, next, early, slow := dice.IntN(2) == 0, copies[dice.IntN(3)], dice.IntN(3), time.Duration(dice.IntN(20))*time.Millisecond
		open := func(s *Session, last string) *get {
			g := serve(s, last)
			mu.Lock()
			defer mu.Unlock()
			streams = append(streams, g)
			return g
		}
		apart(40, func() {
			g := open(s, "")
			if !leaves {
				return
			}
			time.Sleep(stays)
			if last := g.last(early); resume && last != "" {
				g.abandon(last)
				open(next, last) // and the stream before does not know yet that it has lost its client
				time.Sleep(slow)
			}
			g.leave()
		})
	}
	for n := range 12 {
		s, m := copies[dice.IntN(3)], fmt.Sprint("m", n)
		apart(80, func() {
			sent, err := s.Route(t.Context(), []byte(`"`+m+`"`))
			if lost == 0 && (!sent || err != nil) {
				t.Errorf("post %s: %v, %v", m, sent, err)
			}
			if sent {
				mu.Lock()
				accepted = append(accepted, m)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	time.Sleep(wait)
	store.within(10*time.Millisecond, 0)
	time.Sleep(wait)
	open := slices.ContainsFunc(streams, func(g *get) bool { return !g.over() })
	if n := len(r.holders(id)); open && n != 1 && lost == 0 || n > 1 || !open && n != 0 {
		t.Errorf("%d listeners; a stream is open: %v", n, open)
	}
	streams = append(streams, serve(copies[dice.IntN(3)], ""))
	time.Sleep(wait)
	if n := len(r.holders(id)); n != 1 {
		t.Errorf("%d listeners at last", n)
	}
	var got, late []string
	ids := map[string]string{}
	for _, g := range streams {
		messages, names := g.messages()
		if n := g.abandoned; n >= 0 { // what follows its client does not have
			late = append(late, messages[n:]...)
			messages, names = messages[:n], names[:n]
		}
		for i, name := range names {
			if before, again := ids[name]; name == "" || again && (!resume || before != messages[i]) {
				t.Errorf("the id %q twice", name)
			} else if !again { // or the client has got it twice, as it has asked to
				got = append(got, messages[i])
			}
			ids[name] = messages[i]
		}
	}
	slices.Sort(got)
	slices.Sort(accepted)
	once := slices.Compact(slices.Clone(got))
	if lost == 0 && !resume && !slices.Equal(got, accepted) {
		t.Errorf("got %q, want %q", got, accepted)
	}
	if lost == 0 && len(got) > len(once) {
		t.Errorf("got %q, want each once", got)
	}
	got = append(got, late...)
	for _, m := range accepted {
		if !slices.Contains(got, m) {
			t.Errorf("got %q, without %s", got, m)
		}
	}
	for _, g := range streams {
		g.leave()
	}
	store.within(0, 0)
	if err := r.all[0].Stop(r.at(0, id), core.ErrSessionDeleted); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

// last returns the id of an event that a stream has brought: that of the newest message, or
// one of the few before it; "" if there is none.
func (g *get) last(early int) string {
	ids := g.ids()
	if len(ids) > 0 {
		return ids[max(len(ids)-1-early, 0)]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.primed, "")
}

// ids returns the ids that a stream has brought.
func (g *get) ids() []string { _, ids := g.messages(); return ids }

// A client that comes back at another replica gets what followed the event that it
// had, from the one that it was at, if that is there.
func TestPostComingBack(t *testing.T) {
	withStream(t, 3, func(t *testing.T, r *replicas, id string, first *get) {
		r.post(1, id, "a")
		synctest.Wait()
		r.post(0, id, "b")
		r.post(2, id, "c")
		synctest.Wait()
		first.wantMessages(t, "a", "b", "c") // of which only a has reached the client
		second := r.get(1, id, first.ids()[0])
		synctest.Wait()
		second.wantMessages(t, "b", "c")
		first.leave()

		second.breakOff()
		r.post(2, id, "d") // the client does not get it, and the stream ends
		synctest.Wait()
		<-second.done
		third := r.get(2, id, second.ids()[1])
		synctest.Wait()
		third.wantMessages(t, "d")
		third.leave()

		r.office[2].Close(t.Context()) // and with it what it has sent
		fourth := r.get(0, id, third.ids()[0])
		synctest.Wait()
		r.post(1, id, "e")
		synctest.Wait()
		fourth.wantMessages(t, "e")
		fourth.leave()
	})
}

// An older stream that gets the messages after the newest one has ended is still a stream
// of its own: the client of the newest one does not get them again.
func TestPostOlderStream(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, older *get) {
		newest := r.get(0, id, "")
		synctest.Wait()
		r.post(1, id, "a")
		newest.wantMessages(t, "a")
		newest.leave()
		synctest.Wait()
		r.post(1, id, "b")
		older.wantMessages(t, "b")
		back := r.get(1, id, newest.last(0))
		synctest.Wait()
		r.post(1, id, "c")
		back.wantMessages(t, "c")
		older.wantMessages(t, "b")
		back.leave()
		older.leave()
	})
}

// A client that has come back twice on one stream, because one attempt hung, loses nothing with
// the connection that it gives up, whichever of them counts as the newer one.
func TestPostStreamTwice(t *testing.T) {
	for at := range 2 {
		t.Run(fmt.Sprint("given up at ", at), func(t *testing.T) {
			withStream(t, 2, func(t *testing.T, r *replicas, id string, first *get) {
				r.post(1, id, "a")
				first.wantMessages(t, "a")
				last := first.last(0)
				first.leave()
				synctest.Wait()
				used := r.get(1, id, last)
				synctest.Wait()
				given := r.get(at, id, last)
				synctest.Wait()
				r.post(0, id, "b")
				given.wantMessages(t, "b") // its client is gone, which is not known yet
				given.leave()
				time.Sleep(11 * time.Second)
				used.wantMessages(t, "b")
				r.post(0, id, "c")
				used.wantMessages(t, "b", "c")
				last = used.last(0)
				used.leave()
				r.post(0, id, "d")
				back := r.get(0, id, last)
				back.wantMessages(t, "d")
				back.leave()
			})
		})
	}
}

// A message whose write fails is read again, also if the store accepts the next one meanwhile.
func TestPostWriteFailsBesidePost(t *testing.T) {
	withStream(t, 1, func(t *testing.T, r *replicas, id string, first *get) {
		r.post(0, id, "a")
		first.wantMessages(t, "a")
		first.full = make(chan struct{})
		first.breakOff()
		r.post(0, id, "b")
		synctest.Wait()
		accept := make(chan struct{})
		r.store.accept.Store(&accept)
		posted := make(chan struct{})
		go func() {
			r.post(0, id, "c")
			close(posted)
		}()
		synctest.Wait()
		next := make(chan *get)
		go func() { next <- r.get(0, id, "") }()
		synctest.Wait()
		close(first.full)
		<-first.done
		synctest.Wait()
		close(accept)
		<-posted
		l := <-next
		time.Sleep(11 * time.Second)
		l.wantMessages(t, "b", "c")
		l.leave()
	})
}

// A message whose write fails is not sent: the client gets it on its next stream, whether or not
// that names an event, and with it what waited behind it; wherever that stream is, and whenever
// the write fails.
func TestPostWriteFails(t *testing.T) {
	for at := range 3 { // 2: at the same replica, while the connection before still writes
		for _, resumes := range []bool{false, true} {
			t.Run(fmt.Sprint("next at ", at, ", resumes ", resumes), func(t *testing.T) {
				withStream(t, 2, func(t *testing.T, r *replicas, id string, first *get) {
					r.post(0, id, "a")
					first.wantMessages(t, "a")
					last := ""
					if resumes {
						last = first.last(0)
					}
					holds := at == 2
					if holds {
						first.full = make(chan struct{})
					}
					first.breakOff()
					r.post(1, id, "b", "c")
					synctest.Wait()
					next := r.get(at%2, id, last)
					if holds {
						synctest.Wait()
						close(first.full)
					}
					<-first.done
					time.Sleep(11 * time.Second)
					if got, _ := next.messages(); holds && !resumes {
						if slices.Sort(got); !slices.Equal(got, []string{"b", "c"}) {
							t.Errorf("the stream has brought %q", got)
						}
					} else {
						next.wantMessages(t, "b", "c")
					}
					next.leave()
					again := r.get(1, id, "")
					again.wantMessages(t)
					again.leave()
				})
			})
		}
	}
}

// A message whose write fails comes on the next stream also if the store has got more since than
// it keeps of what was read: here, or on a stream elsewhere.
func TestPostWriteFailsBesideMany(t *testing.T) {
	for at := range 2 {
		t.Run(fmt.Sprint("at ", at), func(t *testing.T) {
			withStream(t, 2, func(t *testing.T, r *replicas, id string, first *get) {
				first.full = make(chan struct{})
				first.breakOff()
				r.post(0, id, "a")
				synctest.Wait()
				next := first
				if at == 1 {
					next = r.get(1, id, "")
					synctest.Wait()
				}
				want := []string{"a"}
				for n := range 3 {
					want = append(want, fmt.Sprint(n, strings.Repeat("x", defaultHistory)))
				}
				r.post(at, id, want[1:]...)
				synctest.Wait()
				close(first.full)
				<-first.done
				if at == 0 {
					next = r.get(0, id, "")
				} else {
					want = append(want[1:], "a")
				}
				time.Sleep(11 * time.Second)
				if got, _ := next.messages(); !slices.Equal(got, want) {
					t.Errorf("the stream has brought %.1q, want %.1q", got, want)
				}
				next.leave()
			})
		})
	}
}

// The same, where what waited behind the message has made room for those of other clients.
func TestPostWriteFailsWithoutRoom(t *testing.T) {
	withStream(t, 1, func(t *testing.T, r *replicas, id string, first *get) {
		first.full = make(chan struct{})
		r.post(0, id, "a")
		synctest.Wait()
		r.post(0, id, "b", "c")
		first.full <- struct{}{}
		synctest.Wait()
		r.at(0, id).dropUnread()
		synctest.Wait()
		long := strings.Repeat("x", defaultHistory)
		r.post(0, id, long, long)
		first.breakOff()
		close(first.full)
		<-first.done
		next := r.get(0, id, first.last(0))
		time.Sleep(11 * time.Second)
		if got, _ := next.messages(); !slices.Equal(got, []string{"c", long, long, "b"}) {
			t.Errorf("the stream has brought %.1q", got)
		}
		next.leave()
	})
}

// An older connection whose client is gone, which nothing has noticed, takes nothing from a
// client that has resumed its stream elsewhere.
func TestPostHalfOpenStream(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, halfOpen *get) {
		r.post(1, id, "a")
		halfOpen.wantMessages(t, "a")
		next := r.get(1, id, halfOpen.last(0))
		synctest.Wait()
		r.post(1, id, "b")
		next.wantMessages(t, "b")
		next.leave()
		r.post(1, id, "c")
		time.Sleep(11 * time.Second)
		halfOpen.wantMessages(t, "a", "b", "c") // "c" is written to a connection without a client
		back := r.get(1, id, next.last(0))
		back.wantMessages(t, "c")
		back.leave()
		halfOpen.leave()
	})
}

// What a replica has read and not sent before it was killed, its client gets at the next
// one, after the event that it names. What nobody has read waits.
func TestPostToDeadReplica(t *testing.T) {
	withStream(t, 3, func(t *testing.T, r *replicas, id string, dead *get) {
		r.post(1, id, "a", "b")
		synctest.Wait()
		dead.wantMessages(t, "a", "b")
		stuck := r.at(0, id)
		stuck.mu.Lock()
		stuck.outbox.newest().wake = func() {} // from now on it sends nothing
		stuck.mu.Unlock()
		r.post(1, id, "c", "d")
		stuck.mu.Lock()
		stuck.inbox.pending = true
		out := stuck.outbox.newest()
		stuck.mu.Unlock()
		if !stuck.inbox.fetch(out) {
			t.Error("nothing was read")
		}
		next := r.get(2, id, dead.ids()[0])
		synctest.Wait()
		next.wantMessages(t, "b", "c", "d")
		r.post(1, id, "e")
		synctest.Wait()
		next.wantMessages(t, "b", "c", "d", "e")
		next.leave()
		dead.leave()
	})
}

// While the store is away no message is accepted, and open streams stay. Afterwards all is
// as before, and nothing that was accepted is lost.
func TestPostStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, 2, newShaky())
		defer r.close()
		id := r.open(0)
		g := r.get(0, id, "")
		synctest.Wait()
		r.store.down.Store(true)
		for i := range 2 {
			s := r.all[i].Local(id)
			if s == nil {
				continue
			}
			if sent, err := s.Route(t.Context(), []byte(`"a"`)); sent || !errors.Is(err, scale.ErrUnavailable) {
				t.Errorf("at %d: %v, %v", i, sent, err)
			}
		}
		time.Sleep(30 * time.Second)
		if g.over() {
			t.Error("the stream has ended")
		}
		r.store.down.Store(false)
		r.post(1, id, "b")
		time.Sleep(2 * time.Second)
		g.wantMessages(t, "b")

		// The stream ends while the store is away, and leaves something.
		r.post(1, id, "c")
		time.Sleep(time.Second)
		g.wantMessages(t, "b", "c")
		r.store.down.Store(true)
		g.leave()
		time.Sleep(30 * time.Second)
		r.store.down.Store(false)
		r.post(0, id, "d")
		next := r.get(1, id, g.ids()[0])
		time.Sleep(30 * time.Second)
		next.wantMessages(t, "c", "d")
		next.leave()
	})
}

// What waits in the store is bounded, and who sends hears of it.
func TestPostFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, 2, newShaky())
		defer r.close()
		for _, size := range []int{inboxBytes / 100, inboxBytes / 3} {
			id := r.open(0)
			var want []string
			for n := range 100 + 1 {
				m := fmt.Sprint(n, strings.Repeat("x", size))
				sent, err := r.at(1, id).Route(t.Context(), []byte(`"`+m+`"`))
				if err != nil {
					t.Fatal(err)
				}
				if !sent {
					break
				}
				want = append(want, m)
			}
			if size < inboxBytes/3 && (len(want) < 95 || len(want) > 99) || size == inboxBytes/3 && len(want) != 2 {
				t.Errorf("%d messages of %d bytes wait", len(want), size)
			}
			g := r.get(0, id, "")
			g.wantMessages(t, want...)
			g.leave()
		}
	})
}

// A session that is deleted at one replica ends its stream at another, and nothing
// of it stays in the store.
func TestPostDeleted(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
		if err := r.all[1].Stop(r.at(1, id), core.ErrSessionDeleted); err != nil {
			t.Fatal(err)
		}
		<-g.done
		synctest.Wait()
	})
}

// A flood of messages from another replica reaches a client that reads, in its
// order, and what replicas have to tell each other besides.
func TestPostFlood(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
		asked := r.at(0, id)
		answered := make(chan error, 1)
		var question protocol.ID
		go func() {
			_, err := asked.Pending.Call(t.Context(), func(message []byte) error { question = questionOf(message); return nil }, "roots/list", nil)
			answered <- err
		}()
		synctest.Wait()
		at1 := r.at(1, id)
		var want []string
		for n := range 1000 {
			m := fmt.Sprint(n)
			if sent, err := at1.Route(t.Context(), []byte(`"`+m+`"`)); !sent || err != nil {
				t.Fatal(m, sent, err)
			}
			want = append(want, m)
			if n == 500 {
				asked.Pending.Answer(&protocol.Message{ID: question, Result: []byte("{}")})
			}
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		g.wantMessages(t, want...)
		g.leave()
	})
}

// The next stream receives the messages that the client did not read on the one before, also if
// the replica has ended that one: at shutdown, or when the client connects to another replica.
func TestPostShutdown(t *testing.T) {
	for name, test := range map[string]struct{ told, closed bool }{
		"closed": {false, true}, "told to end, and closed": {true, true}, "told to end": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
				g.full = make(chan struct{})
				at0 := r.at(0, id)
				for _, m := range []string{"a", "b", "c"} {
					if sent, err := at0.Route(t.Context(), []byte(`"`+m+`"`)); !sent || err != nil {
						t.Fatal(sent, err)
					}
				}
				synctest.Wait()
				if test.told {
					r.all[0].EndStreams(t.Context())
				}
				if test.closed {
					r.all[0].Close(context.Background(), core.ErrSessionClosed)
				}
				next := r.get(1, id, "")
				synctest.Wait()
				g.breakOff()
				close(g.full)
				<-g.done
				next.wantMessages(t, "b", "c", "a") // the first one was on its way when the connection broke
				if at0.outbox.bytes != 0 {
					t.Errorf("%d bytes count for what waits", at0.outbox.bytes)
				}
				next.leave()
			})
		})
	}
}

// A stream whose write fails after its replica was closed is over when the store has the message.
func TestPostWriteFailsAfterClose(t *testing.T) {
	withStream(t, 1, func(t *testing.T, r *replicas, id string, g *get) {
		g.full = make(chan struct{})
		g.breakOff()
		r.post(0, id, "a")
		synctest.Wait()
		r.all[0].Close(context.Background(), core.ErrSessionClosed)
		r.store.within(time.Second, 0)
		close(g.full)
		<-g.done
		r.store.within(0, 0)
		if list, _, err := r.store.Store.Read(t.Context(), boxOf(id), 0, ""); len(list) != 2 || err != nil {
			t.Errorf("the box has %d messages, %v: the message was not added again", len(list), err)
		}
	})
}

// A stream that was told to end sends all that it has, more than waits in the store for
// one, whatever other streams of the session do, and also when the replica is closed.
func TestEndingStreamSendsAll(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprint("closed=", closed), func(t *testing.T) {
			withStream(t, 2, func(t *testing.T, r *replicas, id string, _ *get) { // which is silent
				y := r.get(0, id, "")
				synctest.Wait()
				y.full = make(chan struct{})
				var want []string
				for i := range 2 * 64 {
					want = append(want, fmt.Sprint(i))
				}
				r.post(1, id, want...)
				synctest.Wait()
				r.all[0].EndStreams(t.Context())
				synctest.Wait()
				if closed {
					r.all[0].Close(context.Background(), core.ErrSessionClosed)
				}
				close(y.full)
				<-y.done
				got, ids := y.messages()
				n := len(got) - 1 // the last one tells when to come back
				if n < 1 || !slices.Equal(got[:n], want[:n]) {
					t.Fatalf("the stream has brought %q", got)
				}
				next := r.get(1, id, ids[n-1]) // which has the rest
				time.Sleep(10 * time.Second)
				if rest, _ := next.messages(); !slices.Equal(rest, want[n:]) {
					t.Errorf("after %d messages the next stream has brought %q", n, rest)
				}
				next.leave()
			})
		})
	}
}

// A replica that shuts down ends its streams one after another, and has their
// clients come back at different times.
func TestEndStreamsPace(t *testing.T) {
	const n = 400
	for _, hurried := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newReplicas(t, 1, newShaky())
			defer r.close()
			var streams []*get
			for range n {
				streams = append(streams, r.get(0, r.open(0), ""))
			}
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := n * time.Second / streamEndRate
			if hurried {
				cancel()
				want = 0
			}
			begun := time.Now()
			r.all[0].EndStreams(ctx)
			if took := time.Since(begun); took != want {
				t.Errorf("hurried %v: the streams ended within %v, want %v", hurried, took, want)
			}
			times := map[string]bool{}
			late := 0
			for _, g := range streams {
				<-g.done
				said, _ := g.messages()
				d, err := time.ParseDuration(strings.Join(said, " "))
				if err != nil || d <= 0 || d > 5*time.Second+time.Millisecond {
					t.Fatalf("a client is told %q", said)
				}
				times[said[0]] = true
				if d > 2500*time.Millisecond {
					late++
				}
			}
			if len(times) < n*9/10 || late < n/4 || late > n*3/4 {
				t.Errorf("%d different times, %d of %d in the second half", len(times), late, n)
			}
		})
	}
}
