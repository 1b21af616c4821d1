package mcptest

import (
	"context"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Frame returns a Frame for a test that calls a handler as the function that it
// is. It is that of a call of a tool, by a client with the options:
//
//	f := mcptest.Frame(t, mcptest.As(mcp.Identity{Subject: "alice"}), mcptest.Accepting(Confirm{Sure: true}))
//	cart.Set(f, Cart{Items: 2}) // of an mcp.Key
//	got, err := checkout(f, struct{}{})
//
// Questions of the handler are answered by the scripts of the options, progress and
// logs go to the client, where [Trace] sees them, and the Frame ends with the test.
// The revision is the newest with sessions unless [Revision] is given: from
// 2026-07-28 on a handler that asks is called again with the answer, which a [Client]
// does. The zero mcp.Frame is of no use to a handler.
func Frame(t testing.TB, options ...Option) *mcp.Frame {
	t.Helper()
	frames, ended := make(chan *mcp.Frame), make(chan struct{})
	server := mcp.NewServer(mcp.Info{Name: "mcptest", Version: "1"}, nil)
	server.MustAdd(mcp.Tool("frame", func(f *mcp.Frame, _ struct{}) (struct{}, error) {
		frames <- f
		<-ended
		return struct{}{}, nil
	}, mcp.Doc("Hands its Frame to the test.")))
	c := New(t, server, append([]Option{Revision(protocol.LatestLegacy)}, options...)...)
	done := make(chan error, 1)
	go func() {
		_, err := c.RequestContext(context.Background(), protocol.MethodToolsCall, map[string]any{"name": "frame", "_meta": map[string]any{"progressToken": "frame"}})
		done <- err
	}()
	t.Cleanup(func() { // before that of c
		close(ended)
		<-done
	})
	select {
	case f := <-frames:
		return f
	case err := <-done:
		done <- err
		t.Fatalf("mcptest: no Frame: %v", err)
	}
	return nil
}
