package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	raw "github.com/coder/websocket"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

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
