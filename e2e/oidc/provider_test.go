package oidc

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	appID               = "talaria"
	apiID, apiSecret    = "notes-api", "api-secret"
	username, password  = "test-user2", "verysecure"
	loopbackRedirectURI = "http://127.0.0.1/callback" // any port will do
)

// provider is an OpenID provider that issues tokens for one resource.
type provider struct {
	*storage.Storage
	url      string
	resource string

	mu       sync.Mutex
	asked    []string // the scopes of each authorization request
	forms    int      // times that the user filled in the form
	access   string   // the id of the newest access token
	refresh  []string // refresh tokens, in the order in which they were issued
	problems []string
	broken   error // of issuing tokens
}

// newProvider starts a provider; resource is set before it is asked.
func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	p.url = server.URL
	p.Storage = storage.NewStorageWithClients(storage.NewUserStore(p.url), map[string]*storage.Client{
		appID: storage.NativeClient(appID, loopbackRedirectURI),
		apiID: storage.WebClient(apiID, apiSecret, p.url+"/unused"),
	})
	server.Config.Handler = p.watch(exampleop.SetupServer(p.url, p, slog.New(slog.DiscardHandler), false))
	return p
}

// watch notes what comes, and sees to what this provider does not look at: the
// resource parameter, without which a token would be for anybody.
func (p *provider) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		form, _ := url.ParseQuery(string(text))
		p.mu.Lock()
		switch r.URL.Path {
		case "/auth":
			p.asked = append(p.asked, r.URL.Query().Get("scope"))
			form = r.URL.Query()
			if form.Get("code_challenge_method") != "S256" {
				p.problems = append(p.problems, "an authorization request without S256")
			}
		case "/login/username":
			if r.Method == http.MethodPost {
				p.forms++
			}
		}
		if (r.URL.Path == "/auth" || r.URL.Path == "/oauth/token") && form.Get("resource") != p.resource {
			p.problems = append(p.problems, fmt.Sprintf("%s with resource %q", r.URL.Path, form.Get("resource")))
		}
		p.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// GetClientByClientID lets the application ask for the scopes of the resource.
func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	client, err := p.Storage.GetClientByClientID(ctx, id)
	return scopedClient{client}, err
}

type scopedClient struct{ op.Client }

func (scopedClient) IsScopeAllowed(scope string) bool { return strings.HasPrefix(scope, "notes:") }

// CreateAccessAndRefreshTokens notes what is issued.
func (p *provider) CreateAccessAndRefreshTokens(ctx context.Context, r op.TokenRequest, old string) (string, string, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return "", "", time.Time{}, p.broken
	}
	access, refresh, expiry, err := p.Storage.CreateAccessAndRefreshTokens(ctx, r, old)
	p.access = access
	p.refresh = append(p.refresh, refresh)
	return access, refresh, expiry, err
}

// SetIntrospectionFromToken tells the API about tokens of the application, and
// that they are for the resource.
func (p *provider) SetIntrospectionFromToken(ctx context.Context, answer *oidc.IntrospectionResponse, token, subject, client string) error {
	if client != apiID {
		return fmt.Errorf("%s may not ask", client)
	}
	if err := p.Storage.SetIntrospectionFromToken(ctx, answer, token, subject, appID); err != nil {
		return err
	}
	answer.Audience = oidc.Audience{p.resource}
	return nil
}

// fail keeps the provider from issuing tokens.
func (p *provider) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
}

// revokeAccess ends the newest access token behind everybody's back.
func (p *provider) revokeAccess(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	access := p.access
	p.mu.Unlock()
	if err := p.RevokeToken(t.Context(), access, "", appID); err != nil {
		t.Fatal(err)
	}
}

// visits returns how often the user filled in the form, and the scopes that the
// newest authorization request asked for.
func (p *provider) visits() (int, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		return p.forms, ""
	}
	return p.forms, p.asked[len(p.asked)-1]
}

// refreshTokens returns the refresh tokens in the order in which they were
// issued.
func (p *provider) refreshTokens() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.refresh...)
}

var formID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// browse is the user: he goes where he is sent, fills in the form and ends at
// the loopback address of the application.
func (p *provider) browse(ctx context.Context, address string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	page, err := fetch(ctx, browser, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	id := formID.FindStringSubmatch(page)
	if id == nil {
		return fmt.Errorf("the browser ended at %q, not at the form", page)
	}
	page, err = fetch(ctx, browser, http.MethodPost, p.url+"/login/username", url.Values{"id": {id[1]}, "username": {username}, "password": {password}})
	if err == nil && !strings.Contains(page, "go back to the application") {
		err = fmt.Errorf("the browser ended at %q", page)
	}
	return err
}

func fetch(ctx context.Context, browser *http.Client, method, address string, form url.Values) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := browser.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	return string(page), err
}
