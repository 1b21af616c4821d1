package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	raw "github.com/coder/websocket"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/opaque"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// waits are what a client can make the server wait for, and for how long: the
// table in docs/limits.md, as far as time can be faked for it. Each func
// returns when the wait is over.
var waits = []struct {
	name string
	want time.Duration
	wait func(t *testing.T)
}{
	{"the rest of a line", facts.ReadTimeout, func(t *testing.T) {
		client := onListener(t, fixture(t, nil))
		write(t, client, pingLine[:20])
		wantEnd(t, client, `"code":-32700`, "ends with a newline")
	}},
	{"the rest of a line that trickles", facts.ReadTimeout, func(t *testing.T) {
		client := onListener(t, fixture(t, nil))
		write(t, client, pingLine+"\n"+pingLine[:20])
		trickle := time.NewTicker(7 * time.Second)
		defer trickle.Stop()
		over := make(chan struct{})
		defer close(over)
		go func() {
			for {
				select {
				case <-trickle.C:
					_, _ = io.WriteString(client, " ")
				case <-over:
					return
				}
			}
		}()
		wantEnd(t, client, `"result":{}`, "ends with a newline")
	}},
	{"the rest of a WebSocket message", facts.ReadTimeout, func(t *testing.T) {
		conn := onWeb(t, websocket.Handler(fixture(t, nil)))
		ws, _, err := raw.Dial(t.Context(), "ws://x", &raw.DialOptions{Subprotocols: []string{"mcp"}, HTTPClient: &http.Client{Transport: conn}})
		if err != nil {
			t.Fatal(err)
		}
		w, err := ws.Writer(t.Context(), raw.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // what it writes it keeps back until there is more
			write(t, w, strings.Repeat(" ", 8<<10))
		}
		// Reading answers pings.
		if _, _, err = ws.Read(t.Context()); raw.CloseStatus(err) != raw.StatusPolicyViolation {
			t.Errorf("closed with %v", err)
		}
	}},
	{"a client that reads nothing, over a socket", facts.WriteTimeout, func(t *testing.T) {
		s := fixture(t, nil)
		client, server := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(context.Background(), transport.NewSocket(server, nil)) }()
		write(t, client, pingLine+"\n")
		if err := <-served; err == nil {
			t.Error("ServeConn has no error")
		}
	}},
	{"a shutdown while the parent reads nothing", facts.WriteTimeout + time.Second, func(t *testing.T) {
		s := fixture(t, nil)
		in, toServer := io.Pipe()
		_, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeStdioOver(context.Background(), in, out) }()
		write(t, toServer, initLine+"\n"+pingLine+"\n")
		synctest.Wait()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, mcp.ErrServerClosed) {
			t.Errorf("ServeStdio: %v", err)
		}
	}},
	{"a shutdown while the parent reads nothing, and it cannot be interrupted", facts.WriteTimeout + 2*time.Second, func(t *testing.T) {
		s := fixture(t, nil)
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeStdioOver(context.Background(), in, struct{ io.Writer }{out}) }()
		write(t, toServer, initLine+"\n"+pingLine+"\n")
		synctest.Wait()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, mcp.ErrServerClosed) {
			t.Errorf("ServeStdio: %v", err)
		}
		_ = fromServer.Close() // what was left behind ends
		_ = toServer.Close()
	}},
	{"the body of a POST", 30 * time.Second, func(t *testing.T) {
		conn := onWeb(t, fixture(t, nil).Handler()).dial()
		write(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 99\r\n\r\n{")
		wantEnd(t, conn, "408 Request Timeout")
	}},
	{"a stream that is not read", 25*time.Second + 30*time.Second, func(t *testing.T) {
		s := fixture(t, nil)
		web := onWeb(t, s.Handler())
		conn := web.dial()
		write(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: "+fmt.Sprint(len(initLine))+"\r\n\r\n"+initLine)
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Fatal(err)
		}
		write(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: "+res.Header.Get("Mcp-Session-Id")+"\r\n\r\n")
		if res, err = http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		body := bufio.NewReader(res.Body)
		for ends := 0; ends < 2; { // a comment, and the first event, which has no data
			line, err := body.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "\n" {
				ends++
			}
		}
		<-web.closed
	}},
	{"the answer to a question", 15 * time.Minute, func(t *testing.T) {
		h := hold(t, mcp.Options{})
		client, server := transport.Pipe()
		serveWire(t, h.Server, server)
		w := newWire(t, client, protocol.LatestLegacy)
		w.say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"$REV","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
		w.say(w.call("asks", "ask"))
		for got := ""; !strings.Contains(got, "has not answered for 15m0s"); got = <-w.heard {
		}
	}},
	{"calls after the end of input", 10 * time.Second, func(t *testing.T) {
		s := fixture(t, nil)
		err := s.ServeStdioOver(context.Background(), strings.NewReader(initLine+"\n"+slowLine+"\n"), io.Discard)
		if err != nil {
			t.Error(err)
		}
	}},
	{"calls that ignore their end", 12 * time.Second, func(t *testing.T) {
		s := fixture(t, nil)
		release := make(chan struct{})
		defer close(release)
		s.MustAdd(mcp.Tool("wait", func(*mcp.Frame, empty) (string, error) { <-release; return "", nil }))
		err := s.ServeStdioOver(context.Background(), strings.NewReader(initLine+"\n"+strings.Replace(slowLine, "slow", "wait", 1)+"\n"), io.Discard)
		if !errors.Is(err, mcp.ErrStillRunning) {
			t.Error(err)
		}
	}},
	{"a session store", 5 * time.Second, func(t *testing.T) {
		m := session.NewManager(session.Config{Store: stuckStore{Store: scale.NewLocal()}})
		if _, err := m.Find(t.Context(), opaque.NewID()); err == nil {
			t.Error("there is a session")
		}
		m.Close(context.Background(), mcp.ErrSessionClosed)
	}},
	{"a store of rates", 250 * time.Millisecond, func(t *testing.T) {
		s := fixture(t, nil, middleware.RateLimit(&middleware.RateLimitOptions{Store: stuckStore{Store: scale.NewLocal()}, Secret: []byte("a secret of 16 bytes or more")}))
		w := httptest.NewRecorder()
		do(s, t.Context(), http.MethodPost, initialized(t, s), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}`, w)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"result"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}},
}

// TestWaits sees that everything that a client can make the server wait for ends
// when it should.
func TestWaits(t *testing.T) {
	for _, tt := range waits {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				tt.wait(t)
				if took := time.Since(begin); took != tt.want {
					t.Errorf("the wait took %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// What is no half message may last: a client that is quiet, and one whose
// message takes its time to be handled.
func TestQuietSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := onListener(t, fixture(t, nil))
		in := bufio.NewReader(client)
		for range 3 {
			write(t, client, pingLine[:20])
			time.Sleep(facts.ReadTimeout - time.Second)
			write(t, client, pingLine[20:]+"\n")
			if got, err := in.ReadString('\n'); err != nil || !strings.Contains(got, `"result":{}`) {
				t.Fatalf("heard %s, %v", got, err)
			}
			time.Sleep(24 * time.Hour)
		}
	})
}

// stuckStore is a scale.Store that answers only when it must.
type stuckStore struct{ scale.Store }

func (stuckStore) Get(ctx context.Context, _ ...scale.Look) ([]scale.Entry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stuckStore) Put(ctx context.Context, _ ...scale.Write) ([]scale.Entry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// wantEnd reads to the end, which must have heard these.
func wantEnd(t *testing.T, conn net.Conn, want ...string) {
	t.Helper()
	all, _ := io.ReadAll(conn)
	for _, part := range want {
		if !strings.Contains(string(all), part) {
			t.Errorf("heard %q, want %s", all, part)
		}
	}
}

// onListener returns a socket of a server that accepts connections.
func onListener(t *testing.T, s *mcp.Server) net.Conn {
	listener := &memoryListener{make(chan net.Conn), make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	client, server := net.Pipe()
	listener.conns <- server
	t.Cleanup(func() {
		_ = client.Close()
		cancel()
		<-served
	})
	return client
}

// memoryWeb is a web server within the process.
type memoryWeb struct {
	http.Transport
	dial   func() net.Conn
	closed chan struct{} // holds one for each connection that was closed
}

// closing is a connection that tells when the server closes it, which may have
// taken it over from net/http.
type closing struct {
	net.Conn
	once   sync.Once
	closed chan<- struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { c.closed <- struct{}{} })
	return c.Conn.Close()
}

func onWeb(t *testing.T, h http.Handler) *memoryWeb {
	listener := &memoryListener{make(chan net.Conn), make(chan struct{})}
	web := &memoryWeb{closed: make(chan struct{}, 10)}
	server := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	web.dial = func() net.Conn {
		client, server := net.Pipe()
		listener.conns <- &closing{Conn: server, closed: web.closed}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	web.DialContext = func(context.Context, string, string) (net.Conn, error) { return web.dial(), nil }
	t.Cleanup(func() {
		web.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return web
}
