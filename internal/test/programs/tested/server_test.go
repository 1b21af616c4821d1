// Package tested is the test of a server, in every revision.
package tested

import (
	"context"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
)

type AddIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type Sure struct {
	Sure bool `json:"sure"`
}

func add(ctx context.Context, in AddIn) (int, error) { return in.A + in.B, nil }

func reset(f *mcp.Frame, in struct{}) (string, error) {
	answer, err := mcp.Elicit[Sure](f, "sure", "Reset the counter?")
	if err != nil {
		return "", err
	}
	if !answer.Accepted() || !answer.Value.Sure {
		return "kept", nil
	}
	return "reset", nil
}

func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "counter", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("add", add, mcp.ReadOnly()), mcp.Tool("reset", reset))
	return s
}

func TestServer(t *testing.T) {
	mcptest.Each(t, newServer, func(t *testing.T, c *mcptest.Client) {
		if sum := mcptest.Call[int](c, "add", AddIn{1, 2}); sum != 3 {
			t.Errorf("got %d", sum)
		}
		if c.Supports("elicitation") && c.Call("reset", nil).Text() != "reset" {
			t.Error("not reset")
		}
	}, mcptest.Accepting(Sure{true}))
}
