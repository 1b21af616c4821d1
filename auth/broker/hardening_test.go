package broker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

// A provider without metadata takes the secret in the form or in the header. Neither a code
// nor a refresh token is sent twice, unless the provider did not recognize the client.
func TestWhereTheSecretIs(t *testing.T) {
	for name, tt := range map[string]struct {
		header bool     // it takes the secret there, and nowhere else
		answer []string // status and body for recognized clients; an empty status breaks the connection
		first  int      // requests by the first attempt
		later  int      // and by the next one
	}{
		"form":                 {false, []string{"200", `{"access_token":"a","token_type":"bearer"}`}, 1, 1},
		"header":               {true, []string{"200", `{"access_token":"a","token_type":"bearer"}`}, 2, 1},
		"form, wrong grant":    {false, []string{"400", `{"error":"invalid_grant"}`}, 1, 1},
		"form, 401":            {false, []string{"401", `{"error":"invalid_grant"}`}, 1, 1},
		"form, 401 scope":      {false, []string{"401", `{"error":"invalid_scope"}`}, 1, 1},
		"form, 401 resource":   {false, []string{"401", `{"error":"invalid_target"}`}, 1, 1},
		"form, 401 grant type": {false, []string{"401", `{"error":"unsupported_grant_type"}`}, 1, 1},
		"form, 401 denied":     {false, []string{"401", `{"error":"access_denied"}`}, 1, 1},
		"form, 401 away":       {false, []string{"401", `{"error":"temporarily_unavailable"}`}, 1, 1},
		"form, 503":            {false, []string{"503", `{"error":"invalid_client"}`}, 1, 1},
		"form, 429":            {false, []string{"429", `{"error":"invalid_client"}`}, 1, 1},
		"form, 401 Keycloak":   {false, []string{"401", `{"error":"unauthorized_client"}`}, 2, 2},
		"form, 401 in HTML":    {false, []string{"401", `<p>Unauthorized`}, 2, 2},
		"form, as GitHub":      {false, []string{"200", `{"error":"bad_refresh_token"}`}, 1, 1},
		"form, answer is lost": {false, []string{""}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			u := newUpstream(bare(nil), transport(func(r *http.Request) (*http.Response, error) {
				asked++
				if err := r.ParseForm(); err != nil {
					t.Error(err)
				}
				_, secret, inHeader := r.BasicAuth()
				if inHeader != tt.header || secret+r.PostForm.Get("client_secret") != "hush" {
					return response(r, 401, `{"error":"invalid_client"}`), nil
				}
				if tt.answer[0] == "" {
					return nil, errors.New("connection reset by peer")
				}
				status, err := strconv.Atoi(tt.answer[0])
				return response(r, status, tt.answer[1]), err
			}))
			for _, want := range []int{tt.first, tt.later} {
				asked = 0
				_, err := u.refresh(t.Context(), &oauth2.Token{RefreshToken: "rt"})
				if ok := strings.Contains(fmt.Sprint(tt.answer), "access_token"); asked != want || ok != (err == nil) {
					t.Errorf("%d requests, want %d: %v", asked, want, err)
				}
			}
			asked = 0
			if _, err := u.exchange(t.Context(), "code", "verifier", self+"/callback"); asked != tt.later {
				t.Errorf("a code was sent %d times: %v", asked, err)
			}
		})
	}
}

// A user about whom the provider did not answer is asked about again after a minute. Until
// then a refresh does not wait for the provider.
func TestCheckPause(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		w.handlers = w.handlers[:1] // each replica has a memory of its own
		tok := w.enter()
		time.Sleep(61 * time.Minute)
		w.idp.set(func() { w.idp.fail = true })
		for _, tt := range []struct {
			after time.Duration
			asked bool
		}{{0, true}, {time.Second, false}, {58 * time.Second, false}, {time.Second, true}} {
			time.Sleep(tt.after)
			before := w.idp.asked["/token"] + w.idp.asked["/.well-known/openid-configuration"]
			status, code, next := w.renew(tok)
			if asked := w.idp.asked["/token"] + w.idp.asked["/.well-known/openid-configuration"] - before; status != 200 || (asked > 0) != tt.asked {
				t.Errorf("after %s: %d %s, the provider was asked %d times", tt.after, status, code, asked)
			}
			tok = next
		}
	})
}

// A check that ends late ends neither a login of after it began, nor the tokens of that.
func TestLoginDuringACheck(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		old := w.enter()
		e := w.brokers[0].entrance
		g, _ := e.opened(old.access)
		u, err := e.protocol.Users.Get(t.Context(), g.User)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		newer := w.enter()
		if err := e.end(t.Context(), g.User, u, errRefused); err != nil {
			t.Errorf("the check of before: %v", err)
		}
		if got := w.user(newer); !strings.HasPrefix(got, "alice") || slices.Contains(w.kinds(), "refused") {
			t.Errorf("the login: %s, events %q", got, w.kinds())
		}
		if _, err := e.b.vault.forget(t.Context(), e.b.login, principalOf(u), "", "at-older"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.b.vault.read(t.Context(), e.b.vault.key(principalOf(u), "")); err != nil {
			t.Errorf("the tokens of the login: %v", err)
		}
	})
}

// A provider may give a refresh token at the first visit of a user only. That of a service
// could be of another account, and goes.
func TestRefreshTokenStays(t *testing.T) {
	w := newWorld(t, 1, nil)
	v, alice := w.brokers[0].vault, "https://id.example.com#alice"
	kept := func(service string) *kept {
		k, _, err := v.read(t.Context(), v.key(alice, service))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	w.enter()
	first := kept("")
	w.idp.set(func() { w.idp.offline = false })
	w.enter()
	if second := kept(""); second.Refresh != first.Refresh || second.Access == first.Access || first.Refresh == "" {
		t.Errorf("after the second login %+v, before %+v", second, first)
	}
	for _, token := range []*oauth2.Token{{AccessToken: "a", RefreshToken: "r"}, {AccessToken: "b"}} {
		if err := v.save(t.Context(), alice, "tracker", token); err != nil {
			t.Fatal(err)
		}
	}
	if k := kept("tracker"); k.Access != "b" || k.Refresh != "" {
		t.Errorf("of a service: %+v", k)
	}
}

// An ID token is never taken without its nonce, also where none was asked for.
func TestNonceWithoutOpenID(t *testing.T) {
	p := &Provider{Issuer: idpURL, ClientID: "front", ClientSecret: "hush", Scopes: []string{"email"}, User: func(context.Context, *http.Client) (*auth.Identity, error) {
		return &auth.Identity{Subject: "by User"}, nil
	}}
	w := newWorldAt(t, 1, p, nil)
	w.idp.claims = func(c map[string]any) { delete(c, "nonce") }
	if got := w.browser().login(query(w.register(redirect))); got.Get("error") != "server_error" {
		t.Errorf("without a nonce: sent back with %v", got)
	}
	w.idp.claims = nil
	if got := w.user(w.enter()); !strings.HasPrefix(got, "alice") {
		t.Errorf("with it: %s", got)
	}
	w.idp.answer = func(*http.Request) (int, string) { return 200, `{"access_token":"x","token_type":"Bearer"}` }
	if got := w.browser().login(query(w.register(redirect))); !got.Has("code") {
		t.Errorf("without an ID token: sent back with %v", got)
	}
}

// A visit that browsers would drop the cookie of does not begin.
func TestLongVisits(t *testing.T) {
	var scopes []Scope
	for i := range 12 {
		scopes = append(scopes, Scope{Name: fmt.Sprintf("scope-%d-%s", i, strings.Repeat("s", 80))})
	}
	w := newWorld(t, 1, func(o *Options) { o.Scopes = scopes })
	long := "https://app.example.com/" + strings.Repeat("r", 990)
	client, b := w.register(long), w.browser()
	q := query(client, "redirect_uri", long, "state", strings.Repeat("s", 1000), "scope", scopes[0].Name)
	form := b.ask(q)
	form["scope"] = []string{scopes[0].Name}
	if status, page, _ := b.open(self+"/consent", form); status != 303 {
		t.Errorf("status %d: %s", status, page)
	}
	names := []string{}
	for _, s := range scopes {
		names = append(names, s.Name)
	}
	q.Set("scope", strings.Join(names, " "))
	form = b.ask(q)
	form["scope"] = names
	b.page("all scopes", 400, "What the program sent is too long", self+"/consent", form)
}

// The tokens of the visit that compares the user are those of the login from then on.
func TestTokensOfAComparison(t *testing.T) {
	s := newShop(t, 2, false)
	link := s.linkOf("alice")
	if status, page := s.connect(s.browser(), link); status != 200 {
		t.Fatalf("status %d: %s", status, page)
	}
	v := s.brokers[1].vault
	if k, _, err := v.read(t.Context(), v.key("https://id.example.com#alice", "")); err != nil || !strings.HasPrefix(k.Refresh, "rt-") {
		t.Errorf("kept %+v, %v", k, err)
	}
	s.idp.set(func() { s.idp.user = "bob" })
	if status, _ := s.connect(s.browser(), link); status != 403 {
		t.Errorf("status %d", status)
	}
	if _, _, err := v.read(t.Context(), v.key("https://id.example.com#bob", "")); !errors.Is(err, errNone) {
		t.Errorf("tokens of the other user: %v", err)
	}
}

// A Verifier of a resource that the Broker does not have is a mistake of the program.
func TestVerifierOfNoResource(t *testing.T) {
	w := newWorld(t, 1, nil)
	defer func() {
		if got := fmt.Sprint(recover()); got != `broker: Verifier: Options.Resources lacks "https://notes.example.com/other"` {
			t.Error(got)
		}
	}()
	w.brokers[0].Verifier(self + "/other")
}

// stuckStore is a Store whose Watch blocks until free is closed.
type stuckStore struct {
	scale.Store
	free chan struct{}
}

func (s *stuckStore) Watch(fn func(string, scale.Message), gap func()) scale.Watcher {
	<-s.free
	return s.Store.Watch(fn, gap)
}

// A Watch that blocks holds the call that made it, and no other.
func TestWatchThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stuckStore{scale.NewLocal(), make(chan struct{})}
		w := &watching{store: store}
		left := make(chan struct{})
		go func() {
			_, leave := w.join(t.Context(), "a")
			leave()
			close(left)
		}()
		synctest.Wait()
		_, leave := w.join(t.Context(), "a")
		leave()
		close(store.free)
		<-left
		if w.watcher != nil || w.begun || len(w.calls) != 0 {
			t.Errorf("%d calls are left", len(w.calls))
		}
	})
}

// An answer of a provider is one to a visit of this browser only while that is open:
// addresses that a browser repeats lead nowhere.
func TestRepeatedAddresses(t *testing.T) {
	w := newWorld(t, 2, nil)
	client, b := w.register(redirect), w.browser()
	form := b.ask(query(client))
	_, _, first := b.open(self+"/consent", form)
	_, _, second := b.open(self+"/consent", form) // the form is sent again
	for _, to := range []string{second, first} {
		if status, page, _ := b.open(w.idp.visit(t, to), nil); status != 303 {
			t.Errorf("status %d: %s", status, page)
		}
	}
	u, _ := url.Parse(first)
	v, _ := url.Parse(second)
	if u.Query().Get("state") == v.Query().Get("state") || u.Query().Get("nonce") == v.Query().Get("nonce") {
		t.Error("two visits have one state or nonce")
	}
}

// Codes, tokens, clients, forms, visits and links are sealed for one use, and refused in
// every other.
func TestSealsAreOfOneUse(t *testing.T) {
	s := newShop(t, 1, false)
	w := s.world
	tok := w.enter("scope", "")
	b := w.browser()
	form := b.ask(query(tok.client, "scope", ""))
	code := w.browser().login(query(tok.client, "scope", "")).Get("code")
	link, err := url.Parse(s.linkOf("alice"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, to := b.open(self+"/consent", form)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	visit := ""
	for _, c := range b.jar.Cookies(link) {
		if strings.Contains(c.Name, cookieVisit) {
			visit = c.Value
		}
	}
	seals := map[string]string{
		"access": tok.access, "refresh": tok.refresh, "client": strings.TrimPrefix(tok.client, "r."), "question": form.Get("id"), "code": code,
		"link": link.Query().Get("t"), "visit": visit,
	}
	for kind, text := range seals {
		if text == "" {
			t.Fatalf("there is no %s", kind)
		}
		taken := map[string]bool{}
		_, err := w.brokers[0].Verifier(endpoint).Verify(t.Context(), text)
		taken["access"] = err == nil
		status, _, _ := w.renew(tokens{client: tok.client, refresh: text})
		taken["refresh"] = status == 200
		status, _ = w.post("/token", codeForm(tok.client, text, "resource", endpoint))
		taken["code"] = status == 200
		status, _, _ = b.open(self+"/authorize?"+query("r."+text, "scope", "").Encode(), nil)
		taken["client"] = status == 200
		status, _, to := b.open(self+"/consent", url.Values{"id": {text}, "answer": {"deny"}})
		taken["question"] = status == 303 && to != ""
		status, _, _ = b.open(self+"/connect?t="+url.QueryEscape(text), nil)
		taken["link"] = status == 200
		status, _, _ = b.open(self+"/connect", url.Values{"form": {text}, "answer": {"deny"}})
		taken["form"] = status == 200
		r, err := http.NewRequest(http.MethodGet, self+"/callback?code=x&state="+u.Query().Get("state"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: "__Host-" + cookieVisit + "t-" + hash(u.Query().Get("state"))[:16], Value: text})
		taken["visit"] = w.serve(r).Code != 403
		for place, ok := range taken {
			if ok != (place == kind) {
				t.Errorf("%s as %s: taken %t", kind, place, ok)
			}
		}
	}
}

// The answer to a question takes scopes out, and adds none.
func TestScopesOfTheAnswer(t *testing.T) {
	w := newWorld(t, 2, nil)
	client, b := w.register(redirect), w.browser()
	form := b.ask(query(client, "scope", "notes:read"))
	form["scope"] = []string{"notes:read", "notes:write", "notes:burn"}
	_, _, to := b.open(self+"/consent", form)
	_, _, to = b.open(w.idp.visit(t, to), nil)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	_, m := w.post("/token", codeForm(client, u.Query().Get("code")))
	if m["scope"] != "notes:read" {
		t.Errorf("%v", m)
	}
}

// A provider whose token endpoint redirects gets neither code nor secret sent elsewhere.
func TestTokenEndpointThatRedirects(t *testing.T) {
	var sent []string
	u := newUpstream(bare(nil), transport(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.URL.Host)
		return response(r, 307, "", "Location", "https://evil.example.com/"), nil
	}))
	if _, err := u.exchange(t.Context(), "code", "verifier", self+"/callback"); err == nil || !slices.Equal(sent, []string{"id.example.com"}) {
		t.Errorf("%v, sent to %q", err, sent)
	}
}

// A subject that is too long to be one is refused: it would be kept for each user.
func TestLongSubject(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.idp.claims = func(c map[string]any) { c["sub"] = strings.Repeat("s", maxSubject+1) }
	if got := w.browser().login(query(w.register(redirect))); got.Get("error") != "server_error" {
		t.Errorf("by an ID token: sent back with %v", got)
	}
	v := newWorldAt(t, 1, bare(func(context.Context, *http.Client) (*auth.Identity, error) {
		return &auth.Identity{Subject: strings.Repeat("s", maxSubject+1)}, nil
	}), nil)
	if got := v.browser().login(query(v.register(redirect))); got.Get("error") != "server_error" {
		t.Errorf("by User: sent back with %v", got)
	}
}

// An answer of the provider that comes twice at once, as by a double click, is one login.
func TestAnswerTwiceAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		client, b := w.register(redirect), w.browser()
		back := b.allow(query(client))
		codes := make(chan string, 2)
		for range 2 {
			go func() {
				r := httptest.NewRequest(http.MethodGet, back, nil)
				for _, c := range b.jar.Cookies(r.URL) {
					r.AddCookie(c)
				}
				to, _ := url.Parse(w.serve(r).Header().Get("Location"))
				codes <- to.Query().Get("code")
			}()
		}
		if one, two := <-codes, <-codes; (one == "") == (two == "") {
			t.Errorf("codes %q and %q", one, two)
		}
	})
}

// delayedPuts is a Store that calls before for each write. lost is called once, after the next
// one, whose answer is lost then.
type delayedPuts struct {
	scale.Store
	before, lost func()
}

func (s *delayedPuts) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	s.before()
	done, err := s.Store.Put(ctx, ops...)
	if lost := s.lost; lost != nil {
		s.lost = nil
		lost()
		return nil, scale.ErrUnavailable
	}
	return done, err
}

// A code that comes twice at once gives no tokens that stay: one of the requests is the second,
// however near they are (RFC 6749, section 4.1.2).
func TestCodeTwiceAtOnce(t *testing.T) {
	for _, requests := range []int{2, 3, 8} {
		t.Run(fmt.Sprint(requests), func(t *testing.T) {
			bubble(t, func(t *testing.T, n int) {
				store := &delayedPuts{Store: scale.NewLocal(), before: func() { time.Sleep(time.Microsecond) }}
				w := newWorld(t, n, func(o *Options) { o.Store = store })
				client := w.register(redirect)
				code := w.browser().login(query(client)).Get("code")
				given := make(chan tokens, requests)
				var all sync.WaitGroup
				for range requests {
					all.Go(func() {
						if status, m := w.post("/token", codeForm(client, code)); status == 200 {
							given <- tokens{client, m["access_token"].(string), m["refresh_token"].(string)}
						} else if status != 400 || m["error"] != "invalid_grant" {
							t.Errorf("%d %v", status, m)
						}
					})
				}
				all.Wait()
				close(given)
				if len(given) > 1 {
					t.Errorf("%d requests were given tokens", len(given))
				}
				for had := range given {
					if got := w.user(had); !strings.Contains(got, "the login of the token has ended") {
						t.Errorf("the token: %s", got)
					}
					if status, refused, _ := w.renew(had); status != 400 || refused != "invalid_grant" {
						t.Errorf("refresh: %d %s", status, refused)
					}
				}
				if !slices.Contains(w.kinds(), "reused") {
					t.Errorf("events %v", w.kinds())
				}
			})
		})
	}
}

// A code whose use was written, although the store did not answer, gives its tokens, also if
// the entry of the user has changed since.
func TestCodeWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, n int) {
		store := &delayedPuts{Store: scale.NewLocal(), before: func() { time.Sleep(time.Microsecond) }}
		w := newWorld(t, n, func(o *Options) { o.Store = store })
		client := w.register(redirect)
		code := w.browser().login(query(client)).Get("code")
		store.lost = func() { time.Sleep(time.Second); w.browser().login(query(client)) }
		status, m := w.post("/token", codeForm(client, code))
		if status != 200 {
			t.Fatalf("%d %v", status, m)
		}
		had := tokens{client, m["access_token"].(string), m["refresh_token"].(string)}
		if status, refused, _ := w.renew(had); status != 200 {
			t.Errorf("refresh: %d %s", status, refused)
		}
		if status, m := w.post("/token", codeForm(client, code)); status != 400 || m["error"] != "invalid_grant" {
			t.Errorf("again: %d %v", status, m)
		}
	})
}

// A code is of the key that the client named when it asked (RFC 9449, section 10).
func TestCodeOfAKey(t *testing.T) {
	w := newWorld(t, 1, nil)
	client := w.register(redirect)
	q := query(client, "dpop_jkt", strings.Repeat("k", 43))
	if status, m := w.post("/token", codeForm(client, w.browser().login(q).Get("code"))); status != 400 || m["error"] != "invalid_grant" {
		t.Errorf("without a proof: %d %v", status, m)
	}
}

// hangingBody is a body whose rest does not come.
type hangingBody struct{ ctx context.Context }

func (b hangingBody) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }
func (hangingBody) Close() error               { return nil }

// A service that does not answer costs a request 30 seconds, or what the handler has set, also
// if the request has no deadline of its own.
func TestServiceHangs(t *testing.T) {
	for name, hangs := range map[string]func(r *http.Request) (*http.Response, error){
		"no answer": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		"no body": func(r *http.Request) (*http.Response, error) {
			res := response(r, 200, "")
			res.Body = hangingBody{r.Context()}
			return res, nil
		},
		"no body of a 401": func(r *http.Request) (*http.Response, error) {
			res := response(r, 401, "")
			res.Body = hangingBody{r.Context()}
			return res, nil
		},
	} {
		for _, limit := range []time.Duration{serviceTimeout, time.Minute} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newShop(t, 1, false)
					if status, page := s.connect(s.browser(), s.linkOf("alice")); status != 200 {
						t.Fatalf("status %d: %s", status, page)
					}
					s.services[0].opts.Transport = transport(hangs)
					c, err := s.services[0].Client(mcptest.Frame(t, mcptest.As(identity("alice"))))
					if err != nil {
						t.Fatal(err)
					}
					if limit != serviceTimeout {
						c.Timeout = limit
					}
					begin := time.Now()
					ctx, stop := context.WithTimeout(t.Context(), time.Hour)
					defer stop()
					if got, err := read(ctx, c, apiURL+"/issues"); err == nil || time.Since(begin) != limit {
						t.Errorf("%q, %v after %s", got, err, time.Since(begin))
					}
				})
			})
		}
	}
}
