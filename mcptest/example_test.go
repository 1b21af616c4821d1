package mcptest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// A test has its own *testing.T; an example has to do with this one.
var t = &quietT{}

type quietT struct{ testing.TB }

func (*quietT) Helper()        {}
func (*quietT) Cleanup(func()) {}

func Example() {
	server := mcp.NewServer(mcp.Info{Name: "calculator", Version: "1"}, nil)
	server.MustAdd(mcp.Tool("double", func(_ *mcp.Frame, in struct {
		N int `json:"n"`
	}) (int, error) {
		return 2 * in.N, nil
	}))

	c := mcptest.New(t, server)
	defer c.Close() // in a test, its end does that
	fmt.Println(c.Call("double", map[string]int{"n": 21}).Text())
	// Output: 42
}

func ExampleOnElicit() {
	type confirm struct {
		Sure bool `json:"sure"`
	}
	server := mcp.NewServer(mcp.Info{Name: "files", Version: "1"}, nil)
	server.MustAdd(mcp.Tool("delete", func(f *mcp.Frame, _ struct{}) (string, error) {
		answer, err := mcp.Elicit[confirm](f, "sure", "Delete everything?")
		if err != nil {
			return "", err
		}
		if !answer.Accepted() || !answer.Value.Sure {
			return "kept", nil
		}
		return "deleted", nil
	}))

	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		c := mcptest.New(t, server, mcptest.Revision(rev), mcptest.OnElicit(func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			fmt.Println(rev, "asks:", q.Message)
			return client.Accept(confirm{Sure: true})
		}))
		fmt.Println(c.Call("delete", nil).Text())
		c.Close()
	}
	// Output:
	// 2025-06-18 asks: Delete everything?
	// deleted
	// 2026-07-28 asks: Delete everything?
	// deleted
}
