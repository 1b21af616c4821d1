package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

// guarded is an MCP server that wants a login, its authorization server, and the
// browser of its user. All are in this process, so that the time of a bubble can
// pass.
type guarded struct {
	inner http.Handler

	mu      sync.Mutex
	windows int                                 // that the user has seen
	consent func(query url.Values) (err error)  // what the user does; nil consents at once
	refuse  func(form url.Values) (code string) // what the token endpoint refuses
	tokens  map[string]bool                     // that are valid
	posts   int
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	const issuer = "https://issuer.example"
	switch r.URL.Host + r.URL.Path {
	case "server.example/.well-known/oauth-protected-resource/mcp":
		fmt.Fprintf(w, `{"resource":"https://server.example/mcp","authorization_servers":[%q]}`, issuer)
	case "issuer.example/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","registration_endpoint":"%[1]s/register","code_challenge_methods_supported":["S256"]}`, issuer)
	case "issuer.example/register":
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"client_id":"me","token_endpoint_auth_method":"none"}`)
	case "issuer.example/token":
		_ = r.ParseForm()
		g.mu.Lock()
		defer g.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if g.refuse != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":%q}`, g.refuse(r.PostForm))
			break
		}
		token := fmt.Sprintf("token-%d", len(g.tokens))
		g.tokens[token] = true
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"}`, token)
	default:
		g.mu.Lock()
		valid := g.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		g.posts++
		g.mu.Unlock()
		if !valid {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://server.example/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			break
		}
		if r.Body == nil {
			r.Body = http.NoBody
		}
		g.inner.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

// Open, RedirectURI, Authorize and Close are the user's browser.
func (g *guarded) Open(context.Context, []string) (oauth.Visit, error) { return g, nil }
func (g *guarded) RedirectURI() string                                 { return "http://127.0.0.1/callback" }
func (g *guarded) Close() error                                        { return nil }
func (g *guarded) Authorize(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	query := url.Values{"state": {u.Query().Get("state")}, "code": {"code"}}
	g.mu.Lock()
	g.windows++
	consent := g.consent
	g.mu.Unlock()
	if consent != nil {
		if err := consent(query); err != nil {
			return "", err
		}
	}
	return g.RedirectURI() + "?" + query.Encode(), ctx.Err()
}

// seen returns how many windows the user has seen, and how much the server was
// asked.
func (g *guarded) seen() (windows, posts int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.windows, g.posts
}

// set changes what the user and the authorization server do.
func (g *guarded) set(consent func(url.Values) error, refuse func(url.Values) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.consent, g.refuse = consent, refuse
}

// world returns a server that wants a login, and a transport to it.
func world(t *testing.T) (*guarded, client.Transport) {
	s := mcp.NewServer(mcp.Info{Name: "guarded", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("hello", func(*mcp.Frame, struct{}) (string, error) { return "hello", nil }))
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g := &guarded{inner: s.Handler(), tokens: map[string]bool{}}
	authorized, err := oauth.New("https://server.example/mcp", &oauth.Options{
		Grant: &oauth.AuthorizationCode{Agent: g}, Transport: g, Outbound: g, LoginTimeout: 5 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, client.HTTP("https://server.example/mcp", &client.HTTPOptions{Client: authorized.HTTPClient(), NoStream: true})
}

// says is a user whose authorization server sends them back with an error.
func says(code string) func(url.Values) error {
	return func(query url.Values) error {
		query.Del("code")
		query.Set("error", code)
		return nil
	}
}

// A login that is refused costs the user one window, and nothing in the
// background opens another one.
func TestOneWindow(t *testing.T) {
	refusals := map[string]struct {
		consent func(url.Values) error
		refuse  func(url.Values) string
	}{
		"access_denied":           {consent: says("access_denied")},
		"invalid_scope":           {consent: says("invalid_scope")},
		"unauthorized_client":     {consent: says("unauthorized_client")},
		"invalid_client":          {consent: says("invalid_client")},
		"server_error":            {consent: says("server_error")},
		"the window was closed":   {consent: func(url.Values) error { return errors.New("closed") }},
		"expired":                 {consent: func(url.Values) error { time.Sleep(time.Hour); return nil }},
		"another state":           {consent: func(q url.Values) error { q.Set("state", "x"); return nil }},
		"no code":                 {consent: func(q url.Values) error { q.Del("code"); return nil }},
		"invalid_client at last":  {refuse: func(url.Values) string { return "invalid_client" }},
		"invalid_grant at last":   {refuse: func(url.Values) string { return "invalid_grant" }},
		"server_error at last":    {refuse: func(url.Values) string { return "server_error" }},
		"access_denied after 40s": {consent: func(q url.Values) error { time.Sleep(40 * time.Second); return says("access_denied")(q) }},
	}
	// Each opens something, and returns what a caller does to try again, and what
	// closes it.
	opens := map[string]func(t *testing.T, tr client.Transport) (again func() error, done func() error, err error){
		"Connect": func(t *testing.T, tr client.Transport) (func() error, func() error, error) {
			again := func() error {
				c, err := client.Connect(t.Context(), tr, nil)
				if err == nil {
					err = c.Close()
				}
				return err
			}
			return again, func() error { return nil }, again()
		},
		"Connect, legacy": func(t *testing.T, tr client.Transport) (func() error, func() error, error) {
			again := func() error {
				c, err := client.Connect(t.Context(), tr, &client.Options{Revisions: []protocol.Revision{protocol.V20250618}})
				if err == nil {
					err = c.Close()
				}
				return err
			}
			return again, func() error { return nil }, again()
		},
		"a pool of 4": func(t *testing.T, tr client.Transport) (func() error, func() error, error) {
			p := pool.New(tr, nil)
			warm := func() error { return p.Warm(t.Context()) }
			if err := warm(); err == nil {
				return warm, p.Close, nil
			}
			_, err := p.Call(t.Context(), "hello", nil)
			return warm, p.Close, err
		},
		"a group": func(t *testing.T, tr client.Transport) (func() error, func() error, error) {
			g := group.New(nil)
			if err := g.Add("one", tr, nil); err != nil {
				t.Fatal(err)
			}
			_, err := g.Call(t.Context(), "one_hello", nil)
			return func() error { return g.Warm(t.Context()) }, g.Close, err
		},
	}
	for name, refusal := range refusals {
		for what, open := range opens {
			t.Run(name+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, tr := world(t)
					w.set(refusal.consent, refusal.refuse)
					again, done, err := open(t, tr)
					if !errors.Is(err, client.ErrUnauthorized) || client.Retriable(err) {
						t.Errorf("the error is %v, Retriable %v", err, client.Retriable(err))
					}
					_, before := w.seen()
					time.Sleep(time.Hour)
					windows, posts := w.seen()
					if windows != 1 || posts != before {
						t.Errorf("%d windows, and %d requests in the hour after that", windows, posts-before)
					}
					if err := again(); !errors.Is(err, client.ErrUnauthorized) {
						t.Errorf("again: %v", err)
					}
					if windows, _ := w.seen(); windows != 2 {
						t.Errorf("%d windows after a caller has tried again", windows)
					}
					w.set(func(url.Values) error { time.Sleep(2 * time.Minute); return nil }, nil)
					if err := again(); err != nil {
						t.Errorf("with a user who takes two minutes: %v", err)
					}
					if windows, _ := w.seen(); windows != 3 {
						t.Errorf("%d windows in the end", windows)
					}
					if err := done(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A client whose login has ended asks the user once when it reconnects, and then
// waits for its caller.
func TestOneWindowAfterLoss(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			w, tr := world(t)
			c, err := client.Connect(t.Context(), tr, &client.Options{Revisions: []protocol.Revision{rev}})
			if err != nil {
				t.Fatal(err)
			}
			w.mu.Lock()
			clear(w.tokens)
			w.mu.Unlock()
			w.set(says("access_denied"), nil)
			if _, err := c.Call(t.Context(), "hello", nil); !errors.Is(err, client.ErrUnauthorized) {
				t.Errorf("%s: %v", rev, err)
			}
			time.Sleep(time.Hour)
			if windows, _ := w.seen(); windows != 2 {
				t.Errorf("%s: %d windows, want that of the login and one more", rev, windows)
			}
			w.set(nil, nil)
			if err := c.Reconnect(t.Context()); err != nil && c.State() != client.StateReady {
				t.Errorf("%s: Reconnect: %v", rev, err)
			}
			if _, err := c.Call(t.Context(), "hello", nil); err != nil {
				t.Errorf("%s: %v", rev, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A client declares the extension that its login belongs to, over each transport that can
// have one and in every revision, together with what its options declare of it.
func TestLoginExtension(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "guarded", Version: "1"}, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}})
	s.MustAdd(mcp.Tool("declared", func(f *mcp.Frame, _ struct{}) (string, error) {
		text, err := json.Marshal(f.ClientCapabilities().Extensions)
		return string(text), err
	}))
	web := http.NewServeMux()
	web.Handle("/mcp", s.Handler())
	web.Handle("/ws", websocket.Handler(s))
	web.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":"http://%[1]s","authorization_endpoint":"http://%[1]s/authorize","token_endpoint":"http://%[1]s/token","code_challenge_methods_supported":["S256"]}`, r.Host)
	})
	web.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token","token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}`)
	})
	web.HandleFunc("/.well-known/oauth-protected-resource/{path}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"resource":"http://%[1]s/%[2]s","authorization_servers":["http://%[1]s"]}`, r.Host, r.PathValue("path"))
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path[1:]; (path == "mcp" || path == "ws") && r.Header.Get("Authorization") != "Bearer token" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="http://%s/.well-known/oauth-protected-resource/%s"`, r.Host, path))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		web.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	given := func(context.Context) (string, error) { return "jwt", nil }
	grants := map[string]oauth.Grant{
		`{"io.modelcontextprotocol/oauth-client-credentials":{}}`: &oauth.ClientCredentials{},
		`{"io.modelcontextprotocol/enterprise-managed-authorization":{}}`: &oauth.EnterpriseManaged{
			Provider: server.URL, TokenEndpoint: server.URL + "/token", Client: oauth.Registration{ClientID: "sso", ClientSecret: "s"}, Assertion: given,
		},
		`null`: &oauth.WorkloadIdentity{Assertion: func(ctx context.Context, _ string) (string, error) { return given(ctx) }},
	}
	transports := map[string]func(*http.Client) client.Transport{
		"/mcp": func(h *http.Client) client.Transport {
			return client.HTTP(server.URL+"/mcp", &client.HTTPOptions{Client: h})
		},
		"/mcp sse": func(h *http.Client) client.Transport {
			return client.SSE(server.URL+"/mcp", &client.HTTPOptions{Client: h})
		},
		"/ws": func(h *http.Client) client.Transport {
			return client.WebSocket(server.URL+"/ws", &client.HTTPOptions{Client: h})
		},
	}
	for _, rev := range protocol.Revisions() {
		for where, open := range transports {
			path, sse, _ := strings.Cut(where, " ")
			if sse != "" && rev != protocol.V20241105 {
				continue
			}
			for want, grant := range grants {
				authorized, err := oauth.New(server.URL+path, &oauth.Options{Grant: grant, Clients: []oauth.Registration{{ClientID: "c", ClientSecret: "s"}}})
				if err != nil {
					t.Fatal(err)
				}
				id := authorized.Extension()
				if want != "null" && want != fmt.Sprintf(`{%q:{}}`, id) || want == "null" && id != "" {
					t.Errorf("Extension is %q, want that of %s", id, want)
				}
				tr := open(authorized.HTTPClient())
				declare := func(what string, opts client.Options, want string) {
					opts.Revisions = []protocol.Revision{rev}
					c, err := client.Connect(t.Context(), tr, &opts)
					if err != nil {
						t.Fatalf("%s %s %s: %v", rev, where, what, err)
					}
					if got, err := client.Call[string](t.Context(), c, "declared", nil); err != nil || got != want {
						t.Errorf("%s %s %s: declared %s, want %s; %v", rev, where, what, got, want, err)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
				declare("plain", client.Options{Tasks: client.TasksOff}, want)
				if id == "" {
					continue
				}
				declare("answers raw", client.Options{OnRequest: func(context.Context, string, json.RawMessage) (any, error) { return nil, nil }}, want)
				own := protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{id: json.RawMessage(`{"a":1}`)}}
				declare("settings", client.Options{Tasks: client.TasksOff, Capabilities: own}, fmt.Sprintf(`{%q:{"a":1}}`, id))
				other := protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{"example.com/x": json.RawMessage(`{}`)}}
				declare("one more", client.Options{Tasks: client.TasksOff, Capabilities: other}, fmt.Sprintf(`{"example.com/x":{},%q:{}}`, id))
				if len(other.Extensions) != 1 {
					t.Errorf("Options.Capabilities were changed to %v", other)
				}
			}
		}
	}
}
