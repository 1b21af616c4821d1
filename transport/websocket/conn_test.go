package websocket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	raw "github.com/coder/websocket"

	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/transporttest"
	"github.com/talaria-go/mcp/transport/websocket"
)

const limit = 8 << 10

// connServer is a websocket.Server that does no more than serve connections.
type connServer struct {
	opts  *transport.SocketOptions
	serve func(transport.Conn)
}

func (s connServer) ServeUpgrade(_ http.ResponseWriter, _ *http.Request, upgrade func(*transport.SocketOptions) (transport.Conn, error)) {
	if conn, err := upgrade(s.opts); err == nil {
		s.serve(conn)
	}
}

// serve upgrades every request and gives the connections to the test.
func serve(t *testing.T, opts *transport.SocketOptions) (url string, conns <-chan transport.Conn) {
	t.Helper()
	made := make(chan transport.Conn, 1)
	over := make(chan struct{})
	server := httptest.NewServer(websocket.Handler(connServer{opts, func(conn transport.Conn) {
		made <- conn
		<-over
		_ = conn.Close()
	}}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http"), made
}

func TestConn(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Link {
		opts := &transport.SocketOptions{MaxMessage: limit}
		url, conns := serve(t, opts)
		client, err := websocket.Dial(t.Context(), url, nil, nil, opts)
		if err != nil {
			t.Fatal(err)
		}
		return transporttest.Link{A: client, B: <-conns, MaxMessage: limit}
	})
}

// open returns a bare client and the server's end of its connection.
func open(t *testing.T, opts *transport.SocketOptions) (client *raw.Conn, server transport.Conn) {
	t.Helper()
	url, conns := serve(t, opts)
	client, _, err := raw.Dial(t.Context(), url, &raw.DialOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.CloseNow() })
	return client, <-conns
}

// TestBadMessages sees how connections end that carry what they must not.
func TestBadMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind raw.MessageType
		text string
		code raw.StatusCode
	}{
		{"binary", raw.MessageBinary, `{}`, raw.StatusUnsupportedData},
		{"no UTF-8", raw.MessageText, "\"\xff\"", raw.StatusInvalidFramePayloadData},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server := open(t, nil)
			if err := client.Write(t.Context(), tt.kind, []byte(tt.text)); err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				_, err := server.Read()
				failed <- err
			}()
			_, _, err := client.Read(t.Context())
			if got := raw.CloseStatus(err); got != tt.code {
				t.Errorf("the client was closed with %v, %v, want %v", got, err, tt.code)
			}
			if err := <-failed; err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "messages must be") {
				t.Errorf("Read: %v, want the fault", err)
			}
			if err := server.Write([]byte(`1`)); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Write: %v, want ErrClosed", err)
			}
		})
	}
}

// TestEnds sees what Read says of the ways in which a client can leave.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		leave func(c *raw.Conn)
		gone  bool // in order
	}{
		{"closed", func(c *raw.Conn) { _ = c.Close(raw.StatusNormalClosure, "") }, true},
		{"going away", func(c *raw.Conn) { _ = c.Close(raw.StatusGoingAway, "page closed") }, true},
		{"protocol error", func(c *raw.Conn) { _ = c.Close(raw.StatusProtocolError, "") }, false},
		{"without a word", func(c *raw.Conn) { _ = c.CloseNow() }, false},
		{"half a message", func(c *raw.Conn) {
			w, err := c.Writer(context.Background(), raw.MessageText)
			if err == nil {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
			}
			_ = c.CloseNow()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server := open(t, nil)
			go tt.leave(client)
			_, err := server.Read()
			if err == nil || errors.Is(err, transport.ErrPeerGone) != tt.gone || errors.Is(err, io.EOF) != tt.gone {
				t.Errorf("Read: %v, in order: %v", err, tt.gone)
			}
		})
	}
}

// TestGoAway sees that the peer is told why.
func TestGoAway(t *testing.T) {
	client, server := open(t, nil)
	go func() { _ = server.(interface{ GoAway(reason string) error }).GoAway(strings.Repeat("long ", 100)) }()
	_, _, err := client.Read(t.Context())
	if closed, ok := errors.AsType[raw.CloseError](err); !ok || closed.Code != raw.StatusGoingAway || !strings.HasPrefix(closed.Reason, "long") {
		t.Errorf("Read: %v", err)
	}
}

func TestHandshake(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"none offered", nil, http.StatusSwitchingProtocols},
		{"offered", http.Header{"Sec-Websocket-Protocol": {"v2.example, MCP"}}, http.StatusSwitchingProtocols},
		{"others offered", http.Header{"Sec-Websocket-Protocol": {"graphql-ws, chat"}}, http.StatusBadRequest},
		{"no upgrade", http.Header{"Upgrade": {"h2c"}}, http.StatusUpgradeRequired},
		{"no key", http.Header{"Sec-Websocket-Key": {""}}, http.StatusBadRequest},
		{"old version", http.Header{"Sec-Websocket-Version": {"8"}}, http.StatusBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, conns := serve(t, nil)
			req, err := http.NewRequest(http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{
				"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
				"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
			}
			for name, values := range tt.header {
				req.Header[name] = values
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != tt.status {
				t.Fatalf("got %s, want %d", res.Status, tt.status)
			}
			if res.StatusCode == http.StatusSwitchingProtocols {
				go func() { _, _ = (<-conns).Read() }()
			}
		})
	}
}

// memory is a network within the process, so that time can be faked.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { close(m.closed); return nil }
func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// inMemory connects a bare client to a Conn, over a pipe that holds nothing. The
// client answers pings, if it reads and has no onPing that says false.
func inMemory(t *testing.T, opts *transport.SocketOptions, onPing func(context.Context, []byte) bool) (client *raw.Conn, server transport.Conn) {
	t.Helper()
	listener := &memory{make(chan net.Conn), make(chan struct{})}
	made := make(chan transport.Conn)
	httpServer := &http.Server{Handler: websocket.Handler(connServer{opts, func(conn transport.Conn) { made <- conn }})}
	go func() { _ = httpServer.Serve(listener) }()
	near, far := net.Pipe()
	go func() { listener.conns <- far }()
	dialer := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}}
	dialled := make(chan *raw.Conn, 1)
	go func() {
		c, _, err := raw.Dial(t.Context(), "ws://localhost/", &raw.DialOptions{HTTPClient: dialer, OnPingReceived: onPing})
		if err != nil {
			t.Error(err)
		}
		dialled <- c
	}()
	server, client = <-made, <-dialled
	t.Cleanup(func() {
		_ = client.CloseNow()
		_ = server.Close()
		_ = httpServer.Close()
	})
	return client, server
}

// TestStalled sees that a peer which reads nothing loses the connection.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := inMemory(t, &transport.SocketOptions{WriteTimeout: 3 * time.Second}, nil)
		read := make(chan error, 1)
		go func() {
			_, err := server.Read()
			read <- err
		}()
		begin := time.Now()
		if err := server.Write([]byte(`{}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Write: %v, want a timeout", err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("Write failed after %v, want 3s", took)
		}
		if err := <-read; err == nil || !strings.Contains(err.Error(), "has not read") {
			t.Errorf("Read: %v, want to be told of the stalled peer", err)
		}
	})
}

// TestPings sees that a peer which answers pings keeps a quiet connection, and
// one that does not loses it.
func TestPings(t *testing.T) {
	opts := &transport.SocketOptions{WriteTimeout: 3 * time.Second, KeepAlive: 10 * time.Second}
	t.Run("answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := inMemory(t, opts, nil)
			go func() {
				time.Sleep(time.Hour)
				_ = client.Write(t.Context(), raw.MessageText, []byte(`"late"`))
			}()
			go func() { _, _, _ = client.Read(t.Context()) }() // answers pings
			if message, err := server.Read(); string(message) != `"late"` || err != nil {
				t.Errorf("Read: %s, %v, after an hour", message, err)
			}
		})
	})
	t.Run("not answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := inMemory(t, opts, func(context.Context, []byte) bool { return false })
			go func() { _, _, _ = client.Read(t.Context()) }()
			begin := time.Now()
			if _, err := server.Read(); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("Read: %v, want the error of a lost connection", err)
			}
			if took := time.Since(begin); took != 20*time.Second {
				t.Errorf("Read failed after %v, want 20s", took)
			}
		})
	})
	t.Run("reader is busy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, server := inMemory(t, opts, nil)
			go func() { _, _, _ = client.Read(t.Context()) }()
			time.Sleep(time.Hour) // nobody reads: no answer could be seen
			go func() { _ = client.Write(t.Context(), raw.MessageText, []byte(`1`)) }()
			if message, err := server.Read(); string(message) != `1` || err != nil {
				t.Errorf("Read: %s, %v, after an hour", message, err)
			}
		})
	})
}

func TestDialFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := websocket.Dial(t.Context(), server.URL, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("Dial: %v, want to be told of 404", err)
	}
	if _, err := websocket.Dial(t.Context(), "ws://127.0.0.1:1/", nil, nil, nil); err == nil {
		t.Error("Dial of a port where nobody listens returned no error")
	}
}

// TestNoHijacker sees that a ResponseWriter which cannot be taken over is
// answered.
func TestNoHijacker(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header = http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	w := httptest.NewRecorder()
	websocket.Handler(connServer{serve: func(transport.Conn) { t.Error("it became a connection") }}).ServeHTTP(w, r)
	if w.Code != http.StatusNotImplemented {
		t.Errorf("got %d, want 501", w.Code)
	}
}
