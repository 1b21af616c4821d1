package docs_test

import (
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

	"github.com/go-chi/chi/v5/middleware"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/transport"
)

// pipes is a listener for connections within the process, whose deadlines are
// those of the bubble.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

// behind runs test with a client of a server behind middleware.
func behind(t *testing.T, configure func(*http.Server), wrap func(http.Handler) http.Handler, test func(t *testing.T, s *mcp.Server, c *http.Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := mcp.NewServer(mcp.Info{Name: "slow", Version: "1"}, nil)
		s.MustAdd(mcp.Tool("count", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := range 5 {
				_ = f.Progress(float64(i), 5, "")
				select {
				case <-f.Done():
					return "", f.Err()
				case <-time.After(time.Second):
				}
			}
			return "done", nil
		}))
		var h http.Handler = s.Handler()
		if wrap != nil {
			h = wrap(h)
		}
		web := &http.Server{Handler: h}
		if configure != nil {
			configure(web)
		}
		l := make(pipes)
		served := make(chan error, 1)
		go func() { served <- web.Serve(l) }()
		transport := &http.Transport{DialContext: l.dial}
		test(t, s, &http.Client{Transport: transport})
		transport.CloseIdleConnections()
		_ = s.Shutdown(t.Context())
		_ = web.Close()
		<-served
	})
}

// begin is initialize of a session.
const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"x","version":"1"}}}`

// progressing is modernCall with a token for progress.
var progressing = strings.Replace(modernCall, `"_meta":{`, `"_meta":{"progressToken":1,`, 1)

// said is what a client receives: the status, the time of its headers, that of its
// last byte, and whether the answer is an error of the tool or breaks off.
func said(c *http.Client, method string, header map[string]string, body string) string {
	r, err := http.NewRequest(method, "http://127.0.0.1/mcp", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	began := time.Now()
	res, err := c.Do(r)
	if err != nil {
		return fmt.Sprint("nothing until ", time.Since(began))
	}
	defer res.Body.Close()
	out := fmt.Sprint(res.StatusCode, " after ", time.Since(began), ", ")
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		out += "cut "
	case strings.Contains(string(text), `"isError":true`):
		out += "failed "
	}
	return out + fmt.Sprint("to ", time.Since(began))
}

// TestPitfalls holds the table of pitfalls.md for net/http: what a call of five
// seconds, one with progress, the stream of a session that a client leaves after 70 s, and
// a call beside such a stream get.
func TestPitfalls(t *testing.T) {
	const two = 2 * time.Second
	plain := [4]string{"200 after 5s, to 5s", "200 after 0s, to 5s", "200 after 0s, cut to 1m10s", "200 after 5s, to 5s"}
	hidden := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(struct{ http.ResponseWriter }{w}, r) })
	}
	for name, tt := range map[string]struct {
		configure func(*http.Server)
		wrap      func(http.Handler) http.Handler
		want      [4]string
	}{
		"nothing":      {nil, nil, plain},
		"WriteTimeout": {func(s *http.Server) { s.WriteTimeout = two }, nil, plain},
		"ReadTimeout":  {func(s *http.Server) { s.ReadTimeout = two }, nil, plain},
		"Compress":     {nil, middleware.Compress(5, "text/event-stream", "application/json"), plain},
		"Unwrap": {func(s *http.Server) { s.WriteTimeout = two }, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&counted{ResponseWriter: w}, r) })
		}, plain},
		"Timeout": {nil, middleware.Timeout(two),
			[4]string{"200 after 2s, failed to 2s", "200 after 0s, failed to 2s", "200 after 0s, to 2s", "200 after 2s, failed to 2s"}},
		"TimeoutHandler": {nil, func(h http.Handler) http.Handler { return http.TimeoutHandler(h, two, "") },
			[4]string{"503 after 2s, to 2s", "503 after 2s, to 2s", "503 after 2s, to 2s", "503 after 2s, to 2s"}},
		"without Unwrap": {nil, hidden,
			[4]string{plain[0], "200 after 5s, to 5s", "nothing until 1m10s", plain[3]}},
		"WriteTimeout without Unwrap": {func(s *http.Server) { s.WriteTimeout = two }, hidden,
			[4]string{"nothing until 5s", "nothing until 5s", "nothing until 1m10s", "nothing until 5s"}},
		"Throttle": {nil, middleware.Throttle(1), [4]string{plain[0], plain[1], plain[2], "429 after 0s, to 0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, want := range tt.want {
				behind(t, tt.configure, tt.wrap, func(t *testing.T, _ *mcp.Server, c *http.Client) {
					stream := func() string {
						req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(begin))
						if err != nil {
							return err.Error()
						}
						req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
						res, err := c.Do(req)
						if err != nil {
							return err.Error()
						}
						_ = res.Body.Close()
						leaving := *c
						leaving.Timeout = 70 * time.Second
						return said(&leaving, http.MethodGet, map[string]string{"Accept": "text/event-stream", "Mcp-Session-Id": res.Header.Get("Mcp-Session-Id")}, "")
					}
					var got string
					switch i {
					case 0:
						got = said(c, http.MethodPost, calling(), modernCall)
					case 1:
						got = said(c, http.MethodPost, calling(), progressing)
					case 2:
						got = stream()
					case 3:
						left := make(chan struct{})
						go func() { defer close(left); _ = stream() }()
						synctest.Wait()
						got = said(c, http.MethodPost, calling(), modernCall)
						<-left
					}
					if got != want {
						t.Errorf("%d: %s, want %s", i, got, want)
					}
				})
			}
		})
	}
}

// A redirect of a path with a slash at its end turns a POST into a GET.
func TestPitfallRedirect(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "slow", Version: "1"}, nil)
	r := httptest.NewRequest(http.MethodPost, "/mcp/", strings.NewReader(begin))
	w := httptest.NewRecorder()
	middleware.RedirectSlashes(s.Handler()).ServeHTTP(w, r)
	if w.Code != http.StatusMovedPermanently {
		t.Errorf("%d", w.Code)
	}
}

// TestPitfallShutdown: without Server.Shutdown, http.Server.Shutdown waits for the
// streams that net/http has, and leaves those open that were taken over from it.
func TestPitfallShutdown(t *testing.T) {
	listen := strings.NewReplacer("tools/call", "subscriptions/listen", `"name":"count"`, `"notifications":{"toolsListChanged":true}`).Replace(modernCall)
	kept := func(h http.Handler) http.Handler { // by net/http, as http.Hijacker is hidden
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(struct {
				http.ResponseWriter
				http.Flusher
			}{w, w.(http.Flusher)}, r)
		})
	}
	for name, tt := range map[string]struct {
		wrap  func(http.Handler) http.Handler
		first bool // Server.Shutdown
		want  string
	}{
		"taken over, alone": {nil, false, "<nil> after 0s, stream 200 after 0s, cut to 1m10s"},
		"taken over":        {nil, true, "<nil> after 0s, stream 200 after 0s, to 0s"},
		"kept, alone":       {kept, false, "context deadline exceeded after 1m0s, stream 200 after 0s, cut to 1m10s"},
		"kept":              {kept, true, "<nil> after 0s, stream 200 after 0s, to 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			var web *http.Server
			behind(t, func(s *http.Server) { web = s }, tt.wrap, func(t *testing.T, s *mcp.Server, c *http.Client) {
				c.Timeout = 70 * time.Second
				stream := make(chan string, 1)
				header := calling("Mcp-Method", "subscriptions/listen")
				delete(header, "Mcp-Name")
				go func() { stream <- said(c, http.MethodPost, header, listen) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if tt.first {
					if err := s.Shutdown(ctx); err != nil {
						t.Error(err)
					}
				}
				began := time.Now()
				err := web.Shutdown(ctx)
				if got := fmt.Sprintf("%v after %v, stream %s", err, time.Since(began).Round(time.Second), <-stream); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestPitfallStdout: what a handler prints to the output that carries messages.
func TestPitfallStdout(t *testing.T) {
	for printed, want := range map[string]string{"": "done", "hello\n": "done", "hello": "lost"} {
		synctest.Test(t, func(t *testing.T) {
			fromClient, toServer := io.Pipe()
			fromServer, toClient := io.Pipe()
			s := mcp.NewServer(mcp.Info{Name: "talker", Version: "1"}, nil)
			s.MustAdd(mcp.Tool("talk", func(*mcp.Frame, struct{}) (string, error) {
				_, err := io.WriteString(toClient, printed)
				return "done", err
			}))
			served := make(chan error, 1)
			go func() { served <- s.ServeConn(t.Context(), transport.NewStream(fromClient, toClient, nil)) }()
			c, err := client.Connect(t.Context(), client.Stream(fromServer, toServer, nil), &client.Options{Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			got := "lost"
			if result, err := c.Call(t.Context(), "talk", nil); err == nil {
				got = result.Text()
			} else if !errors.Is(err, client.ErrTimeout) {
				t.Error(err)
			}
			if got != want {
				t.Errorf("printed %q: %s, want %s", printed, got, want)
			}
			_ = c.Close()
			<-served
		})
	}
}

// counted counts what is written.
type counted struct {
	http.ResponseWriter
	bytes int
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.bytes += n
	return n, err
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }
