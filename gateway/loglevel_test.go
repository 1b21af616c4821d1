package gateway

import (
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// TestLogLevels sets the level of a session and calls a tool at once: what it logs at that
// level reaches the client, the first time and after a change.
func TestLogLevels(t *testing.T) {
	up := newServer(t, "up", nil, protocol.V20251125)
	up.MustAdd(mcp.Tool("work", func(f *mcp.Frame, _ struct{}) (string, error) {
		return "done", f.Log(protocol.LevelDebug, "a step", "tests")
	}))
	_, s := start(t, map[string]Upstream{"up": {Transport: local(up), For: own(up)}})
	for range 20 {
		logs := make(chan string, 10)
		c := connect(t, s, protocol.V20251125, &client.Options{Info: client.Info{Name: "ada", Version: "1"},
			OnLog: func(l client.LogEntry) { logs <- l.Logger + ": " + l.Text() }})
		for _, level := range []protocol.Level{protocol.LevelDebug, protocol.LevelError, protocol.LevelDebug} {
			if err := c.SetLevel(t.Context(), level); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Call(t.Context(), "up_work", nil); err != nil {
				t.Fatal(err)
			}
			if level == protocol.LevelError {
				continue
			}
			if got := <-logs; got != "up/tests: a step" {
				t.Errorf("got %q", got)
			}
		}
		if len(logs) > 0 {
			t.Errorf("a message below the level came: %q", <-logs)
		}
	}
}
