package session

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/protocol"
)

// sealer returns one of sessions.
func sealer(t *testing.T, secrets ...string) *seal.Sealer {
	t.Helper()
	var keys [][]byte
	for _, s := range secrets {
		keys = append(keys, []byte(s))
	}
	s, err := seal.New("session", keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const oldKey, newKey = "a secret of 16 bytes or more", "another secret of 16 bytes"

// What a replica has sealed with a key that another one does not have yet waits for a
// stream at one that has it, and so does what follows: nothing is lost, and nothing
// changes places.
func TestInboxSealedWithNewKey(t *testing.T) {
	for name, tt := range map[string]struct{ leaves, taken bool }{
		"the stream ends":                  {leaves: true},
		"the stream is overtaken":          {},
		"one more, and the stream ends":    {leaves: true, taken: true},
		"one more, and both are overtaken": {taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplicasWith(t, 2, newShaky(), func(i int, c *Config) {
					if i == 1 {
						c.Seal = sealer(t, newKey, oldKey)
					}
				})
				defer r.close()
				id := r.open(0)
				r.post(0, id, "a")
				g := r.get(0, id, "")
				synctest.Wait()
				r.post(1, id, "b")
				r.post(0, id, "c")
				g.wantMessages(t, "a")
				streams := []*get{g}
				if tt.taken {
					streams = append(streams, r.get(0, id, ""))
					synctest.Wait()
				}
				if tt.leaves {
					for _, g := range streams {
						g.leave()
					}
				}
				time.Sleep(10 * time.Second)
				next := r.get(1, id, "")
				time.Sleep(10 * time.Second)
				next.wantMessages(t, "b", "c")
				g.wantMessages(t, "a")
				for _, g := range append(streams, next) {
					g.leave()
				}
			})
		})
	}
}

// The same, where a client does not read what comes before such a message, and much follows it.
func TestInboxSealedWithNewKeyBesideMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicasWith(t, 2, newShaky(), func(i int, c *Config) {
			if i == 1 {
				c.Seal = sealer(t, newKey, oldKey)
			}
		})
		defer r.close()
		id := r.open(0)
		g := r.get(0, id, "")
		synctest.Wait()
		g.full = make(chan struct{})
		r.post(0, id, "a")
		synctest.Wait()
		r.post(0, id, "b", "c")
		r.post(1, id, "d")
		g.full <- struct{}{}
		time.Sleep(10 * time.Second)
		long := strings.Repeat("x", defaultHistory)
		r.post(0, id, long, long)
		g.breakOff()
		close(g.full)
		<-g.done
		next := r.get(1, id, "")
		time.Sleep(10 * time.Second)
		if got, _ := next.messages(); !slices.Equal(got, []string{"b", "c", "d", long, long}) {
			t.Errorf("the stream has brought %.1q", got)
		}
		next.leave()
	})
}

// A message that no key opens any more is in the way of others for a day.
func TestInboxSealedWithLostKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicasWith(t, 2, newShaky(), func(i int, c *Config) {
			if i == 1 {
				c.Seal = sealer(t, newKey, oldKey)
			}
		})
		defer r.close()
		id := r.open(0)
		g := r.get(0, id, "")
		synctest.Wait()
		r.post(1, id, "a")
		r.post(0, id, "b")
		time.Sleep(stateRetention - time.Minute)
		g.wantMessages(t)
		time.Sleep(10 * time.Minute)
		g.wantMessages(t, "b")
		if len(r.failed) == 0 {
			t.Error("nothing was reported")
		}
		g.leave()
	})
}

// In the three deploys in which a key takes the place of another, nothing is lost if the
// third comes when what waits is sealed with the new key.
func TestInboxKeysAreRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := [][]string{{oldKey}, {oldKey, newKey}, {newKey, oldKey}, {newKey}}
		r := newReplicasWith(t, 4, newShaky(), func(i int, c *Config) { c.Seal = sealer(t, secrets[i]...) })
		defer r.close()
		id := r.open(0)
		for deploy := 1; deploy < len(secrets); deploy++ {
			old, now := deploy-1, deploy // both run during the deploy
			r.post(old, id, "a")
			r.post(now, id, "b")
			if deploy == 3 {
				r.post(old, id, "c")
			}
			g := r.get(now, id, "")
			if deploy < 3 {
				g.wantMessages(t, "a", "b")
			} else {
				g.wantMessages(t, "a", "b", "c")
			}
			r.post(old, id, "d")
			r.post(now, id, "e")
			synctest.Wait()
			if got, _ := g.messages(); got[len(got)-1] != "e" || got[len(got)-2] != "d" {
				t.Errorf("deploy %d: %q", deploy, got)
			}
			g.leave()
			synctest.Wait()
		}
	})
}

// In these deploys an answer reaches a client that comes back at a replica of the deploy before
// or after, while it is made and when only the store has it. A replica without the key ends the
// stream: the client comes back elsewhere.
func TestAnswerKeysAreRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := [][]string{{oldKey}, {oldKey, newKey}, {newKey, oldKey}, {newKey}}
		r := newReplicasWith(t, 4, newShaky(), func(i int, c *Config) { c.Seal = sealer(t, secrets[i]...) })
		defer r.close()
		id := r.open(0)
		s := []*Session{r.at(0, id), r.at(1, id), r.at(2, id)}
		call := func(at int) (st core.AnswerStream, last string) {
			st = s[at].OpenStream(&sink{broken: true}, protocol.NewID(7))
			return st, s[at].history.idOf(st.(*answerStream).number, 1, protocol.NewID(7))
		}
		comesBack := func(from, to int, want ...string) {
			t.Helper()
			st, last := call(from)
			g := serve(s[to], last)
			synctest.Wait()
			sendAll(t, st, "a b")
			synctest.Wait()
			st.End([]byte("answer"))
			g.wantMessages(t, want...)
			if <-g.done; g.err != nil {
				t.Errorf("from %d to %d: %v", from, to, g.err)
			}
			st, last = call(from)
			st.End([]byte("answer"))
			s[from].history.dropFinished() // only the store has it
			g = serve(s[to], last)
			<-g.done
			g.wantMessages(t, want[max(0, len(want)-1):]...)
		}
		comesBack(0, 1, "a", "b", "answer")
		comesBack(1, 0, "a", "b", "answer")
		comesBack(1, 2, "a", "b", "answer")
		comesBack(2, 1, "a", "b", "answer")
		s[2].changed.Store(true)
		s[2].reseal.Store(true)
		if err := r.all[2].save(t.Context(), s[2]); err != nil { // with the new key
			t.Fatal(err)
		}
		s = append(s, r.at(3, id))
		comesBack(2, 3, "a", "b", "answer")
		comesBack(3, 2, "a", "b", "answer")
		comesBack(0, 3) // a deploy too many
	})
}

// A session is ended by a replica that has the new key, and its inbox with it.
func TestEndWhileKeysAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		r := newReplicasWith(t, 2, newShaky(), func(i int, c *Config) {
			if c.Seal = sealer(t, oldKey); i == 1 {
				c.Seal = sealer(t, newKey, oldKey)
			}
			c.OnRestoredEnd = func(*Session, error) {
				time.Sleep(2 * endLeaseTTL)
				ended.Store(true)
			}
		})
		id := r.open(0)
		r.post(0, id, "a")
		synctest.Wait()
		r.all[0].Close(context.Background(), core.ErrSessionClosed)
		r.office[0].Close(t.Context())
		r.all, r.office = r.all[1:], r.office[1:] // which ends the session
		defer r.close()
		time.Sleep(2*idle + 3*endLeaseTTL)
		if !ended.Load() {
			t.Error("the session has not ended")
		}
		if found := r.box(id); found.Last != 0 {
			t.Errorf("the store has %+v", found)
		}
	})
}
