package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/streamable"
)

// network is a listener in memory, for bubbles of synctest. Its connections
// hold nothing: a write waits for its reader.
type network struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.conns:
		return conn, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// overHTTP runs fn in a bubble with a server on a network, with connections
// that are taken over and with ones that are not, and behind middleware. The
// bubble fails if a goroutine is left.
func overHTTP(t *testing.T, opts mcp.Options, fn func(t *testing.T, s *mcp.Server, n *network)) {
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
				opts.HTTP = mcp.HTTPOptions{NoTakeover: tt.noTakeover}
				s := listenServer(t, opts)
				n := &network{conns: make(chan net.Conn), done: make(chan struct{})}
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

// memoryClient is a client of a network, with one request on its connection.
type memoryClient struct {
	t    *testing.T
	conn net.Conn
	res  *http.Response
	body *bufio.Reader
}

// dial sends a request and reads the head of its answer.
func (n *network) dial(t *testing.T, line string) *memoryClient {
	t.Helper()
	here, there := net.Pipe()
	n.conns <- there
	t.Cleanup(func() { here.Close() })
	_, err := fmt.Fprintf(here, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", len(line), line)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(here), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &memoryClient{t, here, res, bufio.NewReader(res.Body)}
}

// line returns the next line that is not empty, "" at the end.
func (c *memoryClient) line() string {
	c.t.Helper()
	for {
		line, err := c.body.ReadString('\n')
		if err != nil && err != io.EOF {
			c.t.Fatal(err)
		}
		if line = strings.TrimSpace(line); line != "" || err != nil {
			return line
		}
	}
}

func (c *memoryClient) want(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		if got := c.line(); got != want {
			c.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

func (c *memoryClient) wantEvent(message string) {
	c.t.Helper()
	c.want("event: message", "data: "+message)
}

func (c *memoryClient) wantOpen() {
	c.t.Helper()
	c.wantEvent(tagged("1", "subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true}`))
}

const toolsFilter = `{"toolsListChanged":true}`

func TestListenKeepsTheConnectionAlive(t *testing.T) {
	overHTTP(t, mcp.Options{}, func(t *testing.T, s *mcp.Server, n *network) {
		c := n.dial(t, listen("1", toolsFilter))
		c.wantOpen()
		start := time.Now()
		for i := range 3 {
			c.want(":")
			if got, want := time.Since(start), time.Duration(i+1)*streamable.DefaultKeepAlive; got != want {
				t.Errorf("sign of life %d after %v, want %v", i, got, want)
			}
		}
		s.MustAdd(tool("second"))
		c.wantEvent(tagged("1", "tools/list_changed", ""))
		c.want(":")
	})
}

func TestListenEndsInOrder(t *testing.T) {
	overHTTP(t, mcp.Options{}, func(t *testing.T, s *mcp.Server, n *network) {
		c := n.dial(t, listen("1", toolsFilter))
		c.wantOpen()
		synctest.Wait()
		s.MustAdd(tool("second")) // it waits, and goes out before the end
		stopped := make(chan error, 1)
		go func() { stopped <- s.Shutdown(t.Context()) }()
		waits := func(what string) {
			t.Helper()
			if synctest.Wait(); len(stopped) > 0 {
				t.Errorf("Shutdown returned before %s was sent", what)
			}
		}
		waits("the change")
		c.wantEvent(tagged("1", "tools/list_changed", ""))
		waits("the result")
		c.wantEvent(ended("1"))
		if strings.HasSuffix(t.Name(), "taken_over") { // else it is net/http's to wait for
			waits("the end of the body")
		}
		c.want("")
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// TestListenCoalesces has many changes while the client does not read: they
// reach it as two, the one that was being sent and one for all others.
func TestListenCoalesces(t *testing.T) {
	overHTTP(t, mcp.Options{}, func(t *testing.T, s *mcp.Server, n *network) {
		c := n.dial(t, listen("1", toolsFilter))
		c.wantOpen()
		for i := range 100 {
			synctest.Wait()
			s.MustAdd(tool(fmt.Sprintf("more%d", i)))
		}
		changed := tagged("1", "tools/list_changed", "")
		c.wantEvent(changed)
		c.wantEvent(changed)
		c.want(":")
	})
}

// TestListenDropsWhoDoesNotRead checks that such a client is dropped when its
// time is up, and that others hear at once meanwhile.
func TestListenDropsWhoDoesNotRead(t *testing.T) {
	overHTTP(t, mcp.Options{Limits: mcp.Limits{Subscriptions: 2}}, func(t *testing.T, s *mcp.Server, n *network) {
		slow, quick := n.dial(t, listen("1", toolsFilter)), n.dial(t, listen("1", toolsFilter))
		slow.wantOpen()
		quick.wantOpen()
		start := time.Now()
		s.MustAdd(tool("second"))
		quick.wantEvent(tagged("1", "tools/list_changed", ""))
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the quick one waited %v for the slow one", waited)
		}
		refused := n.dial(t, listen("1", toolsFilter))
		if got := refused.line(); !strings.Contains(got, `"code":429`) {
			t.Errorf("a third subscription: got %s", got)
		}
		go io.Copy(io.Discard, quick.body)
		time.Sleep(streamable.DefaultWriteTimeout)
		synctest.Wait()
		n.dial(t, listen("1", toolsFilter)).wantOpen() // there is room again
		if _, err := io.Copy(io.Discard, slow.conn); err != nil {
			t.Errorf("the slow one is not at its end: %v", err)
		}
	})
}

func TestListenEndsWithItsClient(t *testing.T) {
	overHTTP(t, mcp.Options{Limits: mcp.Limits{Subscriptions: 1}}, func(t *testing.T, s *mcp.Server, n *network) {
		for range 3 {
			c := n.dial(t, listen("1", toolsFilter))
			c.wantOpen()
			synctest.Wait()
			c.conn.Close()
			synctest.Wait()
		}
	})
}

// TestListenTakesOneRequest sends another request on the connection of a
// subscription, which nobody could answer.
func TestListenTakesOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listenServer(t, mcp.Options{})
		n := &network{conns: make(chan net.Conn), done: make(chan struct{})}
		server := &http.Server{Handler: s.Handler()}
		served := make(chan error, 1)
		go func() { served <- server.Serve(n) }()
		c := n.dial(t, listen("1", toolsFilter))
		c.wantOpen()
		synctest.Wait()
		go io.WriteString(c.conn, "GET / HTTP/1.1\r\n\r\n")
		c.wantEvent(ended("1"))
		c.want("")
		c.conn.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
		<-served
	})
}
