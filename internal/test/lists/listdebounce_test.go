package lists_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Many changes of a list in a short time are two announcements, in each revision: one
// at once, and one of all the others.
func TestAnnouncementsGather(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},$META}}`
	for _, rev := range []protocol.Revision{protocol.V20241105, protocol.LatestLegacy, protocol.Latest} {
		t.Run(rev.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := harness.Fixture(t, nil)
				client, server := transport.Pipe()
				served := make(chan error, 1)
				go func() { served <- s.ServeConn(context.Background(), server) }()
				var told atomic.Int64
				over := make(chan struct{})
				go func() {
					defer close(over)
					for {
						message, err := client.Read()
						if err != nil {
							return
						}
						if strings.Contains(string(message), `"notifications/tools/list_changed"`) {
							told.Add(1)
						}
					}
				}()
				lines := []string{listen}
				if !rev.Modern() {
					lines = []string{strings.Replace(harness.InitLine, "2025-11-25", rev.String(), 1), `{"jsonrpc":"2.0","method":"notifications/initialized"}`}
				}
				for _, line := range lines {
					if err := client.Write([]byte(harness.Expand(line, rev))); err != nil {
						t.Fatal(err)
					}
				}
				want := func(n int, when string) {
					t.Helper()
					synctest.Wait()
					if got := told.Load(); got != int64(n) {
						t.Errorf("%s: told %d times, want %d", when, got, n)
					}
				}
				want(0, "before")
				for i := range 10 {
					s.MustAdd(mcp.Tool(fmt.Sprint("more", i), func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
					want(1, "while tools are added")
				}
				time.Sleep(time.Second)
				want(2, "a second after")
				time.Sleep(time.Minute)
				want(2, "a minute after")
				s.Remove(mcp.KindTool, "more1")
				want(3, "after a quiet time")
				s.Remove(mcp.KindTool, "more2")
				_ = s.Shutdown(context.Background())
				time.Sleep(time.Second)
				want(4, "after Shutdown, which loses nothing")
				_ = client.Close()
				<-served
				<-over
			})
		})
	}
}
