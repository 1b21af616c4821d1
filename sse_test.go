package mcp_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/principal"
	"github.com/talaria-go/mcp/protocol"
)

// sseClient talks HTTP+SSE: it hears on the stream what it says by POST.
type sseClient struct {
	t        testing.TB
	endpoint string // as the server names it
	url      string
	events   *bufio.Reader
	leave    func()
	spec     specWatch
	http     *http.Client
}

// ownHTTP returns a client that shares no connections with other tests: each
// httptest.Server that closes breaks those of http.DefaultClient.
func ownHTTP(t testing.TB) *http.Client {
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	return &http.Client{Transport: own}
}

func openSSE(t testing.TB, s *mcp.Server, rev protocol.Revision) conversation {
	r := chi.NewRouter()
	r.Mount("/deep/mcp", s.SSEHandler())
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return connectSSE(t, server.URL+"/deep/mcp", rev)
}

func connectSSE(t testing.TB, address string, rev protocol.Revision) *sseClient {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	own := ownHTTP(t)
	res, err := own.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave := func() {
		cancel()
		res.Body.Close()
	}
	t.Cleanup(leave)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("GET: %s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	c := &sseClient{t: t, events: bufio.NewReader(res.Body), leave: leave, spec: specWatch{t, rev}, http: own}
	kind, data, err := c.event()
	if kind != "endpoint" {
		t.Fatalf("the first event is %q: %s, %v", kind, data, err)
	}
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := url.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	c.endpoint, c.url = data, base.ResolveReference(ref).String()
	return c
}

// event reads one event; comments are passed.
func (c *sseClient) event() (kind, data string, err error) {
	for {
		line, err := c.events.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && data != "":
			return kind, data, nil
		case strings.HasPrefix(line, "event: "):
			kind = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = line[len("data: "):]
		}
	}
}

// ended reports whether the stream ends without a further event.
func (c *sseClient) ended() bool {
	rest, err := io.ReadAll(c.events)
	return err == nil && !strings.Contains(string(rest), "data:")
}

func (c *sseClient) post(line string) (status int, body string) {
	c.t.Helper()
	return postTo(c.t, c.url, line, nil)
}

func postTo(t testing.TB, address, line string, header http.Header) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (c *sseClient) say(line string) []string {
	if status, body := c.post(line); status != http.StatusAccepted || body != "" {
		c.t.Fatalf("POST of %s: %d %q, want 202 and nothing", line, status, body)
	}
	if !isRequest(line) {
		return nil
	}
	var heard []string
	for {
		_, data, err := c.event()
		if err != nil {
			c.t.Fatalf("after %s: the stream ended: %v", line, err)
		}
		heard = append(heard, data)
		if isAnswer(data) {
			return c.spec.heard(line, heard...)
		}
	}
}

// TestSSEEndpoint sees that the endpoint event names a place to POST to,
// wherever the handler is mounted.
func TestSSEEndpoint(t *testing.T) {
	s := fixture(t, nil)
	mux := http.NewServeMux()
	mux.Handle("/std/", s.SSEHandler())
	mux.Handle("/cut/", http.StripPrefix("/cut", s.SSEHandler()))
	deep := chi.NewRouter()
	deep.Route("/api", func(r chi.Router) { r.Mount("/v1/mcp", s.SSEHandler()) })
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
			c := connectSSE(t, server.URL+tt.get, protocol.V20241105)
			if !strings.HasPrefix(c.endpoint, tt.want) || strings.Contains(c.endpoint, "mine") {
				t.Errorf("the endpoint is %s, want %s…", c.endpoint, tt.want)
			}
			if strings.Contains(tt.get, "tenant") && !strings.HasSuffix(c.endpoint, "&tenant=acme") {
				t.Errorf("the endpoint is %s, want the query of the GET in it", c.endpoint)
			}
			if got := c.say(initLine); len(got) != 1 || !strings.Contains(got[0], `"serverInfo"`) {
				t.Errorf("initialize got %s", got)
			}
		})
	}
	t.Run("option", func(t *testing.T) {
		opts := &mcp.Options{}
		opts.HTTP.SSEEndpoint = "https://api.example.com/mcp?v=1"
		server := httptest.NewServer(fixture(t, opts).SSEHandler())
		defer server.Close()
		c := connectSSE(t, server.URL, protocol.V20241105)
		if !strings.HasPrefix(c.endpoint, "https://api.example.com/mcp?v=1&sessionId=") {
			t.Errorf("the endpoint is %s", c.endpoint)
		}
		c.leave()
	})
}

// TestSSEBeside sees that HTTP+SSE and sessions of streamable HTTP live on the
// same URL.
func TestSSEBeside(t *testing.T) {
	s := fixture(t, nil)
	server := httptest.NewServer(s.SSEHandler())
	defer server.Close()
	old := connectSSE(t, server.URL, protocol.V20241105)
	old.say(initLine)
	young := &httpClient{t: t, url: server.URL, client: server.Client(), rev: protocol.V20251125, spec: specWatch{t, protocol.V20251125}}
	young.say(initLine)
	modern := &httpClient{t: t, url: server.URL, client: server.Client(), rev: protocol.Latest, spec: specWatch{t, protocol.Latest}}
	for range 3 {
		for name, got := range map[string][]string{
			"sse": old.say(pingLine), "streamable": young.say(pingLine),
		} {
			if len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":9,"result":{}}` {
				t.Errorf("%s: ping got %s", name, got)
			}
		}
	}
	list := expand(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}`, protocol.Latest)
	if got := modern.say(list); !strings.Contains(got[0], `"tools":[`) {
		t.Errorf("modern: %s", got)
	}
	if got := old.say(list); !strings.Contains(got[0], `"code":-32600`) || !strings.Contains(got[0], "HTTP+SSE transport has no revision") {
		t.Errorf("modern request over sse: %s", got)
	}
	old.leave()
}

func TestSSERefused(t *testing.T) {
	s := fixture(t, &mcp.Options{Limits: mcp.Limits{Connections: 1}})
	handler := s.SSEHandler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(principal.With(r.Context(), r.Header.Get("X-User"))))
	}))
	defer server.Close()
	c := connectSSE(t, server.URL, protocol.V20241105)
	for _, tt := range []struct {
		name, url, body string
		header          http.Header
		status          int
		want            string
	}{
		{"unknown session", server.URL + "?sessionId=x", pingLine, nil, http.StatusNotFound, "Session not found"},
		{"no session", server.URL, pingLine, nil, http.StatusBadRequest, "Mcp-Session-Id is missing"},
		{"empty session", server.URL + "?sessionId=", pingLine, nil, http.StatusBadRequest, "Mcp-Session-Id is missing"},
		{"other principal", c.url, pingLine, http.Header{"X-User": {"eve"}}, http.StatusNotFound, "Session not found"},
		{"page", c.url, pingLine, http.Header{"Origin": {"https://evil.example.com"}}, http.StatusForbidden, "not allowed"},
		{"no JSON", c.url, pingLine, http.Header{"Content-Type": {"text/plain"}}, http.StatusUnsupportedMediaType, "application/json"},
		{"too large, answered on the stream", c.url, strings.Repeat(" ", 5<<20), nil, http.StatusAccepted, ""},
		{"too large, unknown session", server.URL + "?sessionId=x", strings.Repeat(" ", 5<<20), nil, http.StatusNotFound, "Session not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status, body := postTo(t, tt.url, tt.body, tt.header); status != tt.status || !strings.Contains(body, tt.want) {
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
	c.leave()
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
	s := fixture(t, &mcp.Options{OnSessionEnd: func(*mcp.Frame, error) { ended <- struct{}{} }})
	began, cancelled := make(chan struct{}), make(chan error, 1)
	s.MustAdd(mcp.Tool("hang", func(f *mcp.Frame, _ empty) (string, error) {
		close(began)
		<-f.Done()
		cancelled <- context.Cause(f)
		return "", f.Err()
	}))
	server := httptest.NewServer(s.SSEHandler())
	defer server.Close()
	c := connectSSE(t, server.URL, protocol.V20241105)
	c.say(initLine)
	if status, _ := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang"}}`); status != http.StatusAccepted {
		t.Fatalf("POST: %d", status)
	}
	<-began
	c.leave()
	if err := <-cancelled; err == nil {
		t.Error("the call was not cancelled")
	}
	<-ended
	for { // the id is forgotten a moment later
		if status, _ := c.post(pingLine); status == http.StatusNotFound {
			return
		}
	}
}

// TestSSEShutdown sees that streams end, once their calls have.
func TestSSEShutdown(t *testing.T) {
	s := fixture(t, nil)
	server := httptest.NewServer(s.SSEHandler())
	defer server.Close()
	c := connectSSE(t, server.URL, protocol.V20241105)
	c.say(initLine)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if !c.ended() {
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
		s := fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{KeepAlive: 10 * time.Second}})
		ctx, leave := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/mcp", nil).WithContext(ctx)
		r.Header.Set("Accept", "text/event-stream")
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.SSEHandler().ServeHTTP(w, r)
		}()
		time.Sleep(35 * time.Second)
		leave()
		<-served
		if got := strings.Count(w.Body.String(), ":\n\n"); got != 3 {
			t.Errorf("%d comments in 35s, want 3: %q", got, w.Body)
		}
	})
}
