package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// TestSocketBadInput sees what comes back for bytes that are no messages.
func TestSocketBadInput(t *testing.T) {
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Message: 1000}})
	for _, network := range []string{"tcp", "unix"} {
		addr := harness.ListenOn(t, s, network)
		for _, tt := range []struct {
			name, say string
			want      []string // in order
		}{
			{"nothing", "", nil},
			{"empty lines", "\n\r\n \n" + harness.InitLine + "\n", []string{`"serverInfo"`}},
			{"garbage", "\x00\xff\xfe{{{\n" + harness.InitLine + "\n", []string{`-32700`, `"serverInfo"`}},
			{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n" + harness.InitLine + "\n", []string{`-32700`, `-32700`, `"serverInfo"`}},
			{"oversize", strings.Repeat("x", 5000) + "\n" + harness.InitLine + "\n", []string{`longer than the limit of 1000 bytes`, `"serverInfo"`}},
			{"half a message", harness.InitLine + "\n" + `{"jsonrpc":"2.0","id":1,"meth`, []string{`"serverInfo"`, `-32700`}},
			{"no newline at the end", harness.InitLine, []string{`"serverInfo"`}},
			{"before initialize", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n", []string{`not initialized`}},
		} {
			t.Run(network+"/"+tt.name, func(t *testing.T) {
				conn, err := net.Dial(addr.Network(), addr.String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, tt.say); err != nil {
					t.Fatal(err)
				}
				if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				all, err := io.ReadAll(conn)
				if err != nil {
					t.Fatal(err)
				}
				rest := string(all)
				for _, want := range tt.want {
					line, after, _ := strings.Cut(rest, "\n")
					if rest = after; !strings.Contains(line, want) {
						t.Errorf("heard %q, want %s", line, want)
					}
				}
				if rest != "" {
					t.Errorf("heard %q beyond that", rest)
				}
			})
		}
	}
}

// dialer makes a new connection to a server over some transport.
type dialer func() (transport.Conn, error)

// TestConnectionSoak has clients of every connection transport at once call,
// panic, send garbage, leave in the middle and read nothing. Every good call
// must be answered right, and nothing may be left behind.
func TestConnectionSoak(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	s := harness.Fixture(t, &mcp.Options{
		Limits:   mcp.Limits{Concurrent: 8},
		Timeouts: mcp.Timeouts{Grace: time.Second, Write: time.Second},
	})
	mux := http.NewServeMux()
	mux.Handle("/ws", websocket.Handler(s))
	server := httptest.NewServer(mux)
	var serving sync.WaitGroup
	defer serving.Wait()
	dialers := []dialer{func() (transport.Conn, error) {
		return websocket.Dial(context.Background(), server.URL+"/ws", nil, nil, nil)
	}, func() (transport.Conn, error) {
		client, end := transport.Pipe()
		serving.Go(func() { _ = s.ServeConn(context.Background(), end) })
		return client, nil
	}}
	for _, network := range []string{"tcp", "unix"} {
		addr := harness.ListenOn(t, s, network)
		dialers = append(dialers, func() (transport.Conn, error) {
			conn, err := net.Dial(addr.Network(), addr.String())
			if err != nil {
				return nil, err
			}
			return transport.NewSocket(conn, nil), nil
		})
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(i)))
			for round := range 30 {
				leaveOrStay(t, dialers[i%len(dialers)], random, i*1000+round)
			}
		})
	}
	all.Wait()
	server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	serving.Wait()
	if left, _ := harness.Settle(http.DefaultTransport.(*http.Transport), goroutines+4, 20); left > goroutines+4 {
		t.Errorf("%d goroutines, %d before", left, goroutines)
	}
}

// leaveOrStay plays one client from connecting to leaving.
func leaveOrStay(t *testing.T, dial dialer, random *rand.Rand, n int) {
	conn, err := dial()
	if err != nil {
		t.Errorf("client %d: %v", n, err)
		return
	}
	defer conn.Close()
	say := func(format string, args ...any) {
		if err := conn.Write(fmt.Appendf(nil, format, args...)); err != nil {
			t.Errorf("client %d: %v", n, err)
		}
	}
	hear := func(want string) {
		for {
			message, err := conn.Read()
			if err != nil {
				t.Errorf("client %d: %v, want %s", n, err, want)
				return
			}
			if harness.IsAnswer(string(message)) {
				if !strings.Contains(string(message), want) {
					t.Errorf("client %d: heard %s, want %s", n, message, want)
				}
				return
			}
		}
	}
	legacy := random.IntN(2) == 0
	if legacy {
		say("%s", harness.InitLine)
		hear(`"serverInfo"`)
	}
	call := func(id int, tool, args string) {
		meta := ""
		if !legacy {
			meta = harness.Expand(",$META", protocol.Latest)
		}
		say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, tool, args, meta)
	}
	for i := range 5 {
		id := n*10 + i
		switch random.IntN(8) {
		case 0:
			call(id, "panic", `{}`)
			hear("the handler panicked")
		case 1:
			say(`{"jsonrpc":`)
			hear(`-32700`)
		case 2: // leaves in the middle of a call
			call(id, "slow", `{}`)
			return
		case 3: // leaves without reading what comes
			for range 20 {
				call(id, "media", `{}`)
				id += 1_000_000
			}
			return
		default:
			a := random.IntN(1000)
			call(id, "add", fmt.Sprintf(`{"a":%d,"b":%d}`, a, n))
			hear(fmt.Sprintf(`sum\":%d}`, a+n))
		}
	}
}

// Who sends a response hears nothing back, however wrong it is: its id is that
// of a request of ours, and two sides that answered answers would never end.
func TestResponsesAreNotAnswered(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	wrong := []string{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"both"}}`,
		`{"jsonrpc":"1.0","id":1,"result":{}}`,
		`{"id":1,"error":{"code":1,"message":"no version"}}`,
		`{"jsonrpc":"2.0","id":{},"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"id":1,"result":{}}`,
		`{"jsonrpc":"2.0","result":{}}`,
	}
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	t.Run("alone", func(t *testing.T) {
		conn, end := transport.Pipe()
		served := make(chan error, 1)
		go func() { served <- harness.Fixture(t, nil).ServeConn(t.Context(), end) }()
		for _, text := range append(wrong, answer) {
			if err := errors.Join(conn.Write([]byte(text)), conn.Write([]byte(ping))); err != nil {
				t.Fatal(err)
			}
			if heard, err := conn.Read(); err != nil || string(heard) != answer {
				t.Errorf("%s: heard %s, %v", text, heard, err)
			}
		}
		if err := errors.Join(conn.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	t.Run("alone/http", func(t *testing.T) {
		h := harness.Fixture(t, nil).Handler()
		for _, text := range wrong {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), `"id":1`) {
				t.Errorf("%s: status %d, %s", text, w.Code, w.Body)
			}
		}
	})
	for _, tr := range harness.TransportsOf(protocol.V20250326) {
		t.Run("batch/"+tr.Name, func(t *testing.T) {
			c := tr.Open(t, harness.Fixture(t, nil), protocol.V20250326)
			c.Say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			for _, text := range wrong {
				if heard := c.Say(`[` + text + `,` + ping + `]`); len(heard) != 1 || heard[0] != `[`+answer+`]` {
					t.Errorf("[%s, ping]: heard %q", text, heard)
				}
			}
		})
	}
}
