package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

var cart = mcp.NewKey[[]string]("cart")

func add(f *mcp.Frame, in AddIn) (string, error) {
	items := cart.Update(f, func(old []string) []string { return append(slices.Clone(old), in.Item) })
	return fmt.Sprintf("%d in the cart", len(items)), nil
}

func shop() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, &mcp.Options{
		OnSessionStart: func(f *mcp.Frame) error {
			cart.Set(f, []string{"a free sample"})
			return nil
		},
		OnSessionEnd: func(f *mcp.Frame, reason error) { log.Println("a session ended:", reason) },
		Limits:       mcp.Limits{Sessions: 50_000},
		Timeouts:     mcp.Timeouts{Session: time.Hour},
	})
	s.MustAdd(mcp.Tool("add", add))
	return s
}

type AddIn struct {
	Item string `json:"item"`
}

func tellShipped(ctx context.Context, s *mcp.Server, id string) error {
	err := s.WithSession(ctx, id, func(f *mcp.Frame) error {
		return f.Log(protocol.LevelInfo, "your order was sent", "orders")
	})
	if errors.Is(err, mcp.ErrSessionNotFound) {
		return nil // it has ended
	}
	return err
}

func TestSessions(t *testing.T) {
	s := shop()
	id := ""
	s.MustAdd(mcp.Tool("id", func(f *mcp.Frame, _ struct{}) (string, error) {
		id = f.SessionID()
		return id, nil
	}))
	for revision, want := range map[protocol.Revision][2]string{
		protocol.V20251125: {"2 in the cart", "3 in the cart"},
		protocol.V20260728: {"1 in the cart", "1 in the cart"},
	} {
		c := mcptest.New(t, s, mcptest.Revision(revision))
		for _, want := range want {
			if got := c.Call("add", AddIn{"tea"}).Text(); got != want {
				t.Errorf("%s: got %q, want %q", revision, got, want)
			}
		}
	}
	c := mcptest.New(t, s, mcptest.Revision(protocol.V20251125), mcptest.OverHTTP())
	c.Call("id", nil)
	if err := tellShipped(t.Context(), s, id); err != nil {
		t.Error(err)
	}
	c.WaitFor("notifications/message")
	if err := tellShipped(t.Context(), s, "unknown"); err != nil {
		t.Error(err)
	}
}
