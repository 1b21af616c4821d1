package docs_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/authtest"
	"github.com/talaria-go/mcp/auth/broker"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

type KeepIn struct {
	Folder string `json:"folder"`
}

func keep(f *mcp.Frame, in KeepIn) (string, error) {
	if err := f.RequireScopes("folder:" + in.Folder); err != nil {
		return "", err
	}
	return "kept", nil
}

// serveAs serves somebody over standard input and output.
func serveAs(s *mcp.Server) error {
	ctx := mcp.WithIdentity(context.Background(), &mcp.Identity{Subject: "me", Scopes: []string{"notes:read", "notes:write"}})
	err := s.ServeStdio(ctx)
	return err
}

// logIn serves notes to users of the identity provider of a company.
func logIn(s *mcp.Server, keys [][]byte, store scale.Store) (*broker.Broker, http.Handler) {
	door, err := broker.New("https://notes.example.com", &broker.Provider{
		Issuer: "https://idp.example.com", ClientID: "notes", ClientSecret: os.Getenv("CLIENT_SECRET"),
	}, &broker.Options{
		Name: "Notes", Resources: []string{"https://notes.example.com/mcp"}, Keys: keys, Store: store,
		Scopes: []broker.Scope{{Name: "notes:read", Allows: "read your notes"}, {Name: "notes:write", Allows: "add notes"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	const endpoint = "https://notes.example.com/mcp"
	notes, err := auth.New(endpoint, door.Verifier(endpoint), &auth.Options{Scopes: []string{"notes:read"}})
	if err != nil {
		log.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(door.Middleware, notes.Metadata)
	r.With(notes.Bearer).Mount("/mcp", s.Handler())
	return door, r
}

// useGitHub lets a tool use GitHub as its caller.
func useGitHub(s *mcp.Server, door *broker.Broker, id, secret string, nameOf func(context.Context, *http.Client) (string, error)) {
	github, err := door.Service("github", broker.GitHub(id, secret), &broker.ServiceOptions{Origins: []string{"https://api.github.com"}})
	if err != nil {
		log.Fatal(err)
	}
	s.MustAdd(mcp.Tool("my_name", func(f *mcp.Frame, _ struct{}) (string, error) {
		c, err := github.Client(f)
		if err != nil {
			return "", err
		}
		return nameOf(f, c) // GET https://api.github.com/user
	}))
}

// The program of the page sends clients to its own pages, and a caller without GitHub to the
// page that connects it.
func TestLogInAndCallServices(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
	door, handler := logIn(s, [][]byte{[]byte("a secret of sixteen bytes")}, scale.NewLocal())
	useGitHub(s, door, "id", "secret", nil)
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource/mcp": `"authorization_servers":["https://notes.example.com"]`,
		"/.well-known/oauth-authorization-server":   `"registration_endpoint":"https://notes.example.com/register"`,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://notes.example.com"+path, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	c := mcptest.New(t, s, mcptest.As(mcp.Identity{Issuer: "https://idp.example.com", Subject: "alice"}))
	if got, err := c.TryCall("my_name", nil); err != nil || !strings.HasPrefix(got.Text(), "github is not connected: ask the user to open https://notes.example.com/connect?t=") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAuthorization(t *testing.T) {
	server := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
	server.MustAdd(
		mcp.Tool("add_note", func(context.Context, struct {
			Text string `json:"text"`
		}) (string, error) {
			return "added", nil
		}, mcp.Scopes("notes:write")),
		mcp.Tool("keep", keep),
	)
	c := mcptest.New(t, server, mcptest.As(mcp.Identity{Subject: "alice", Scopes: []string{"notes:read"}}))
	_, err := c.TryRequest("tools/call", map[string]any{"name": "add_note", "arguments": map[string]any{"text": "milk"}})
	if fault, ok := errors.AsType[*mcp.Error](err); !ok || fault.Code != protocol.CodeInsufficientScope {
		t.Errorf("got %v", err)
	}
	alice := mcptest.New(t, server, mcptest.As(mcp.Identity{Subject: "alice", Scopes: []string{"folder:a"}}))
	if got := alice.Call("keep", KeepIn{"a"}).Text(); got != "kept" {
		t.Errorf("got %q", got)
	}
	if _, err := alice.TryCall("keep", KeepIn{"b"}); err == nil || !strings.Contains(err.Error(), "folder:b") {
		t.Errorf("got %v", err)
	}
	_ = serveAs // needs a standard input
}

func TestAuthorizationWithTokens(t *testing.T) {
	const resource = "https://notes.example.com/mcp"
	server := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
	server.MustAdd(mcp.Tool("add_note", func(f *mcp.Frame, _ struct{}) (string, error) { return f.Identity().Subject, nil }, mcp.Scopes("notes:write")))
	issuer, err := authtest.Start(&authtest.Options{Resource: resource, Scopes: []authtest.Scope{{Name: "notes:write"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer issuer.Close()
	notes, err := auth.New(resource, auth.NewJWT(issuer.Issuer(), nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(notes.Bearer(server.Handler()))
	defer web.Close()
	token, err := issuer.Token("alice", "notes:write")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.HTTP(web.URL, &client.HTTPOptions{Header: http.Header{"Authorization": {"Bearer " + token}}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := client.Call[string](t.Context(), c, "add_note", nil); err != nil || got != "alice" {
		t.Errorf("%q, %v", got, err)
	}
}

// The program is as short as a reader hopes for.
func TestAuthorizationIsShort(t *testing.T) {
	_, body, ok := strings.Cut(blocks(page(t, "authorization.md"), "go")[0], "func main() {\n")
	if lines := strings.Count(body, "\n"); !ok || lines > 30 {
		t.Errorf("the program has %d lines", lines)
	}
}
