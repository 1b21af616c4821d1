package session

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/scale"
)

// outage is a Store of which some machines do not answer, or answer what only reads.
type outage struct {
	scale.Store
	away  atomic.Bool
	where map[string]bool // parts of these machines
	reads bool            // as an engine does that has lost its replicas, or has no memory
	uses  map[string]bool // parts where something becomes due
}

func (o *outage) fails(part string, write bool) bool {
	return o.away.Load() && o.where[part] && (write || !o.reads)
}

func (o *outage) Get(ctx context.Context, looks ...scale.GetOp) (found []scale.Entry, err error) {
	for _, look := range looks {
		if o.fails(look.Key.Partition, look.In > 0 || look.TTL > 0) {
			found, err = append(found, scale.Entry{Key: look.Key, Err: errDown}), errDown
			continue
		}
		one, _ := o.Store.Get(ctx, look)
		found = append(found, one...)
	}
	return found, err
}

func (o *outage) Put(ctx context.Context, writes ...scale.Write) (made []scale.Entry, err error) {
	for _, w := range writes {
		if o.fails(w.Key.Partition, true) {
			made, err = append(made, scale.Entry{Key: w.Key, Err: errDown}), errDown
			continue
		}
		one, _ := o.Store.Put(ctx, w)
		made = append(made, one...)
	}
	return made, err
}

func (o *outage) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	switch {
	case o.fails(part, o.uses[part]):
		return nil, errDown
	case o.away.Load() && o.where[part]:
		return nil, nil
	}
	return o.Store.ClaimDue(ctx, part, index, owner, max, lease)
}

// watched is that Store for one replica; it knows when that looked after a part last.
type watched struct {
	*outage
	part string
	at   atomic.Pointer[time.Time]
}

func (w *watched) note(part string) {
	if now := time.Now(); part == w.part {
		w.at.Store(&now)
	}
}

func (w *watched) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if writes[0].Key.Name == "contact" {
		w.note(writes[0].Key.Partition)
	}
	return w.outage.Put(ctx, writes...)
}

func (w *watched) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	w.note(part)
	return w.outage.ClaimDue(ctx, part, index, owner, max, lease)
}

// A session with a stream lives, though its replica could not say so for longer than a
// session may be idle, and another one looks after its part as soon as the store is back.
func TestOutageEndsNoSession(t *testing.T) {
	const idle = 30 * time.Minute
	for name, reads := range map[string]bool{"nothing is written": true, "a machine does not answer": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &outage{Store: scale.NewLocal(), where: map[string]bool{}, reads: reads}
				m, _ := manage(t, store, idle)
				defer m.Close(context.Background(), core.ErrSessionClosed)
				m.StartReplication(nil)
				time.Sleep(time.Second) // so that they do not look after it at the same time
				s := opened(t, m)
				defer s.retain()()
				store.uses = map[string]bool{s.key.Partition: true}
				for part := range partitions {
					store.where[partition(part)] = reads || partition(part) == s.key.Partition
				}
				seen := &watched{outage: store, part: s.key.Partition}
				other, _ := manage(t, seen, idle)
				defer other.Close(context.Background(), core.ErrSessionClosed)
				other.StartReplication(nil)
				time.Sleep(idle)
				store.away.Store(true)
				time.Sleep(2 * idle)
				round := partitions * other.renewInterval()
				time.Sleep(time.Until(seen.at.Load().Add(round - time.Millisecond)))
				store.away.Store(false)
				time.Sleep(2 * round)
				if ok, err := other.existsInStore(t.Context(), s.ID(), nil); !ok || err != nil {
					t.Errorf("it has ended while its stream was open; %v", err)
				}
			})
		})
	}
}
