package topics

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// engine is a Store that can be away, lose hints, be slow, and counts.
type engine struct {
	scale.Store
	away, deaf  atomic.Bool
	lost        atomic.Bool // replies of Put are lost
	read, wrote atomic.Int64
	slow        atomic.Int64           // time that Put takes
	dead        sync.Map               // names of replicas that were killed
	removing    atomic.Pointer[func()] // called once, before a Watcher removes something; nil does nothing
}

func newEngine() *engine { return &engine{Store: scale.NewLocal()} }

func (e *engine) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if e.away.Load() {
		return nil, scale.ErrUnavailable
	}
	e.read.Add(int64(len(looks)))
	return e.Store.Get(ctx, looks...)
}

func (e *engine) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if e.away.Load() {
		return nil, scale.ErrUnavailable
	}
	e.wrote.Add(int64(len(writes)))
	written, err := e.Store.Put(ctx, writes...)
	time.Sleep(time.Duration(e.slow.Load()))
	if e.lost.Load() {
		return nil, scale.ErrUnavailable
	}
	return written, err
}

func (e *engine) Watch(fn func(string, scale.Message), gap func()) scale.Watcher {
	return &watcher{e, e.Store.Watch(func(subject string, m scale.Message) {
		if !e.deaf.Load() {
			fn(subject, m)
		}
	}, gap)}
}

type watcher struct {
	engine *engine
	scale.Watcher
}

func (w *watcher) Remove(subjects ...string) {
	if len(subjects) > 0 {
		if removing := w.engine.removing.Swap(nil); removing != nil {
			(*removing)()
		}
	}
	w.Watcher.Remove(subjects...)
}

// hub is a Hub, and what it was told.
type hub struct {
	*Hub
	mu      sync.Mutex
	told    []string
	failed  int
	offers  map[string]string
	refuses bool      // to be told
	dead    *sync.Map // names of replicas that are gone
}

// open starts a Hub in a bubble, whose clock is the store's.
func open(t *testing.T, store scale.Store) *hub {
	return openWith(t, store, "a secret of 16 bytes or more")
}

// openWith is open for a Hub with secrets.
func openWith(t *testing.T, store scale.Store, secrets ...string) *hub {
	t.Helper()
	var all [][]byte
	for _, secret := range secrets {
		all = append(all, []byte(secret))
	}
	keys, err := seal.New("topics", all...)
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{dead: &sync.Map{}}
	if e, ok := store.(*engine); ok {
		h.dead = &e.dead
	}
	h.Hub = New(Config{
		Store: store, Seal: keys, ReplicaID: fmt.Sprintf("%p", h),
		IsAlive: func(ctx context.Context, node string) (bool, error) {
			if _, err := store.Get(ctx); err != nil {
				return false, err
			}
			_, dead := h.dead.Load(node)
			return !dead, nil
		},
		ListDigests: func() map[string]string {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.offers
		},
		StoreTime: func() scale.Rev { return scale.Rev(time.Now().UnixMicro()) },
		OnChange: func(topic string) bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.refuses {
				return false
			}
			h.told = append(h.told, topic)
			return true
		},
		OnMissed: func(who any, topic string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.told = append(h.told, fmt.Sprint(who, ": ", topic))
		},
		OnError: func(error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.failed++
		},
	})
	h.Start()
	synctest.Wait()
	return h
}

// want wants that these topics were told since the last call, in whatever order.
func (h *hub) want(t *testing.T, when string, topics ...string) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.told)
	if !slices.Equal(h.told, topics) {
		t.Errorf("%s: told %q, want %q", when, h.told, topics)
	}
	h.told = nil
}

func raise(t *testing.T, h *hub, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		if err := h.Publish(topic); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(batchDelay)
	synctest.Wait()
}

// together runs fn in a bubble with some hubs that share an engine.
func together(t *testing.T, n int, fn func(t *testing.T, e *engine, hubs []*hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		var hubs []*hub
		for range n {
			hubs = append(hubs, open(t, e))
		}
		time.Sleep(time.Hour)
		fn(t, e, hubs)
		for _, h := range hubs {
			h.Close(context.Background())
		}
	})
}

// What is raised at one replica is told at the others that have joined it, once,
// and not where it was raised.
func TestRaise(t *testing.T) {
	together(t, 3, func(t *testing.T, e *engine, hubs []*hub) {
		a, b, c := hubs[0], hubs[1], hubs[2]
		for _, h := range hubs {
			h.Subscribe(nil, "x", 0)
		}
		b.Subscribe(nil, "y", 0)
		synctest.Wait()
		raise(t, a, "x", "y", "z")
		a.want(t, "where it was raised")
		b.want(t, "b", "x", "y")
		c.want(t, "c", "x")
		time.Sleep(time.Minute)
		for _, h := range hubs {
			h.want(t, "later")
		}
		for range 3 {
			raise(t, a, "x")
			raise(t, b, "x")
		}
		time.Sleep(time.Minute)
		a.want(t, "raised by b", "x", "x", "x")
		b.want(t, "raised by a", "x", "x", "x")
		c.want(t, "raised by both", "x", "x", "x", "x", "x", "x")
		b.Unsubscribe("x")
		b.Unsubscribe("y")
		raise(t, a, "x", "y")
		b.want(t, "after Leave")
	})
}

// The first change is told at once, and many that follow soon are one.
func TestGather(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		hubs[1].Subscribe(nil, "x", 0)
		synctest.Wait()
		before, begun := e.wrote.Load(), time.Now()
		raise := func() {
			if err := hubs[0].Publish("x"); err != nil {
				t.Fatal(err)
			}
		}
		raise()
		hubs[1].want(t, "after the first", "x")
		for range 1000 {
			raise()
		}
		hubs[1].want(t, "while others gather")
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		time.Sleep(batchDelay)
		hubs[1].want(t, "after a thousand", "x")
		if n := e.wrote.Load() - before; n != 2 {
			t.Errorf("%d writes", n)
		}
	})
}

// A hint that is lost costs the time until the next look.
func TestLostHints(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		hubs[1].Subscribe(nil, "x", 0)
		synctest.Wait()
		e.deaf.Store(true)
		raise(t, hubs[0], "x")
		hubs[1].want(t, "without a hint")
		time.Sleep(replica.PollInterval)
		hubs[1].want(t, "after a look", "x")
		raise(t, hubs[0], "x")
		hubs[1].onGap()
		hubs[1].want(t, "after a gap", "x")
		e.deaf.Store(false)
		time.Sleep(time.Minute)
		hubs[1].want(t, "later")
	})
}

// What changes while the store is away is told within a second after.
func TestAway(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		a, b := hubs[0], hubs[1]
		b.Subscribe(nil, "x", 0)
		synctest.Wait()
		e.away.Store(true)
		raise(t, a, "x")
		b.Subscribe(nil, "late", 0)
		raise(t, a, "late")
		time.Sleep(30 * time.Second)
		b.want(t, "while the store is away")
		e.away.Store(false)
		time.Sleep(time.Second)
		b.want(t, "a second after", "late", "x")
		if a.failed != 1 || b.failed != 1 {
			t.Errorf("told of %d and %d failures, want one each", a.failed, b.failed)
		}
		time.Sleep(time.Minute)
		b.want(t, "later")
	})
}

// A write whose reply was lost is made again.
func TestLostReply(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		hubs[0].Subscribe(nil, "x", 0)
		hubs[1].Subscribe(nil, "x", 0)
		synctest.Wait()
		e.lost.Store(true)
		raise(t, hubs[0], "x")
		hubs[1].want(t, "after a write whose reply is lost", "x")
		e.lost.Store(false)
		time.Sleep(time.Minute)
		hubs[1].want(t, "after the second one", "x")
	})
}

// Who joins while a topic is raised is told, unless it was raised long before.
func TestJoin(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		a, b := hubs[0], hubs[1]
		raise(t, a, "old")
		time.Sleep(time.Minute)
		b.Subscribe(nil, "old", 0)
		time.Sleep(time.Minute)
		b.want(t, "raised long before")

		e.away.Store(true)
		b.Subscribe(nil, "new", 0) // nothing of it is known here
		e.away.Store(false)
		if _, err := e.Put(t.Context(), scale.Write{Key: topicKey("new"), Prev: scale.Any, Value: []byte{}, TTL: topicTTL}); err != nil {
			t.Fatal(err)
		}
		b.onGap()
		b.want(t, "raised before it was watched", "new")

		// Who was told elsewhere until some time wants to hear of what was since.
		mark := scale.Rev(time.Now().UnixMicro())
		time.Sleep(time.Minute)
		raise(t, a, "old", "older")
		b.want(t, "raised", "old")
		time.Sleep(time.Second)
		b.Subscribe("p", "old", mark)
		b.Subscribe("q", "old", scale.Rev(time.Now().UnixMicro()))
		b.Subscribe("r", "older", mark)
		b.Subscribe("s", "older", 0)
		b.want(t, "joined with a mark", "older", "p: old")
		if err := b.Publish("own"); err != nil {
			t.Error(err)
		}
		b.Subscribe("before it is written", "own", mark)
		time.Sleep(batchDelay)
		b.want(t, "joined while it is raised here", "before it is written: own")
		time.Sleep(topicTTL)
		b.Subscribe("t", "other", mark)
		b.want(t, "the mark is old", "t: other")
	})
}

// A topic that is joined while its hints are about to be watched no more is read
// again once they are watched.
func TestJoinWhileLeft(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		a, b := hubs[0], hubs[1]
		b.Subscribe(nil, "x", 0)
		time.Sleep(time.Minute)
		removing := func() {
			b.Subscribe(nil, "x", 0)
			raise(t, a, "x") // before it is watched again
		}
		e.removing.Store(&removing)
		b.Unsubscribe("x")
		time.Sleep(time.Second)
		raise(t, a, "x")
		b.want(t, "at once", "x", "x")
	})
}

// Both replicas raise at once: each tells its own of what the other has raised.
func TestAtOnce(t *testing.T) {
	for _, slow := range []time.Duration{0, time.Second} {
		t.Run(slow.String(), func(t *testing.T) {
			together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
				for _, h := range hubs {
					h.Subscribe(nil, "x", 0)
				}
				raise(t, hubs[0], "x")
				hubs[0].want(t, "at first")
				hubs[1].want(t, "at first", "x")
				e.slow.Store(int64(slow))
				for range 10 {
					for _, h := range hubs {
						if err := h.Publish("x"); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Minute)
					for _, h := range hubs {
						h.want(t, "raised by both", "x")
					}
				}
			})
		})
	}
}

// A thousand streams of one topic cost one read, and a look costs one for each
// topic.
func TestHerd(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		before := e.read.Load()
		for i := range 1000 {
			hubs[0].Subscribe(nil, fmt.Sprint("topic ", i%3), 0)
		}
		synctest.Wait()
		if n := e.read.Load() - before; n != 3 {
			t.Errorf("%d reads, want 3", n)
		}
		before = e.read.Load()
		time.Sleep(replica.PollInterval)
		if n := e.read.Load() - before; n < 3 || n > 6 {
			t.Errorf("%d reads for a look", n)
		}
		for i := range 1000 {
			hubs[0].Unsubscribe(fmt.Sprint("topic ", i%3))
		}
		synctest.Wait()
		if h := hubs[0]; len(h.topics)+len(h.groups)+len(h.unread)+len(h.watched) != 0 {
			t.Errorf("left: %d topics, %d groups, %d unread, %d watched", len(h.topics), len(h.groups), len(h.unread), len(h.watched))
		}
		before = e.read.Load()
		time.Sleep(time.Minute)
		if n := e.read.Load() - before; n != 0 {
			t.Errorf("%d reads without topics", n)
		}
	})
}

// Many topics take turns at being looked at, and all of them are after a gap.
func TestTurns(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		var all []string
		for i := range 3 * maxPolled {
			all = append(all, fmt.Sprint("topic ", i))
			hubs[1].Subscribe(nil, all[i], 0)
		}
		slices.Sort(all)
		synctest.Wait()
		e.deaf.Store(true)
		before := e.read.Load()
		raise(t, hubs[0], all...)
		time.Sleep(5 * time.Second)
		if n := e.read.Load() - before; n < maxPolled || n > 2*maxPolled {
			t.Errorf("%d reads in a look", n)
		}
		time.Sleep(10 * time.Second)
		hubs[1].want(t, "after three looks", all...)
		raise(t, hubs[0], all...)
		hubs[1].onGap()
		hubs[1].want(t, "after a gap", all...)
	})
}

// Mark follows the store's clock where there is something to tell, and stands
// still while the store is away.
func TestMark(t *testing.T) {
	together(t, 2, func(t *testing.T, e *engine, hubs []*hub) {
		h := hubs[0]
		h.Subscribe(nil, "x", 0)
		h.Subscribe(nil, "y", 0)
		synctest.Wait()
		now := func() scale.Rev { return scale.Rev(time.Now().UnixMicro()) }
		age := func(mark scale.Rev) time.Duration { return time.Since(time.UnixMicro(int64(mark))) }
		mark := now()
		time.Sleep(time.Minute)
		if m := h.Checkpoint(nil, mark, "x", "y"); m != mark {
			t.Errorf("nothing was raised: the mark is %v old", age(m))
		}
		raise(t, hubs[1], "y")
		if m := h.Checkpoint(nil, mark, "x", "y"); age(m) > replica.ClockSkew+replica.PollInterval+batchDelay {
			t.Errorf("the mark is %v old", age(m))
		}
		if m := h.Checkpoint(nil, mark, "x"); m != mark {
			t.Errorf("another topic was raised: the mark is %v old", age(m))
		}
		if m := h.Checkpoint(nil, now(), "x", "y"); age(m) != 0 {
			t.Errorf("a mark of now gets %v old", age(m))
		}
		e.away.Store(true)
		time.Sleep(time.Minute)
		if m := h.Checkpoint(nil, mark, "x", "y"); age(m) < time.Minute {
			t.Errorf("while the store is away, the mark is %v old", age(m))
		}
		e.away.Store(false)
		time.Sleep(time.Second)
		if m := h.Checkpoint(nil, mark, "x", "y"); age(m) > replica.ClockSkew+replica.PollInterval {
			t.Errorf("after that, the mark is %v old", age(m))
		}
		time.Sleep(topicTTL)
		if m := h.Checkpoint(nil, mark, "x"); age(m) > replica.ClockSkew+replica.PollInterval {
			t.Errorf("a day later, the mark is %v old", age(m))
		}
	})
}

// What nobody takes is bounded.
func TestFull(t *testing.T) {
	together(t, 1, func(t *testing.T, e *engine, hubs []*hub) {
		e.away.Store(true)
		var err error
		n := 0
		for ; err == nil && n < 10*maxPending; n++ {
			err = hubs[0].Publish(fmt.Sprint(n))
		}
		if err == nil || !strings.Contains(err.Error(), "wait") || n > maxPending+2*batchSize {
			t.Errorf("after %d: %v", n, err)
		}
		e.away.Store(false)
		time.Sleep(time.Minute)
		raise(t, hubs[0], "again")
	})
}

// Close raises what waits.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		a, b := open(t, e), open(t, e)
		var all []string
		for i := range 2 * batchSize {
			all = append(all, fmt.Sprint(i))
			b.Subscribe(nil, all[i], 0)
			if err := a.Publish(all[i]); err != nil {
				t.Error(err)
			}
		}
		slices.Sort(all)
		a.Close(t.Context())
		b.want(t, "after Close", all...)
		e.away.Store(true)
		if err := b.Publish("x"); err != nil {
			t.Error(err)
		}
		for range 3 {
			b.Close(t.Context()) // gives up
		}
	})
}

// What could not be told is told again, and entries of others can be followed.
func TestFollow(t *testing.T) {
	together(t, 1, func(t *testing.T, e *engine, hubs []*hub) {
		h, key := hubs[0], scale.Key{Partition: "others", Name: "one"}
		refuse := func(refuses bool) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refuses = refuses
		}
		write := func() {
			if _, err := e.Put(t.Context(), scale.Write{Key: key, Prev: scale.Any, Value: []byte("x"), TTL: time.Hour, Notify: key.Partition}); err != nil {
				t.Fatal(err)
			}
		}
		h.Watch("the one", key)
		synctest.Wait()
		write()
		h.want(t, "written", "the one")
		refuse(true)
		write()
		time.Sleep(10 * time.Second)
		h.want(t, "nobody takes it")
		refuse(false)
		time.Sleep(time.Second)
		h.want(t, "somebody takes it", "the one")
		h.Unwatch(key)
		write()
		time.Sleep(time.Minute)
		h.want(t, "after Unfollow")
	})
}
