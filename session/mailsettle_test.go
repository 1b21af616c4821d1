package session

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/upcall"
	"github.com/talaria-go/mcp/scale"
)

// losePut loses the reply to one write of who listens.
type losePut struct {
	scale.Store
	lose atomic.Bool
}

func (l *losePut) Put(ctx context.Context, w ...scale.Write) ([]scale.Entry, error) {
	made, err := l.Store.Put(ctx, w...)
	if strings.HasPrefix(w[0].Key.Name, "mail:") && err == nil && made[0].Err == nil && l.lose.CompareAndSwap(true, false) {
		return nil, scale.ErrUnavailable
	}
	return made, err
}

// wantHolder wants one replica to listen, and a message that is made at another one
// to reach its stream.
func (r *replicas) wantHolder(id string, want, from int, g *get) {
	r.t.Helper()
	if list := r.holders(id); len(list) != 1 || list[0] != want {
		r.t.Errorf("the replicas %v listen, want %d", list, want)
	}
	r.post(from, id, "m")
	time.Sleep(6 * time.Second)
	g.wantMessages(r.t, "m")
}

// Whoever has a stream open listens, whatever has been lost.
func TestListensAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		lose func(r *replicas, id string, lose *losePut)
		wait time.Duration
	}{
		"the reply to a claim": {func(r *replicas, id string, lose *losePut) {
			lose.lose.Store(true)
			<-r.get(1, id, "").done
		}, 30 * time.Second},
		"the store, for longer than is insisted": {func(r *replicas, id string, _ *losePut) {
			g := r.get(1, id, "")
			synctest.Wait()
			l := r.at(0, id).mailbox
			l.storing <- struct{}{} // it hears that nobody listens, and is slow
			g.leave()
			synctest.Wait()
			r.store.down.Store(true)
			<-l.storing
			time.Sleep(90 * time.Second)
			r.store.down.Store(false)
		}, 3 * time.Minute},
		"the replica that listens": {func(r *replicas, id string, _ *losePut) {
			g := r.get(1, id, "")
			synctest.Wait()
			r.all[1].mu.Lock() // no note reaches it, nor leaves it
			delete(r.all[1].sessions, id)
			r.all[1].mu.Unlock()
			r.office[1].Close(context.Background())
			time.Sleep(3 * time.Minute)
			g.leave()
		}, time.Minute},
		"the mailbox": {func(r *replicas, id string, _ *losePut) {
			_, _ = r.store.Store.Put(context.Background(), scale.Write{Key: mailKey(id), Prev: scale.Any})
		}, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := local()
				lose := &losePut{Store: store.Store}
				store.Store = lose
				r := newReplicas(t, 3, store)
				id := r.open(0)
				g := r.get(0, id, "")
				synctest.Wait()
				tt.lose(r, id, lose)
				time.Sleep(tt.wait)
				r.wantHolder(id, 0, 2, g)
				g.leave()
				for i, m := range r.all {
					m.Close(context.Background(), nil)
					if i != 1 || name != "the replica that listens" {
						r.office[i].Close(context.Background())
					}
				}
			})
		})
	}
}

// When the replica of the newest stream is killed, one that has another stream open
// listens as soon as that counts as dead, also if it was not the one before.
func TestListensWhenReplicaIsKilled(t *testing.T) {
	for _, between := range []bool{false, true} {
		withStream(t, 4, func(t *testing.T, r *replicas, id string, g *get) {
			if between {
				second := r.get(3, id, "")
				defer second.leave()
				synctest.Wait()
			}
			killed := r.get(1, id, "")
			synctest.Wait()
			if between { // it hears no more than that another one has taken over
				m := r.all[3]
				m.mu.Lock()
				delete(m.sessions, id)
				m.mu.Unlock()
			}
			r.all[1].mu.Lock()
			delete(r.all[1].sessions, id)
			r.all[1].mu.Unlock()
			r.office[1].Close(t.Context())
			record := scale.Key{Part: "node", Name: r.all[1].config.Node} // which is only not written any more
			if _, err := r.store.Store.Put(t.Context(), scale.Write{Key: record, Prev: scale.Any, Value: []byte{}, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			r.wantHolder(id, 0, 2, g)
			g.leave()
			killed.leave()
		})
	}
}

// A stream that leaves while the mailbox is in use leaves nobody who listens.
func TestLeavesLate(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
		l := r.at(0, id).mailbox
		l.storing <- struct{}{}
		go g.leave()
		time.Sleep(6 * time.Second)
		<-l.storing
		time.Sleep(time.Minute)
		if list := r.holders(id); len(list) != 0 {
			t.Errorf("%v listen", list)
		}
		r.post(0, id, "m")
		next := r.get(1, id, "")
		next.wantMessages(t, "m")
		next.leave()
	})
}

// A replica that the store names as the listener, and that is none, is not asked
// again and again.
func TestListenerIsNone(t *testing.T) {
	for _, knows := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := local()
			r := newReplicas(t, 3, store)
			defer r.close()
			id := r.open(0)
			if knows {
				r.at(2, id)
			}
			g := r.get(0, id, "")
			synctest.Wait()
			g1 := r.get(1, id, "")
			synctest.Wait()
			key := mailKey(id)
			g1.leave()
			synctest.Wait()
			before := store.calls.Load()
			if _, err := store.Store.Put(t.Context(), scale.Write{Key: key, Prev: scale.Any, Owner: r.office[2].Node() + ".none", Value: []byte{}, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
			r.at(0, id).mailbox.left("")
			time.Sleep(15 * time.Second)
			if n := store.calls.Load() - before; n > 80 { // of which the looks at boxes are about 30
				t.Errorf("%d commands", n)
			}
			r.wantHolder(id, 0, 1, g)
			g.leave()
		})
	}
}

// slowMail is a Store that is slow to tell who listens.
type slowMail struct{ scale.Store }

func (s slowMail) Get(ctx context.Context, looks ...scale.Look) ([]scale.Entry, error) {
	if strings.HasPrefix(looks[0].Key.Name, "mail:") {
		time.Sleep(replica.StoreTimeout - time.Second)
	}
	return s.Store.Get(ctx, looks...)
}

// While it takes long to settle who listens to sessions, nobody else ends one that
// this replica ends.
func TestSettlingHoldsUpNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := local()
		r := newReplicas(t, 2, store)
		defer r.close()
		var ends atomic.Int64
		r.all[1].config.RestoredEnd = func(*Session, error) { ends.Add(1) }
		time.Sleep(2 * endLease) // the other one has been in touch with the store for long
		id := r.open(0)
		var streams []*get
		for range 20 {
			streams = append(streams, r.get(0, r.open(0), ""))
		}
		synctest.Wait()
		for _, s := range r.all[0].sessions {
			s.mailbox.unsure = len(s.outbox.open) > 0
		}
		r.all[0].config.Store = slowMail{store}
		s := r.at(0, id)
		s.OnEnd(func(error) { time.Sleep(3 * endLease) })
		go func() { _ = r.all[0].Stop(s, upcall.ErrSessionDeleted) }()
		time.Sleep(2 * endLease)
		r.all[1].endDue(keyOf(id).Part)
		synctest.Wait()
		if n := ends.Load(); n != 0 {
			t.Errorf("another replica has ended it")
		}
		time.Sleep(2 * endLease)
		for _, g := range streams {
			g.leave()
		}
	})
}

// While a machine of the engine is away, it is looked up who listens to the sessions
// that others have; and as soon as it is back, to its own.
func TestChecksWhileMachineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := local()
		machines := &partly{Store: store.Store}
		store.Store = machines
		r := newReplicas(t, 2, store)
		defer r.close()
		lost, other := r.open(0), r.open(0)
		streams := map[string]*get{lost: r.get(0, lost, ""), other: r.get(0, other, "")}
		synctest.Wait()
		wantListens := func(what, id string) {
			t.Helper()
			synctest.Wait()
			if found, _ := machines.Store.Get(t.Context(), scale.Look{Key: mailKey(id)}); nodeOf(found[0].Owner) != r.office[0].Node() {
				t.Errorf("%s: %q listens", what, found[0].Owner)
			}
		}
		away := mailKey(lost)
		machines.away.Store(&away)
		for id := range streams { // nobody knows that they have streams
			if _, err := machines.Store.Put(t.Context(), scale.Write{Key: mailKey(id), Prev: scale.Any}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(replica.StreamCheck + 2*r.all[0].tick())
		wantListens("while it is away", other)
		machines.away.Store(nil)
		time.Sleep(2 * r.all[0].tick())
		wantListens("after it", lost)
		for _, g := range streams {
			g.leave()
		}
	})
}
