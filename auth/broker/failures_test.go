package broker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

// reading counts the bytes that are read of it.
type reading struct {
	io.Reader
	n int
}

func (r *reading) Read(p []byte) (int, error) { n, err := r.Reader.Read(p); r.n += n; return n, err }

// A form without a login is not read beyond 64 KiB, at any endpoint.
func TestLongForms(t *testing.T) {
	w := newWorld(t, 1, nil)
	part := "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n"
	for _, path := range []string{"/connect", "/consent", "/token", "/revoke", "/register"} {
		for kind, begin := range map[string]string{"multipart/form-data; boundary=x": part, "application/x-www-form-urlencoded": "form="} {
			body := &reading{Reader: io.MultiReader(strings.NewReader(begin), strings.NewReader(strings.Repeat("a", 1<<20)))}
			r := httptest.NewRequest(http.MethodPost, self+path, body)
			r.Header.Set("Content-Type", kind)
			if rec := w.serve(r); rec.Code < 400 || rec.Code >= 500 || body.n > 70<<10 {
				t.Errorf("%s %s: status %d, %d bytes were read", path, kind, rec.Code, body.n)
			}
		}
	}
}

// A body that does not come holds a connection for 30 seconds, at any endpoint, and one that
// came does not end the request later.
func TestBodyThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nil)
		slow := w.brokers[0].Middleware(nil)
		listener := pipes{make(chan net.Conn)}
		server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			slow.ServeHTTP(rw, r)
			if r.Header.Get("Wait") != "" {
				time.Sleep(time.Minute)
				if err := r.Context().Err(); err != nil {
					t.Errorf("the request ended: %v", err)
				}
			}
		})}
		defer server.Close()
		go func() { _ = server.Serve(listener) }()
		for _, c := range []struct {
			head, body string
			status     int
			time       time.Duration
		}{
			{"POST /token", "", 400, 30 * time.Second}, {"POST /revoke", "grant_type=", 400, 30 * time.Second}, {"POST /register", "{", 400, 30 * time.Second}, {"POST /consent", "", 400, 30 * time.Second},
			{"POST /connect", "", 400, 30 * time.Second}, {"GET /token", "", 405, 30 * time.Second}, {"GET /authorize?x=1", "", 400, 30 * time.Second}, {"POST /token", "client_id=", 401, time.Minute},
		} {
			here, there := net.Pipe()
			listener.conns <- there
			length, wait := 100, ""
			if c.time == time.Minute {
				length, wait = len(c.body), "Wait: 1\r\n"
			}
			begin := time.Now()
			go func() {
				_, _ = fmt.Fprintf(here, "%s HTTP/1.1\r\nHost: notes.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\n%sContent-Length: %d\r\n\r\n%s", c.head, wait, length, c.body)
			}()
			res, err := http.ReadResponse(bufio.NewReader(here), nil)
			if err != nil {
				t.Fatalf("%s: %v", c.head, err)
			}
			if res.StatusCode != c.status || time.Since(begin) != c.time {
				t.Errorf("%s: %d after %s", c.head, res.StatusCode, time.Since(begin))
			}
			here.Close()
		}
	})
}

// pipes is a listener for connections without sockets.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p.conns); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// Status 401 of a provider without ID tokens ends the logins of a user. Any other
// status, such as 403 of a rate limit, means that it does not answer.
func TestCheckByUser(t *testing.T) {
	for status, want := range map[int]int{200: 200, 401: 400, 403: 200, 404: 200, 429: 200, 500: 200} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			bubble(t, func(t *testing.T, n int) {
				answer := 200
				w := newWorldAt(t, n, bare(gitHubUser), func(o *Options) {
					web := o.Transport
					o.Transport = transport(func(r *http.Request) (*http.Response, error) {
						if r.URL.Host != "api.github.com" {
							return web.RoundTrip(r)
						}
						return response(r, answer, `{"id":1}`), nil
					})
				})
				tok := w.enter()
				answer = status
				time.Sleep(61 * time.Minute)
				if got, code, _ := w.renew(tok); got != want {
					t.Errorf("status %d %s, want %d", got, code, want)
				}
			})
		})
	}
}

// Metadata that does not come costs each caller ten seconds at most, and then nothing
// for ten seconds. Metadata that is known is used.
func TestDiscoveryHangs(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("known %v", known), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, asked := newIDP(t), 0
				hangs := transport(func(r *http.Request) (*http.Response, error) {
					asked++
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				u := newUpstream(&Provider{Issuer: idpURL, ClientID: "front"}, p)
				if known {
					if _, err := u.at(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(discoveryAge)
				}
				u.web.Transport = hangs
				begin := time.Now()
				var callers sync.WaitGroup
				for range 3 {
					callers.Go(func() {
						if _, err := u.at(t.Context()); err != nil && !errors.Is(err, errBusy) {
							t.Error(err)
						}
						if waited := time.Since(begin); waited > providerTimeout {
							t.Errorf("a caller waited for %s", waited)
						}
					})
				}
				callers.Wait()
				begin, asked = time.Now(), 0
				if e, err := u.at(t.Context()); known != (err == nil && e != nil) || time.Since(begin) > 0 || asked != 0 {
					t.Errorf("then: %v after %s, asked %d times", err, time.Since(begin), asked)
				}
				u.web.Transport = p
				time.Sleep(discoveryPause)
				if _, err := u.at(t.Context()); err != nil || p.asked["/.well-known/openid-configuration"] == 0 {
					t.Errorf("at last: %v", err)
				}
			})
		})
	}
}

// Whatever a provider calls it, an answer to a refresh that is not about this server
// means that the tokens of the user have ended.
func TestRefusalsOfARefresh(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
		busy   bool
	}{
		{400, "invalid_grant", false}, {400, "access_denied", false}, {403, "unauthorized_client", false}, {200, "bad_refresh_token", false}, {200, "invalid_refresh_token", false},
		{400, "interaction_required", false}, {401, "invalid_grant", false}, {401, "access_denied", false},
		{401, "invalid_client", true}, {400, "invalid_client", true}, {401, "unauthorized_client", true}, {200, "incorrect_client_credentials", true}, {400, "invalid_scope", true},
		{400, "temporarily_unavailable", true}, {429, "invalid_grant", true}, {503, "invalid_grant", true}, {403, "", true}, {404, "", true},
	} {
		p := newIDP(t)
		p.answer = func(*http.Request) (int, string) { return tt.status, asJSON(map[string]string{"error": tt.code}) }
		u := newUpstream(&Provider{Issuer: idpURL, ClientID: "front"}, p)
		if _, err := u.refresh(t.Context(), &oauth2.Token{RefreshToken: "rt"}); err == nil || errors.Is(err, errBusy) != tt.busy {
			t.Errorf("%d %q: %v, want busy %v", tt.status, tt.code, err, tt.busy)
		}
	}
}

// A client that is a document is accepted by its ID: at another replica nothing else
// is known of it at a refresh.
func TestAcceptOfADocument(t *testing.T) {
	const id = "https://app.example.com/client.json"
	web := &http.Client{Transport: docs{id: asJSON(map[string]any{"client_id": id, "client_name": "App", "redirect_uris": []string{redirect}, "grant_types": []string{"authorization_code", "refresh_token"}})}}
	var asked []string
	w := newWorld(t, 2, func(o *Options) {
		o.Accept = func(_ context.Context, c *Client) error {
			if asked = append(asked, strings.TrimSpace(c.ID+" "+c.Name)); c.ID != id {
				return errors.New("no")
			}
			return nil
		}
	})
	for _, b := range w.brokers {
		b.entrance.protocol.SetDocuments(web)
	}
	w.handlers = w.handlers[:1]
	_, m := w.post("/token", codeForm(id, w.browser().login(query(id)).Get("code")))
	other := w.brokers[1].Middleware(http.NotFoundHandler())
	w.handlers[0] = other
	if status, code, _ := w.renew(tokens{client: id, refresh: fmt.Sprint(m["refresh_token"])}); status != 200 || asked[len(asked)-1] != id || asked[0] != id+" App" {
		t.Errorf("%d %s, Accept was asked about %q", status, code, asked)
	}
}

// What a transport says, or what it panics with, is in no text that a model or an
// audit gets.
func TestTextsOfFailures(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("dial tcp 10.1.2.3:443: connection refused") },
		"panic": func() error { panic("10.1.2.3") },
	} {
		t.Run(name, func(t *testing.T) {
			armed := false
			w := newWorld(t, 1, func(o *Options) {
				web := o.Transport
				o.Transport = transport(func(r *http.Request) (*http.Response, error) {
					if armed {
						return nil, fail()
					}
					return web.RoundTrip(r)
				})
			})
			b := w.brokers[0]
			service, err := b.Service("idp", nil, &ServiceOptions{Origins: []string{idpURL}})
			if err != nil {
				t.Fatal(err)
			}
			back := w.browser()
			answer := back.allow(query(w.register(redirect)))
			armed = true
			back.page("answer", 503, "does not answer", answer, nil)
			if err := b.vault.save(t.Context(), "https://id.example.com#alice", "", &oauth2.Token{AccessToken: "a", RefreshToken: "r", Expiry: time.Now().Add(-time.Hour)}); err != nil {
				t.Fatal(err)
			}
			_, err = service.Token(mcptest.Frame(t, mcptest.As(mcp.Identity{Issuer: idpURL, Subject: "alice"})))
			if err == nil || !errors.Is(err, errBusy) || err.Error() != "broker: the tokens of idp are not available now: try again in a minute" {
				t.Errorf("the error of the handler: %v", err)
			}
			if len(w.events) != 1 || w.events[0].Err == nil || strings.Contains(w.events[0].Err.Error(), "10.1.2.3") || strings.Contains(w.events[0].Err.Error(), ".go:") {
				t.Errorf("events %v", w.events)
			}
		})
	}
}

// A code that comes again while the store cannot be written gets 503, since its login
// has not ended. It has when the code comes once more.
func TestReuseWhileTheStoreIsAway(t *testing.T) {
	store := &oneFailure{Store: scale.NewLocal(), twice: true, at: -2}
	w := newWorld(t, 2, func(o *Options) { o.Store = store })
	client := w.register(redirect)
	form := codeForm(client, w.browser().login(query(client)).Get("code"))
	w.post("/token", form)
	store.mu.Lock()
	store.n, store.at = 0, 2 // after the entry was read
	store.mu.Unlock()
	if status, m := w.post("/token", form); status != 503 || m["error"] != "temporarily_unavailable" {
		t.Errorf("a code again: %d %v", status, m)
	}
	if status, m := w.post("/token", form); status != 400 || m["error"] != "invalid_grant" {
		t.Errorf("and again: %d %v", status, m)
	}
	if got := fmt.Sprint(w.kinds()); got != "[login reused]" {
		t.Errorf("events %s", got)
	}
}

// losing is a Store that goes back to the entry before after each of the next writes, as one does
// in a failover.
type losing struct {
	scale.Store
	writes int
}

func (l *losing) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	if l.writes == 0 {
		return l.Store.Put(ctx, ops...)
	}
	l.writes--
	before, err := l.Store.Get(ctx, scale.GetOp{Key: ops[0].Key})
	if err != nil {
		return nil, err
	}
	done, err := l.Store.Put(ctx, ops...)
	if err == nil && done[0].Err == nil {
		_, err = l.Store.Put(ctx, scale.Write{Key: ops[0].Key, Prev: done[0].Rev, Value: before[0].Value, TTL: ops[0].TTL})
	}
	return done, err
}

// A refresh token with a greater number than its login is taken, since the store has lost
// writes. The login goes on from there, and an older token ends it.
func TestTokenThatTheStoreHasLost(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		store := &losing{Store: scale.NewLocal()}
		w := newWorld(t, n, func(o *Options) { o.Store = store })
		first := w.enter()
		store.writes = 2
		status, fault, second := w.renew(first)
		status2, fault2, third := w.renew(second)
		if status != 200 || status2 != 200 || store.writes != 0 {
			t.Fatalf("%d %s, %d %s, %d writes were not lost", status, fault, status2, fault2, store.writes)
		}
		status, fault, fourth := w.renew(third)
		if status != 200 {
			t.Fatalf("the token of a lost write: %d %s", status, fault)
		}
		if got := w.user(fourth); got != "alice notes:read notes:write" {
			t.Errorf("its user: %s", got)
		}
		if status, fault, _ := w.renew(third); status != 200 {
			t.Errorf("once more, as the one before the newest: %d %s", status, fault)
		}
		if status, fault, _ := w.renew(second); status != 400 || fault != "invalid_grant" {
			t.Errorf("an older one: %d %s", status, fault)
		}
		if status, _, _ := w.renew(fourth); status != 400 || !slices.Contains(w.kinds(), "reused") {
			t.Errorf("the newest after that: %d, events %v", status, w.kinds())
		}
	})
}

// One text is one token: a line break in it is not left out.
func TestLineBreaks(t *testing.T) {
	w := newWorld(t, 1, nil)
	tok := w.enter()
	w.browser().page("client", 400, issuing.TextUnknown, self+"/authorize?"+query(tok.client[:9]+"\n"+tok.client[9:]).Encode(), nil)
	if got := w.user(tokens{access: tok.access[:9] + "\r\n" + tok.access[9:]}); !strings.Contains(got, "not one of this server") {
		t.Errorf("token: %s", got)
	}
	if status, m := w.post("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {tok.client}, "refresh_token": {tok.refresh + "\n"}}); status != 400 {
		t.Errorf("refresh token: %d %v", status, m)
	}
}

// A service that a replica does not have any more ends the visits for it.
func TestServiceIsGone(t *testing.T) {
	s := newShop(t, 1, false)
	b := s.browser()
	_, _, to := b.press(s.linkOf("alice"), "connect")
	delete(s.brokers[0].services, "tracker")
	b.page("answer", 403, issuing.TextOver, s.idp.visit(t, to), nil)
}

// A Service may be made after the Middleware, as a router wants it.
func TestServiceAfterMiddleware(t *testing.T) {
	w := newWorld(t, 1, nil)
	if _, err := w.brokers[0].Service("late", GitHub("x", "y"), nil); err != nil {
		t.Fatal(err)
	}
	if rec := w.serve(httptest.NewRequest(http.MethodGet, self+"/callback/late", nil)); rec.Code != http.StatusForbidden {
		t.Errorf("status %d", rec.Code)
	}
}

// The form of the connect page is taken from that page alone.
func TestConnectFromAnotherSite(t *testing.T) {
	for from, want := range map[string]int{
		"same-origin": 303, "": 303, "cross-site": 403, "same-site": 403, "none": 403,
		" " + self: 303, " https://evil.example": 403, " null": 403, "cross-site " + self: 403, " " + self + ".evil.example": 403,
	} {
		site, origin, _ := strings.Cut(from, " ")
		s := newShop(t, 1, false)
		b := s.browser()
		_, page, _ := b.open(s.linkOf("alice"), nil)
		form := url.Values{"form": {hiddenForm.FindStringSubmatch(page)[1]}, "answer": {"connect"}}
		r := httptest.NewRequest(http.MethodPost, self+"/connect", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, value := range map[string]string{"Sec-Fetch-Site": site, "Origin": origin} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		for _, c := range b.jar.Cookies(r.URL) {
			r.AddCookie(c)
		}
		if rec := s.serve(r); rec.Code != want {
			t.Errorf("%q: status %d, want %d", from, rec.Code, want)
		}
	}
}

// A client may repeat offline_access when it refreshes, as it asked for it.
func TestOfflineAtARefresh(t *testing.T) {
	w := newWorld(t, 2, nil)
	tok := w.enter()
	for _, tt := range []struct{ scope, want string }{
		{"notes:read offline_access", "alice notes:read"}, {"offline_access", "alice notes:read notes:write"},
	} {
		status, code, next := w.renew(tok, "scope", tt.scope)
		if status != 200 || w.user(next) != tt.want {
			t.Fatalf("%s: %d %s", tt.scope, status, code)
		}
		tok = next
	}
}

// An audit names a client by its ID, and no text with a line break is one.
func TestClientsOfTheAudit(t *testing.T) {
	w := newWorld(t, 1, func(o *Options) { o.Accept = func(context.Context, *Client) error { return errors.New("no") } })
	w.post("/register", url.Values{"json": {`{"client_name":"r.other","redirect_uris":["` + redirect + `"]}`}})
	if len(w.events) != 1 || w.events[0].Client == "r.other" || !strings.HasPrefix(w.events[0].Client, "r.") {
		t.Errorf("events %v", w.events)
	}
	for _, id := range []string{"https://app.example.com/a\nlogin alice", "https://app.example.com/\u202e"} {
		if status, m := w.post("/token", codeForm(id, "x")); status != 401 || m["error"] != "invalid_client" || len(w.events) != 1 {
			t.Errorf("%q: %d %v, events %v", id, status, m, w.events)
		}
	}
}

// A login whose tokens are too long to keep is not checked with those of a former one.
func TestLoginWithLongTokens(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.enter()
	w.idp.answer = func(*http.Request) (int, string) {
		return 200, asJSON(map[string]any{"access_token": strings.Repeat("a", 20<<10), "token_type": "Bearer", "id_token": w.idp.idToken("alice", w.idp.nonce)})
	}
	if got := w.user(w.enter()); !strings.HasPrefix(got, "alice") {
		t.Errorf("the user is %q", got)
	}
	v := w.brokers[0].vault
	if _, _, err := v.read(t.Context(), v.key("https://id.example.com#alice", "")); !errors.Is(err, errNone) {
		t.Errorf("the tokens of the former login: %v", err)
	}
}

// readOnly is a Store that takes no writes while closed is set.
type readOnly struct {
	scale.Store
	closed bool
}

func (r *readOnly) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	if r.closed {
		return nil, scale.ErrUnavailable
	}
	return r.Store.Put(ctx, ops...)
}

// A token that is still valid is used while its lease cannot be written.
func TestValidWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &readOnly{Store: scale.NewLocal()}
		v, _, p := replicas(t, store)
		time.Sleep(time.Hour - 20*time.Second)
		store.closed = true
		if got := access(v, p, false); got != "access-1" {
			t.Errorf("before its end: %s", got)
		}
		time.Sleep(20 * time.Second)
		if _, err := v.fresh(t.Context(), p, "idp#alice", "github", false); !errors.Is(err, errBusy) {
			t.Errorf("at its end: %v", err)
		}
	})
}
