package docs_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/authtest"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
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
