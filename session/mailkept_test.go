package session

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/upcall"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// What a replica has sealed with a key that another one does not have yet waits for
// a stream at one that has it, and so does what is added meanwhile.
func TestMailSealedWithNewKey(t *testing.T) {
	for _, adds := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			keys := sealer(t, []byte("another secret of 16 bytes"), []byte("a secret of 16 bytes or more"))
			r := newReplicasWith(t, 2, local(), func(i int, c *Config) {
				if i == 1 {
					c.Seal = keys
				}
			})
			defer r.close()
			id := r.open(0)
			r.post(1, id, "a")
			g := r.get(0, id, "")
			synctest.Wait()
			want := []string{"a"}
			if adds {
				stuck(r.at(0, id))
				r.post(0, id, "b")
				want = append(want, "b")
			}
			g.breakOff()
			g.leave()
			time.Sleep(10 * time.Second)
			next := r.get(1, id, "")
			time.Sleep(10 * time.Second)
			next.wantMessages(t, want...)
			next.leave()
		})
	}
}

// A message that is on its way into a stream while another replica takes over, where
// the client comes back, reaches the client there.
func TestMailWhileItGoesOut(t *testing.T) {
	store := local().Store
	keys, err := seal.New("session", []byte("a secret of 16 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(Config{Store: store, Seal: keys, Node: "a1"})
	defer m.Close(context.Background(), nil)
	for range 500 {
		s, err := m.Open(t.Context(), upcall.Client{Revision: protocol.V20251125})
		if err != nil {
			t.Fatal(err)
		}
		out, leave := s.listen("", func() {})
		if err := s.mailbox.take(t.Context(), "", false); err != nil {
			t.Fatal(err)
		}
		s.Send([]byte(`"a"`))
		id, _, _ := s.next(out)
		const more = 50
		for i := range more {
			s.Send(fmt.Append(nil, i))
		}
		begun, went := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(went)
			for i := range more {
				if s.next(out); i == 2 {
					close(begun)
				}
			}
		}()
		<-begun
		s.mailbox.letGo("b2", s.mailbox.token, id)
		<-went
		leave()
		m.sweeping.Wait() // what is passed on is in the store
		found, err := m.get(t.Context(), scale.Look{Key: mailKey(s.id)})
		if err != nil {
			t.Fatal(err)
		}
		if messages, err := s.mailbox.open(found); err != nil || len(messages) != more {
			t.Fatalf("%q wait, %v; want %d", messages, err, more)
		}
		s.Close(nil)
	}
}

// Who waits in vain for the mailbox while another replica takes over listens again,
// if that one does not.
func TestListensAfterWaitInVain(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, first *get) {
		first.leave()
		synctest.Wait()
		s := r.at(0, id)
		l := s.mailbox
		l.storing <- struct{}{}
		g := r.get(0, id, "")
		synctest.Wait()
		l.letGo(r.all[1].config.Node, l.token, "")
		time.Sleep(11 * time.Second)
		<-l.storing
		if !g.over() {
			t.Error("the stream is open, and what it gets is not known")
		}
		g = r.get(0, id, "")
		synctest.Wait()
		r.wantHolder(id, 0, 1, g)
		g.leave()
	})
}

// gatedMail is a Store that lets writes of who listens pass when it is told to.
type gatedMail struct {
	scale.Store
	pass atomic.Pointer[chan struct{}] // nil lets all pass
}

func (g *gatedMail) Put(ctx context.Context, w ...scale.Write) ([]scale.Entry, error) {
	if pass := g.pass.Load(); pass != nil && strings.HasPrefix(w[0].Key.Name, "mail:") {
		select {
		case <-*pass:
		case <-ctx.Done():
			return nil, scale.ErrUnavailable
		}
	}
	return g.Store.Put(ctx, w...)
}

// shut makes writes wait until the func that it returns is called.
func (g *gatedMail) shut() (open func()) {
	pass := make(chan struct{})
	g.pass.Store(&pass)
	return func() { g.pass.Store(nil); close(pass) }
}

// Who gives up waiting for the mailbox does not make the one who is about to listen
// deaf for who takes over from it.
func TestWaiterLeavesTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &gatedMail{Store: scale.NewLocal()}
		r := newReplicas(t, 2, &roads{Store: gate})
		defer r.close()
		s := r.at(0, r.open(0))
		l := s.mailbox
		open := gate.shut()
		l.storing <- struct{}{}
		first := serve(s, "")
		synctest.Wait()
		second := serve(s, "")
		time.Sleep(8 * time.Second)
		<-l.storing // the first has the mailbox
		time.Sleep(3 * time.Second)
		if first.over() || !second.over() {
			t.Fatal("it is not the second stream that has given up")
		}
		s.mu.Lock()
		token := l.token
		s.mu.Unlock()
		l.letGo(r.all[1].config.Node, token, "") // which is known before the write has returned
		open()
		synctest.Wait()
		if s.listens() {
			t.Error("it listens, and another replica has taken over")
		}
		first.leave()
	})
}

// A message that comes when its session ends leaves nothing in the store.
func TestNoMailWhileSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &gatedMail{Store: scale.NewLocal()}
		r := newReplicas(t, 2, &roads{Store: gate})
		defer r.close()
		r.all[0].tell = func(string, bool) {}
		id := r.open(0)
		s := r.at(1, id)
		open := gate.shut()
		go func() { _, _ = s.Post(t.Context(), []byte(`"a"`)) }()
		synctest.Wait()
		if err := r.all[0].Stop(r.at(0, id), upcall.ErrSessionDeleted); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		open()
		time.Sleep(time.Second)
		if found, err := gate.Get(t.Context(), scale.Look{Key: mailKey(id)}); err != nil || found[0].Rev != 0 {
			t.Errorf("the store has what waits: %+v, %v", found, err)
		}
	})
}

// rotating returns replicas of the three deploys in which a key takes the place of
// another.
func rotating(t *testing.T) *replicas {
	old, other := []byte("a secret of 16 bytes or more"), []byte("another of 16 bytes or more")
	secrets := [][][]byte{{old, other}, {other, old}, {other}}
	return newReplicasWith(t, 3, local(), func(i int, c *Config) { c.Seal = sealer(t, secrets[i]...) })
}

// sealer returns one of sessions.
func sealer(t *testing.T, secrets ...[]byte) *seal.Sealer {
	t.Helper()
	s, err := seal.New("session", secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What waits for a stream does so under a new key as soon as its session is used: when
// the old key is gone, it goes out, and there is room for more.
func TestWaitsUnderNewKey(t *testing.T) {
	for name, use := range map[string]func(m *Manager, s *Session){
		"by a request": func(_ *Manager, s *Session) {
			s.Use()
			if err := s.Release(); err != nil {
				t.Error(err)
			}
		},
		"by one that goes on": func(m *Manager, s *Session) {
			defer s.hold()()
			m.tend()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rotating(t)
				defer r.close()
				id := r.open(0)
				r.post(0, id, "a")
				use(r.all[1], r.at(1, id))
				synctest.Wait()
				r.post(2, id, "b")
				g := r.get(2, id, "")
				g.wantMessages(t, "a", "b")
				g.leave()
			})
		})
	}
}

// What a replica adds that seals with the old key, after another one has sealed all anew,
// goes out when that key is gone: it is sealed anew as the session is kept alive.
func TestAddedUnderOldKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rotating(t)
		defer r.close()
		id := r.open(0)
		s := r.at(1, id)
		s.Use()
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.post(0, id, "a")
		release := s.hold()
		time.Sleep(idle / 2) // which the replica tells the store
		release()
		synctest.Wait()
		r.post(2, id, "b")
		g := r.get(2, id, "")
		g.wantMessages(t, "a", "b")
		g.leave()
	})
}

// What waits for a session is left alone while the session ends and is renewed for that.
func TestEndWhileKeysAreReplaced(t *testing.T) {
	old, other := []byte("a secret of 16 bytes or more"), []byte("another of 16 bytes or more")
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		r := newReplicasWith(t, 2, local(), func(i int, c *Config) {
			if c.Seal = sealer(t, old); i == 1 {
				c.Seal = sealer(t, other, old)
			}
			c.RestoredEnd = func(*Session, error) {
				time.Sleep(2 * endLease)
				ended.Store(true)
			}
		})
		r.post(0, r.open(0), "a")
		synctest.Wait()
		r.all[0].Close(context.Background(), upcall.ErrSessionClosed)
		r.office[0].Close(t.Context())
		r.all, r.office = r.all[1:], r.office[1:] // which ends the session
		defer r.close()
		time.Sleep(2*idle + 3*endLease)
		if !ended.Load() {
			t.Error("the session has not ended")
		}
	})
}
