package session

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
)

// crowdedStore is a Store that takes its time, and notes how many use it at once.
type crowdedStore struct {
	scale.Store
	takes     time.Duration // a write
	looks     time.Duration // a look at a session
	now, most atomic.Int64
}

// use notes a use of the store, which takes its time.
func (c *crowdedStore) use(takes time.Duration) {
	if takes == 0 {
		return
	}
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	time.Sleep(takes)
}

func (c *crowdedStore) Put(ctx context.Context, w ...scale.Write) ([]scale.Entry, error) {
	c.use(c.takes)
	return c.Store.Put(ctx, w...)
}

func (c *crowdedStore) Take(ctx context.Context, t scale.Take) (scale.Box, error) {
	c.use(c.takes)
	return c.Store.Take(ctx, t)
}

func (c *crowdedStore) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if strings.HasPrefix(looks[0].Key.Partition, "session") {
		c.use(c.looks)
	}
	return c.Store.Get(ctx, looks...)
}

// crowd runs test, in a bubble, with a replica that has many sessions with a stream.
func crowd(t *testing.T, count int, test func(t *testing.T, r *replicas, store *crowdedStore, ids []string, streams []*get)) {
	synctest.Test(t, func(t *testing.T) {
		store := &crowdedStore{Store: scale.NewLocal()}
		r := newReplicas(t, 2, &shaky{Store: store})
		defer r.close()
		var ids []string
		var streams []*get
		for range count {
			id := r.open(0)
			ids, streams = append(ids, id), append(streams, r.get(0, id, ""))
		}
		synctest.Wait()
		test(t, r, store, ids, streams)
		store.takes = 0
	})
}

// When all clients hang up at once, what is done for them does not use up what the
// store can do for others.
func TestManyLeaveAtOnce(t *testing.T) {
	const count = 1000
	crowd(t, count, func(t *testing.T, _ *replicas, store *crowdedStore, ids []string, streams []*get) {
		store.takes = 10 * time.Millisecond
		var left sync.WaitGroup
		for _, g := range streams {
			left.Go(g.leave)
		}
		left.Wait()
		time.Sleep(store.takes * count / maxBackground * 4) // at most two writes each, in turns
		if most := store.most.Load(); most == 0 || most > maxBackground {
			t.Errorf("%d use the store at once", most)
		}
		store.wantNobody(t, ids)
	})
}

// What is looked up beside the requests when many streams open at once does not use up
// the store either; nor does it that many sessions are renewed.
func TestManyAreLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &crowdedStore{Store: scale.NewLocal(), looks: 10 * time.Millisecond}
		r := newReplicas(t, 1, &shaky{Store: store})
		defer r.close()
		m := r.all[0]
		for what, look := range map[string]func(){
			"streams that open": func() {
				for range 2 * maxBackground {
					m.reload(m.Local(r.open(0)))
				}
			},
			"renewals": func() {
				for range (maxBackground + 4) * renewBatch {
					s := New(m.ctx, replica.NewID(), core.ClientInfo{}) // which the store has not
					s.key = sessionKey(s.id)
					if _, err := m.add(s); err != nil {
						t.Fatal(err)
					}
					s.Use()
				}
				m.renew()
			},
		} {
			store.most.Store(0)
			look()
			time.Sleep(time.Second)
			if most := store.most.Load(); most < maxBackground || most > maxBackground+2 { // the Manager looks now and then
				t.Errorf("%s: %d use the store at once, want %d", what, most, maxBackground)
			}
		}
	})
}

// A session whose stream is open for days is kept, which the store is told now and
// then alone.
func TestKeptForDays(t *testing.T) {
	withStream(t, 1, func(t *testing.T, r *replicas, id string, g *get) {
		const long = stateRetention + 6*time.Hour // longer than the store keeps a session that nobody renews
		before := r.store.keeps.Load()
		time.Sleep(long)
		if n, most := r.store.keeps.Load()-before, int64(long/retentionRefresh+1); n < 2 || n > most {
			t.Errorf("the store was told %d times, want %d at most", n, most)
		}
		if reader := r.reader(id); readerNode(reader) != r.all[0].config.ReplicaID {
			t.Errorf("%q reads", reader)
		}
		r.post(0, id, "a")
		g.wantMessages(t, "a")
		g.leave()
	})
}

// A replica that ends leaves its sessions to others, many at a time.
func TestCloseLeavesMany(t *testing.T) {
	const count = 1000
	crowd(t, count, func(t *testing.T, r *replicas, store *crowdedStore, ids []string, _ []*get) {
		store.takes = 10 * time.Millisecond
		began := time.Now()
		r.all[0].Close(context.Background(), core.ErrSessionClosed)
		if took, most := time.Since(began), store.most.Load(); took > store.takes*count/10 || most > maxBackground {
			t.Errorf("it took %v, and %d used the store at once", took, most)
		}
		store.wantNobody(t, ids)
	})
}

// wantNobody wants no stream to read the inboxes of sessions, each of which has had one.
func (c *crowdedStore) wantNobody(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		if _, reader, err := c.Read(t.Context(), boxOf(id), 0, ""); err != nil || !strings.HasPrefix(reader, "+") {
			t.Fatalf("%q reads, %v", reader, err)
		}
	}
}

// A replica keeps nothing of sessions that were not used there for half of the time
// that they live: they live on in the store.
func TestCopiesLeaveAtHalfTime(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleet) {
		ids := make([]string, 100)
		for i := range ids {
			ids[i] = f.open(t)
		}
		here := func() (n int) {
			for _, m := range f.all {
				m.mu.Lock()
				n += len(m.sessions)
				m.mu.Unlock()
			}
			return n
		}
		for range 2 {
			for _, id := range ids {
				f.use(t, 0, id, func(*Session) {})
				f.use(t, 1, id, func(*Session) {})
			}
			if n := here(); n != 2*len(ids) {
				t.Errorf("%d copies, want one of each session at each replica", n)
			}
			time.Sleep(idle/2 + time.Minute)
			if n := here(); n != 0 {
				t.Errorf("%d copies of sessions that nobody uses", n)
			}
		}
		f.want(t, "")
	})
}
