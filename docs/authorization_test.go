package docs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type KeepIn struct {
	Folder string `json:"folder"`
}

func keep(f *mcp.Frame, in KeepIn) (string, error) {
	if err := f.NeedScopes("folder:" + in.Folder); err != nil {
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

// The program is as short as a reader hopes for.
func TestAuthorizationIsShort(t *testing.T) {
	_, body, ok := strings.Cut(blocks(page(t, "authorization.md"), "go")[0], "func main() {\n")
	if lines := strings.Count(body, "\n"); !ok || lines > 30 {
		t.Errorf("the program has %d lines", lines)
	}
}
