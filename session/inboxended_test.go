package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/scale"
)

// box returns the inbox of a session as the store has it.
func (r *replicas) box(id string) (found scale.Box) {
	r.t.Helper()
	found, err := r.store.Store.Take(r.t.Context(), scale.Take{Box: boxOf(id), From: "nobody", Reader: "nobody"})
	if err == nil {
		r.t.Error("a reader that is none has left")
	}
	return found
}

// reader returns who reads the inbox of a session.
func (r *replicas) reader(id string) string { return r.box(id).Reader }

// Of a session that has ended at another replica, its streams and messages leave nothing in
// the store, whatever they are doing.
func TestNoInboxOfEndedSession(t *testing.T) {
	for name, before := range map[string]func(r *replicas, s *Session){
		"nothing":                          func(*replicas, *Session) {},
		"a stream":                         func(_ *replicas, s *Session) { serve(s, "") },
		"two streams":                      func(_ *replicas, s *Session) { serve(s, ""); serve(s, "") },
		"a stream on its way to the store": func(r *replicas, s *Session) { r.store.within(time.Second, 0); serve(s, "") },
		"a message": func(r *replicas, s *Session) {
			if sent, err := s.Route(r.t.Context(), []byte(`"a"`)); !sent || err != nil {
				r.t.Error(sent, err)
			}
		},
		"a message on its way to the store": func(r *replicas, s *Session) {
			r.store.within(time.Second, 0)
			go func() { _, _ = s.Route(r.t.Context(), []byte(`"a"`)) }()
		},
		"a message, and a stream": func(r *replicas, s *Session) {
			r.store.within(time.Second, 0)
			go func() { _, _ = s.Route(r.t.Context(), []byte(`"a"`)) }()
			time.Sleep(2 * time.Second)
			serve(s, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplicas(t, 2, newShaky())
				defer r.close()
				r.all[0].tell = func(string, bool) {}
				id := r.open(0)
				g := r.get(0, id, "")
				synctest.Wait()
				r.post(1, id, "a")
				g.wantMessages(t, "a")
				s := r.at(1, id)
				if err := r.all[0].Stop(r.at(0, id), core.ErrSessionDeleted); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if found := r.box(id); found != (scale.Box{}) {
					t.Errorf("after the end the store has %+v", found)
				}
				before(r, s)
				time.Sleep(time.Millisecond)
				r.all[1].HandleChange(id, true) // the other replica notices the end
				time.Sleep(10 * time.Second)
				if found := r.box(id); found != (scale.Box{}) {
					t.Errorf("the store has %+v", found)
				}
			})
		})
	}
}

// The inbox of a session is deleted when the store is there again, if it was away at the
// end of the session.
func TestInboxIsDeletedLater(t *testing.T) {
	withStream(t, 2, func(t *testing.T, r *replicas, id string, g *get) {
		s := r.at(0, id)
		s.OnEnd(func(error) { r.store.down.Store(true) })
		if err := r.all[0].Stop(s, core.ErrSessionDeleted); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.store.down.Store(false)
		time.Sleep(time.Minute)
		if found := r.box(id); found != (scale.Box{}) {
			t.Errorf("the store has %+v", found)
		}
		<-g.done
	})
}
