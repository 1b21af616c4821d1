package broker

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/scale"
)

// bubble runs a test with a clock of its own, at one process and at two replicas.
func bubble(t *testing.T, fn func(t *testing.T, replicas int)) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d replicas", n), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { fn(t, n) }) })
	}
}

// Questions and visits last ten minutes, codes a minute, access tokens an hour.
func TestClocksOfALogin(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		client, b := w.register(redirect), w.browser()
		form := b.ask(query(client))
		back := b.allow(query(client))
		code := b.login(query(client)).Get("code")
		tok := w.enter()

		time.Sleep(59 * time.Second)
		fine := w.browser().login(query(client)).Get("code")
		time.Sleep(time.Second)
		if status, m := w.post("/token", codeForm(client, code)); status != 400 || m["error"] != "invalid_grant" {
			t.Errorf("a code after a minute: %d %v", status, m)
		}
		if status, m := w.post("/token", codeForm(client, fine)); status != 200 {
			t.Errorf("a code after a second: %d %v", status, m)
		}
		time.Sleep(9 * time.Minute)
		b.page("question", 403, issuing.TextOver, self+"/consent", form)
		if status, page, _ := b.open(back, nil); status != 403 || !strings.Contains(page, issuing.TextCookie) && !strings.Contains(page, issuing.TextOver) {
			t.Errorf("visit: %d %s", status, page)
		}
		// A user who answers late has ten minutes at the provider.
		slow := w.browser()
		question := slow.ask(query(client))
		time.Sleep(9 * time.Minute)
		_, _, to := slow.open(self+"/consent", question)
		time.Sleep(9 * time.Minute)
		if status, page, to := slow.open(w.idp.visit(t, to), nil); status != 303 || !strings.Contains(to, "code=") {
			t.Errorf("a slow user: %d %s", status, page)
		}
		time.Sleep(31*time.Minute + 59*time.Second)
		if got := w.user(tok); !strings.HasPrefix(got, "alice") {
			t.Errorf("before an hour: %s", got)
		}
		time.Sleep(time.Minute)
		if got := w.user(tok); !strings.Contains(got, "has expired") {
			t.Errorf("after an hour: %s", got)
		}
	})
}

// A refresh token is taken again for a minute after the next one was given, and a
// login ends 30 days after its last refresh.
func TestClocksOfRefreshing(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		first := w.enter()
		_, _, second := w.renew(first)
		time.Sleep(59 * time.Second)
		if status, code, again := w.renew(first); status != 200 || w.user(again) == "" {
			t.Errorf("within a minute: %d %s", status, code)
		}
		time.Sleep(2 * time.Second)
		if status, code, _ := w.renew(first); status != 400 || code != "invalid_grant" {
			t.Errorf("after a minute: %d %s", status, code)
		}
		if status, code, _ := w.renew(second); status != 400 || code != "invalid_grant" {
			t.Errorf("the login has not ended: %d %s", status, code)
		}
		tok := w.enter()
		time.Sleep(29 * 24 * time.Hour)
		status, code, tok := w.renew(tok)
		if status != 200 {
			t.Fatalf("after 29 days: %d %s", status, code)
		}
		time.Sleep(30*24*time.Hour + time.Second)
		if status, code, _ := w.renew(tok); status != 400 || code != "invalid_grant" {
			t.Errorf("after 30 days: %d %s", status, code)
		}
	})
}

// A client that takes no refresh tokens logs in again after Lifetime.
func TestLoginWithoutRefreshToken(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		_, m := w.post("/register", url.Values{"json": {`{"redirect_uris":["` + redirect + `"],"token_endpoint_auth_method":"none"}`}})
		client := m["client_id"].(string)
		status, m := w.post("/token", codeForm(client, w.browser().login(query(client)).Get("code")))
		if status != 200 || m["refresh_token"] != nil {
			t.Fatalf("%d %v", status, m)
		}
		g, _ := w.brokers[0].entrance.opened(m["access_token"].(string))
		users := w.brokers[0].entrance.protocol.Users
		time.Sleep(59*time.Minute + 59*time.Second)
		if _, _, err := users.Has(t.Context(), g.User, g.Login); err != nil {
			t.Errorf("before an hour: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, _, err := users.Has(t.Context(), g.User, g.Login); !errors.Is(err, issuing.ErrGrant) {
			t.Errorf("after an hour: %v", err)
		}
	})
}

// The provider is asked about a user once an hour, when a client refreshes. A user who
// has left is out, and a provider that does not answer is tolerated for a day.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(w *world)
		after  time.Duration
		status int
		code   string
		asked  bool
	}{
		"within the hour": {func(w *world) { w.idp.gone["alice"] = true }, 59 * time.Minute, 200, "", false},
		"still there":     {func(*world) {}, 61 * time.Minute, 200, "", true},
		"left":            {func(w *world) { w.idp.gone["alice"] = true }, 61 * time.Minute, 400, "invalid_grant", true},
		"another subject": {func(w *world) { w.idp.claims = func(c map[string]any) { c["sub"] = "mallory" } }, 61 * time.Minute, 400, "invalid_grant", true},
		"does not answer": {func(w *world) { w.idp.fail = true }, 23 * time.Hour, 200, "", true},
		"for a day":       {func(w *world) { w.idp.fail = true }, 25 * time.Hour, 503, "temporarily_unavailable", true},
		"bad ID token":    {func(w *world) { w.idp.claims = func(c map[string]any) { c["aud"] = "other" } }, 23 * time.Hour, 200, "", true},
		"bad for a day":   {func(w *world) { w.idp.claims = func(c map[string]any) { c["aud"] = "other" } }, 25 * time.Hour, 400, "invalid_grant", true},
		"our secret is no": {func(w *world) {
			w.idp.answer = func(*http.Request) (int, string) { return 401, `{"error":"invalid_client"}` }
		}, 23 * time.Hour, 200, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n int) {
				w := newWorld(t, n, nil)
				tok, second := w.enter(), w.enter()
				asked := len(w.idp.forms)
				w.idp.set(func() { tt.before(w) })
				time.Sleep(tt.after)
				status, code, next := w.renew(tok)
				if status != tt.status || code != tt.code {
					t.Fatalf("%d %s", status, code)
				}
				if tt.asked && !w.idp.fail != (len(w.idp.forms) == asked+1) {
					t.Errorf("the provider was asked %d times", len(w.idp.forms)-asked)
				}
				if status == 400 { // all logins have ended
					if status, code, _ := w.renew(second); status != 400 || code != "invalid_grant" {
						t.Errorf("another login: %d %s", status, code)
					}
				}
				if status == 200 && !strings.HasPrefix(w.user(next), "alice") {
					t.Errorf("the user is %s", w.user(next))
				}
				if status == 503 { // nothing is used up
					w.idp.set(func() { w.idp.fail = false })
					if status, code, _ := w.renew(tok); status != 200 {
						t.Errorf("then: %d %s", status, code)
					}
				}
			})
		})
	}
}

// A provider that gives no refresh tokens cannot be asked: such a login lasts a day.
func TestCheckIsImpossible(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		w.idp.offline = false
		tok := w.enter()
		time.Sleep(23 * time.Hour)
		status, code, tok := w.renew(tok)
		if status != 200 {
			t.Fatalf("%d %s", status, code)
		}
		time.Sleep(2 * time.Hour)
		if status, code, _ := w.renew(tok); status != 400 || code != "invalid_grant" {
			t.Errorf("after a day: %d %s", status, code)
		}
	})
}

// mortal is the store of a replica that is killed after some writes.
type mortal struct {
	scale.Store
	left int  // writes until then
	next bool // it dies with the write after these, not at once
	dead bool
}

func (m *mortal) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	if m.dead {
		return nil, scale.ErrUnavailable
	}
	return m.Store.Get(ctx, ops...)
}

func (m *mortal) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	if m.dead = m.dead || m.left == 0; m.dead {
		return nil, scale.ErrUnavailable
	}
	m.left--
	m.dead = m.left == 0 && !m.next
	return m.Store.Put(ctx, ops...)
}

// A replica that is killed while it asks the provider about a user: another one takes over,
// after the lease if there is one. If the provider has rotated its token, and refuses the
// earlier one as stolen, the user has to log in again. In all other cases the logins stay valid.
func TestKilledDuringACheck(t *testing.T) {
	for name, tt := range map[string]struct {
		writes int
		next   bool
		again  bool // the provider takes the token of before once more
		wait   time.Duration
		status int
	}{
		"before its request":              {writes: 1, wait: leaseTimeout, status: 200},
		"after the rotation":              {writes: 1, next: true, wait: leaseTimeout, status: 400},
		"after the answer, no rotation":   {writes: 1, next: true, again: true, wait: leaseTimeout, status: 200},
		"after the tokens were kept":      {writes: 2, status: 200},
		"after the user was vouched for":  {writes: 3, status: 200},
		"before its answer to the client": {writes: 4, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				killed := &mortal{left: 1 << 30}
				w := newWorld(t, 2, func(o *Options) {
					web, store := o.Transport, o.Store
					if killed.Store == nil {
						killed.Store, o.Store = store, killed
						o.Transport = transport(func(r *http.Request) (*http.Response, error) {
							if killed.dead {
								return nil, errors.New("killed")
							}
							return web.RoundTrip(r)
						})
					}
				})
				tok, second := w.enter(), w.enter()
				time.Sleep(61 * time.Minute)
				killed.left, killed.next = tt.writes, tt.next
				before, all := maps.Clone(w.idp.refresh), w.handlers
				w.handlers = all[:1]
				if status, code, _ := w.renew(tok); (status == 200) != (tt.writes == 4) {
					t.Errorf("the replica that is killed: %d %s", status, code)
				}
				if !killed.dead {
					t.Fatal("it was not killed")
				}
				if w.handlers = all[1:]; tt.again {
					w.idp.set(func() { w.idp.refresh = before })
				}
				began := time.Now()
				status, _, next := w.renew(tok)
				if took := time.Since(began); status != tt.status || took != tt.wait {
					t.Fatalf("%d after %v, want %d after %v", status, took, tt.status, tt.wait)
				}
				if status, _, _ := w.renew(second); status != tt.status {
					t.Errorf("another login: %d", status)
				}
				if status != 200 {
					next = w.enter()
				}
				if got := w.user(next); !strings.HasPrefix(got, "alice") {
					t.Errorf("the user: %s", got)
				}
			})
		})
	}
}

// Permit is asked again after each check, and may take scopes away.
func TestPermitAfterCheck(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		var left []string
		var no error
		w := newWorld(t, n, func(o *Options) {
			o.Permit = func(_ context.Context, id *auth.Identity) ([]string, error) {
				if left == nil {
					return id.Scopes, no
				}
				return left, no
			}
		})
		tok := w.enter()
		left = []string{"notes:read"}
		time.Sleep(61 * time.Minute)
		status, _, tok := w.renew(tok)
		if got := w.user(tok); status != 200 || got != "alice notes:read" {
			t.Errorf("%d %s", status, got)
		}
		no = errors.New("out")
		time.Sleep(61 * time.Minute)
		if status, code, _ := w.renew(tok); status != 400 || code != "invalid_grant" {
			t.Errorf("%d %s", status, code)
		}
	})
}

// Revoke ends all logins of a user at all replicas.
func TestRevokeUser(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		a, b := w.enter(), w.enter()
		w.idp.set(func() { w.idp.user = "bob" })
		other := w.enter()
		if err := w.brokers[0].Revoke(t.Context(), "https://id.example.com#alice"); err != nil {
			t.Fatal(err)
		}
		for _, tok := range []tokens{a, b} {
			if status, code, _ := w.renew(tok); status != 400 || code != "invalid_grant" || !strings.Contains(w.user(tok), "has ended") {
				t.Errorf("%d %s, %s", status, code, w.user(tok))
			}
		}
		if got := w.user(other); !strings.HasPrefix(got, "bob") {
			t.Errorf("bob is %s", got)
		}
	})
}

// 64 clients of a user refresh at two replicas at once, each 8 times in parallel:
// each gets one next token, and no user is logged out.
func TestRefreshRace(t *testing.T) {
	w := newWorld(t, 2, nil)
	const clients, calls = 8, 8
	current := make([]tokens, clients)
	for i := range current {
		current[i] = w.enter()
	}
	for round := range 3 {
		var mu sync.Mutex
		next := make([]map[string]tokens, clients)
		var wg sync.WaitGroup
		for i := range clients * calls {
			wg.Go(func() {
				status, code, tok := w.renew(current[i%clients])
				if status != 200 {
					t.Errorf("round %d: %d %s", round, status, code)
					return
				}
				// Sealed texts differ; what they name must not.
				p, ok := w.brokers[0].entrance.protocol.Keeper.OpenText("refresh", "", tok.refresh, 4)
				if !ok {
					t.Error("the token does not open")
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if next[i%clients] == nil {
					next[i%clients] = map[string]tokens{}
				}
				next[i%clients][p[1]+" "+p[2]] = tok
			})
		}
		wg.Wait()
		for i, got := range next {
			if len(got) != 1 {
				t.Fatalf("round %d: client %d has %d next tokens", round, i, len(got))
			}
			for _, tok := range got {
				current[i] = tok
			}
		}
	}
}

// failing is a store of which one call fails, before or after it was done.
type oneFailure struct {
	scale.Store
	mu    sync.Mutex
	n, at int
	after bool
	twice bool // the call after it, too
}

func (f *oneFailure) due() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.n == f.at || f.twice && f.n == f.at+1
}

func (f *oneFailure) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	if f.due() {
		return nil, fmt.Errorf("away: %w", scale.ErrUnavailable)
	}
	return f.Store.Get(ctx, ops...)
}

func (f *oneFailure) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	if f.due() {
		if f.after {
			_, _ = f.Store.Put(ctx, ops...)
		}
		return nil, fmt.Errorf("away: %w", scale.ErrUnavailable)
	}
	return f.Store.Put(ctx, ops...)
}

// A store that fails at any one call costs a retry: no code is lost, and no user is
// logged out.
func TestStoreFailsAtEachCall(t *testing.T) {
	for _, how := range []struct{ after, twice bool }{{false, false}, {true, false}, {false, true}} {
		for at := 1; at < 16; at++ {
			t.Run(fmt.Sprintf("call %d, %+v", at, how), func(t *testing.T) {
				store := &oneFailure{Store: scale.NewLocal(), at: at, after: how.after, twice: how.twice}
				w := newWorld(t, 2, func(o *Options) { o.Store = store })
				client, b := w.register(redirect), w.browser()
				var code string
				for try := 0; code == ""; try++ {
					status, page, to := b.open(b.allow(query(client)), nil)
					switch u, err := url.Parse(to); {
					case err == nil && u.Query().Has("code"):
						code = u.Query().Get("code")
					case status != 503 || try > 1 || !strings.Contains(page, "does not answer"):
						t.Fatalf("status %d, to %q: %s", status, to, page)
					}
				}
				var tok tokens
				for try := 0; tok.refresh == ""; try++ {
					status, m := w.post("/token", codeForm(client, code))
					if status == 200 {
						tok = tokens{client, m["access_token"].(string), m["refresh_token"].(string)}
					} else if status != 503 || m["error"] != "temporarily_unavailable" || try > 1 {
						t.Fatalf("code: %d %v", status, m)
					}
				}
				for range 3 {
					for try := 0; ; try++ {
						status, fault, next := w.renew(tok)
						if status == 200 {
							tok = next
							break
						}
						if status != 503 || fault != "temporarily_unavailable" || try > 1 {
							t.Fatalf("refresh: %d %s", status, fault)
						}
					}
				}
			})
		}
	}
}

// Keys are replaced one after the other: secrets, clients and logins stay valid.
func TestKeysAreReplaced(t *testing.T) {
	older, newer := testKeys[0], []byte("a newer key of sixteen bytes")
	w := newWorld(t, 1, nil)
	_, m := w.post("/register", url.Values{"json": {`{"redirect_uris":["` + redirect + `"],"grant_types":["authorization_code","refresh_token"]}`}})
	client, secret := m["client_id"].(string), m["client_secret"].(string)
	basic := []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(client)+":"+secret))}
	form := codeForm(client, w.browser().login(query(client)).Get("code"))
	form.Del("client_id")
	status, m := w.post("/token", form, basic...)
	if status != 200 {
		t.Fatal(status, m)
	}
	tok := tokens{client, m["access_token"].(string), m["refresh_token"].(string)}
	if status, code, _ := w.renew(tok); status != 401 || code != "invalid_client" {
		t.Errorf("without the secret: %d %s", status, code)
	}
	if status, code, _ := w.renew(tok, "client_secret", secret+"x"); status != 401 || code != "invalid_client" {
		t.Errorf("with a wrong secret: %d %s", status, code)
	}
	store := w.brokers[0].opts.Store
	for _, keys := range [][][]byte{{older, newer}, {newer, older}} {
		v := newWorld(t, 1, func(o *Options) { o.Store, o.Keys = store, keys })
		status, code, next := v.renew(tok, "client_secret", secret)
		if status != 200 || !strings.HasPrefix(v.user(next), "alice") {
			t.Errorf("%d %s", status, code)
		}
		tok = next
	}
	v := newWorld(t, 1, func(o *Options) { o.Store, o.Keys = store, [][]byte{newer} })
	if got := v.user(tok); !strings.HasPrefix(got, "alice") {
		t.Errorf("the login was not sealed again: %s", got)
	}
	if status, code, _ := v.renew(tok, "client_secret", secret); status != 401 || code != "invalid_client" {
		t.Errorf("a client of a key that is gone: %d %s", status, code)
	}
}
