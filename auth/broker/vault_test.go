package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/scale"
)

// rotating is a provider that gives a new refresh token each time, and refuses the
// one before, as if it was stolen.
type rotating struct {
	mu      sync.Mutex
	life    time.Duration // of access tokens
	current string        // refresh token
	n       int           // refreshes that succeeded
	refused int
	ended   []string // refresh tokens that were revoked
	pause   time.Duration
	fault   func() error // of the next refresh
	after   func()       // called after a rotation, before its answer
}

func (p *rotating) refresh(ctx context.Context, t *oauth2.Token) (*oauth2.Token, error) {
	select {
	case <-time.After(p.pause):
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errBusy, ctx.Err())
	}
	p.mu.Lock()
	if p.fault != nil {
		if err := p.fault(); err != nil {
			p.mu.Unlock()
			return nil, err
		}
	}
	if t.RefreshToken != p.current {
		p.refused++
		p.mu.Unlock()
		return nil, errors.New("invalid_grant")
	}
	next := p.issue()
	after := p.after
	p.mu.Unlock()
	if after != nil {
		after()
	}
	return next.WithExtra(map[string]any{"id_token": "new"}), nil
}

// issue makes tokens. p.mu is held.
func (p *rotating) issue() *oauth2.Token {
	p.n++
	p.current = fmt.Sprint("refresh-", p.n)
	return &oauth2.Token{AccessToken: fmt.Sprint("access-", p.n), TokenType: "Bearer", RefreshToken: p.current, Expiry: time.Now().Add(p.life)}
}

func (p *rotating) revoke(_ context.Context, t *oauth2.Token) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, t.RefreshToken)
	return true, nil
}

var vaultKeys = [][]byte{[]byte("0123456789abcdef"), []byte("fedcba9876543210")}

// replicas returns two vaults over one store, and a provider whose tokens for alice are in
// it.
func replicas(t *testing.T, store scale.Store) (a, b *vault, p *rotating) {
	t.Helper()
	p = &rotating{life: time.Hour}
	for _, v := range []**vault{&a, &b} {
		var err error
		if *v, err = newVault("https://notes.example.com", bus.Guard(store), vaultKeys[:1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.save(t.Context(), "idp#alice", "github", p.issue()); err != nil {
		t.Fatal(err)
	}
	return a, b, p
}

// access is the access token that a vault has for alice, or the error.
func access(v *vault, p *rotating, force bool) string {
	t, err := v.fresh(context.Background(), p, "idp#alice", "github", force)
	if err != nil {
		return err.Error()
	}
	return t.AccessToken
}

// Many callers at two replicas refresh once in each round, however slow the provider is.
func TestOneRefresh(t *testing.T) {
	for _, force := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b, p := replicas(t, scale.NewLocal())
			p.pause = 3 * time.Second
			for round := 2; round < 7; round++ {
				if !force {
					time.Sleep(time.Hour - 29*time.Second)
				}
				var calls sync.WaitGroup
				for i := range 64 {
					v := a
					if i%2 == 1 {
						v = b
					}
					calls.Go(func() {
						if got, want := access(v, p, force), fmt.Sprint("access-", round); got != want {
							t.Errorf("round %d: %s", round, got)
						}
					})
				}
				calls.Wait()
				if p.n != round || p.refused != 0 {
					t.Fatalf("round %d: %d tokens, %d refused", round, p.n, p.refused)
				}
			}
			if a.watch.watcher != nil || b.watch.watcher != nil {
				t.Error("a Watcher is left")
			}
		})
	}
}

// The clocks of the vault: when tokens are refreshed, when a lease is taken over, and when
// an entry ends.
func TestVaultClocks(t *testing.T) {
	type world struct {
		a, b *vault
		p    *rotating
	}
	held := func(t *testing.T, w world) { // by a replica that was killed
		key := w.a.key("idp#alice", "github")
		if err := w.a.change(t.Context(), key, func(k *kept) *kept { k.Lease = "killed"; return k }); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		life   time.Duration
		before func(*testing.T, world)
		sleep  time.Duration
		want   string
		took   time.Duration
	}{
		"31 s are left":                  {time.Hour, nil, time.Hour - 31*time.Second, "access-1", 0},
		"29 s are left":                  {time.Hour, nil, time.Hour - 29*time.Second, "access-2", 0},
		"a short life, a third is left":  {30 * time.Second, nil, 20 * time.Second, "access-1", 0},
		"a short life, a fifth is left":  {30 * time.Second, nil, 24 * time.Second, "access-2", 0},
		"held by a replica that is gone": {time.Hour, held, time.Hour, "access-2", leaseTimeout},
		"held and fresh":                 {time.Hour, held, time.Minute, "access-1", 0},
		"the provider hangs, and the token has ended": {time.Hour, func(_ *testing.T, w world) { w.p.pause = time.Minute }, time.Hour,
			"the provider does not answer: context deadline exceeded", refreshTimeout},
		"the provider hangs, and the token is valid": {time.Hour, func(_ *testing.T, w world) { w.p.pause = time.Minute }, time.Hour - 20*time.Second,
			"access-1", refreshTimeout},
		"no refresh token, 1 s is left": {time.Hour, func(t *testing.T, w world) {
			if err := w.a.save(t.Context(), "idp#alice", "github", &oauth2.Token{AccessToken: "once", Expiry: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}, time.Hour - time.Second, "once", 0},
		"no refresh token, ended": {time.Hour, func(t *testing.T, w world) {
			if err := w.a.save(t.Context(), "idp#alice", "github", &oauth2.Token{AccessToken: "once", Expiry: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, errNone.Error(), 0},
		"not used for 90 days": {200 * 24 * time.Hour, nil, vaultTTL, errNone.Error(), 0},
		"used after 89 days, and 89 days before": {200 * 24 * time.Hour, func(_ *testing.T, w world) {
			time.Sleep(vaultTTL - vaultTouch)
			access(w.b, w.p, false)
		}, vaultTTL - vaultTouch, "access-1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &rotating{life: tt.life}
				a, b, _ := replicas(t, scale.NewLocal())
				if err := a.save(t.Context(), "idp#alice", "github", p.issue()); err != nil {
					t.Fatal(err)
				}
				if tt.before != nil {
					tt.before(t, world{a, b, p})
				}
				time.Sleep(tt.sleep)
				began := time.Now()
				if got := access(b, p, false); got != tt.want || time.Since(began) != tt.took {
					t.Errorf("%s after %v, want %s after %v", got, time.Since(began), tt.want, tt.took)
				}
			})
		})
	}
}

// What happens to the entry during a refresh.
func TestDuringRefresh(t *testing.T) {
	for name, tt := range map[string]struct {
		after   func(t *testing.T, b *vault, p *rotating) // the provider has rotated
		fault   error                                     // of the refresh
		want    string
		next    string // a second call after a minute
		revoked string
	}{
		"disconnected": {after: func(t *testing.T, b *vault, p *rotating) {
			if revoked, err := b.forget(t.Context(), p, "idp#alice", "github", ""); !revoked || err != nil {
				t.Error(revoked, err)
			}
		}, want: errNone.Error(), next: errNone.Error(), revoked: "refresh-1 refresh-2"},
		"connected again": {after: func(t *testing.T, b *vault, p *rotating) {
			p.mu.Lock()
			again := p.issue()
			p.mu.Unlock()
			if err := b.save(t.Context(), "idp#alice", "github", again); err != nil {
				t.Error(err)
			}
		}, want: "access-3", next: "access-3"},
		"slower than a lease": {after: func(t *testing.T, b *vault, p *rotating) {
			p.after = nil
			var call sync.WaitGroup
			defer call.Wait()
			call.Go(func() { // has the refresh token from before
				if got, want := access(b, p, false), "the provider refused the tokens: invalid_grant"; got != want {
					t.Errorf("the call that took over got %s", got)
				}
			})
			time.Sleep(leaseTimeout + time.Second)
		}, want: "access-2", next: "access-2"},
		"refused":      {fault: errors.New("invalid_grant"), want: "the provider refused the tokens: invalid_grant", next: errRefused.Error()},
		"out of order": {fault: fmt.Errorf("%w: 502", errBusy), want: "the provider does not answer: 502", next: "access-2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, p := replicas(t, scale.NewLocal())
				if tt.after != nil {
					p.after = func() { tt.after(t, b, p) }
				}
				faults := 1
				p.fault = func() error {
					if faults--; faults == 0 {
						return tt.fault
					}
					return nil
				}
				time.Sleep(time.Hour)
				if got := access(a, p, false); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				time.Sleep(time.Minute)
				if got := access(b, p, false); got != tt.next {
					t.Errorf("then %s, want %s", got, tt.next)
				}
				if got := strings.Join(p.ended, " "); got != tt.revoked {
					t.Errorf("revoked %q", got)
				}
				if err := a.save(t.Context(), "idp#alice", "github", &oauth2.Token{AccessToken: "last"}); err != nil {
					t.Fatal(err)
				}
				if got := access(b, p, false); got != "last" {
					t.Errorf("after connecting again: %s", got)
				}
			})
		})
	}
}

// A replica that is killed between the provider's rotation and its write costs the user a
// new connection, after the lease, and no more.
func TestKilledAfterRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: scale.NewLocal()}
		a, b, p := replicas(t, scale.NewLocal())
		a.store, b.store = store.Store, store.Store
		killed, err := newVault(a.issuer, store, vaultKeys[:1])
		if err != nil {
			t.Fatal(err)
		}
		if err := a.save(t.Context(), "idp#alice", "github", p.issue()); err != nil {
			t.Fatal(err)
		}
		p.after = func() { store.set(scale.ErrUnavailable) }
		time.Sleep(time.Hour)
		if got := access(killed, p, false); got != "access-3" {
			t.Errorf("the call itself got %s", got)
		}
		p.after = nil
		began := time.Now()
		if got := access(b, p, false); got != "the provider refused the tokens: invalid_grant" || time.Since(began) != leaseTimeout {
			t.Errorf("the next call got %s after %v", got, time.Since(began))
		}
		if got := access(a, p, false); got != errRefused.Error() {
			t.Errorf("and then %s", got)
		}
		if p.refused != 1 {
			t.Errorf("the provider was asked %d times with a token that was used", p.refused)
		}
		if err := a.save(t.Context(), "idp#alice", "github", p.issue()); err != nil {
			t.Fatal(err)
		}
		if got := access(b, p, false); got != "access-4" {
			t.Errorf("connected again: %s", got)
		}
	})
}

// A store that is unavailable for a moment after the rotation loses nothing.
func TestStoreBlinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: scale.NewLocal()}
		a, b, p := replicas(t, store)
		p.after = func() { store.set(scale.ErrUnavailable); time.AfterFunc(time.Second, func() { store.set(nil) }) }
		time.Sleep(time.Hour)
		for _, v := range []*vault{a, b, a} {
			if got := access(v, p, false); got != "access-2" {
				t.Errorf("got %s", got)
			}
		}
		store.set(scale.ErrUnavailable)
		if _, err := a.fresh(t.Context(), p, "idp#alice", "github", false); !errors.Is(err, errBusy) {
			t.Errorf("without a store: %v", err)
		}
		if err := a.save(t.Context(), "idp#alice", "github", &oauth2.Token{AccessToken: "x"}); !errors.Is(err, errBusy) {
			t.Errorf("without a store: %v", err)
		}
		if _, err := a.forget(t.Context(), p, "idp#alice", "github", ""); !errors.Is(err, errBusy) {
			t.Errorf("without a store: %v", err)
		}
	})
}

// failing is a Store that can be unavailable.
type failing struct {
	scale.Store
	mu  sync.Mutex
	err error
}

func (f *failing) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failing) fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *failing) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.Store.Get(ctx, ops...)
}

func (f *failing) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.Store.Put(ctx, ops...)
}

// The operator of the store reads nothing, and an entry that was moved, or is of another
// broker, does not open. Keys are replaced without a new connection.
func TestVaultIsSealed(t *testing.T) {
	seen := &recording{Store: scale.NewLocal()}
	a, _, p := replicas(t, seen)
	if err := a.save(t.Context(), "idp#bob", "github", &oauth2.Token{AccessToken: "of-bob", RefreshToken: "more-of-bob"}); err != nil {
		t.Fatal(err)
	}
	for _, w := range seen.writes {
		for _, text := range []string{w.Key.Name, w.Key.Partition, w.Notify, string(w.Value)} {
			for _, secret := range []string{"access-1", "refresh-1", "of-bob", "alice", "bob", "github", "notes.example.com"} {
				if strings.Contains(text, secret) {
					t.Errorf("%q is in %q", secret, text)
				}
			}
		}
	}
	move := func(from, to scale.Key) {
		t.Helper()
		found, err := seen.Get(t.Context(), scale.GetOp{Key: from})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seen.Store.Put(t.Context(), scale.Write{Key: to, Prev: scale.Any, TTL: time.Hour, Value: found[0].Value}); err != nil {
			t.Fatal(err)
		}
	}
	alice, bob := a.key("idp#alice", "github"), a.key("idp#bob", "github")
	move(bob, alice)
	if got := access(a, p, false); got != errNone.Error() {
		t.Errorf("with the entry of another user: %s", got)
	}
	other, err := newVault("https://other.example.com", seen, vaultKeys)
	if err != nil {
		t.Fatal(err)
	}
	if other.key("idp#bob", "github") == bob {
		t.Error("brokers of two issuers have one key")
	}
	move(bob, other.key("idp#bob", "github"))
	if _, err := other.fresh(t.Context(), p, "idp#bob", "github", false); !errors.Is(err, errNone) {
		t.Errorf("at a broker of another issuer: %v", err)
	}
	for name, tt := range map[string]struct {
		keys [][]byte
		want error
	}{
		"a new key in front": {[][]byte{vaultKeys[1], vaultKeys[0]}, nil}, "a new key at the end": {vaultKeys, nil}, "another key": {vaultKeys[1:], errNone},
	} {
		v, err := newVault(a.issuer, seen, tt.keys)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.fresh(t.Context(), p, "idp#bob", "github", false); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.save(t.Context(), "idp#bob", "github", &oauth2.Token{AccessToken: strings.Repeat("x", maxTokens)}); !errors.Is(err, errLong) {
		t.Errorf("a long token: %v", err)
	}
}

// recording is a Store that notes what is written.
type recording struct {
	scale.Store
	writes []scale.Write
}

func (r *recording) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	r.writes = append(r.writes, ops...)
	return r.Store.Put(ctx, ops...)
}
