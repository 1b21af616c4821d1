package lists_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/test/harness"
)

// overHTTP runs fn in a bubble with a server on a network, with connections
// that are taken over and with ones that are not, and behind middleware. The
// bubble fails if a goroutine is left.
func overHTTP(t *testing.T, opts mcp.Options, fn func(t *testing.T, s *mcp.Server, n *harness.Network)) {
	encode := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "identity") // as one that compresses would say
			h.ServeHTTP(w, r)
		})
	}
	plain := func(h http.Handler) http.Handler { return h }
	for _, tt := range []struct {
		name       string
		noTakeover bool
		middleware func(http.Handler) http.Handler
	}{{"taken over", false, plain}, {"net/http", true, plain}, {"encoded", false, encode}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts.HTTP = mcp.HTTPOptions{NoHijack: tt.noTakeover}
				s := harness.ListenServer(t, opts)
				n := &harness.Network{Conns: make(chan net.Conn), Done: make(chan struct{})}
				server := &http.Server{Handler: tt.middleware(s.Handler())}
				served := make(chan error, 1)
				go func() { served <- server.Serve(n) }()
				fn(t, s, n)
				if err := s.Shutdown(t.Context()); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				server.Close()
				<-served
			})
		})
	}
}

func TestListenKeepsTheConnectionAlive(t *testing.T) {
	overHTTP(t, mcp.Options{}, func(t *testing.T, s *mcp.Server, n *harness.Network) {
		c := n.Dial(t, harness.Listen("1", harness.ToolsFilter))
		c.WantOpen()
		start := time.Now()
		for i := range 3 {
			c.Want(":")
			if got, want := time.Since(start), time.Duration(i+1)*streamable.DefaultKeepAlive; got != want {
				t.Errorf("sign of life %d after %v, want %v", i, got, want)
			}
		}
		s.MustAdd(harness.Tool("second"))
		c.WantEvent(harness.Tagged("1", "tools/list_changed", ""))
		c.Want(":")
	})
}

func TestListenEndsInOrder(t *testing.T) {
	overHTTP(t, mcp.Options{}, func(t *testing.T, s *mcp.Server, n *harness.Network) {
		c := n.Dial(t, harness.Listen("1", harness.ToolsFilter))
		c.WantOpen()
		synctest.Wait()
		s.MustAdd(harness.Tool("second")) // it waits, and goes out before the end
		stopped := make(chan error, 1)
		go func() { stopped <- s.Shutdown(t.Context()) }()
		waits := func(what string) {
			t.Helper()
			if synctest.Wait(); len(stopped) > 0 {
				t.Errorf("Shutdown returned before %s was sent", what)
			}
		}
		waits("the change")
		c.WantEvent(harness.Tagged("1", "tools/list_changed", ""))
		waits("the result")
		c.WantEvent(harness.Ended("1"))
		if strings.HasSuffix(t.Name(), "taken_over") { // else it is net/http's to wait for
			waits("the end of the body")
		}
		c.Want("")
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// TestListenCoalesces has many changes while the client does not read: they
// reach it as two, the one that was being sent and one for all others.
func TestListenCoalesces(t *testing.T) {
	overHTTP(t, mcp.Options{}, func(t *testing.T, s *mcp.Server, n *harness.Network) {
		c := n.Dial(t, harness.Listen("1", harness.ToolsFilter))
		c.WantOpen()
		for i := range 100 {
			synctest.Wait()
			s.MustAdd(harness.Tool(fmt.Sprintf("more%d", i)))
		}
		changed := harness.Tagged("1", "tools/list_changed", "")
		c.WantEvent(changed)
		c.WantEvent(changed)
		c.Want(":")
	})
}

// TestListenDropsWhoDoesNotRead checks that such a client is dropped when its
// time is up, and that others hear at once meanwhile.
func TestListenDropsWhoDoesNotRead(t *testing.T) {
	overHTTP(t, mcp.Options{Limits: mcp.Limits{Subscriptions: 2}}, func(t *testing.T, s *mcp.Server, n *harness.Network) {
		slow, quick := n.Dial(t, harness.Listen("1", harness.ToolsFilter)), n.Dial(t, harness.Listen("1", harness.ToolsFilter))
		slow.WantOpen()
		quick.WantOpen()
		start := time.Now()
		s.MustAdd(harness.Tool("second"))
		quick.WantEvent(harness.Tagged("1", "tools/list_changed", ""))
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the quick one waited %v for the slow one", waited)
		}
		refused := n.Dial(t, harness.Listen("1", harness.ToolsFilter))
		if got := refused.Line(); !strings.Contains(got, `"code":429`) {
			t.Errorf("a third subscription: got %s", got)
		}
		go io.Copy(io.Discard, quick.Body)
		time.Sleep(streamable.DefaultWriteTimeout)
		synctest.Wait()
		n.Dial(t, harness.Listen("1", harness.ToolsFilter)).WantOpen() // there is room again
		if _, err := io.Copy(io.Discard, slow.Conn); err != nil {
			t.Errorf("the slow one is not at its end: %v", err)
		}
	})
}

func TestListenEndsWithItsClient(t *testing.T) {
	overHTTP(t, mcp.Options{Limits: mcp.Limits{Subscriptions: 1}}, func(t *testing.T, s *mcp.Server, n *harness.Network) {
		for range 3 {
			c := n.Dial(t, harness.Listen("1", harness.ToolsFilter))
			c.WantOpen()
			synctest.Wait()
			c.Conn.Close()
			synctest.Wait()
		}
	})
}

// TestListenTakesOneRequest sends another request on the connection of a
// subscription, which nobody could answer.
func TestListenTakesOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := harness.ListenServer(t, mcp.Options{})
		n := &harness.Network{Conns: make(chan net.Conn), Done: make(chan struct{})}
		server := &http.Server{Handler: s.Handler()}
		served := make(chan error, 1)
		go func() { served <- server.Serve(n) }()
		c := n.Dial(t, harness.Listen("1", harness.ToolsFilter))
		c.WantOpen()
		synctest.Wait()
		go io.WriteString(c.Conn, "GET / HTTP/1.1\r\n\r\n")
		c.WantEvent(harness.Ended("1"))
		c.Want("")
		c.Conn.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
		<-served
	})
}
