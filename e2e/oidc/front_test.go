package oidc

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/storage"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	front "github.com/talaria-go/mcp/auth/broker"
	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// newDoor starts a server behind a broker whose users log in at p, and returns its
// URL and where its broker is.
func newDoor(t *testing.T, p *provider, clients ...front.Client) (endpoint, issuer string, door *front.Broker) {
	t.Helper()
	const secret = "front-secret"
	server := httptest.NewUnstartedServer(nil)
	issuer = "http://" + server.Listener.Addr().String()
	endpoint = issuer + "/mcp"
	p.RegisterFront("front", secret, issuer+"/callback")
	door, err := front.New(issuer, &front.Provider{Issuer: p.url, ClientID: "front", ClientSecret: secret, Scopes: []string{"openid", "email", "offline_access"}}, &front.Options{
		Resources: []string{endpoint}, Keys: [][]byte{[]byte("sixteen bytes or more of it")}, Store: scale.NewLocal(), Clients: clients,
		Scopes: []front.Scope{{Name: "notes:read", Allows: "read your notes"}, {Name: "notes:write", Allows: "change them"}},
		Event: func(e front.Event) {
			if e.Err != nil {
				t.Errorf("event %+v", e)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("whoami", func(f *mcp.Frame, _ struct{}) (string, error) { return f.Principal(), nil }),
		mcp.Tool("add", func(_ *mcp.Frame, in noteIn) (string, error) { return "noted: " + in.Text, nil }, mcp.Scopes("notes:write")),
	)
	notes, err := auth.New(endpoint, door.Verifier(endpoint), &auth.Options{Scopes: []string{"notes:read"}, CacheFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = door.Middleware(notes.Bearer(s.Handler()))
	server.Start()
	t.Cleanup(server.Close)
	return endpoint, issuer, door
}

// RegisterFront lets a web application log users in.
func (p *provider) RegisterFront(id, secret, callback string) {
	p.Storage = storage.NewStorageWithClients(storage.NewUserStore(p.url), map[string]*storage.Client{id: storage.WebClient(id, secret, callback)})
}

// agree is the user: he allows what the broker asks, logs in at the provider, and ends
// at the loopback address of the application.
func (p *provider) agree(ctx context.Context, address string) error {
	return p.enter(ctx, address, "go back to the application")
}

// visitSuite is agree for the client of the conformance suite.
func (p *provider) visitSuite(ctx context.Context, address string) error {
	return p.enter(ctx, address, "You can close this page")
}

// enter is agree that ends at a page with that text.
func (p *provider) enter(ctx context.Context, address, end string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	page, err := fetch(ctx, browser, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	form := formID.FindStringSubmatch(page)
	u, err := url.Parse(address)
	if form == nil || err != nil || !strings.Contains(page, "read your notes") {
		return fmt.Errorf("the broker asks %q, %v", page, err)
	}
	page, err = fetch(ctx, browser, http.MethodPost, u.Scheme+"://"+u.Host+"/consent", url.Values{"id": {form[1]}, "answer": {"allow"}, "scope": {"notes:read", "notes:write"}})
	if err != nil {
		return err
	}
	if form = formID.FindStringSubmatch(page); form == nil {
		return fmt.Errorf("the browser ended at %q, not at the form of the provider", page)
	}
	page, err = fetch(ctx, browser, http.MethodPost, p.url+"/login/username", url.Values{"id": {form[1]}, "username": {username}, "password": {password}})
	if err == nil && !strings.Contains(page, end) {
		err = fmt.Errorf("the browser ended at %q", page)
	}
	return err
}

// TestLoginThroughBroker has our own client register, log in, get more scopes, refresh
// and log out through a broker in front of a provider that does not let clients
// register.
func TestLoginThroughBroker(t *testing.T) {
	for _, revision := range []protocol.Revision{protocol.V20250326, protocol.V20251125, protocol.V20260728} {
		t.Run(revision.String(), func(t *testing.T) {
			p := newProvider(t)
			endpoint, _, door := newDoor(t, p)
			authorized, err := oauth.New(endpoint, &oauth.Options{Grant: &oauth.AuthorizationCode{Agent: &oauth.Loopback{Browse: p.agree}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(authorized.HTTPClient().CloseIdleConnections)
			c, err := client.Connect(t.Context(), client.HTTP(endpoint, &client.HTTPOptions{Client: authorized.HTTPClient()}), &client.Options{Revisions: []protocol.Revision{revision}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			principal := p.url + "#id2"
			use(t, c, "whoami", nil, principal)
			use(t, c, "add", noteIn{"milk"}, "noted: milk")
			if len(p.problems) > 0 {
				t.Errorf("the provider complains: %q", p.problems)
			}
			before, err := authorized.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// All logins of the user end; the client logs in again by itself.
			if err := door.Revoke(t.Context(), principal); err != nil {
				t.Fatal(err)
			}
			if status := post(t, endpoint, before.AccessToken); status != http.StatusUnauthorized {
				t.Errorf("after Revoke the access token gets status %d", status)
			}
			use(t, c, "whoami", nil, principal)
			token, err := authorized.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := authorized.Logout(t.Context()); err != nil {
				t.Fatal(err)
			}
			if status := post(t, endpoint, token.AccessToken); status != http.StatusUnauthorized {
				t.Errorf("after logout the access token gets status %d", status)
			}
		})
	}
}
