package session

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
)

// wantReader wants the stream of one replica to be the reader, and a message that is made
// at another one to reach it.
func (r *replicas) wantReader(id string, want, from int, g *get) {
	r.t.Helper()
	if list := r.holders(id); len(list) != 1 || list[0] != want {
		r.t.Errorf("the replicas %v read, want %d", list, want)
	}
	r.post(from, id, "m")
	synctest.Wait()
	g.wantMessages(r.t, "m")
}

// killed opens a stream at replica 1, and makes that one that was killed: nothing of it
// reaches the store any more, and the stream is gone.
func (r *replicas) killed(id string) {
	m := r.all[1]
	g := r.get(1, id, "")
	synctest.Wait()
	s := m.Local(id)
	s.save = func(*Session) error { return nil }
	s.mu.Lock()
	s.inbox.state, s.inbox.box = closed, "none"
	s.mu.Unlock()
	g.leave()
	m.mu.Lock()
	delete(m.sessions, id)
	m.mu.Unlock()
	r.office[1].Close(r.t.Context())
	record := scale.Key{Partition: "node", Name: m.config.ReplicaID} // which is only not written any more
	_, err := r.store.Store.Put(r.t.Context(), scale.Write{Key: record, Prev: scale.Any, Value: []byte{}, TTL: time.Hour})
	if err != nil {
		r.t.Fatal(err)
	}
}

// A replica that has a stream open reads, whatever has been lost.
func TestReadsAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		lose func(r *replicas, id string)
		wait time.Duration
	}{
		"the reply to a take": {func(r *replicas, id string) {
			r.store.loseTake.Store(true)
			<-r.get(1, id, "").done
		}, 30 * time.Second},
		"the reply when a stream leaves": {func(r *replicas, id string) {
			g := r.get(1, id, "")
			synctest.Wait()
			r.store.loseTake.Store(true)
			g.leave()
		}, time.Minute},
		"the store, as a stream leaves": {func(r *replicas, id string) {
			g := r.get(1, id, "")
			synctest.Wait()
			r.store.down.Store(true)
			g.leave()
			time.Sleep(90 * time.Second)
			r.store.down.Store(false)
		}, 3 * time.Minute},
		"the replica that reads, for long": {func(r *replicas, id string) {
			r.killed(id)
			time.Sleep(3 * time.Minute)
		}, replica.DeadAfter},
		"the replica that reads": {func(r *replicas, id string) {
			r.killed(id)
		}, 2 * replica.DeadAfter},
		"the box": {func(r *replicas, id string) {
			_, _ = r.store.Store.Take(context.Background(), scale.Take{Box: boxOf(id)})
		}, replica.StreamCheck + 2*replica.PollInterval},
		"the box, and a message comes": {func(r *replicas, id string) {
			_, _ = r.store.Store.Take(context.Background(), scale.Take{Box: boxOf(id)})
			r.at(0, id).hint(0) // as after a gap
		}, 2*replica.PollInterval + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplicas(t, 3, newShaky())
				id := r.open(0)
				g := r.get(0, id, "")
				synctest.Wait()
				tt.lose(r, id)
				time.Sleep(tt.wait)
				r.wantReader(id, 0, 2, g)
				g.leave()
				r.close()
			})
		})
	}
}

// Of streams that stand by at several replicas one reads when the newest is killed.
func TestOneReadsWhenReplicaIsKilled(t *testing.T) {
	withStream(t, 4, func(t *testing.T, r *replicas, id string, g *get) {
		second := r.get(3, id, "")
		synctest.Wait()
		r.killed(id)
		time.Sleep(3 * replica.DeadAfter)
		list := r.holders(id)
		if len(list) != 1 || list[0] != 0 && list[0] != 3 {
			t.Fatalf("%v read", list)
		}
		r.post(2, id, "m")
		synctest.Wait()
		wantAll(t, []string{"m"}, g, second)
		g.leave()
		second.leave()
	})
}

// A stream that leaves while the inbox is in use leaves no reader behind.
func TestLeavesLate(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
		unlock := r.at(0, id).inbox.lock()
		go g.leave()
		time.Sleep(6 * time.Second)
		unlock()
		time.Sleep(time.Minute)
		if list := r.holders(id); len(list) != 0 || readerNode(r.reader(id)) != "" {
			t.Errorf("%v read, and %q does by the store", list, r.reader(id))
		}
		r.post(0, id, "m")
		next := r.get(1, id, "")
		next.wantMessages(t, "m")
		next.leave()
	})
}

// A stream that stands by behind a replica which lives looks ever less often.
func TestStandsByInSilence(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
		next := r.get(1, id, "")
		synctest.Wait()
		r.post(1, id, "m") // of which the first one is notified no more
		synctest.Wait()
		time.Sleep(time.Second)
		before := r.store.inboxLooks()
		const long = time.Hour
		time.Sleep(long)
		if n, most := r.store.inboxLooks()-before, 2*int64(long/replica.StreamCheck)+8; n > most {
			t.Errorf("two streams look %d times in %v, want %d at most", n, long, most)
		}
		next.leave()
		g.leave()
	})
}

// While looks of streams that stand by take long, no other replica ends a session that
// this one ends.
func TestStandingByHoldsUpNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, 2, newShaky())
		defer r.close()
		var ends atomic.Int64
		r.all[1].config.OnRestoredEnd = func(*Session, error) { ends.Add(1) }
		time.Sleep(2 * endLeaseTTL) // the other one has been in touch with the store for long
		id := r.open(0)
		var streams []*get
		for range 20 {
			other := r.open(0)
			streams = append(streams, r.get(0, other, ""))
			synctest.Wait()
			streams = append(streams, r.get(1, other, ""))
		}
		synctest.Wait()
		r.store.slowLooks.Store(true)
		s := r.at(0, id)
		s.OnEnd(func(error) { time.Sleep(3 * endLeaseTTL) })
		go func() { _ = r.all[0].Stop(s, core.ErrSessionDeleted) }()
		time.Sleep(2 * endLeaseTTL)
		r.all[1].endDue(sessionKey(id).Partition)
		synctest.Wait()
		if n := ends.Load(); n != 0 {
			t.Errorf("another replica has ended it")
		}
		r.store.slowLooks.Store(false)
		time.Sleep(2 * endLeaseTTL)
		for _, g := range streams {
			g.leave()
		}
	})
}
