package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

func TestDelete(t *testing.T) {
	c := mcptest.New(t, newServer(), mcptest.Accepting(Confirm{Sure: true}))
	if got := c.Call("delete", map[string]int{"note": 1}).Text(); got != "deleted" {
		t.Errorf("got %q", got)
	}
}

func TestEveryRevision(t *testing.T) {
	mcptest.Each(t, newServer, func(t *testing.T, c *mcptest.Client) {
		if sum := mcptest.Call[int](c, "add", map[string]int{"a": 1, "b": 2}); sum != 3 {
			t.Errorf("got %d", sum)
		}
		if c.Supports("elicitation") && c.Call("delete", map[string]int{"note": 1}).Text() != "deleted" {
			t.Error("not deleted")
		}
	}, mcptest.Accepting(Confirm{Sure: true}))
}

func TestGolden(t *testing.T) {
	mcptest.New(t, newServer()).Golden("testdata/mcp.lock")
}

func TestRefused(t *testing.T) {
	c := mcptest.New(t, newServer(), mcptest.As(mcp.Identity{Subject: "alice", Scopes: []string{"notes:read"}}))
	result := c.Call("add", map[string]any{"a": "one"})
	if !result.IsError || !strings.Contains(result.Text(), "/a: must be an integer") {
		t.Errorf("got %q", result.Text())
	}
	if _, err := c.TryCall("unknown", nil); err == nil {
		t.Error("there is a tool of that name")
	}
}

func TestChanges(t *testing.T) {
	s := newServer()
	c := mcptest.New(t, s)
	c.Listen(client.Filter{ToolsListChanged: true})
	s.Remove(mcp.KindTool, "add")
	c.WaitFor("notifications/tools/list_changed")
	if tools := c.Tools(); len(tools) != 1 {
		t.Errorf("got %d tools", len(tools))
	}
}

func TestHandler(t *testing.T) {
	f := mcptest.Frame(t, mcptest.As(mcp.Identity{Subject: "alice"}), mcptest.Accepting(Confirm{Sure: true}))
	visits.Set(f, 1)
	if got, err := deleteNote(f, Deletion{ID: 1}); err != nil || got != "deleted" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDiskFull(t *testing.T) {
	s := mcptest.NewScript(t, protocol.V20250618, map[string]func(json.RawMessage) (any, error){
		"tools/call": func(params json.RawMessage) (any, error) {
			return nil, protocol.Errorf(protocol.CodeInternal, "disk full")
		},
	})
	if err := backup(t.Context(), s.Transport()); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
	if all := s.Received(); all[len(all)-1].Method != "tools/call" {
		t.Errorf("the program ended with %s", all[len(all)-1].Method)
	}
}

// visits, deleteNote and backup are parts of the programs that the page tests.
var visits = mcp.NewKey[int]("visits")

type Deletion struct{ ID int }

func deleteNote(f *mcp.Frame, _ Deletion) (string, error) {
	if n, _ := visits.Get(f); n != 1 || f.Identity().Subject != "alice" {
		return "", fmt.Errorf("%d visits of %v", n, f.Identity())
	}
	sure, err := mcp.Elicit[Confirm](f, "sure", "Delete it?")
	if err != nil || !sure.Value.Sure {
		return "kept", err
	}
	return "deleted", nil
}

func backup(ctx context.Context, to client.Transport) error {
	c, err := client.Connect(ctx, to, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Call(ctx, "save", nil)
	return err
}

// newServer returns the server of the page.
func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "tested", Version: "1"}, nil)
	s.MustAdd(
		mcp.Tool("add", func(_ context.Context, in struct {
			A int `json:"a"`
			B int `json:"b,omitempty"`
		}) (int, error) {
			return in.A + in.B, nil
		}, mcp.Doc("Adds two numbers.")),
		mcp.Tool("delete", func(f *mcp.Frame, in struct {
			Note int `json:"note"`
		}) (string, error) {
			answer, err := mcp.Elicit[Confirm](f, "sure", fmt.Sprint("Delete note ", in.Note, "?"))
			if err == nil && !answer.Value.Sure {
				return "kept", nil
			}
			return "deleted", err
		}, mcp.Doc("Deletes a note.")),
	)
	return s
}
