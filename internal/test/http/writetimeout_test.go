package http_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// http.Server.WriteTimeout counts from the head of a request, so it is over
// when the answer of a slow call comes. The answer arrives nevertheless, and so
// does what a stream sends late, over HTTP/1.1 and HTTP/2.
func TestLateAnswer(t *testing.T) {
	const limit = 2 * time.Second // of the server, and of each write
	type in struct {
		Say   bool `json:"say,omitempty"`   // send a message first
		Fail  bool `json:"fail,omitempty"`  // answer with an error
		Bytes int  `json:"bytes,omitempty"` // of the answer
	}
	newServer := func() *mcp.Server { // in the bubble
		s := harness.Fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}, AllowedHosts: []string{"example.com"}, Timeouts: mcp.Timeouts{Write: limit, KeepAlive: -1}})
		s.MustAdd(mcp.Tool("late", func(f *mcp.Frame, a in) (string, error) {
			if a.Say {
				_ = f.Progress(1, 2, "half") // a client that is gone shows below
			}
			time.Sleep(2 * limit)
			if a.Fail {
				return "", &mcp.Error{Code: 17, Message: "late"}
			}
			return strings.Repeat("x", a.Bytes) + "done", nil
		}))
		if err := s.OnNotification("slow", func(*mcp.Frame) error {
			time.Sleep(2 * limit)
			return nil
		}); err != nil {
			t.Error(err)
		}
		return s
	}
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, rev := range testdep.Revisions() {
			for _, tt := range []struct{ name, arguments, want string }{
				{"small", `"bytes":1`, "done"},
				{"at the buffer", `"bytes":1900`, "done"},
				{"large", `"bytes":100000`, "done"},
				{"error", `"fail":true`, "late"},
				{"stream", `"say":true`, "done"},
				{"notification", "", ""},
			} {
				t.Run(proto+" "+rev.String()+" "+tt.name, onClock(func(t *testing.T) {
					w := serveOnPipes(t, newServer(), limit, proto)
					session := ""
					if !rev.Modern() {
						session, _ = w.post(rev, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, harness.Hello(rev.String())))
					}
					meta := `"_meta":{"progressToken":1}`
					if rev.Modern() {
						meta = strings.Replace(harness.Expand("$META", rev), `{"io.`, `{"progressToken":1,"io.`, 1)
					}
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"late","arguments":{%s},%s}}`, tt.arguments, meta)
					if tt.arguments == "" {
						body = fmt.Sprintf(`{"jsonrpc":"2.0","method":"slow","params":{%s}}`, meta)
					}
					if _, text := w.post(rev, session, body); !strings.Contains(text, tt.want) {
						t.Errorf("got %.300q, want %q in it", text, tt.want)
					}
				}))
			}
		}
	}
}

// onPipes is an HTTP server with a client, over pipes in memory, so that a
// bubble's clock goes on while they wait for each other.
type onPipes struct {
	t     *testing.T
	proto string
	http.Client
}

// serveOnPipes serves s for the time of a test. limit is the server's
// WriteTimeout.
func serveOnPipes(t *testing.T, s *mcp.Server, limit time.Duration, proto string) *onPipes {
	t.Helper()
	w := &onPipes{t: t, proto: proto}
	listener := &harness.MemoryListener{Conns: make(chan net.Conn), Closed: make(chan struct{})}
	var protocols http.Protocols
	protocols.SetHTTP1(proto == "HTTP/1.1")
	protocols.SetUnencryptedHTTP2(proto == "HTTP/2.0")
	web := &http.Server{Handler: s.Handler(), WriteTimeout: limit, Protocols: &protocols}
	wire := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		listener.Conns <- far
		return near, nil
	}}
	w.Client.Transport = wire
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		wire.CloseIdleConnections()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return w
}

// post posts body and returns the session of the answer, and all of its text.
func (w *onPipes) post(rev protocol.Revision, session, body string) (opened, text string) {
	t := w.t
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	if rev.Has(protocol.FeatureVersionHeader) {
		req.Header.Set("Mcp-Protocol-Version", rev.String())
	}
	if rev.Modern() {
		req.Header.Set("Mcp-Method", "tools/call")
		req.Header.Set("Mcp-Name", "late")
	}
	res, err := w.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil || res.Proto != w.proto || res.StatusCode >= http.StatusBadRequest {
		t.Errorf("%s over %s: %v, %.300q", res.Status, res.Proto, err, all)
	}
	return res.Header.Get("Mcp-Session-Id"), string(all)
}
