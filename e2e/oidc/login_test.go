package oidc

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

type noteIn struct {
	Text string `json:"text"`
}

// newNotes starts the protected server and returns its URL.
func newNotes(t *testing.T, p *provider) string {
	t.Helper()
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("whoami", func(f *mcp.Frame, _ struct{}) (string, error) { return f.Identity().Subject, nil }),
		mcp.Tool("add", func(_ *mcp.Frame, in noteIn) (string, error) { return "noted: " + in.Text, nil }, mcp.Scopes("notes:write")),
	)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.resource = server.URL + "/mcp"
	verifier := auth.NewIntrospection(p.url+"/oauth/introspect", &auth.IntrospectionOptions{ClientID: apiID, ClientSecret: apiSecret})
	notes, err := auth.New(p.resource, verifier, &auth.Options{
		AuthorizationServers: []string{p.url}, Scopes: []string{"notes:read"},
		CacheFor: -1, // so that a revocation is seen at once
	})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/.well-known/", notes.Metadata(http.NotFoundHandler()))
	mux.Handle("/mcp", notes.Bearer(s.Handler()))
	return p.resource
}

// TestLogin follows a user through a life of tokens: login, step-up, a token
// that is revoked and refreshed, another program, logout.
func TestLogin(t *testing.T) {
	for _, revision := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		t.Run(revision.String(), func(t *testing.T) {
			p := newProvider(t)
			url := newNotes(t, p)
			store := oauth.NewFileStore(filepath.Join(t.TempDir(), "oauth.json"))
			login := func() *oauth.Client {
				c, err := oauth.New(url, &oauth.Options{
					Grant:   &oauth.AuthorizationCode{Agent: &oauth.Loopback{Browse: p.browse}},
					Clients: []oauth.Registration{{Issuer: p.url, ClientID: appID}},
					Scopes:  []string{"openid"}, // an OpenID provider insists
					Store:   store,
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.HTTPClient().CloseIdleConnections)
				return c
			}
			authorized := login()
			connect := func(authorized *oauth.Client) *client.Client {
				c, err := client.Connect(t.Context(), client.HTTP(url, &client.HTTPOptions{Client: authorized.HTTPClient()}),
					&client.Options{Revisions: []protocol.Revision{revision}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			expect := func(after string, visits int, scopes ...string) {
				t.Helper()
				n, asked := p.visits()
				if n != visits {
					t.Errorf("%s: the user logged in %d times, want %d", after, n, visits)
				}
				for _, scope := range scopes {
					if !slices.Contains(strings.Fields(asked), scope) {
						t.Errorf("%s: the scope %s is not among %q", after, scope, asked)
					}
				}
			}

			c := connect(authorized)
			use(t, c, "whoami", nil, "id2")
			expect("login", 1, "notes:read", "openid", "offline_access")

			use(t, c, "add", noteIn{"milk"}, "noted: milk")
			expect("step-up", 2, "notes:read", "notes:write", "openid", "offline_access")

			p.revokeAccess(t)
			use(t, c, "add", noteIn{"eggs"}, "noted: eggs")
			use(t, c, "whoami", nil, "id2")
			expect("refresh", 2)
			refreshed := p.refreshTokens()
			if n := len(refreshed); n != 3 || refreshed[n-1] == refreshed[n-2] {
				t.Errorf("refresh tokens do not rotate: %d were issued", n)
			}

			use(t, connect(login()), "add", noteIn{"tea"}, "noted: tea")
			expect("another program", 2)

			token, err := authorized.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := authorized.Logout(t.Context()); err != nil {
				t.Fatal(err)
			}
			if status := post(t, url, token.AccessToken); status != http.StatusUnauthorized {
				t.Errorf("after logout the access token gets status %d", status)
			}
			if _, err := p.TokenRequestByRefreshToken(t.Context(), refreshed[len(refreshed)-1]); err == nil {
				t.Error("after logout the refresh token is still valid")
			}
			if _, err := login().Token(t.Context()); !errors.Is(err, oauth.ErrLoginRequired) {
				t.Errorf("after logout another program gets %v", err)
			}

			use(t, connect(login()), "whoami", nil, "id2")
			expect("login after logout", 3, "notes:read")
			if len(p.problems) > 0 {
				t.Errorf("the provider complains: %q", p.problems)
			}
		})
	}
}

// TestLoginThatFails: the error of a login comes out of the call that needed it.
func TestLoginThatFails(t *testing.T) {
	p := newProvider(t)
	url := newNotes(t, p)
	authorized, err := oauth.New(url, &oauth.Options{
		Grant:   &oauth.AuthorizationCode{Agent: &oauth.Loopback{Browse: p.browse}},
		Clients: []oauth.Registration{{Issuer: p.url, ClientID: appID}},
		Scopes:  []string{"openid"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer authorized.HTTPClient().CloseIdleConnections()
	p.fail(errors.New("no database"))
	_, err = client.Connect(t.Context(), client.HTTP(url, &client.HTTPOptions{Client: authorized.HTTPClient()}), nil)
	cause, ok := errors.AsType[*oauth.Error](err)
	if !ok || cause.Step != oauth.StepToken || cause.URL != p.url+"/oauth/token" || cause.Code == "" {
		t.Errorf("got %v", err)
	}
}

// use calls a tool and compares the text of its result.
func use(t *testing.T, c *client.Client, tool string, args any, want string) {
	t.Helper()
	result, err := c.Call(t.Context(), tool, args)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Text(); got != want {
		t.Errorf("%s says %q, want %q", tool, got, want)
	}
}

// post sends a token by hand.
func post(t *testing.T, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
