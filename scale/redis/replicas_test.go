//go:build unix

package redis

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/protocol"
)

// visits counts in the session.
var visits = mcp.NewStoredKey[int]("example.com/visits")

type nothing struct{}

// Three servers with stores of their own on one engine, each request at the next
// one, are one server: for sessions, and for tasks.
func TestReplicas(t *testing.T) {
	for name, servers := range map[string][]*server{"alone": {start(t)}, "cluster": startCluster(t, 0)} {
		t.Run(name, func(t *testing.T) {
			o := user(t, servers...)
			var handlers []http.Handler
			for range 3 {
				s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1"}, &mcp.Options{
					Store: open(t, o), StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")},
				})
				s.MustAdd(
					mcp.Tool("visit", func(f *mcp.Frame, _ nothing) (int, error) {
						return visits.Update(f, func(n int) int { return n + 1 }), nil
					}),
					mcp.Tool("ask", func(f *mcp.Frame, _ nothing) (string, error) {
						roots, err := frame.Roots(f, "roots")
						return fmt.Sprint(len(roots)), err
					}, mcp.AsTask(&mcp.TaskOptions{Wait: -1, PollInterval: 10 * time.Millisecond})),
				)
				t.Cleanup(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					defer cancel()
					_ = s.Shutdown(ctx)
				})
				handlers = append(handlers, s.Handler())
			}
			web := httptest.NewServer(testcmd.RoundRobin(handlers...))
			t.Cleanup(web.Close)
			for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
				c, err := client.Connect(t.Context(), client.HTTP(web.URL, nil), &client.Options{
					Revisions: []protocol.Revision{rev}, Timeout: time.Minute, Roots: []client.Root{{URI: "file:///a"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				for want := range 7 {
					n, err := client.Call[int](t.Context(), c, "visit", nil)
					if rev.Modern() {
						want = 0 // there is no session
					}
					if err != nil || n != want+1 {
						t.Fatalf("%v: visit %d: %d, %v", rev, want+1, n, err)
					}
				}
				for range 3 {
					if r, err := c.Call(t.Context(), "ask", nil); err != nil || r.Text() != "1" {
						t.Fatalf("%v: ask: %v, %v", rev, r, err)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
