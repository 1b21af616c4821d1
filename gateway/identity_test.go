package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/authtest"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// guarded serves s to those who have a token of the issuer that it returns. It notes the
// credentials that arrive.
func guarded(t *testing.T, s *mcp.Server, seen *sync.Map) (url string, issuer *authtest.Server) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	url = "http://" + web.Listener.Addr().String() + "/mcp"
	issuer, err := authtest.Start(&authtest.Options{Resource: url, Scopes: []authtest.Scope{{Name: "mcp"}}})
	if err != nil {
		t.Fatal(err)
	}
	resource, err := auth.New(url, auth.NewJWT(issuer.Issuer(), nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	bearer := resource.Bearer(s.Handler())
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"), true)
		bearer.ServeHTTP(w, r)
	})
	web.Start()
	t.Cleanup(func() {
		_ = s.Shutdown(t.Context())
		web.CloseClientConnections()
		web.Close()
		issuer.Close()
	})
	return url, issuer
}

// token returns a token of a user.
func token(t testing.TB, issuer *authtest.Server, user string) string {
	text, err := issuer.Token(user, "mcp")
	if err != nil {
		t.Error(err)
	}
	return text
}

// TestIdentities has users with tokens of an authorization server for the gateway, and of
// another one for an upstream: each is itself there, and tokens are not passed on.
func TestIdentities(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			t.Run(back+"/"+front, func(t *testing.T) {
				up := newServer(t, "crm", nil, behind)
				up.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) { return f.Identity().Subject, nil }, mcp.Scopes("mcp")))
				var there, here sync.Map
				crm, crmIssuer := guarded(t, up, &there)
				s := newServer(t, "front", nil)
				g := New(s, nil)
				if err := g.Set("crm", Upstream{For: func(f *mcp.Frame) (string, client.Transport, error) {
					switch user := f.Identity().Subject; user {
					case "mallory":
						own := strings.TrimPrefix(f.Header("Authorization"), "Bearer ")
						return f.Principal(), bearer(crm, own), nil // a token for another resource
					case "eve":
						return "", nil, fmt.Errorf("eve has no account")
					default:
						return f.Principal(), bearer(crm, token(t, crmIssuer, user)), nil
					}
				}}); err != nil {
					t.Fatal(err)
				}
				url, issuer := guarded(t, s, &here)
				defer func() { _ = g.Close() }() // before the servers
				dial := func(user string) *client.Client {
					c, err := client.Connect(t.Context(), bearer(url, token(t, issuer, user)), &client.Options{Revisions: []protocol.Revision{rev}})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = c.Close() })
					return c
				}
				var all sync.WaitGroup
				for i := range 6 {
					user := fmt.Sprint("user", i%3) // two sessions each
					c := dial(user)
					for range 2 {
						all.Go(func() {
							for range 5 {
								if got := text(c.Call(t.Context(), "crm_who", nil)); got != user {
									t.Errorf("%s is %q", user, got)
								}
							}
						})
					}
				}
				all.Wait()
				here.Range(func(credentials, _ any) bool {
					if _, passed := there.Load(credentials); passed {
						t.Errorf("a token for the gateway came to the upstream")
					}
					return true
				})
				if got := text(dial("mallory").Call(t.Context(), "crm_who", nil)); !strings.Contains(got, "it does not accept the credentials") {
					t.Errorf("mallory got %q", got)
				}
				if got := text(dial("eve").Call(t.Context(), "crm_who", nil)); !strings.Contains(got, "eve has no account") {
					t.Errorf("eve got %q", got)
				}
				if _, err := client.Connect(t.Context(), bearer(url, token(t, crmIssuer, "user0")), nil); err == nil {
					t.Error("a token for the upstream opens the gateway")
				}
			})
		}
	}
}
