package topics

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
)

// serves makes a hub serve lists of which all have the digest, but for tools.
func (h *hub) serves(release, tools string) {
	h.mu.Lock()
	h.offers = map[string]string{ListTopics[0]: tools, ListTopics[1]: release, ListTopics[2]: release}
	h.mu.Unlock()
	h.MarkServing()
	synctest.Wait()
}

// kill ends a hub as a signal does that cannot be caught.
func (h *hub) kill(e *engine) {
	h.fleet.mu.Lock()
	h.fleet.left, h.fleet.rev = true, 0
	h.fleet.mu.Unlock()
	e.dead.Store(h.config.ReplicaID, true)
	h.Close(context.Background())
}

// When one release takes the place of another, each replica that stays is told
// twice of the lists that differ: when the first new one comes, and when the last
// old one has gone.
func TestReleases(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed=", killed), func(t *testing.T) {
			together(t, 4, func(t *testing.T, e *engine, hubs []*hub) {
				old, tester := hubs[:3], hubs[3]
				tester.Subscribe(nil, ListTopics[0], 0)
				tester.Subscribe(nil, ListTopics[1], 0)
				told := func(when string, lists ...string) {
					t.Helper()
					time.Sleep(time.Minute)
					tester.want(t, when, lists...)
				}
				for _, h := range old {
					h.serves("1", "a")
				}
				told("one release")
				var next []*hub
				for i, h := range old {
					come := open(t, e)
					come.serves("1", "b")
					if next = append(next, come); i == 0 {
						told("the first of the next", ListTopics[0])
						come.want(t, "the first of the next itself", ListTopics[0])
					}
					if killed {
						h.kill(e)
					} else {
						h.Close(context.Background())
					}
					if i == len(old)-1 {
						told("the last has gone", ListTopics[0])
					} else {
						told("between")
					}
				}
				for _, h := range next {
					h.Close(context.Background())
				}
			})
		})
	}
}

// What a replica with the old key first has written when it left is sealed anew by
// one with the new key first, so that one without the old key can read it.
func TestFleetKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, after = "the key that goes away", "the key that comes"
		e := newEngine()
		both := openWith(t, e, before, after)
		both.serves("1", "a")
		turned := openWith(t, e, after, before)
		turned.serves("1", "a")
		time.Sleep(2 * replica.PollInterval) // until it knows the other
		both.Close(context.Background())
		time.Sleep(2 * replica.PollInterval)
		last := openWith(t, e, after)
		last.serves("1", "a")
		time.Sleep(2 * replica.PollInterval)
		if last.failed > 0 {
			t.Error("what was sealed with the old key is there still")
		}
		for _, h := range []*hub{turned, last} {
			h.Close(context.Background())
		}
	})
}

// What a replica changes by itself it raises by itself; and nobody is taken for
// gone because the store was away.
func TestFleetIsQuiet(t *testing.T) {
	together(t, 3, func(t *testing.T, e *engine, hubs []*hub) {
		for _, h := range hubs {
			h.Subscribe(nil, ListTopics[0], 0)
			h.serves("1", h.config.ReplicaID)
		}
		time.Sleep(time.Minute)
		for _, h := range hubs {
			synctest.Wait()
			h.mu.Lock()
			h.told = nil
			h.mu.Unlock()
		}
		quiet := func(when string) {
			t.Helper()
			time.Sleep(time.Minute)
			for _, h := range hubs {
				h.want(t, when)
			}
		}
		quiet("they differ for long")
		hubs[0].serves("1", "changed")
		quiet("one has changed")
		e.away.Store(true)
		time.Sleep(time.Minute)
		for _, h := range hubs {
			e.dead.Store(h.config.ReplicaID, true)
		}
		e.away.Store(false)
		time.Sleep(replica.DeadAfter - 5*time.Second)
		for _, h := range hubs {
			e.dead.Delete(h.config.ReplicaID)
		}
		quiet("the store was away")
	})
}
