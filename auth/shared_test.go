package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/scale"
)

// brokenStore is a scale.Store whose Put does what broken says, if it is not nil,
// and keeps what was put.
type brokenStore struct {
	scale.Store
	broken func(put func() ([]scale.Entry, error)) ([]scale.Entry, error)

	mu     sync.Mutex
	writes []scale.Write
}

func (s *brokenStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	s.mu.Lock()
	s.writes = append(s.writes, writes...)
	s.mu.Unlock()
	put := func() ([]scale.Entry, error) { return s.Store.Put(ctx, writes...) }
	if s.broken != nil {
		return s.broken(put)
	}
	return put()
}

// replicas returns n servers that share a store of proofs.
func replicas(t *testing.T, n int, handler http.Handler, opts auth.DPoPOptions) (list []http.Handler) {
	verifier := newIssuer()
	for range n {
		list = append(list, protect(newJWT(t, verifier, auth.JWTOptions{}), resource, &auth.Options{DPoP: opts})(handler))
	}
	return list
}

// A proof that is used at all replicas at the same time passes at one of them.
func TestProofsOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no time limit depends on the machine
		store := &brokenStore{Store: scale.NewLocal()}
		handler := &reached{}
		servers := replicas(t, 4, handler, auth.DPoPOptions{Store: store})
		tok := bound()
		var passed [1000]atomic.Int64
		var all sync.WaitGroup
		for i := range passed {
			once := proof(tok, nil)
			for _, server := range servers {
				all.Go(func() {
					switch res := serve(server, dpop(tok, once)); {
					case res.StatusCode == http.StatusOK:
						passed[i].Add(1)
					case res.StatusCode != http.StatusUnauthorized || !strings.Contains(res.Header.Get("WWW-Authenticate"), "the proof was used before"):
						t.Errorf("proof %d: status %d, %v", i, res.StatusCode, res.Header)
					}
				})
			}
		}
		all.Wait()
		for i := range passed {
			if n := passed[i].Load(); n != 1 {
				t.Errorf("proof %d passed %d times", i, n)
			}
		}
		parts := map[string]int{}
		for _, w := range store.writes {
			parts[w.Key.Partition]++
		}
		if len(store.writes) != 4000 || len(parts) != 64 {
			t.Errorf("%d writes in %d parts", len(store.writes), len(parts))
		}
	})
}

// A proof is remembered for as long as any replica may accept it, though its clock
// is not that of the one that saw it.
func TestProofsOfReplicasAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &brokenStore{Store: scale.NewLocal()}
		servers := replicas(t, 2, &reached{}, auth.DPoPOptions{Store: store})
		tok := bound()
		once := proof(tok, nil)
		if res := serve(servers[0], dpop(tok, once)); res.StatusCode != 200 {
			t.Fatalf("status %d", res.StatusCode)
		}
		for range 200 {
			time.Sleep(time.Second)
			if res := serve(servers[1], dpop(tok, once)); res.StatusCode != 401 {
				t.Fatalf("status %d", res.StatusCode)
			}
		}
		w := store.writes[0]
		if window := auth.DefaultProofAge + auth.DefaultProofLeeway; w.TTL < window+10*time.Second || w.TTL > 2*window {
			t.Errorf("it was to be kept for %v", w.TTL)
		}
		if es, err := store.Get(t.Context(), scale.GetOp{Key: w.Key}); err != nil || es[0].Rev != 0 {
			t.Errorf("the store still has %v, %v", es, err)
		}
	})
}

// While the store does not answer nobody passes, and nobody is told that the
// proof is bad. What was written all the same counts as used.
func TestProofsWithoutTheirStore(t *testing.T) {
	away := fmt.Errorf("%w: connection refused by 10.1.2.3", scale.ErrUnavailable)
	tests := map[string]struct {
		broken func(put func() ([]scale.Entry, error)) ([]scale.Entry, error)
		after  int // the status of the same proof, once the store is back
	}{
		"it is away":   {func(func() ([]scale.Entry, error)) ([]scale.Entry, error) { return nil, away }, 200},
		"of one entry": {func(func() ([]scale.Entry, error)) ([]scale.Entry, error) { return []scale.Entry{{Err: away}}, nil }, 200},
		"it is full": {func(func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			return []scale.Entry{{Err: scale.ErrFull}}, nil
		}, 200},
		"too few answers": {func(func() ([]scale.Entry, error)) ([]scale.Entry, error) { return nil, nil }, 200},
		"it panics":       {func(func() ([]scale.Entry, error)) ([]scale.Entry, error) { panic("secret") }, 200},
		"it exits": {func(func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			runtime.Goexit()
			return nil, nil
		}, 200},
		"a reply is lost": {func(put func() ([]scale.Entry, error)) ([]scale.Entry, error) {
			_, _ = put()
			return nil, away
		}, 401},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := &brokenStore{Store: scale.NewLocal(), broken: tt.broken}
			handler := &reached{}
			var refused error
			opts := &auth.Options{DPoP: auth.DPoPOptions{Store: store}, OnRefused: func(_ *http.Request, why error) { refused = why }}
			protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, opts)(handler)
			tok := bound()
			once := proof(tok, nil)
			for range 3 {
				res := serve(protected, dpop(tok, once))
				if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || res.Header.Get("WWW-Authenticate") != "" {
					t.Errorf("status %d, %v", res.StatusCode, res.Header)
				}
			}
			if handler.count() != 0 {
				t.Error("a request passed")
			}
			if refused == nil {
				t.Error("Refused was not told")
			}
			store.broken = nil
			if res := serve(protected, dpop(tok, once)); res.StatusCode != tt.after {
				t.Errorf("afterwards status %d, want %d", res.StatusCode, tt.after)
			}
			if res := serve(protected, dpop(tok, proof(tok, nil))); res.StatusCode != 200 {
				t.Errorf("afterwards another proof: status %d", res.StatusCode)
			}
		})
	}
}

// A store that answers late is one that does not answer, after a second.
func TestProofsWithASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: scale.NewLocal()}
		protected := replicas(t, 1, &reached{}, auth.DPoPOptions{Store: store})[0]
		tok := bound()
		begin := time.Now()
		if res := serve(protected, dpop(tok, proof(tok, nil))); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("status %d", res.StatusCode)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// slowStore answers when nobody waits any more.
type slowStore struct{ scale.Store }

func (s *slowStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	<-ctx.Done()
	return nil, errors.Join(scale.ErrUnavailable, ctx.Err())
}

// A process makes so many entries in a window; proofs that were used before take
// no place.
func TestProofsInAStoreAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		servers := replicas(t, 2, &reached{}, auth.DPoPOptions{Store: store, MaxReplays: 3})
		tok := bound()
		first := proof(tok, nil)
		for i, want := range []int{200, 401, 401, 401, 200, 200, 503, 503} {
			p := first
			if i > 3 {
				p = proof(tok, nil)
			}
			if res := serve(servers[0], dpop(tok, p)); res.StatusCode != want {
				t.Fatalf("proof %d: status %d, want %d", i+1, res.StatusCode, want)
			}
		}
		if res := serve(servers[1], dpop(tok, proof(tok, nil))); res.StatusCode != 200 {
			t.Errorf("the other replica: status %d", res.StatusCode)
		}
		time.Sleep(2 * time.Minute)
		if res := serve(servers[0], dpop(tok, proof(tok, nil))); res.StatusCode != 200 {
			t.Errorf("later: status %d", res.StatusCode)
		}
	})
}
