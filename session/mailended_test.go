package session

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/upcall"
	"github.com/talaria-go/mcp/scale"
)

// What is under way for a session that another replica has ended leaves nothing in
// the store.
func TestNoMailOfEndedSession(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after func(r *replicas, s *Session) // the replica hears of the end
	}{
		"a message": {before: func(r *replicas, s *Session) {
			if _, err := s.Post(r.t.Context(), []byte(`"a"`)); err != nil {
				r.t.Error(err)
			}
		}},
		"a message that is passed on": {after: func(_ *replicas, s *Session) {
			s.mailbox.passOn([]json.RawMessage{json.RawMessage(`"a"`)})
		}},
		"a stream":                         {before: func(_ *replicas, s *Session) { serve(s, "") }},
		"a stream on its way to the store": {before: func(r *replicas, s *Session) { r.store.within(time.Second, 0); serve(s, "") }},
		"both": {before: func(r *replicas, s *Session) {
			r.store.within(time.Second, 0)
			go func() { _, _ = s.Post(r.t.Context(), []byte(`"a"`)) }()
			serve(s, "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplicas(t, 2, local())
				defer r.close()
				r.all[0].tell = func(string, bool) {}
				id := r.open(0)
				s := r.at(1, id)
				if err := r.all[0].Stop(r.at(0, id), upcall.ErrSessionDeleted); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if tt.before != nil {
					tt.before(r, s)
					if r.store.most == 0 {
						synctest.Wait()
					} else {
						time.Sleep(time.Millisecond)
					}
				}
				r.all[1].Changed(id, true)
				if tt.after != nil {
					tt.after(r, s)
				}
				time.Sleep(10 * time.Second)
				if found, err := r.store.Store.Get(t.Context(), scale.Look{Key: mailKey(id)}); err != nil || found[0].Rev != 0 {
					t.Errorf("the store has who listens: %+v, %v", found, err)
				}
			})
		})
	}
}
