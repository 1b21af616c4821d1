package http_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	raw "github.com/coder/websocket"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/transport/websocket"
)

func dialRaw(t *testing.T, url string, header http.Header) *raw.Conn {
	t.Helper()
	conn, _, err := raw.Dial(t.Context(), url, &raw.DialOptions{Subprotocols: []string{"mcp"}, HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return conn
}

func tell(t *testing.T, c *raw.Conn, line string) {
	t.Helper()
	if err := c.Write(t.Context(), raw.MessageText, []byte(line)); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c *raw.Conn) string {
	t.Helper()
	_, message, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(message)
}

// TestWebSocketBadMessages sees what a connection survives and what it does
// not.
func TestWebSocketBadMessages(t *testing.T) {
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Message: 1000}})
	url := harness.ServeWebSocket(t, s)
	c := dialRaw(t, url, nil)
	tell(t, c, harness.InitLine)
	hear(t, c)
	for _, tt := range []struct{ say, want string }{
		{`garbage`, `"code":-32700`},
		{``, `"code":-32700`},
		{`{"jsonrpc":"2.0","id":5,"method":`, `"code":-32700`},
		{harness.PingLine + harness.PingLine, `"code":-32700`},
		{strings.Repeat("x", 1001), `message of 1001 bytes is longer than the limit of 1000 bytes`},
		{strings.Repeat("x", 1_000_000), `message of 1000000 bytes is longer than the limit of 1000 bytes`},
		{harness.InitLine, `initialized already`},
		{harness.PingLine, `"id":9,"result":{}`},
	} {
		tell(t, c, tt.say)
		if got := hear(t, c); !strings.Contains(got, tt.want) {
			t.Errorf("%.40q got %s, want %s", tt.say, got, tt.want)
		}
	}
	if err := c.Write(t.Context(), raw.MessageBinary, []byte(harness.PingLine)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); raw.CloseStatus(err) != raw.StatusUnsupportedData {
		t.Errorf("a binary message got %v, want close code 1003", err)
	}
}

// TestWebSocketGone sees that a client that goes away in the middle of a call
// cancels it, in order or not.
func TestWebSocketGone(t *testing.T) {
	for name, leave := range map[string]func(*raw.Conn){
		"close":     func(c *raw.Conn) { _ = c.Close(raw.StatusNormalClosure, "") },
		"close now": func(c *raw.Conn) { _ = c.CloseNow() },
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Fixture(t, nil)
			began, ended := make(chan struct{}), make(chan error, 1)
			s.MustAdd(mcp.Tool("hang", func(f *mcp.Frame, _ struct{}) (string, error) {
				close(began)
				<-f.Done()
				ended <- context.Cause(f)
				return "", f.Err()
			}))
			c := dialRaw(t, harness.ServeWebSocket(t, s), nil)
			tell(t, c, harness.InitLine)
			hear(t, c)
			tell(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang"}}`)
			<-began
			leave(c)
			if err := <-ended; err == nil {
				t.Error("the call was not cancelled")
			}
		})
	}
}

// TestWebSocketShutdown sees that clients are told, and new ones refused.
func TestWebSocketShutdown(t *testing.T) {
	s := harness.Fixture(t, nil)
	url := harness.ServeWebSocket(t, s)
	c := dialRaw(t, url, nil)
	tell(t, c, harness.InitLine)
	hear(t, c)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	if _, _, err := c.Read(t.Context()); raw.CloseStatus(err) != raw.StatusGoingAway {
		t.Errorf("Read: %v, want close code 1001", err)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if _, res, err := raw.Dial(t.Context(), url, nil); err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("Dial after Shutdown: %v, want 503", err)
	}
}

func TestWebSocketConnectionsLimit(t *testing.T) {
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Connections: 1}})
	url := harness.ServeWebSocket(t, s)
	first := dialRaw(t, url, nil)
	tell(t, first, harness.InitLine)
	hear(t, first)
	_, res, err := raw.Dial(t.Context(), url, nil)
	if err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("Dial: %v, want 503", err)
	}
	if body, _ := io.ReadAll(res.Body); !strings.Contains(string(body), "the server has 1 connections") {
		t.Errorf("got %q", body)
	}
}

// TestWebSocketMessageLimit sees that a message may be as long as the server says.
func TestWebSocketMessageLimit(t *testing.T) {
	const limit = 1000
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Message: limit}})
	server := httptest.NewServer(websocket.Handler(s))
	defer server.Close()
	c := dialRaw(t, server.URL, nil)
	tell(t, c, harness.InitLine)
	hear(t, c)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	tell(t, c, ping+strings.Repeat(" ", limit-len(ping)))
	if got := hear(t, c); !strings.Contains(got, `"result"`) {
		t.Errorf("a message of %d bytes: %s", limit, got)
	}
	tell(t, c, ping+strings.Repeat(" ", limit+1-len(ping)))
	if got := hear(t, c); !strings.Contains(got, "-32600") {
		t.Errorf("a message of %d bytes: %s", limit+1, got)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWebSocketTimeouts sees that the times of the server are those of its
// WebSockets: one that does not answer pings, or a client that does not end its
// message, loses the connection.
func TestWebSocketTimeouts(t *testing.T) {
	for name, tt := range map[string]struct {
		timeouts mcp.Timeouts
		half     bool
		want     string
	}{
		"keep alive": {timeouts: mcp.Timeouts{KeepAlive: 10 * time.Millisecond, Write: 10 * time.Millisecond}},
		"read":       {timeouts: mcp.Timeouts{KeepAlive: -1, Read: 10 * time.Millisecond}, half: true, want: "10ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Fixture(t, &mcp.Options{Timeouts: tt.timeouts})
			server := httptest.NewServer(websocket.Handler(s))
			defer server.Close()
			c, _, err := raw.Dial(t.Context(), server.URL, &raw.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return false }})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.CloseNow() }()
			if tt.half {
				w, err := c.Writer(t.Context(), raw.MessageText)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(w, strings.Repeat(" ", 64<<10)); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			defer cancel()
			if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read: %v", err)
			}
		})
	}
}

// TestWebSocketFrame sees that handlers know of the request that opened the
// connection, and who made it.
func TestWebSocketFrame(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) {
		return string(f.Transport()) + " " + f.Header("X-Tenant") + " " + f.Principal() + " " + f.HTTPRequest().URL.Path, nil
	}))
	handler := websocket.Handler(s)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(core.WithPrincipal(r.Context(), "ada")))
	}))
	defer server.Close()
	c := dialRaw(t, server.URL+"/x", http.Header{"X-Tenant": {"acme"}})
	tell(t, c, harness.InitLine)
	hear(t, c)
	tell(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who"}}`)
	if got := hear(t, c); !strings.Contains(got, "websocket acme ada /x") {
		t.Errorf("got %s", got)
	}
	if err := s.Shutdown(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWebSocketGuard sees that the Host and Origin of a handshake are those that
// the server's options allow.
func TestWebSocketGuard(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header http.Header
		opts   mcp.Options
		status int
	}{
		{"page", http.Header{"Origin": {"https://evil.example.com"}}, mcp.Options{}, http.StatusForbidden},
		{"own page", http.Header{"Origin": {"http://localhost:3000"}}, mcp.Options{}, http.StatusSwitchingProtocols},
		{"listed page", http.Header{"Origin": {"https://app.example.com"}}, mcp.Options{AllowedOrigins: []string{"https://app.example.com"}}, http.StatusSwitchingProtocols},
		{"rebound", http.Header{"Host": {"evil.example.com"}}, mcp.Options{}, http.StatusForbidden},
		{"other host", nil, mcp.Options{AllowedHosts: []string{"api.example.com"}}, http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodGet, harness.ServeWebSocket(t, harness.Fixture(t, &tt.opts)), nil)
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
			req.Host = tt.header.Get("Host")
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != tt.status {
				t.Errorf("got %s, want %d", res.Status, tt.status)
			}
		})
	}
}
