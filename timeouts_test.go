package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	raw "github.com/coder/websocket"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
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
		client := onListener(t, harness.Fixture(t, nil))
		harness.Write(t, client, harness.PingLine[:20])
		wantEnd(t, client, `"code":-32700`, "ends with a newline")
	}},
	{"the rest of a line that trickles", facts.ReadTimeout, func(t *testing.T) {
		client := onListener(t, harness.Fixture(t, nil))
		harness.Write(t, client, harness.PingLine+"\n"+harness.PingLine[:20])
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
		conn := harness.OnWeb(t, websocket.Handler(harness.Fixture(t, nil)))
		ws, _, err := raw.Dial(t.Context(), "ws://x", &raw.DialOptions{Subprotocols: []string{"mcp"}, HTTPClient: &http.Client{Transport: conn}})
		if err != nil {
			t.Fatal(err)
		}
		w, err := ws.Writer(t.Context(), raw.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // what it writes it keeps back until there is more
			harness.Write(t, w, strings.Repeat(" ", 8<<10))
		}
		// Reading answers pings.
		if _, _, err = ws.Read(t.Context()); raw.CloseStatus(err) != raw.StatusPolicyViolation {
			t.Errorf("closed with %v", err)
		}
	}},
	{"a client that reads nothing, over a socket", facts.WriteTimeout, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		client, server := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(context.Background(), transport.NewSocket(server, nil)) }()
		harness.Write(t, client, harness.PingLine+"\n")
		if err := <-served; err == nil {
			t.Error("ServeConn has no error")
		}
	}},
	{"a shutdown while the parent reads nothing", facts.WriteTimeout + time.Second, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		in, toServer := io.Pipe()
		_, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeStdioOver(context.Background(), in, out) }()
		harness.Write(t, toServer, harness.InitLine+"\n"+harness.PingLine+"\n")
		synctest.Wait()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, mcp.ErrServerClosed) {
			t.Errorf("ServeStdio: %v", err)
		}
	}},
	{"a shutdown while the parent reads nothing, and it cannot be interrupted", facts.WriteTimeout + 2*time.Second, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeStdioOver(context.Background(), in, struct{ io.Writer }{out}) }()
		harness.Write(t, toServer, harness.InitLine+"\n"+harness.PingLine+"\n")
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
		conn := harness.OnWeb(t, harness.Fixture(t, nil).Handler()).Dial()
		harness.Write(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 99\r\n\r\n{")
		wantEnd(t, conn, "408 Request Timeout")
	}},
	{"a stream that is not read", 25*time.Second + 30*time.Second, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		web := harness.OnWeb(t, s.Handler())
		conn := web.Dial()
		harness.Write(t, conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: "+fmt.Sprint(len(harness.InitLine))+"\r\n\r\n"+harness.InitLine)
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Fatal(err)
		}
		harness.Write(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: "+res.Header.Get("Mcp-Session-Id")+"\r\n\r\n")
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
		<-web.Closed
	}},
	{"the answer to a question", 15 * time.Minute, func(t *testing.T) {
		h := harness.Hold(t, mcp.Options{})
		client, server := transport.Pipe()
		harness.ServeWire(t, h.Server, server)
		w := harness.NewWire(t, client, protocol.LatestLegacy)
		w.Say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"$REV","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
		w.Say(w.Call("asks", "ask"))
		for got := ""; !strings.Contains(got, "has not answered for 15m0s"); got = <-w.Heard {
		}
	}},
	{"calls after the end of input", 10 * time.Second, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		err := s.ServeStdioOver(context.Background(), strings.NewReader(harness.InitLine+"\n"+harness.SlowLine+"\n"), io.Discard)
		if err != nil {
			t.Error(err)
		}
	}},
	{"calls that ignore their end", 12 * time.Second, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		release := make(chan struct{})
		defer close(release)
		s.MustAdd(mcp.Tool("wait", func(*mcp.Frame, struct{}) (string, error) { <-release; return "", nil }))
		err := s.ServeStdioOver(context.Background(), strings.NewReader(harness.InitLine+"\n"+strings.Replace(harness.SlowLine, "slow", "wait", 1)+"\n"), io.Discard)
		if !errors.Is(err, mcp.ErrStillRunning) {
			t.Error(err)
		}
	}},
	{"a session store", 5 * time.Second, func(t *testing.T) {
		m := session.NewManager(session.Config{Store: bus.Guard(stuckStore{Store: scale.NewLocal()})})
		if _, err := m.Find(t.Context(), replica.NewID()); err == nil {
			t.Error("there is a session")
		}
		m.Close(context.Background(), mcp.ErrSessionClosed)
	}},
	{"a store of rates", 250 * time.Millisecond, func(t *testing.T) {
		s := harness.Fixture(t, nil, middleware.RateLimit(&middleware.RateLimitOptions{Store: stuckStore{Store: scale.NewLocal()}, Secret: []byte("a secret of 16 bytes or more")}))
		w := httptest.NewRecorder()
		harness.Do(s, t.Context(), http.MethodPost, harness.Initialized(t, s), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}`, w)
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
		client := onListener(t, harness.Fixture(t, nil))
		in := bufio.NewReader(client)
		for range 3 {
			harness.Write(t, client, harness.PingLine[:20])
			time.Sleep(facts.ReadTimeout - time.Second)
			harness.Write(t, client, harness.PingLine[20:]+"\n")
			if got, err := in.ReadString('\n'); err != nil || !strings.Contains(got, `"result":{}`) {
				t.Fatalf("heard %s, %v", got, err)
			}
			time.Sleep(24 * time.Hour)
		}
	})
}

// stuckStore is a scale.Store that answers only when it must.
type stuckStore struct{ scale.Store }

func (stuckStore) Get(ctx context.Context, _ ...scale.GetOp) ([]scale.Entry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stuckStore) Put(ctx context.Context, _ ...scale.Write) ([]scale.Entry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
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
	listener := &harness.MemoryListener{Conns: make(chan net.Conn), Closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	client, server := net.Pipe()
	listener.Conns <- server
	t.Cleanup(func() {
		_ = client.Close()
		cancel()
		<-served
	})
	return client
}

// TestStdioGrace sees how long a server stays when its client has closed
// standard input in the middle of a call.
func TestStdioGrace(t *testing.T) {
	const grace = 5 * time.Second
	for _, tt := range []struct {
		name    string
		tool    func(f *mcp.Frame, release <-chan struct{}) (string, error)
		grace   time.Duration
		cancel  time.Duration // when ctx ends; 0 means never
		want    error
		elapsed time.Duration
		answer  bool
	}{
		{"in time", func(*mcp.Frame, <-chan struct{}) (string, error) {
			time.Sleep(3 * time.Second)
			return "finished", nil
		}, grace, 0, nil, 3 * time.Second, true},
		{"ends when it is cancelled", func(f *mcp.Frame, _ <-chan struct{}) (string, error) {
			<-f.Done()
			return "finished", nil
		}, grace, 0, nil, grace, true},
		{"ignores its end", func(_ *mcp.Frame, release <-chan struct{}) (string, error) {
			<-release
			return "finished", nil
		}, grace, 0, mcp.ErrStillRunning, grace + 2*time.Second, false},
		{"no limit", func(*mcp.Frame, <-chan struct{}) (string, error) {
			time.Sleep(time.Hour)
			return "finished", nil
		}, -1, 0, nil, time.Hour, true},
		{"ignores the end of ctx", func(_ *mcp.Frame, release <-chan struct{}) (string, error) {
			<-release
			return "finished", nil
		}, -1, time.Minute, context.Canceled, time.Minute + 2*time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := harness.Fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{Grace: tt.grace}})
				release := make(chan struct{})
				s.MustAdd(mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) { return tt.tool(f, release) }))
				fromServer, out := io.Pipe()
				heard := make(chan string)
				go func() {
					all, _ := io.ReadAll(fromServer)
					heard <- string(all)
				}()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				in := strings.NewReader(harness.InitLine + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}` + "\n")
				begin := time.Now()
				err := s.ServeStdioOver(ctx, in, out)
				if took := time.Since(begin); !errors.Is(err, tt.want) || took != tt.elapsed {
					t.Errorf("ServeStdio: %v after %v, want %v after %v", err, took, tt.want, tt.elapsed)
				}
				close(release)
				_ = out.Close()
				if all := <-heard; strings.Contains(all, "finished") != tt.answer {
					t.Errorf("heard %s, want the call's answer: %v", all, tt.answer)
				}
			})
		})
	}
}

// What serves connections returns when the server is shut down or its context ends,
// whatever a call does.
func TestServeStuck(t *testing.T) {
	call := strings.Replace(harness.SlowLine, "slow", "stuck", 1)
	for name, serve := range map[string]func(ctx context.Context, t *testing.T, s *mcp.Server) (served <-chan error, leave func()){
		"ServeStdio": func(ctx context.Context, t *testing.T, s *mcp.Server) (<-chan error, func()) {
			in, toServer := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- s.ServeStdioOver(ctx, in, io.Discard) }()
			harness.Write(t, toServer, harness.InitLine+"\n"+call+"\n")
			return served, func() { _ = toServer.Close() }
		},
		"ServeConn": func(ctx context.Context, t *testing.T, s *mcp.Server) (<-chan error, func()) {
			peer, conn := transport.Pipe()
			served := make(chan error, 1)
			go func() { served <- s.ServeConn(ctx, conn) }()
			for _, line := range []string{harness.InitLine, call} {
				if err := errors.Join(peer.Write([]byte(line)), peer.Flush()); err != nil {
					t.Fatal(err)
				}
			}
			return served, func() { _ = peer.Close() }
		},
		"Serve": func(ctx context.Context, t *testing.T, s *mcp.Server) (<-chan error, func()) {
			listener := &harness.MemoryListener{Conns: make(chan net.Conn), Closed: make(chan struct{})}
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx, listener) }()
			peer, conn := net.Pipe()
			listener.Conns <- conn
			go func() { _, _ = io.Copy(io.Discard, peer) }()
			harness.Write(t, peer, harness.InitLine+"\n"+call+"\n")
			return served, func() { _ = peer.Close() }
		},
		"websocket": func(ctx context.Context, t *testing.T, s *mcp.Server) (<-chan error, func()) {
			served := make(chan error, 1)
			h := websocket.Handler(s)
			web := harness.OnWeb(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r.WithContext(ctx))
				served <- nil
			}))
			ws, _, err := raw.Dial(t.Context(), "ws://x", &raw.DialOptions{Subprotocols: []string{"mcp"}, HTTPClient: &http.Client{Transport: web}})
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{harness.InitLine, call} {
				if err := ws.Write(t.Context(), raw.MessageText, []byte(line)); err != nil {
					t.Fatal(err)
				}
			}
			go func() {
				for err := error(nil); err == nil; {
					_, _, err = ws.Read(context.Background())
				}
			}()
			return served, func() { _ = ws.CloseNow() }
		},
	} {
		for _, end := range []string{"Shutdown", "its context", "its client, and Shutdown"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					never := make(chan struct{})
					s := harness.Fixture(t, nil)
					s.MustAdd(mcp.Tool("stuck", func(*mcp.Frame, struct{}) (string, error) { <-never; return "", nil }))
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					served, leave := serve(ctx, t, s)
					defer leave()
					synctest.Wait()
					if strings.HasPrefix(end, "its client") {
						leave()
						time.Sleep(time.Minute)
					}
					begin := time.Now()
					if end == "its context" {
						cancel()
					} else {
						gone, stop := context.WithTimeout(context.Background(), time.Second)
						defer stop()
						if err := s.Shutdown(gone); err == nil && end == "Shutdown" {
							t.Error("Shutdown has no error")
						}
					}
					select {
					case err := <-served:
						if took := time.Since(begin); took > 15*time.Second || name != "websocket" && err == nil {
							t.Errorf("%v after %v", err, took)
						}
					case <-time.After(time.Hour):
						t.Error("it does not return")
					}
					close(never)
					synctest.Wait()
				})
			})
		}
	}
}

// On a terminal the stack of a panic is lines that people can read, and what
// stands in it cannot do anything to the terminal.
func TestLogForPeople(t *testing.T) {
	var out bytes.Buffer
	logger := zerolog.New(mcp.LogForPeople(&out)).With().Timestamp().Logger()
	s := harness.Fixture(t, &mcp.Options{Logger: &logger})
	s.MustAdd(mcp.Tool("broken", func(*mcp.Frame, struct{}) (struct{}, error) { panic("out of ideas \x1b[2J") }))
	_, _ = mcptest.New(t, s).TryCall("broken", nil)
	text := out.String()
	if !strings.Contains(text, "handler panicked") || !strings.Contains(text, "out of ideas") {
		t.Errorf("the log does not say what happened: %s", text)
	}
	if !strings.Contains(text, "\ngoroutine ") || !strings.Contains(text, "\n\t") || strings.Contains(text, `\n`) {
		t.Errorf("the stack is not in lines: %s", text)
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("the terminal is sent control characters: %q", text)
	}
}
