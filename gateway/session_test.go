package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestRootsOfSessions has an upstream that asks for roots outside of calls: at the
// beginning, and after each change.
func TestRootsOfSessions(t *testing.T) {
	roots := make(chan string, 10)
	up := newServer(t, "up", nil, protocol.V20250618)
	ask := func(f *mcp.Frame) error {
		id := f.SessionID()
		go func() {
			_ = up.WithSession(context.WithoutCancel(f), id, func(f *mcp.Frame) error {
				list, err := frame.Roots(f, "roots")
				if err != nil {
					return err // as that of the list connection
				}
				roots <- fmt.Sprint(list)
				return nil
			})
		}()
		return nil
	}
	for _, method := range []string{protocol.MethodInitialized, protocol.MethodRootsChanged} {
		if err := up.OnNotification(method, ask); err != nil {
			t.Fatal(err)
		}
	}
	up.MustAdd(mcp.Tool("nothing", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
	_, s := start(t, map[string]Upstream{"up": {Transport: local(up)}})
	for range 3 {
		c := connect(t, s, protocol.V20251125, &client.Options{Roots: []client.Root{{URI: "file:///one"}}})
		if _, err := c.Call(t.Context(), "up_nothing", nil); err != nil {
			t.Fatal(err)
		}
		got := func(want string) {
			t.Helper()
			select {
			case list := <-roots:
				if !strings.Contains(list, want) {
					t.Errorf("got %s, want %s", list, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s does not come", want)
			}
		}
		got("file:///one")
		if err := c.SetRoots(t.Context(), []client.Root{{URI: "file:///two"}}); err != nil {
			t.Fatal(err)
		}
		got("file:///two")
	}
}

// processes is the transport to a server of which each connection has another one, as
// commands are. Its tools change that one only.
func processes(t testing.TB, rev protocol.Revision) client.Transport {
	return client.Local(func(ctx context.Context, conn transport.Conn) error {
		s := newServer(t, "up", nil, rev)
		s.MustAdd(mcp.Resource("note://own", func(*mcp.Frame) (string, error) { return "note", nil }),
			mcp.Tool("touch", func(*mcp.Frame, struct{}) (string, error) { s.ResourceUpdated("note://own"); return "", nil }),
			mcp.Tool("grow", func(*mcp.Frame, struct{}) (string, error) {
				return "", s.Add(mcp.Tool("fresh", func(*mcp.Frame, struct{}) (string, error) { return "I am new", nil }))
			}))
		return s.ServeConn(ctx, conn)
	})
}

// TestProcesses has upstreams of which each connection is a process of its own: what a
// client changes there, it is notified of, and no other client sees it.
func TestProcesses(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			t.Run(back+"/"+front, func(t *testing.T) {
				up := processes(t, behind)
				_, s := start(t, map[string]Upstream{"up": {Transport: up, For: func(f *mcp.Frame) (string, client.Transport, error) {
					return f.ClientInfo().Name, up, nil
				}}})
				for _, name := range []string{"ada", "bob"} {
					c := connect(t, s, rev, &client.Options{Info: client.Info{Name: name, Version: "1"}})
					if got := toolNames(t, c); slices.Contains(got, "up_fresh") {
						t.Errorf("%s lists %q", name, got)
					}
					heard := make(chan string, 100)
					sub, err := c.Listen(t.Context(), client.Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"note://own"}},
						func(n client.Notification) { heard <- n.Method })
					if err != nil {
						t.Fatal(err)
					}
					await := func(method string) {
						t.Helper()
						for late := time.After(20 * time.Second); ; {
							select {
							case got := <-heard:
								if got == method {
									return
								}
							case <-late:
								t.Fatalf("%s does not come", method)
							}
						}
					}
					if _, err := c.Call(t.Context(), "up_touch", nil); err != nil {
						t.Fatal(err)
					}
					await(protocol.MethodResourceUpdated)
					if _, err := c.Call(t.Context(), "up_grow", nil); err != nil {
						t.Fatal(err)
					}
					await(protocol.MethodToolsChanged)
					if got := text(c.Call(t.Context(), "up_fresh", nil)); got != "I am new" {
						t.Errorf("got %q", got)
					}
					if got := toolNames(t, c); !slices.Contains(got, "up_fresh") {
						t.Errorf("%s lists %q", name, got)
					}
					if err := sub.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}
