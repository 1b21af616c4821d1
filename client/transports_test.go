package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// serverVariable makes this test binary a server over standard input and
// output; it says what kind of server.
const serverVariable = "CLIENT_TEST_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(serverVariable) {
	case "":
		testdep.Waiting()
		os.Exit(m.Run())
	case "fixture":
		if err := fixture(&testing.B{}, nil).ServeStdio(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "mortal":
		s := fixture(&testing.B{}, nil)
		s.MustAdd(mcp.Tool("die", func(*mcp.Frame, struct{}) (string, error) {
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(9)
			return "", nil
		}))
		_ = s.ServeStdio(context.Background()) // its error would say that the client has left
	case "silent":
		fmt.Fprintln(os.Stderr, "self-signed certificate\x1b[2J in certificate chain")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "crash":
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(7)
	}
}

// command returns the transport to this test binary as a server.
func command(kind string) *CommandTransport {
	tr := Command(os.Args[0])
	tr.Env = []string{serverVariable + "=" + kind}
	return tr
}

// The name of a command is what one can type.
func TestCommandName(t *testing.T) {
	for want, words := range map[string][]string{
		"npx -y @scope/server@1.2 --dir=/x": {"npx", "-y", "@scope/server@1.2", "--dir=/x"},
		`sh -c 'echo "a b" | cat'`:          {"sh", "-c", `echo "a b" | cat`},
		`'my server' '' 'it'\''s' '$HOME'`:  {"my server", "", "it's", "$HOME"},
		`C:\dir\server.exe`:                 {`C:\dir\server.exe`},
	} {
		if got := Command(words[0], words[1:]...).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A command that does not answer at the start: the error says what it wrote, and
// what it may miss.
func TestSilentCommand(t *testing.T) {
	t.Setenv("NODE_OPTIONS", "--use-system-ca")
	t.Setenv("GITHUB_TOKEN", "hunter2")
	const patience = 1500 * time.Millisecond // in which a process starts
	given := command("silent")
	given.Env = append(given.Env, "GITHUB_TOKEN=given")
	var all sync.WaitGroup
	defer all.Wait()
	for name, opts := range map[string]*Options{
		"both kinds of revisions": {Timeout: patience, ProbeTimeout: patience},
		"legacy":                  {Timeout: patience, Revisions: []protocol.Revision{protocol.V20250618}},
		"modern":                  {Timeout: patience, Revisions: []protocol.Revision{protocol.V20260728}},
		"context":                 {Timeout: -1, ProbeTimeout: -1},
	} {
		all.Go(func() {
			ctx, stop := context.WithCancel(t.Context())
			if name == "context" {
				time.AfterFunc(patience, stop)
			}
			_, err := Connect(ctx, given, opts)
			stop()
			silent, ok := errors.AsType[*SilentError](err)
			if !ok || errors.Is(err, ErrTimeout) == (name == "context") {
				t.Errorf("%s: %v", name, err)
				return
			}
			if !slices.Contains(silent.Withheld, "NODE_OPTIONS") || slices.Contains(silent.Withheld, "GITHUB_TOKEN") || !strings.Contains(silent.Stderr, "\x1b[2J") {
				t.Errorf("%s: %+v", name, silent)
			}
			for _, want := range []string{"self-signed certificate␛[2J in", "NODE_OPTIONS", "CommandTransport.Env"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: no %q in %v", name, want, err)
				}
			}
		})
	}
}

// handler serves a server over HTTP for the length of the test.
func handler(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// accept serves a server on sockets for the length of the test, and returns the
// address.
func accept(t testing.TB, s *mcp.Server, network, address string) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { _ = s.ServeConn(context.Background(), transport.NewSocket(conn, nil)) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

// carriers are all the transports, each to a fixture of its own.
var carriers = map[string]func(t testing.TB) Transport{
	"command": func(testing.TB) Transport { return command("fixture") },
	"http":    func(t testing.TB) Transport { return HTTP(handler(t, fixture(t, nil).Handler()), nil) },
	"sse": func(t testing.TB) Transport {
		return SSE(handler(t, fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}}).Handler()), nil)
	},
	"websocket": func(t testing.TB) Transport {
		return WebSocket(handler(t, websocket.Handler(fixture(t, nil))), nil)
	},
	"tcp": func(t testing.TB) Transport {
		return Dial("tcp", accept(t, fixture(t, nil), "tcp", "127.0.0.1:0"), nil)
	},
	"unix": func(t testing.TB) Transport {
		return Dial("unix", accept(t, fixture(t, nil), "unix", filepath.Join(t.TempDir(), "s")), nil)
	},
	"stream": func(t testing.TB) Transport {
		r, theirs := io.Pipe()
		ours, w := io.Pipe()
		var running sync.WaitGroup
		running.Go(func() {
			_ = fixture(t, nil).ServeConn(context.Background(), transport.NewStream(ours, theirs, nil))
		})
		t.Cleanup(running.Wait)
		return Stream(r, w, nil)
	},
}

// TestTransports calls, asks, is asked and is told over every transport in
// every revision.
func TestTransports(t *testing.T) {
	for name, open := range carriers {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, rev protocol.Revision) {
				if name == "sse" && rev.Modern() {
					t.Skip("HTTP+SSE carries sessions alone")
				}
				t.Parallel()
				opts := only(rev)
				opts.Elicit = func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
					return Accept(map[string]any{"name": "Ada"})
				}
				c := connect(t, open(t), opts)
				sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{2, 3})
				if err != nil || sum.Sum != 5 {
					t.Errorf("sum %v, %v", sum, err)
				}
				var steps []float64
				r, err := c.Call(t.Context(), "work", nil, OnProgress(func(p Progress) { steps = append(steps, p.Progress) }))
				if err != nil || r.Text() != "done" || !slices.Equal(steps, []float64{1, 2, 3}) {
					t.Errorf("work %v, %v, steps %v", r, err, steps)
				}
				if rev.Has(protocol.FeatureElicitation) {
					if r, err := c.Call(t.Context(), "greet", nil); err != nil || r.Text() != "Hello, red Ada!" {
						t.Errorf("greet %v, %v", r, err)
					}
				}
				tools := 0
				for tool, err := range c.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					_ = tool
					tools++
				}
				if tools != 8 {
					t.Errorf("%d tools", tools)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				if _, err := c.Call(ctx, "wait", nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("wait: %v", err)
				}
				if _, err := c.Call(t.Context(), "refuse", nil); code(err) != 4711 {
					t.Errorf("refuse: %v", err)
				}
			})
		})
	}
}

// Answers go to those who asked, however many ask at once.
func TestTransportsManyCalls(t *testing.T) {
	for name, n := range map[string]int{
		"command": testdep.Rounds(1000, 10_000), "websocket": testdep.Rounds(1000, 10_000),
		"http": 200, // each has a connection of its own
		"sse":  60,  // more may not wait in a session of the server
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, carriers[name](t), &Options{Timeout: time.Minute})
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					if sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{i, 1}); err != nil || sum.Sum != i+1 {
						t.Errorf("%d + 1 = %v, %v", i, sum, err)
					}
				})
			}
			wg.Wait()
			if pending := c.Pending(); len(pending) != 0 {
				t.Errorf("%d requests are left", len(pending))
			}
		})
	}
}

// A server that is found with HTTP may turn out to speak HTTP+SSE alone.
func TestTransportFallback(t *testing.T) {
	inner := fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}}).Handler()
	for _, status := range []int{400, 404, 405} {
		url := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.RawQuery == "" {
				w.WriteHeader(status)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		c := connect(t, HTTP(url, nil), nil)
		if sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{2, 3}); err != nil || sum.Sum != 5 || c.Revision().Modern() {
			t.Errorf("%d: sum %v, %v in %v", status, sum, err, c.Revision())
		}
	}
}

// What cannot be connected to is said at once, with the reason.
func TestTransportsFail(t *testing.T) {
	gone := handler(t, nil)
	closed := strings.TrimPrefix(gone, "http://")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	_ = listener.Close()
	tests := []struct {
		transport Transport
		want      []string
	}{
		{Command("no-such-server-anywhere", "--stdio"), []string{"no-such-server-anywhere", "not found in PATH"}},
		{command("crash"), []string{"exit status 7", "cannot open the database"}},
		{HTTP("example.com", nil), []string{"must begin with http://"}},
		{HTTP("http://"+nobody, nil), []string{"connection refused"}},
		{HTTP(gone, nil), []string{"404"}},
		{SSE("http://"+nobody, nil), []string{"connection refused"}},
		{SSE(gone, nil), []string{"404"}},
		{WebSocket("ws://"+nobody, nil), []string{"connection refused"}},
		{WebSocket("ws://"+closed, nil), []string{"404"}},
		{Dial("tcp", nobody, nil), []string{"connection refused"}},
		{Conn(func(context.Context) (transport.Conn, error) { return nil, errors.New("no line") }), []string{"no line"}},
		{Stream(strings.NewReader(""), io.Discard, nil), []string{"EOF"}},
	}
	for _, tt := range tests {
		c, err := Connect(t.Context(), tt.transport, &Options{NoReconnect: true})
		if err == nil {
			t.Errorf("%s: connected", tt.transport)
			_ = c.Close()
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", tt.transport, err, want)
			}
		}
	}
}

// A program that dies takes with it what is under way, which hears why, and is
// started again for what comes next.
func TestCommandRestarts(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		t.Parallel()
		opts := only(rev)
		opts.Reconnect = &Backoff{Base: time.Millisecond}
		c := connect(t, command("mortal"), opts)
		waiting := make(chan error, 1)
		go func() {
			_, err := c.Call(t.Context(), "wait", nil)
			waiting <- err
		}()
		for len(c.Pending()) == 0 {
			runtime.Gosched()
		}
		for _, err := range []error{callError(c.Call(t.Context(), "die", nil)), <-waiting} {
			if !errors.Is(err, ErrConnection) || !Retriable(err) || !strings.Contains(err.Error(), "exit status 9") || !strings.Contains(err.Error(), "out of memory") {
				t.Errorf("%v", err)
			}
		}
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{2, 3}); err != nil || sum.Sum != 5 {
			t.Errorf("sum %v, %v", sum, err)
		}
	})
}

func callError(_ *CallToolResult, err error) error { return err }

// Headers of the options, of the function and of the call reach the server.
func TestTransportHeaders(t *testing.T) {
	var mu sync.Mutex
	var got []http.Header
	inner := fixture(t, nil)
	ws := websocket.Handler(inner)
	url := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Header.Clone())
		mu.Unlock()
		if r.Header.Get("Upgrade") != "" {
			ws.ServeHTTP(w, r)
			return
		}
		inner.Handler().ServeHTTP(w, r)
	}))
	opts := &HTTPOptions{
		Header: http.Header{"X-Fixed": {"1"}},
		HeaderFunc: func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer fresh")
			return nil
		},
	}
	for _, tr := range []Transport{HTTP(url, opts), WebSocket(url, opts)} {
		c := connect(t, tr, nil)
		if _, err := c.Call(t.Context(), "sum", sumIn{1, 2}, Header("X-Call", "2")); err != nil {
			t.Error(err)
		}
		mu.Lock()
		last := got[len(got)-1]
		mu.Unlock()
		if last.Get("X-Fixed") != "1" || last.Get("Authorization") != "Bearer fresh" || last.Get("Upgrade") == "" && last.Get("X-Call") != "2" {
			t.Errorf("%v", last)
		}
	}
}

// What a transport is called shows no password.
func TestTransportNames(t *testing.T) {
	for want, tr := range map[string]Transport{
		"npx -y some-server":         Command("npx", "-y", "some-server"),
		"https://example.com/mcp":    HTTP("https://example.com/mcp", nil),
		"https://example.com/a":      HTTP("https://me:secret@example.com/a", nil),
		"https://example.com/sse":    SSE("https://example.com/sse", nil),
		"wss://me:xxxxx@example.com": WebSocket("wss://me:secret@example.com", nil),
		"tcp:localhost:1":            Dial("tcp", "localhost:1", nil),
	} {
		if tr.String() != want {
			t.Errorf("%q, want %q", tr, want)
		}
	}
}

// A transport that cannot dial says so when it is to connect.
func TestConnWithoutDial(t *testing.T) {
	tests := []struct {
		name string
		dial func(context.Context) (transport.Conn, error)
		want string
	}{
		{"nil", nil, "client.Conn needs a function that dials"},
		{"returns nothing", func(context.Context) (transport.Conn, error) { return nil, nil }, "returned neither a connection nor an error"},
	}
	for _, tt := range tests {
		if _, err := Connect(t.Context(), Conn(tt.dial), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.name, err, tt.want)
		}
	}
}
