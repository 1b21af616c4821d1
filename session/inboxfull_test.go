package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
)

// longOnes returns messages that are about 20 KiB long, and differ in the first two bytes.
func longOnes(count int) (messages []string) {
	pad := strings.Repeat("x", 20<<10)
	for n := range count {
		messages = append(messages, fmt.Sprintf("%02d%s", n, pad))
	}
	return messages
}

// wantAll wants streams to have brought each of these messages once, together.
func wantAll(t *testing.T, want []string, streams ...*get) {
	t.Helper()
	synctest.Wait()
	var got []string
	for _, g := range streams {
		messages, _ := g.messages()
		got = append(got, messages...)
	}
	slices.Sort(got)
	want = slices.Clone(want)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		first := func(list []string) (short []string) {
			for _, m := range list {
				short = append(short, m[:min(2, len(m))])
			}
			return short
		}
		t.Errorf("got %q, want %q", first(got), first(want))
	}
}

// A client that does not read fills the inbox of its session. Messages are refused then,
// from whichever replica; those that were accepted come when it reads.
func TestInboxOfSlowClient(t *testing.T) {
	for from := range 2 {
		withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
			g.full = make(chan struct{})
			var want []string
			refused := false
			for _, m := range longOnes(99) {
				sent, err := r.at(from, id).Route(t.Context(), []byte(`"`+m+`"`))
				if err != nil {
					t.Fatal(err)
				}
				if refused = !sent; refused {
					break
				}
				want = append(want, m)
				synctest.Wait()
			}
			if most := inboxBytes/(20<<10) + 2; !refused || len(want) < most-6 || len(want) > most { // one is on its way
				t.Errorf("%d messages were accepted, want about %d", len(want), most)
			}
			close(g.full)
			wantAll(t, want, g)
			r.post(from, id, "zz") // there is room again
			wantAll(t, append(want, "zz"), g)
			g.leave()
		})
	}
}

// What a client that does not read leaves comes once, at the next replica: when the stream
// ends, when the replica is closed, and when another stream overtakes it. Other sessions
// are not held up.
func TestInboxIsLeftFull(t *testing.T) {
	for name, end := range map[string]func(r *replicas, g *get){
		"the stream ends":       func(_ *replicas, g *get) { g.breakOff(); close(g.full); g.leave() },
		"the replica is closed": func(r *replicas, _ *get) { r.all[0].Close(context.Background(), core.ErrSessionClosed) },
		"it is overtaken":       func(*replicas, *get) {},
	} {
		t.Run(name, func(t *testing.T) {
			withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
				other := r.open(0)
				reads := r.get(0, other, "")
				synctest.Wait()
				g.full = make(chan struct{})
				want := longOnes(36)
				r.post(1, id, want...)
				r.post(0, other, "m")
				synctest.Wait()
				end(r, g)
				next := r.get(1, id, "")
				time.Sleep(30 * time.Second)
				if name != "the stream ends" {
					close(g.full)
				}
				time.Sleep(30 * time.Second)
				wantAll(t, want, g, next)
				reads.wantMessages(t, "m")
				for _, g := range []*get{g, next, reads} {
					g.leave()
				}
			})
		})
	}
}

// What replicas have read for clients that do not read counts as what waits, and makes room
// for others: it stays in the store, and is read again.
func TestInboxMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicasWith(t, 2, newShaky(), func(_ int, c *Config) { c.Memory = 1 << 20 })
		defer r.close()
		m := r.all[0]
		want := longOnes(30) // 600 KiB, and 768 are for what waits
		var streams []*get
		var ids []string
		for range 5 {
			id := r.open(0)
			r.post(1, id, want...)
			g := &get{client: newClient(), done: make(chan struct{}), full: make(chan struct{})}
			s := r.at(0, id)
			go func() {
				defer close(g.done)
				g.err = s.ServeStream("", g)
			}()
			synctest.Wait()
			if m.budget.queued > m.budget.limit*3/4 {
				t.Fatalf("%d bytes wait", m.budget.queued)
			}
			ids, streams = append(ids, id), append(streams, g)
		}
		time.Sleep(10 * time.Second)
		moved := r.get(1, ids[0], "") // which gets what was dropped here
		time.Sleep(10 * time.Second)
		for _, g := range streams {
			close(g.full)
		}
		time.Sleep(time.Minute)
		wantAll(t, want, streams[0], moved)
		for _, g := range streams[1:] {
			wantAll(t, want, g)
		}
		for _, g := range append(streams, moved) {
			g.leave()
		}
		synctest.Wait()
		if m.budget.queued != 0 || m.budget.unread.Len() != 0 {
			t.Errorf("%d bytes count, of %d sessions", m.budget.queued, m.budget.unread.Len())
		}
	})
}
