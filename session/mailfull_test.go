package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// stuck makes the newest stream of a session one whose client does not read.
func stuck(s *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox.newest().wake = func() {}
}

// postLong posts messages that are about 20 KiB long.
func (r *replicas) postLong(i int, id string, count int) {
	r.t.Helper()
	pad := strings.Repeat("x", 20<<10)
	for n := range count {
		r.post(i, id, fmt.Sprintf("%02d%s", n, pad))
	}
}

// Of what other replicas send to a client that does not read, a number is kept, and
// the rest is told, with no lock held.
func TestPostToSlowClient(t *testing.T) {
	for _, size := range []int{1, 500 << 10} {
		synctest.Test(t, func(t *testing.T) {
			r := newReplicas(t, 1, local())
			defer r.close()
			s := r.at(0, r.open(0))
			g := r.get(0, s.ID(), "")
			defer g.leave()
			synctest.Wait()
			var told, locked atomic.Bool
			r.all[0].config.StoreFailed = func(error) {
				told.Store(true)
				if s.mu.TryLock() {
					s.mu.Unlock()
				} else {
					locked.Store(true)
				}
			}
			stuck(s)
			var messages []json.RawMessage
			for i := range maxBrought + 1 {
				messages = append(messages, json.RawMessage(fmt.Sprintf("%q", fmt.Sprint(i)+strings.Repeat("x", size))))
				if i*size > outboxBytes {
					break
				}
			}
			if !s.mailbox.arrived(messages) || !told.Load() || locked.Load() {
				t.Errorf("%d bytes: told %v, with the session locked %v", size, told.Load(), locked.Load())
			}
		})
	}
}

// What a stream leaves, more than waits in the store, comes once.
func TestPostLeavesMuch(t *testing.T) {
	const count = 60
	withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
		stuck(r.at(0, id))
		r.postLong(0, id, count)
		g.breakOff()
		g.leave()
		next := r.get(1, id, "")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		got, _ := next.messages()
		seen := map[string]bool{}
		for _, m := range got {
			seen[m[:2]] = true
		}
		if len(got) != count || len(seen) != count {
			t.Errorf("%d messages have come, %d different ones, want %d", len(got), len(seen), count)
		}
		next.leave()
	})
}

// A mailbox that is full keeps no other one from being left in order.
func TestPostShutdownFull(t *testing.T) {
	for range 10 { // sessions are closed in any order
		synctest.Test(t, func(t *testing.T) {
			r := newReplicas(t, 2, local())
			defer r.close()
			full, other := r.open(0), r.open(0)
			var streams []*get
			for _, id := range []string{full, other} {
				streams = append(streams, r.get(0, id, ""))
				synctest.Wait()
				stuck(r.at(0, id))
			}
			r.postLong(0, full, 60)
			r.post(0, other, "m")
			r.all[0].Close(context.Background(), nil)
			for _, g := range streams {
				g.breakOff()
				g.leave()
			}
			g := r.get(1, other, "")
			time.Sleep(10 * time.Second)
			g.wantMessages(t, "m")
			g.leave()
		})
	}
}

// silent is a store that one replica cannot make itself known in.
type silent struct {
	scale.Store
	key scale.Key
	now atomic.Bool
}

func (s *silent) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if s.now.Load() && writes[0].Key == s.key {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Put(ctx, writes...)
}

// A message for a replica that was not heard of for a while comes once, when that
// goes on.
func TestPostToSilentReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := local()
		gate := &silent{Store: store.Store}
		store.Store = gate
		r := newReplicas(t, 2, store)
		defer r.close()
		id := r.open(0)
		g := r.get(0, id, "")
		synctest.Wait()
		gate.key = scale.Key{Part: "node", Name: r.office[0].Node()}
		gate.now.Store(true)
		time.Sleep(21 * time.Second)
		r.post(1, id, "m")
		gate.now.Store(false)
		time.Sleep(30 * time.Second)
		g.wantMessages(t, "m")
		g.leave()
	})
}
