package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

const (
	trackerURL = "https://tracker.example.com"
	apiURL     = "https://api.tracker.example.com"
)

// tracker is another service and its API, as a transport. Refresh tokens rotate. mu guards
// all fields.
type tracker struct {
	mu      sync.Mutex
	account string                // that its users have there
	codes   map[string]url.Values // what a code was asked with
	refresh map[string]string     // accounts, by refresh tokens that are valid
	access  map[string]string     // accounts, by access tokens that are valid
	log     []string              // grants and revocations
	calls   []string              // paths of the API, and whether there was a token
	status  int                   // of the token endpoint; 0 answers
	broken  bool                  // the API takes no token
	revokes bool                  // it has a revocation endpoint
}

func newTracker() *tracker {
	return &tracker{account: "al", codes: map[string]url.Values{}, refresh: map[string]string{}, access: map[string]string{}}
}

// set changes fields.
func (p *tracker) set(fn func()) { p.mu.Lock(); defer p.mu.Unlock(); fn() }

// provider is the service as a Broker knows it.
func (p *tracker) provider() *Provider {
	revoke := ""
	if p.revokes {
		revoke = trackerURL + "/revoke"
	}
	return &Provider{AuthURL: trackerURL + "/authorize", TokenURL: trackerURL + "/token", RevokeURL: revoke, ClientID: "front", ClientSecret: "hush", Scopes: []string{"issues:read"}}
}

// RoundTrip implements http.RoundTripper.
func (p *tracker) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var form url.Values
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		form, _ = url.ParseQuery(string(body))
	}
	status, text, to := 404, "", ""
	switch r.URL.Host + r.URL.Path {
	case "tracker.example.com/token":
		status, text = p.token(form)
	case "tracker.example.com/revoke":
		p.log = append(p.log, "revoke "+form.Get("token_type_hint"))
		delete(p.refresh, form.Get("token"))
		status = 200
	default:
		token, sent := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		p.calls = append(p.calls, fmt.Sprint(r.URL.Host, r.URL.Path, " ", sent))
		account := p.access[token]
		switch {
		case r.URL.Host != "api.tracker.example.com":
			status = 200
		case account == "" || p.broken:
			status = 401
		case r.URL.Path == "/away":
			status = 302
			to = "https://elsewhere.example.com/x"
		default:
			status, text = 200, "issues of "+account
		}
	}
	return response(r, status, text, "Location", to), nil
}

// token answers the token endpoint. p.mu is held.
func (p *tracker) token(form url.Values) (int, string) {
	p.log = append(p.log, form.Get("grant_type"))
	if p.status != 0 {
		return p.status, "{}"
	}
	account := ""
	switch form.Get("grant_type") {
	case "authorization_code":
		q := p.codes[form.Get("code")]
		delete(p.codes, form.Get("code"))
		if !redeems(form, q) {
			return 400, `{"error":"invalid_grant"}`
		}
		account = q.Get("account")
	case "refresh_token":
		account = p.refresh[form.Get("refresh_token")]
		delete(p.refresh, form.Get("refresh_token"))
		if account == "" {
			return 200, `{"error":"bad_refresh_token"}` // as GitHub has it
		}
	}
	access, refresh := "at-"+rand.Text(), "rt-"+rand.Text()
	p.access[access], p.refresh[refresh] = account, account
	return 200, asJSON(map[string]any{"access_token": access, "token_type": "bearer", "expires_in": 3600, "refresh_token": refresh})
}

// visit is what the service does when a browser comes to its authorization URL.
func (p *tracker) visit(t testing.TB, where string) (back string) {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil || !strings.HasPrefix(where, trackerURL+"/authorize?") {
		t.Fatalf("sent to %q, %v", where, err)
	}
	q := u.Query()
	if q.Get("scope") != "issues:read" || q.Get("redirect_uri") != self+"/callback/tracker" || q.Has("resource") {
		t.Errorf("asked for %v", q)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q.Set("account", p.account)
	code := rand.Text()
	p.codes[code] = q
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
}

// hosts sends requests to the transport of their host.
type hosts struct {
	idp     *idp
	tracker *tracker
}

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "id.example.com" {
		return h.idp.RoundTrip(r)
	}
	return h.tracker.RoundTrip(r)
}

// shop is a world with a service at each replica, and a tool that uses it.
type shop struct {
	*world
	tracker  *tracker
	services []*Service
	store    *failing
}

func newShop(t testing.TB, replicas int, own bool) *shop {
	t.Helper()
	s := &shop{tracker: newTracker(), store: &failing{Store: scale.NewLocal()}}
	s.tracker.revokes = true
	s.world = newWorld(t, 0, nil)
	for range replicas {
		b, err := New(self, &Provider{Issuer: idpURL, ClientID: "front", ClientSecret: "hush"}, &Options{
			Resources: []string{endpoint}, Keys: testKeys, Store: s.store, Transport: hosts{s.idp, s.tracker}, Name: "Notes",
			Event: func(e Event) { s.mu.Lock(); defer s.mu.Unlock(); s.events = append(s.events, e) },
		})
		if err != nil {
			t.Fatal(err)
		}
		p := s.tracker.provider()
		if own {
			p = nil
		}
		service, err := b.Service("tracker", p, &ServiceOptions{Origins: []string{apiURL}, Transport: s.tracker})
		if err != nil {
			t.Fatal(err)
		}
		s.services = append(s.services, service)
		s.add(b)
	}
	return s
}

// identity is what the server knows of a user.
func identity(user string) mcp.Identity {
	return mcp.Identity{Issuer: idpURL, Subject: user, ClientID: "r.abc"}
}

// server returns an MCP server whose tool reads issues with the service of a replica.
func (s *shop) server(replica int) *mcp.Server {
	m := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
	m.MustAdd(mcp.Tool("issues", func(f *mcp.Frame, _ struct{}) (string, error) {
		c, err := s.services[replica].Client(f)
		if err != nil {
			return "", err
		}
		return read(f, c, apiURL+"/issues")
	}, mcp.Doc("Lists issues.")))
	return m
}

// read gets an address.
func read(ctx context.Context, c *http.Client, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return fmt.Sprint(res.StatusCode, " ", string(text)), err
}

var tags = regexp.MustCompile(`<[^>]*>`)

// plain returns what a page shows.
func plain(page string) string {
	_, body, _ := strings.Cut(page, "</style>")
	return strings.Join(strings.Fields(tags.ReplaceAllString(body, "")), " ")
}

// press opens a connect link and presses the button; it returns where that leads.
func (b *browser) press(link, answer string) (int, string, string) {
	b.w.t.Helper()
	status, page, _ := b.open(link, nil)
	found := hiddenForm.FindStringSubmatch(page)
	if status != 200 || found == nil {
		return status, page, ""
	}
	return b.open(self+"/connect", url.Values{"form": {found[1]}, "answer": {answer}})
}

// connect goes all the way from a link, and returns the last page.
func (s *shop) connect(b *browser, link string) (int, string) {
	s.t.Helper()
	status, page, to := b.press(link, "connect")
	if status != 303 {
		return status, page
	}
	status, page, to = b.open(s.idp.visit(s.t, to), nil)
	if status != 303 {
		return status, page
	}
	status, page, _ = b.open(s.tracker.visit(s.t, to), nil)
	return status, page
}

// kept returns whether there are tokens of the service for a user.
func (s *shop) kept(user string) bool {
	id := identity(user)
	v := s.brokers[0].vault
	_, _, err := v.read(s.t.Context(), v.key(id.Principal(), s.services[0].key))
	return err == nil
}

// linkOf returns the link in the error of a call by a client that cannot ask its user.
func (s *shop) linkOf(user string) string {
	s.t.Helper()
	id := identity(user)
	_, err := s.services[0].Token(mcptest.Frame(s.t, mcptest.As(id)))
	missing, ok := errors.AsType[*ConnectError](err)
	if !ok || missing.Code != "missing" || !strings.HasPrefix(missing.URL, self+"/connect?t=") {
		s.t.Fatalf("got %v", err)
	}
	return missing.URL
}

// A call asks the user once, continues when the service is connected, and later calls need
// nothing, in every revision and at every replica.
func TestConnect(t *testing.T) {
	everywhere(t, func(t *testing.T, replicas int) {
		for _, rev := range protocol.Revisions() {
			t.Run(rev.String(), func(t *testing.T) {
				s := newShop(t, replicas, false)
				var asked []string
				var visits sync.WaitGroup
				defer visits.Wait()
				user := mcptest.OnElicit(func(_ context.Context, p *client.ElicitParams) (*client.ElicitResult, error) {
					asked = append(asked, p.Message)
					visits.Go(func() {
						if status, page := s.connect(s.browser(), p.URL); status != 200 || !strings.Contains(plain(page), "tracker is connected") {
							t.Errorf("status %d: %s", status, page)
						}
					})
					return &client.ElicitResult{Action: protocol.ElicitAccept}, nil
				})
				c := mcptest.New(t, s.server(0), mcptest.Revision(rev), mcptest.As(identity("alice")), user)
				got, err := c.TryCall("issues", nil)
				if !rev.Has(protocol.FeatureElicitModes) {
					if err != nil || !got.IsError || !strings.HasPrefix(got.Text(), "tracker is not connected: ask the user to open "+self+"/connect?t=") || !strings.HasSuffix(got.Text(), ", then call again") {
						t.Errorf("a client without URL mode got %v, %v", got, err)
					}
					return
				}
				if err != nil || got.Text() != "200 issues of al" {
					t.Fatalf("got %v, %v", got, err)
				}
				other := mcptest.New(t, s.server(replicas-1), mcptest.Revision(rev), mcptest.As(identity("alice")))
				if got := other.Call("issues", nil).Text(); got != "200 issues of al" || len(asked) != 1 || asked[0] != "Connect tracker to go on." {
					t.Errorf("another client got %q; asked %q", got, asked)
				}
				visits.Wait() // the call continues before the event
				if !slices.Contains(s.kinds(), "connected") {
					t.Errorf("events %q", s.kinds())
				}
			})
		}
	})
}

// Attack 1: no provider is visited before the page was shown and its button pressed in the
// same browser, by a form of the same site.
func TestConnectAsksFirst(t *testing.T) {
	s := newShop(t, 1, false)
	link := s.linkOf("alice")
	alice, other := s.browser(), s.browser()
	status, page, to := alice.open(link, nil)
	for _, want := range []string{"Connect tracker?", "tracker.example.com", "id.example.com", "issues:read", "r.abc", "Nobody has verified", "Do not connect"} {
		if !strings.Contains(plain(page), want) {
			t.Errorf("%q is not on the page: %s", want, page)
		}
	}
	if status != 200 || to != "" {
		t.Errorf("status %d, to %q", status, to)
	}
	form := url.Values{"form": {hiddenForm.FindStringSubmatch(page)[1]}, "answer": {"connect"}}
	if status, page, to := other.open(self+"/connect", form); status != 403 || to != "" || !strings.Contains(plain(page), "begun in another one") {
		t.Errorf("another browser: status %d, to %q: %s", status, to, page)
	}
	if _, _, _ = other.open(link, nil); true { // has a cookie now
		if status, _, to := other.open(self+"/connect", form); status != 403 || to != "" {
			t.Errorf("another browser with a cookie: status %d, to %q", status, to)
		}
	}
	if status, page, to := alice.open(self+"/connect", url.Values{"form": {form.Get("form")}, "answer": {"deny"}}); status != 200 || to != "" || !strings.Contains(plain(page), "Nothing was connected") {
		t.Errorf("deny: status %d, to %q: %s", status, to, page)
	}
	for name, bad := range map[string]url.Values{
		"the link as a form": {"form": {strings.TrimPrefix(link, self+"/connect?t=")}, "answer": {"connect"}},
		"nothing":            {}, "junk": {"form": {"junk"}}, "cut": {"form": {form.Get("form")[1:]}},
	} {
		if status, _, to := alice.open(self+"/connect", bad); status != 403 || to != "" {
			t.Errorf("%s: status %d, to %q", name, status, to)
		}
	}
	if status, page, _ := alice.open(self+"/connect?t=junk", nil); status != 403 || !strings.Contains(plain(page), "This link is over. Call again in the program") {
		t.Errorf("junk: status %d: %s", status, page)
	}
	if s.kept("alice") || len(s.tracker.log) != 0 || s.idp.asked["/token"] != 0 {
		t.Errorf("kept %t; %q", s.kept("alice"), s.tracker.log)
	}
}

// Attack 23: a user who opens the link of another one is compared before the service is
// visited, and may log in again.
func TestConnectLinkOfAnotherUser(t *testing.T) {
	everywhere(t, func(t *testing.T, replicas int) {
		s := newShop(t, replicas, false)
		bob := s.browser()
		s.idp.set(func() { s.idp.user = "bob" })
		status, page := s.connect(bob, s.linkOf("alice"))
		if status != 403 || !strings.Contains(plain(page), "This link is for another user than you, bob@example.com. Nothing was connected.") {
			t.Errorf("status %d: %s", status, page)
		}
		if s.kept("alice") || s.kept("bob") || len(s.tracker.log) != 0 {
			t.Errorf("something was kept, or %q asked", s.tracker.log)
		}
		if !slices.Contains(s.kinds(), "refused") {
			t.Errorf("events %q", s.kinds())
		}
		// It is alice, who was logged in as bob.
		form := url.Values{"form": {hiddenForm.FindStringSubmatch(page)[1]}, "answer": {"again"}}
		status, page, to := bob.open(self+"/connect", form)
		if status != 303 || !strings.Contains(to, "prompt=login") {
			t.Fatalf("status %d, to %q: %s", status, to, page)
		}
		s.idp.set(func() { s.idp.user = "alice" })
		_, _, to = bob.open(s.idp.visit(t, to), nil)
		if status, page, _ := bob.open(s.tracker.visit(t, to), nil); status != 200 || !s.kept("alice") || s.kept("bob") {
			t.Errorf("status %d, kept %t: %s", status, s.kept("alice"), page)
		}
	})
}

// Attack 24: an account of the attacker does not come into the vault of a victim.
func TestPlantedAccount(t *testing.T) {
	s := newShop(t, 1, false)
	begin := func(user string) (*browser, string) {
		b := s.browser()
		s.idp.set(func() { s.idp.user = user })
		_, _, to := b.press(s.linkOf(user), "connect")
		_, _, to = b.open(s.idp.visit(t, to), nil)
		s.tracker.set(func() { s.tracker.account = "account of " + user })
		return b, s.tracker.visit(t, to)
	}
	victim, own := begin("alice")
	_, attackers := begin("mallory")
	if status, page, _ := victim.open(attackers, nil); status != 403 || !strings.Contains(plain(page), "begun in another one") {
		t.Errorf("the callback of the attacker: status %d: %s", status, page)
	}
	ownURL, _ := url.Parse(own)
	attackersURL, _ := url.Parse(attackers)
	q := ownURL.Query()
	q.Set("code", attackersURL.Query().Get("code"))
	if status, page, _ := victim.open(self+"/callback/tracker?"+q.Encode(), nil); status != 403 || !strings.Contains(plain(page), "did not let you in. Nothing was connected.") {
		t.Errorf("the code of the attacker: status %d: %s", status, page)
	}
	if status, _, _ := victim.open(own, nil); status != 403 {
		t.Errorf("a visit that is over: status %d", status)
	}
	if s.kept("alice") || s.kept("mallory") {
		t.Error("something was kept")
	}
	// A visit for the login does not end at the callback of the service, nor the reverse.
	victim, own = begin("alice")
	if status, _, _ := victim.open(strings.Replace(own, "/callback/tracker", "/callback", 1), nil); status != 403 || s.kept("alice") {
		t.Errorf("at the other callback: status %d", status)
	}
	victim, own = begin("alice")
	if status, page, _ := victim.open(own, nil); status != 200 || !strings.Contains(plain(page), "tracker is connected") || !s.kept("alice") {
		t.Errorf("status %d: %s", status, page)
	}
	if status, _, _ := victim.open(own, nil); status != 403 {
		t.Errorf("a callback that comes twice: status %d", status)
	}
}

// Attack 25: a token goes to Origins, and nowhere else.
func TestOrigins(t *testing.T) {
	s := newShop(t, 1, false)
	if status, page := s.connect(s.browser(), s.linkOf("alice")); status != 200 {
		t.Fatalf("status %d: %s", status, page)
	}
	f := mcptest.Frame(t, mcptest.As(identity("alice")))
	c, err := s.services[0].Client(f)
	if err != nil {
		t.Fatal(err)
	}
	for address, sent := range map[string]bool{
		apiURL + "/issues":                              true,
		"https://API.tracker.example.com/issues":        true,
		"https://api.tracker.example.com:443/issues":    true,
		"https://api.tracker.example.com:444/issues":    false,
		"http://api.tracker.example.com/issues":         false,
		"http://api.tracker.example.com:443/issues":     false,
		"https://tracker.example.com/issues":            false,
		"https://xapi.tracker.example.com/issues":       false,
		"https://api.tracker.example.com.evil.example/": false,
		"https://api.tracker.example.com@evil.example/": false,
		"https://evil.example/api.tracker.example.com":  false,
	} {
		s.tracker.set(func() { s.tracker.calls = nil })
		if _, err := read(f, c, address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if n := len(s.tracker.calls); n != 1 || strings.HasSuffix(s.tracker.calls[0], " true") != sent {
			t.Errorf("%s: %q, want a token: %t", address, s.tracker.calls, sent)
		}
	}
	s.tracker.set(func() { s.tracker.calls = nil })
	got, err := read(f, c, apiURL+"/away")
	if want := []string{"api.tracker.example.com/away true", "elsewhere.example.com/x false"}; err != nil || !slices.Equal(s.tracker.calls, want) {
		t.Errorf("a redirect: %q, %v, %q", got, err, s.tracker.calls)
	}
	req, err := http.NewRequestWithContext(f, http.MethodGet, apiURL+"/issues", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer own")
	if res, err := c.Do(req); err != nil || res.StatusCode != 401 {
		t.Errorf("with a token of its own: %v, %v", res, err)
	}
}

// After a 401 the token is refreshed once; a service that takes none does not empty the
// vault.
func TestUnauthorized(t *testing.T) {
	s := newShop(t, 1, false)
	if status, page := s.connect(s.browser(), s.linkOf("alice")); status != 200 {
		t.Fatalf("status %d: %s", status, page)
	}
	call := func(body io.Reader) (string, error) {
		f := mcptest.Frame(t, mcptest.As(identity("alice")))
		c, err := s.services[0].Client(f)
		if err != nil {
			return "", err
		}
		req, err := http.NewRequestWithContext(f, http.MethodPost, apiURL+"/issues", body)
		if err != nil {
			return "", err
		}
		res, err := c.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(text)), err
	}
	forget := func() { s.tracker.set(func() { clear(s.tracker.access); s.tracker.log = nil }) }
	for name, tt := range map[string]struct {
		body io.Reader
		want string
		log  []string
	}{
		"without a body":      {nil, "200 issues of al", []string{"refresh_token"}},
		"a body again":        {strings.NewReader("a=b"), "200 issues of al", []string{"refresh_token"}},
		"a body that is over": {io.NopCloser(strings.NewReader("a=b")), "401 ", nil},
	} {
		forget()
		if got, err := call(tt.body); err != nil || got != tt.want || !slices.Equal(s.tracker.log, tt.log) {
			t.Errorf("%s: %q, %v; %q", name, got, err, s.tracker.log)
		}
	}
	forget()
	s.tracker.set(func() { s.tracker.broken = true })
	_, err := call(nil)
	refused, ok := errors.AsType[*ConnectError](err)
	if !ok || refused.Code != "refused" || refused.Service != "tracker" || !strings.HasPrefix(refused.Error(), "tracker refused the login of this user: ask the user to open "+self+"/connect?t=") {
		t.Errorf("a service that takes no token: %v", err)
	}
	s.tracker.set(func() { s.tracker.broken = false })
	if got, err := call(nil); err != nil || got != "200 issues of al" || !s.kept("alice") {
		t.Errorf("when it works again: %q, %v", got, err)
	}
	s.tracker.set(func() { clear(s.tracker.access); clear(s.tracker.refresh) })
	if _, err := call(nil); !errors.As(err, &refused) || refused.Code != "refused" {
		t.Errorf("a refresh token that is refused: %v", err)
	}
	forget()
	if _, err := call(nil); !errors.As(err, &refused) || refused.Code != "refused" || len(s.tracker.log) != 0 {
		t.Errorf("and then: %v; the service was asked %q", err, s.tracker.log)
	}
	if status, page := s.connect(s.browser(), refused.URL); status != 200 {
		t.Errorf("connecting again: status %d: %s", status, page)
	}
	if got, err := call(nil); err != nil || got != "200 issues of al" {
		t.Errorf("connected again: %q, %v", got, err)
	}
	f := mcptest.Frame(t, mcptest.As(identity("alice")))
	token, err := s.services[0].Token(f)
	if err != nil || token.AccessToken == "" || token.RefreshToken != "" {
		t.Errorf("Token: %v, %v", token, err)
	}
}

// What the table of failures has about services.
func TestConnectFailures(t *testing.T) {
	begin := func(s *shop) (*browser, string) {
		b := s.browser()
		_, _, to := b.press(s.linkOf("alice"), "connect")
		return b, to
	}
	for name, tt := range map[string]struct {
		try    func(t *testing.T, s *shop) (int, string)
		status int
		want   string
	}{
		"the login is down": {func(t *testing.T, s *shop) (int, string) {
			s.idp.set(func() { s.idp.fail = true })
			status, page, _ := s.browser().press(s.linkOf("alice"), "connect")
			return status, page
		}, 503, "id.example.com does not answer. Try again in a minute."},
		"the service is down": {func(t *testing.T, s *shop) (int, string) {
			s.tracker.set(func() { s.tracker.status = 502 })
			return s.connect(s.browser(), s.linkOf("alice"))
		}, 503, "tracker.example.com does not answer. Try again in a minute."},
		"the service says no": {func(t *testing.T, s *shop) (int, string) {
			b, to := begin(s)
			_, _, to = b.open(s.idp.visit(t, to), nil)
			u, _ := url.Parse(s.tracker.visit(t, to))
			status, page, _ := b.open(self+"/callback/tracker?error=access_denied&state="+u.Query().Get("state"), nil)
			return status, page
		}, 403, "tracker.example.com did not let you in. Nothing was connected."},
		"the login says no": {func(t *testing.T, s *shop) (int, string) {
			b, to := begin(s)
			u, _ := url.Parse(s.idp.visit(t, to))
			status, page, _ := b.open(self+"/callback?error=access_denied&state="+u.Query().Get("state"), nil)
			return status, page
		}, 403, "id.example.com did not let you in. Nothing was connected."},
		"the store is down": {func(t *testing.T, s *shop) (int, string) {
			b, to := begin(s)
			_, _, to = b.open(s.idp.visit(t, to), nil)
			back := s.tracker.visit(t, to)
			s.store.set(scale.ErrUnavailable)
			defer s.store.set(nil)
			status, page, _ := b.open(back, nil)
			return status, page
		}, 503, "The store of this server does not answer. Try again in a minute."},
		"no cookie at the answer": {func(t *testing.T, s *shop) (int, string) {
			b, to := begin(s)
			_, _, to = b.open(s.idp.visit(t, to), nil)
			status, page, _ := s.browser().open(s.tracker.visit(t, to), nil)
			return status, page
		}, 403, "Your browser kept no cookie (a proxy may have changed it), or this was begun in another one."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, 1, false)
			if status, page := tt.try(t, s); status != tt.status || !strings.Contains(plain(page), tt.want) {
				t.Errorf("status %d: %s", status, page)
			}
			if s.kept("alice") {
				t.Error("something was kept")
			}
		})
	}
}

// A caller who can never connect gets an error at once, and costs nothing.
func TestForeignCaller(t *testing.T) {
	s := newShop(t, 1, false)
	for name, id := range map[string]mcp.Identity{
		"another issuer": {Issuer: "https://other.example.com", Subject: "alice"}, "no subject": {Issuer: idpURL, ClientID: "robot"}, "no issuer": {Subject: "alice"},
	} {
		_, err := s.services[0].Client(mcptest.Frame(t, mcptest.As(id)))
		foreign, ok := errors.AsType[*ConnectError](err)
		if !ok || foreign.Code != "foreign" || foreign.URL != "" || err.Error() != "tracker cannot be used: this caller did not log in at "+idpURL {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.services[0].Client(mcptest.Frame(t)); err == nil {
		t.Error("an anonymous caller got a client")
	}
}

// The clocks of connecting: a link works for ten minutes, a call waits for 45 seconds and
// continues at once when the service is connected, and a client ends with its Frame.
func TestConnectClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 2, false)
		link := s.linkOf("alice")
		b := s.browser()
		time.Sleep(linkLife - time.Second)
		_, page, _ := b.open(link, nil)
		form := url.Values{"form": {hiddenForm.FindStringSubmatch(page)[1]}, "answer": {"connect"}}
		time.Sleep(time.Second)
		if status, _, _ := b.open(link, nil); status != 403 {
			t.Errorf("a link after ten minutes: status %d", status)
		}
		time.Sleep(linkLife - 2*time.Second)
		if status, _, _ := b.open(self+"/connect", form); status != 303 {
			t.Errorf("a form within ten minutes: status %d", status)
		}
		time.Sleep(time.Second)
		if status, _, _ := b.open(self+"/connect", form); status != 403 {
			t.Errorf("a form after ten minutes: status %d", status)
		}

		answer := protocol.ElicitAccept
		later := func(string) {}
		ask := mcptest.OnElicit(func(_ context.Context, p *client.ElicitParams) (*client.ElicitResult, error) {
			go later(p.URL)
			return &client.ElicitResult{Action: answer}, nil
		})
		for _, tt := range []struct {
			name   string
			action protocol.ElicitAction
			later  func(string)
			code   string
			took   time.Duration
		}{
			{"declined", protocol.ElicitDecline, func(string) {}, "missing", 0},
			{"nothing happens", protocol.ElicitAccept, func(string) {}, "missing", connectWait},
			{"connected after 20 s, at the other replica", protocol.ElicitAccept, func(link string) {
				time.Sleep(20 * time.Second)
				if status, page := s.connect(s.browser(), link); status != 200 {
					t.Errorf("status %d: %s", status, page)
				}
			}, "", 20 * time.Second},
			{"the store is unavailable for a while", protocol.ElicitAccept, func(link string) {
				time.Sleep(5 * time.Second)
				s.store.set(scale.ErrUnavailable)
				time.Sleep(5 * time.Second)
				s.store.set(nil)
				time.Sleep(10 * time.Second)
				if status, page := s.connect(s.browser(), link); status != 200 {
					t.Errorf("status %d: %s", status, page)
				}
			}, "", 20 * time.Second},
		} {
			id := identity("alice")
			if err := s.services[0].Disconnect(t.Context(), id.Principal()); err != nil {
				t.Fatal(err)
			}
			answer, later = tt.action, tt.later
			began := time.Now()
			_, err := s.services[0].Token(mcptest.Frame(t, mcptest.As(identity("alice")), ask))
			code := ""
			if missing, ok := errors.AsType[*ConnectError](err); ok {
				code = missing.Code
			} else if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if took := time.Since(began); code != tt.code || took != tt.took {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
		}
		if b := s.brokers[0]; b.vault.watch.watcher != nil {
			t.Error("a Watcher is left")
		}
	})
}

// A client of a call does not outlive it.
func TestClientEndsWithItsCall(t *testing.T) {
	s := newShop(t, 1, false)
	if status, page := s.connect(s.browser(), s.linkOf("alice")); status != 200 {
		t.Fatalf("status %d: %s", status, page)
	}
	var left *http.Client
	m := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
	m.MustAdd(mcp.Tool("leak", func(f *mcp.Frame, _ struct{}) (_ string, err error) {
		left, err = s.services[0].Client(f)
		return "leaked", err
	}, mcp.Doc("Keeps its client.")))
	for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		mcptest.New(t, m, mcptest.Revision(rev), mcptest.As(identity("alice"))).Call("leak", nil)
		s.tracker.set(func() { s.tracker.calls = nil })
		if got, err := read(t.Context(), left, apiURL+"/issues"); err == nil || len(s.tracker.calls) != 0 {
			t.Errorf("%s: after the call: %q, %v, %q", rev, got, err, s.tracker.calls)
		}
	}
}

// A user whose connection is forgotten is asked again; the tokens are ended at the service.
func TestDisconnect(t *testing.T) {
	for _, revokes := range []bool{true, false} {
		s := newShop(t, 2, false)
		if !revokes {
			s.services[1].up.p.RevokeURL = ""
		}
		if status, page := s.connect(s.browser(), s.linkOf("alice")); status != 200 {
			t.Fatalf("status %d: %s", status, page)
		}
		id := identity("alice")
		if err := s.services[1].Disconnect(t.Context(), id.Principal()); err != nil {
			t.Fatal(err)
		}
		last := s.events[len(s.events)-1]
		if s.kept("alice") || slices.Contains(s.tracker.log, "revoke refresh_token") != revokes || last.Kind != "revoked" || last.Principal != id.Principal() || (last.Err == nil) != revokes {
			t.Errorf("kept %t; %q; %+v", s.kept("alice"), s.tracker.log, last)
		}
		s.linkOf("alice")
		if err := s.services[0].Disconnect(t.Context(), id.Principal()); err != nil {
			t.Errorf("nothing to forget: %v", err)
		}
	}
}

// A service at the provider of the login uses the tokens that the login has.
func TestServiceOfTheLogin(t *testing.T) {
	s := newShop(t, 1, true)
	b := s.browser()
	status, page, to := b.press(s.linkOf("alice"), "connect")
	if status != 303 {
		t.Fatalf("status %d: %s", status, page)
	}
	if status, page, _ := b.open(s.idp.visit(t, to), nil); status != 200 || !strings.Contains(plain(page), "tracker is connected") || !strings.Contains(plain(page), "alice@example.com") {
		t.Errorf("status %d: %s", status, page)
	}
	if token, err := s.services[0].Token(mcptest.Frame(t, mcptest.As(identity("alice")))); err != nil || !strings.HasPrefix(token.AccessToken, "at-") {
		t.Errorf("%v, %v", token, err)
	}
}

// Arguments of Service that make no sense are all named.
func TestServiceFaults(t *testing.T) {
	s := newShop(t, 1, false)
	b := s.brokers[0]
	for want, try := range map[string]func() error{
		`name "Git Hub": use up to 32 small letters`: func() error { _, err := b.Service("Git Hub", s.tracker.provider(), nil); return err },
		"there is a Service of that name already":    func() error { _, err := b.Service("tracker", s.tracker.provider(), nil); return err },
		`origin "api.example.com" is not like`: func() error {
			_, err := b.Service("a", s.tracker.provider(), &ServiceOptions{Origins: []string{"api.example.com"}})
			return err
		},
		`origin "http://api.example.com" is not like`: func() error {
			_, err := b.Service("a", s.tracker.provider(), &ServiceOptions{Origins: []string{"http://api.example.com"}})
			return err
		},
		`origin "https://api.example.com/v1" is not like`: func() error {
			_, err := b.Service("a", s.tracker.provider(), &ServiceOptions{Origins: []string{"https://api.example.com/v1"}})
			return err
		},
		"the Scopes are those of the Provider of the login": func() error { _, err := b.Service("a", nil, &ServiceOptions{Scopes: []string{"x"}}); return err },
		"ClientID is missing":                               func() error { _, err := b.Service("a", &Provider{Issuer: idpURL}, nil); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	bare, err := b.Service("bare", s.tracker.provider(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Client(mcptest.Frame(t, mcptest.As(identity("alice")))); err == nil || !strings.Contains(err.Error(), "has no Origins") {
		t.Errorf("Client without Origins: %v", err)
	}
}
