package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// fleet is several Managers that share a Store. ends gets the name of the one
// that runs the end of a session, and why.
type fleet struct {
	store *shaky
	all   []*Manager
	mu    sync.Mutex
	ends  []string
}

// withFleet runs a test, in a bubble, with a fleet.
func withFleet(t *testing.T, n int, test func(t *testing.T, f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, n)
		defer f.close()
		test(t, f)
	})
}

// newFleet makes a fleet in a bubble, which must be closed before the bubble
// ends.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	keys, err := seal.New("session", []byte("a secret of 16 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{store: newShaky()}
	for i := range n {
		f.all = append(f.all, NewManager(Config{
			Store: f.store, Seal: keys, ReplicaID: fmt.Sprintf("n%d", i), IdleTimeout: idle,
			OnRestoredEnd: func(_ *Session, reason error) { f.ended(i, reason) },
		}))
	}
	for i, m := range f.all {
		m.StartReplication(func(id string, ended bool) {
			for j, other := range f.all {
				if j != i {
					other.HandleChange(id, ended)
				}
			}
		})
	}
	return f
}

func (f *fleet) close() {
	for _, m := range f.all {
		m.Close(context.Background(), core.ErrSessionClosed)
	}
}

func (f *fleet) ended(i int, reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ends = append(f.ends, fmt.Sprint(i, ": ", reason))
}

// took returns the ends since it was last called.
func (f *fleet) took() (ends []string) {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	ends, f.ends = f.ends, nil
	return ends
}

// open opens a session at the first, and uses it.
func (f *fleet) open(t *testing.T) string {
	t.Helper()
	s, err := f.all[0].Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125})
	if err != nil {
		t.Fatal(err)
	}
	s.OnEnd(func(reason error) { f.ended(0, reason) })
	s.Use()
	s.SetInitialized()
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	return s.ID()
}

// at returns the session at one of them.
func (f *fleet) at(t *testing.T, i int, id string) *Session {
	t.Helper()
	s, err := f.all[i].Find(t.Context(), id)
	if s == nil || err != nil {
		t.Fatalf("the session is not found at %d: %v", i, err)
	}
	return s
}

// use has one of them serve a request.
func (f *fleet) use(t *testing.T, i int, id string, serve func(s *Session)) {
	t.Helper()
	s := f.at(t, i, id)
	s.Use()
	serve(s)
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
}

// want wants these ends, and the store to have nothing of the session.
func (f *fleet) want(t *testing.T, id string, ends ...string) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := strings.Join(f.ends, "; "); got != strings.Join(ends, "; ") {
		t.Errorf("ended %q, want %q", got, ends)
	}
	if id == "" {
		return
	}
	if found, err := f.store.Store.Get(t.Context(), scale.GetOp{Key: sessionKey(id)}); err != nil || found[0].Rev != 0 {
		t.Errorf("the store still has the session: %v", err)
	}
	for i, m := range f.all {
		if s, err := m.Find(t.Context(), id); s != nil || err != nil {
			t.Errorf("%d still has the session: %v", i, err)
		}
	}
}

// What one replica changes the next request finds, wherever it comes.
func TestShared(t *testing.T) {
	withFleet(t, 3, func(t *testing.T, f *fleet) {
		id := f.open(t)
		for round := range 6 {
			f.use(t, round%3, id, func(s *Session) {
				n, _ := frameIn(s).Get("n")
				if round > 0 && n != round-1 || !s.Initialized() || round > 1 && !s.Subscribed(fmt.Sprint("u", round-1)) || s.Subscribed(fmt.Sprint("u", round-2)) {
					t.Errorf("round %d: n %v, initialized %v, subscriptions %v", round, n, s.Initialized(), s.subscriptions.uris)
				}
				frameIn(s).Set("n", round)
				s.Subscribe(fmt.Sprint("u", round), 10)
				s.Unsubscribe(fmt.Sprint("u", round-1))
				s.SetLogLevel(protocol.LevelDebug + protocol.Level(round%3))
			})
		}
	})
}

// What requests at two replicas change at the same time is kept of both.
func TestSharedConflict(t *testing.T) {
	withFleet(t, 3, func(t *testing.T, f *fleet) {
		id := f.open(t)
		f.use(t, 0, id, func(s *Session) {
			f.use(t, 1, id, func(s *Session) {
				f.use(t, 2, id, func(s *Session) { cartKey.Set(frameIn(s), cart{[]string{"tea"}}) })
				s.Subscribe("u", 9)
				frameIn(s).Set("b", 2)
			})
			// Meanwhile another request comes here and finds what is new.
			f.use(t, 0, id, func(s *Session) {
				if b, _ := frameIn(s).Get("b"); b != 2 {
					t.Errorf("b is %v while another request is under way", b)
				}
			})
			s.SetLogLevel(protocol.LevelError)
			frameIn(s).Set("a", 1)
		})
		for i := range f.all {
			f.use(t, i, id, func(s *Session) {
				a, _ := frameIn(s).Get("a")
				b, _ := frameIn(s).Get("b")
				items, _ := cartKey.Get(frameIn(s))
				if a != 1 || b != 2 || len(items.Items) != 1 || !s.Subscribed("u") || s.LogLevel() != protocol.LevelError {
					t.Errorf("%d: a %v, b %v, %v, %v", i, a, b, items, s.LogLevel())
				}
			})
		}
	})
}

// A request that changes nothing is one look, one that changes something one
// write more.
func TestSharedCommands(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		step := func(what string, gets, puts int64, change func(s *Session)) {
			t.Helper()
			f.store.gets.Store(0)
			f.store.puts.Store(0)
			f.use(t, 0, id, change)
			if g, p := f.store.gets.Load(), f.store.puts.Load(); g != gets || p != puts {
				t.Errorf("%s: %d looks and %d writes, want %d and %d", what, g, p, gets, puts)
			}
		}
		nothing := func(*Session) {}
		step("nothing new", 1, 0, nothing)
		step("initialized again", 1, 0, func(s *Session) { s.SetInitialized() })
		step("level", 1, 1, func(s *Session) { s.SetLogLevel(protocol.LevelDebug) })
		step("the same level", 1, 0, func(s *Session) { s.SetLogLevel(protocol.LevelDebug) })
		step("there and back", 1, 0, func(s *Session) { s.SetLogLevel(protocol.LevelError); s.SetLogLevel(protocol.LevelDebug) })
		step("subscription", 1, 1, func(s *Session) { s.Subscribe("u", 1) })
		step("the end of none", 1, 0, func(s *Session) { s.Unsubscribe("v") })
		step("assign", 1, 1, func(s *Session) { frameIn(s).Set("a", 1) })
		step("reading", 1, 0, func(s *Session) { frameIn(s).Get("a") })
		step("a conflict", 2, 3, func(s *Session) {
			frameIn(s).Set("a", 2)
			f.use(t, 1, id, func(s *Session) { frameIn(s).Set("b", 2) })
		})
	})
}

// A session ends once, when no replica has used it for the idle time.
func TestSharedIdle(t *testing.T) {
	for _, tt := range []struct {
		what string
		do   func(t *testing.T, f *fleet, id string)
	}{
		{"never used again", func(*testing.T, *fleet, string) {}},
		{"used elsewhere", func(t *testing.T, f *fleet, id string) {
			for range 8 {
				time.Sleep(idle * 2 / 3)
				f.use(t, 1, id, func(*Session) {})
			}
		}},
		{"a long request", func(t *testing.T, f *fleet, id string) {
			f.use(t, 1, id, func(*Session) { time.Sleep(5 * idle) })
		}},
		{"a stream alone", func(t *testing.T, f *fleet, id string) {
			release := f.at(t, 2, id).retain()
			time.Sleep(5 * idle)
			release()
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			withFleet(t, 3, func(t *testing.T, f *fleet) {
				id := f.open(t)
				tt.do(t, f, id)
				f.want(t, "")
				f.use(t, 0, id, func(*Session) {}) // it is still there
				time.Sleep(2 * idle)
				if ends := f.took(); len(ends) != 1 || !strings.HasSuffix(ends[0], core.ErrSessionIdle.Error()) {
					t.Errorf("ended %q, want once, as nobody used it", ends)
				}
				f.want(t, id)
			})
		})
	}
}

// Whoever comes at the last moment has a session that lives on.
func TestSharedLastMoment(t *testing.T) {
	withFleet(t, 3, func(t *testing.T, f *fleet) {
		var ids []string
		for range testdep.Rounds(200, 200) {
			ids = append(ids, f.open(t))
		}
		time.Sleep(unusedTTL - time.Millisecond)
		for i := range 8 {
			for _, id := range ids {
				f.use(t, i%3, id, func(*Session) {})
			}
			time.Sleep(idle - time.Millisecond)
		}
		f.want(t, "")
	})
}

// A stream here keeps a session that another replica changes.
func TestSharedStreamOfChanged(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		s := f.at(t, 0, id)
		release := s.retain()
		f.use(t, 1, id, func(s *Session) { s.Subscribe("u", 9) })
		time.Sleep(3 * idle)
		f.want(t, "")
		if s.Ended() || !s.Subscribed("u") {
			t.Errorf("ended %v, subscribed %v", s.Ended(), s.Subscribed("u"))
		}
		release()
	})
}

// Who opens a stream while another replica takes on a subscription hears of it, though
// nobody listened yet when the other told of that.
func TestSharedStreamOpens(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		for _, m := range f.all {
			m.config.Topics = topics.New(topics.Config{StoreTime: func() scale.Rev { return 1 }})
		}
		id := f.open(t)
		s := f.at(t, 0, id)
		f.use(t, 1, id, func(s *Session) { s.Subscribe("u", 9) })
		g := serve(s, "")
		defer g.leave()
		synctest.Wait()
		if !s.Subscribed("u") {
			t.Error("the stream does not hear of what its client has subscribed to")
		}
	})
}

// Ends that take long run once each, and keep nobody from renewing.
func TestSharedSlowEnds(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		var ended atomic.Int64
		for _, m := range f.all {
			m.config.OnRestoredEnd = func(*Session, error) {
				time.Sleep(time.Second)
				ended.Add(1)
			}
		}
		for range 100 {
			f.use(t, 1, f.open(t), func(*Session) {})
		}
		f.took()
		time.Sleep(3 * idle)
		if n := ended.Load(); n != 100 {
			t.Errorf("%d ends of 100 sessions", n)
		}
	})
}

// What a request changes while another brings news from the store is not undone.
func TestSharedChangeMeanwhile(t *testing.T) {
	mine := &snapshot{ID: "x", Revision: "2025-11-25", LogLevel: protocol.LevelInfo, Subscriptions: []string{"a"}}
	s, err := restore(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	s.SetLogLevel(protocol.LevelError)
	s.Subscribe("b", 9)
	frameIn(s).Set("n", 2)
	next := *mine
	next.Subscriptions, next.Initialized = []string{"c"}, true
	if err := s.apply(mine, &next); err != nil {
		t.Fatal(err)
	}
	if n, _ := frameIn(s).Get("n"); n != 2 || s.LogLevel() != protocol.LevelError || !s.Initialized() ||
		s.Subscribed("a") || !s.Subscribed("b") || !s.Subscribed("c") {
		t.Errorf("n %v, level %v, %v", n, s.LogLevel(), s.subscriptions.uris)
	}
}

// A session that finds no place here takes none in the store.
func TestSharedRefused(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleet) {
		m := f.all[0]
		m.Close(context.Background(), core.ErrSessionClosed)
		for range 10 {
			if _, err := m.Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125}); err == nil {
				t.Fatal("opened after the end")
			}
		}
		for part := range partitions {
			due, err := f.store.ClaimDue(t.Context(), partition(part), dueIndex, "x", 100, time.Minute)
			if err != nil || len(due) > 0 {
				t.Errorf("part %d: %v, %v", part, due, err)
			}
		}
		time.Sleep(2 * unusedTTL)
		for part := range partitions {
			if due, err := f.store.ClaimDue(t.Context(), partition(part), dueIndex, "x", 100, time.Minute); err != nil || len(due) > 0 {
				t.Errorf("part %d has %d, %v", part, len(due), err)
			}
		}
	})
}

// A client that opens a session and never uses it costs a minute.
func TestSharedFresh(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleet) {
		time.Sleep(idle / 4) // a round: from then on it ends what is due
		s, err := f.all[0].Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125})
		if err != nil {
			t.Fatal(err)
		}
		s.Use() // initialize
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idle/4 + 2*unusedTTL)
		f.want(t, s.ID(), "0: "+core.ErrSessionIdle.Error())
	})
}

// What requests look at says whether a session has to be renewed: of the replicas that
// they come to one does so, now and then, and it lives for its idle time.
func TestOneRenews(t *testing.T) {
	withFleet(t, 4, func(t *testing.T, f *fleet) {
		id := f.open(t)
		serve := func(times int) {
			for range times {
				for _, m := range f.all {
					time.Sleep(idle / 60)
					s, err := m.Find(t.Context(), id)
					if err != nil || s == nil {
						t.Fatalf("got %v, %v", s, err)
					}
					s.Use()
					if err := s.Release(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		time.Sleep(f.all[0].renewInterval() / 2) // a tick during a request knows nothing yet of what its look finds
		serve(20)                                // until all have met it, and know that the store answers
		before, began := f.store.renews.Load(), time.Now()
		serve(100)
		if n, most := f.store.renews.Load()-before, int64(time.Since(began)/(idle*3/8))+1; n == 0 || n > most {
			t.Errorf("in %v it was renewed %d times, want %d at most", time.Since(began), n, most)
		}
		time.Sleep(idle - idle/60 - time.Millisecond)
		serve(1)
	})
}

// Whoever is asked ends a session, once: for its client, for all replicas.
func TestSharedEnd(t *testing.T) {
	withFleet(t, 3, func(t *testing.T, f *fleet) {
		id := f.open(t)
		ctx, release := context.WithCancel(context.Background())
		busy := f.at(t, 2, id)
		busy.Use()
		go func() {
			<-busy.Context().Done()
			_ = busy.Release()
			release()
		}()
		if _, err := f.all[1].Find(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		var ending sync.WaitGroup
		for range 4 {
			ending.Go(func() {
				if _, err := f.all[1].end(t.Context(), id, core.ErrSessionDeleted); err != nil {
					t.Error(err)
				}
			})
		}
		ending.Wait()
		<-ctx.Done() // the call at another replica was told
		f.want(t, id, "1: "+core.ErrSessionDeleted.Error())
	})
}

// While a request runs where a session was ended, nobody else ends it, and
// nobody uses it.
func TestSharedEndWaits(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		f.use(t, 0, id, func(s *Session) {
			if _, err := f.all[0].end(t.Context(), id, core.ErrSessionDeleted); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * endLeaseTTL) // the handler ignores its end
			if s, err := f.all[1].Find(t.Context(), id); s != nil || err != nil {
				t.Errorf("found while it ends: %v", err)
			}
			f.want(t, "")
		})
		f.want(t, id, "0: "+core.ErrSessionDeleted.Error())
	})
}

// What a replica that dies had begun to end, another one ends, for the same
// reason.
func TestSharedEndElsewhere(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		s := f.at(t, 0, id)
		if mine, err := f.all[0].acquireEnd(t.Context(), s, core.ErrSessionDeleted); !mine || err != nil {
			t.Fatal(mine, err)
		}
		f.all[0].Close(context.Background(), core.ErrSessionClosed) // it finishes nothing
		time.Sleep(idle)
		f.want(t, id, "1: "+core.ErrSessionDeleted.Error())
	})
}

// A Store that is away ends nothing, and nothing is lost that was acknowledged.
func TestSharedStoreAway(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		id := f.open(t)
		s := f.at(t, 0, id)
		s.Use()
		frameIn(s).Set("a", 1)
		f.store.down.Store(true)
		if err := s.Release(); !errors.Is(err, scale.ErrUnavailable) {
			t.Errorf("Release: %v", err)
		}
		if s, err := f.all[1].Find(t.Context(), id); s != nil || !errors.Is(err, scale.ErrUnavailable) {
			t.Errorf("Get: %v, %v", s, err)
		}
		if _, err := f.all[0].end(t.Context(), id, core.ErrSessionDeleted); !errors.Is(err, scale.ErrUnavailable) {
			t.Errorf("End: %v", err)
		}
		if _, err := f.all[0].Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125}); !errors.Is(err, scale.ErrUnavailable) {
			t.Errorf("Open: %v", err)
		}
		s.Use() // a long request, which cannot be renewed
		time.Sleep(3 * idle)
		f.store.down.Store(false)
		time.Sleep(endLeaseTTL / 2)
		if err := s.Release(); err != nil {
			t.Errorf("Release when the store is back: %v", err)
		}
		f.want(t, "")
		f.use(t, 1, id, func(s *Session) {
			if a, _ := frameIn(s).Get("a"); a != 1 {
				t.Errorf("a is %v", a)
			}
		})
	})
}

// A state that cannot be opened is no session that has ended: another replica
// may have the key.
func TestSharedForeignKey(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleet) {
		id := f.open(t)
		keys, _ := seal.New("session", []byte("another secret of 16 bytes"))
		other := NewManager(Config{Store: f.store, Seal: keys, ReplicaID: "other", IdleTimeout: idle})
		defer other.Close(context.Background(), core.ErrSessionClosed)
		if s, err := other.Find(t.Context(), id); s != nil || err == nil {
			t.Errorf("Get with another key: %v, %v", s, err)
		}
		f.use(t, 0, id, func(*Session) {})
	})
}

// Keys are replaced while a session lives: what the old one sealed is sealed
// anew by the next request, even if that changes nothing, or while a stream is all
// that the session is used for.
func TestSharedKeys(t *testing.T) {
	for name, use := range map[string]func(s *Session) error{
		"a request": func(s *Session) error { s.Use(); return s.Release() },
		"a stream": func(s *Session) error {
			defer s.retain()()
			time.Sleep(idle / 2)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { sharedKeys(t, use) })
	}
}

func sharedKeys(t *testing.T, use func(s *Session) error) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		before, after := []byte("the key that goes away"), []byte("the key that comes")
		manager := func(secrets ...[]byte) *Manager {
			keys, err := seal.New("session", secrets...)
			if err != nil {
				t.Fatal(err)
			}
			return NewManager(Config{Store: store, Seal: keys, IdleTimeout: idle})
		}
		first, both, last := manager(before), manager(after, before), manager(after)
		for _, m := range []*Manager{first, both, last} {
			m.StartReplication(nil)
			defer m.Close(context.Background(), core.ErrSessionClosed)
		}
		s, err := first.Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := last.Find(t.Context(), s.ID()); err == nil {
			t.Error("what the old key sealed opens without it")
		}
		s, err = both.Find(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := use(s); err != nil {
			t.Fatal(err)
		}
		if s, err := last.Find(t.Context(), s.ID()); s == nil || err != nil {
			t.Errorf("after it was sealed anew: %v, %v", s, err)
		}
	})
}

// No two processes give events the same id, and none takes the id of another
// for its own.
func TestEventIDsAfterMove(t *testing.T) {
	first := kept(t, protocol.V20251125, 0)
	var to sink
	stream := first.OpenStream(&to, protocol.ID{})
	sendAll(t, stream, "a")
	to.want(t, "1-1= 1-2=a")

	m := NewManager(Config{Store: scale.NewLocal(), ReplicaID: "n7"})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	restored, err := restore(t.Context(), first.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	second, err := m.add(restored)
	if err != nil {
		t.Fatal(err)
	}
	stream = second.OpenStream(&to, protocol.ID{})
	stream.End([]byte("b"))
	const node = ".n7"
	to.want(t, "1-1"+node+"= 1-2"+node+"=b")
	for id, want := range map[string]bool{"1-1": false, "1-1" + node: true, "1-1.1": false, "1-1" + node + ".1": false} {
		if _, _, err := second.history.resume(id, &to, nil); (err == nil) != want {
			t.Errorf("Resume(%q) = %v, want %v", id, err, want)
		}
	}
	to.want(t, "1-2"+node+"=b")
	if _, _, err := first.history.resume("1-1"+node, &to, nil); err == nil {
		t.Error("the first process takes an id of the second for its own")
	}

	own := func(s *Session, message string) string {
		t.Helper()
		out, leave := listen(s, "")
		defer leave()
		if err := s.inbox.take(t.Context(), s.outbox.newest(), ""); err != nil {
			t.Error(err)
		}
		s.Send([]byte(message))
		id, got, _ := s.next(out)
		from, ok := parseEventID(id)
		if string(got) != message || !ok || from.String() != id || !isUnsolicited(id) || !strings.Contains(id, node) {
			t.Errorf("own stream: id %q, %q", id, got)
		}
		return id
	}
	id := own(second, "c")

	// A session that leaves and comes back gives no id again.
	m.evictCopy(second, core.ErrSessionIdle)
	if restored, err = restore(t.Context(), first.snapshot()); err != nil {
		t.Fatal(err)
	}
	third, err := m.add(restored)
	if err != nil {
		t.Fatal(err)
	}
	third.OpenStream(&to, protocol.ID{}).End(nil)
	to.want(t, "2-1"+node+"=")
	if own(third, "d") == id {
		t.Errorf("the id %q comes again", id)
	}
}

// A Store is asked for what can be an id alone.
func TestStoreIsAskedForIDsAlone(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleet) {
		f.store.down.Store(true)
		for _, id := range []string{"", "x", strings.Repeat("A", 1<<20), "../../etc/passwd", "AAAAAAAAAAAAAAAAAAAAA\x00", "AAAAAAAAAAAAAAAAAAAA' --"} {
			if s, err := f.all[0].Find(t.Context(), id); s != nil || err != nil {
				t.Errorf("%.30q: %v, %v; want no session, without a word of the Store", id, s, err)
			}
		}
		if _, err := f.all[0].Find(t.Context(), replica.NewID()); err == nil {
			t.Error("the Store is not asked for what can be one")
		}
	})
}

// What a principal asks for that is another's lives no longer for it: the request costs
// what one costs for a session that is not there, and has the same answer.
func TestSessionOfAnother(t *testing.T) {
	for _, tt := range []struct {
		what   string
		shared bool
		at     int  // where the other one asks; the session was opened at 0
		used   bool // after initialize
	}{
		{"in one process", false, 0, true},
		{"with a copy", true, 0, true},
		{"without a copy", true, 1, true},
		{"never used", true, 1, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{store: newShaky(), all: []*Manager{NewManager(Config{IdleTimeout: idle})}}
				if tt.shared {
					f = newFleet(t, 2)
				}
				defer f.close()
				s, err := f.all[0].Open(t.Context(), core.ClientInfo{Revision: protocol.V20251125, Principal: "ann"})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan time.Time, 1)
				note := func(*Session, error) { ended <- time.Now() }
				s.OnEnd(func(reason error) { note(s, reason) })
				for _, m := range f.all {
					m.config.OnRestoredEnd = note
				}
				s.Use()
				if err := s.Release(); err != nil {
					t.Fatal(err)
				}
				if tt.used {
					if s, err = f.all[0].Get(t.Context(), "ann", s.ID()); s == nil || err != nil {
						t.Fatalf("her own: %v, %v", s, err)
					}
					s.Use()
					if err := s.Release(); err != nil {
						t.Fatal(err)
					}
				}
				m, begun, lives := f.all[tt.at], time.Now(), idle+idle/2
				if tt.shared { // each part has its turn once in so many ticks, and not every turn ends something
					lives = m.dueAfter(m.idleTimeout(s)) + 3*partitions*m.renewInterval()
				}
				here, count := m.Local(s.ID()), m.Count()
				ask := func(id string) (looks int64, err error) {
					f.store.gets.Store(0)
					found, err := m.Get(t.Context(), "bob", id)
					if found != nil {
						t.Error("the session of another is found")
					}
					return f.store.gets.Load(), err
				}
				for n := 0; len(ended) == 0 && time.Since(begun) < 10*idle; n++ {
					looks, err := ask(s.ID())
					if unknown, _ := ask(replica.NewID()); looks != unknown || err != nil {
						t.Fatalf("%d looks, want %d: %v", looks, unknown, err)
					}
					if n == 0 && (m.Local(s.ID()) != here || m.Count() != count) {
						t.Errorf("there is a copy now")
					}
					if n == 0 && tt.shared {
						f.store.down.Store(true)
						if _, err := ask(s.ID()); !errors.Is(err, scale.ErrUnavailable) {
							t.Errorf("while the store is away: %v", err)
						}
						f.store.down.Store(false)
					}
					time.Sleep(lives / 16)
					synctest.Wait()
				}
				select {
				case at := <-ended:
					if lived := at.Sub(begun); lived > lives {
						t.Errorf("it has lived for %v, want %v at most", lived, lives)
					}
				default:
					t.Error("it lives for ever")
				}
			})
		})
	}
}
