package http_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// TestSSEEndpoint sees that the endpoint event names a place to POST to,
// wherever the handler is mounted.
func TestSSEEndpoint(t *testing.T) {
	s := harness.Fixture(t, nil)
	mux := http.NewServeMux()
	mux.Handle("/std/", harness.SSEHandler(s))
	mux.Handle("/cut/", http.StripPrefix("/cut", harness.SSEHandler(s)))
	deep := chi.NewRouter()
	deep.Route("/api", func(r chi.Router) { r.Mount("/v1/mcp", harness.SSEHandler(s)) })
	mux.Handle("/api/", deep)
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, tt := range []struct{ get, want string }{
		{"/std/mcp", "/std/mcp?sessionId="},
		{"/cut/mcp", "/cut/mcp?sessionId="},
		{"/api/v1/mcp", "/api/v1/mcp?sessionId="},
		{"/std/a%20b%2Fc", "/std/a%20b%2Fc?sessionId="},
		{"/std/mcp?tenant=acme&sessionId=mine", "/std/mcp?sessionId="},
	} {
		t.Run(tt.get, func(t *testing.T) {
			c := harness.ConnectSSE(t, server.URL+tt.get, protocol.V20241105)
			if !strings.HasPrefix(c.Endpoint, tt.want) || strings.Contains(c.Endpoint, "mine") {
				t.Errorf("the endpoint is %s, want %s…", c.Endpoint, tt.want)
			}
			if strings.Contains(tt.get, "tenant") && !strings.HasSuffix(c.Endpoint, "&tenant=acme") {
				t.Errorf("the endpoint is %s, want the query of the GET in it", c.Endpoint)
			}
			if got := c.Say(harness.InitLine); len(got) != 1 || !strings.Contains(got[0], `"serverInfo"`) {
				t.Errorf("initialize got %s", got)
			}
		})
	}
	t.Run("option", func(t *testing.T) {
		opts := &mcp.Options{}
		opts.HTTP.SSEEndpoint = "https://api.example.com/mcp?v=1"
		server := httptest.NewServer(harness.SSEHandler(harness.Fixture(t, opts)))
		defer server.Close()
		c := harness.ConnectSSE(t, server.URL, protocol.V20241105)
		if !strings.HasPrefix(c.Endpoint, "https://api.example.com/mcp?v=1&sessionId=") {
			t.Errorf("the endpoint is %s", c.Endpoint)
		}
		c.Leave()
	})
}

// TestSSEBeside sees that HTTP+SSE and sessions of streamable HTTP live on the
// same URL.
func TestSSEBeside(t *testing.T) {
	s := harness.Fixture(t, nil)
	server := httptest.NewServer(harness.SSEHandler(s))
	defer server.Close()
	old := harness.ConnectSSE(t, server.URL, protocol.V20241105)
	old.Say(harness.InitLine)
	young := &harness.HTTPClient{T: t, URL: server.URL, Client: server.Client(), Rev: protocol.V20251125, Spec: harness.SpecWatch{T: t, Rev: protocol.V20251125}}
	young.Say(harness.InitLine)
	modern := &harness.HTTPClient{T: t, URL: server.URL, Client: server.Client(), Rev: protocol.Latest, Spec: harness.SpecWatch{T: t, Rev: protocol.Latest}}
	for range 3 {
		for name, got := range map[string][]string{
			"sse": old.Say(harness.PingLine), "streamable": young.Say(harness.PingLine),
		} {
			if len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":9,"result":{}}` {
				t.Errorf("%s: ping got %s", name, got)
			}
		}
	}
	list := harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}`, protocol.Latest)
	if got := modern.Say(list); !strings.Contains(got[0], `"tools":[`) {
		t.Errorf("modern: %s", got)
	}
	if got := old.Say(list); !strings.Contains(got[0], `"code":-32600`) || !strings.Contains(got[0], "HTTP+SSE transport has no revision") {
		t.Errorf("modern request over sse: %s", got)
	}
	old.Leave()
}

func TestSSERefused(t *testing.T) {
	s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Connections: 1}})
	handler := harness.SSEHandler(s)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(core.WithPrincipal(r.Context(), r.Header.Get("X-User"))))
	}))
	defer server.Close()
	c := harness.ConnectSSE(t, server.URL, protocol.V20241105)
	for _, tt := range []struct {
		name, url, body string
		header          http.Header
		status          int
		want            string
	}{
		{"unknown session", server.URL + "?sessionId=x", harness.PingLine, nil, http.StatusNotFound, "Session not found"},
		{"no session", server.URL, harness.PingLine, nil, http.StatusBadRequest, "Mcp-Session-Id is missing"},
		{"empty session", server.URL + "?sessionId=", harness.PingLine, nil, http.StatusBadRequest, "Mcp-Session-Id is missing"},
		{"other principal", c.URL, harness.PingLine, http.Header{"X-User": {"eve"}}, http.StatusNotFound, "Session not found"},
		{"page", c.URL, harness.PingLine, http.Header{"Origin": {"https://evil.example.com"}}, http.StatusForbidden, "not allowed"},
		{"no JSON", c.URL, harness.PingLine, http.Header{"Content-Type": {"text/plain"}}, http.StatusUnsupportedMediaType, "application/json"},
		{"too large, answered on the stream", c.URL, strings.Repeat(" ", 5<<20), nil, http.StatusAccepted, ""},
		{"too large, unknown session", server.URL + "?sessionId=x", strings.Repeat(" ", 5<<20), nil, http.StatusNotFound, "Session not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status, body := harness.PostTo(t, tt.url, tt.body, tt.header); status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, want %d %q", status, body, tt.status, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"one too many", http.Header{"Accept": {"text/event-stream"}}, http.StatusServiceUnavailable},
		{"no events", http.Header{"Accept": {"application/json"}}, http.StatusNotAcceptable},
		{"page", http.Header{"Accept": {"text/event-stream"}, "Origin": {"https://evil.example.com"}}, http.StatusForbidden},
		{"rebound", http.Header{"Accept": {"text/event-stream"}, "Host": {"evil.example.com"}}, http.StatusForbidden},
		{"unknown session", http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {"x"}}, http.StatusNotFound},
	} {
		t.Run("GET "+tt.name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header, req.Host = tt.header, tt.header.Get("Host")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != tt.status {
				t.Errorf("got %s, want %d", res.Status, tt.status)
			}
		})
	}
	c.Leave()
	s2 := mcp.NewServer(mcp.Info{Name: "n", Version: "1"}, nil)
	without := httptest.NewServer(s2.Handler())
	defer without.Close()
	if res, err := http.Get(without.URL); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET without the option: %v, %v, want 405", res.Status, err)
	}
}

// TestSSEGone sees that a client that closes its stream ends its session, with
// its calls.
func TestSSEGone(t *testing.T) {
	ended := make(chan struct{}, 1)
	s := harness.Fixture(t, &mcp.Options{OnSessionEnd: func(*mcp.Frame, error) { ended <- struct{}{} }})
	began, cancelled := make(chan struct{}), make(chan error, 1)
	s.MustAdd(mcp.Tool("hang", func(f *mcp.Frame, _ struct{}) (string, error) {
		close(began)
		<-f.Done()
		cancelled <- context.Cause(f)
		return "", f.Err()
	}))
	server := httptest.NewServer(harness.SSEHandler(s))
	defer server.Close()
	c := harness.ConnectSSE(t, server.URL, protocol.V20241105)
	c.Say(harness.InitLine)
	if status, _ := c.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang"}}`); status != http.StatusAccepted {
		t.Fatalf("POST: %d", status)
	}
	<-began
	c.Leave()
	if err := <-cancelled; err == nil {
		t.Error("the call was not cancelled")
	}
	<-ended
	for { // the id is forgotten a moment later
		if status, _ := c.Post(harness.PingLine); status == http.StatusNotFound {
			return
		}
	}
}

// TestSSEShutdown sees that streams end, once their calls have.
func TestSSEShutdown(t *testing.T) {
	s := harness.Fixture(t, nil)
	server := httptest.NewServer(harness.SSEHandler(s))
	defer server.Close()
	c := harness.ConnectSSE(t, server.URL, protocol.V20241105)
	c.Say(harness.InitLine)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if !c.Ended() {
		t.Error("the stream did not end in order")
	}
	res, err := http.Get(server.URL)
	if err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("GET after Shutdown: %v, want 503", err)
	}
}

// TestSSEKeepAlive sees comments on a quiet stream.
func TestSSEKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := harness.Fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{KeepAlive: 10 * time.Second}})
		ctx, leave := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/mcp", nil).WithContext(ctx)
		r.Header.Set("Accept", "text/event-stream")
		served := make(chan struct{})
		go func() {
			defer close(served)
			harness.SSEHandler(s).ServeHTTP(w, r)
		}()
		time.Sleep(35 * time.Second)
		leave()
		<-served
		if got := strings.Count(w.Body.String(), ":\n\n"); got != 3 {
			t.Errorf("%d comments in 35s, want 3: %q", got, w.Body)
		}
	})
}
