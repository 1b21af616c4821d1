package http_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

// Whoever is refused for now is told when to come back: over HTTP by
// Retry-After, everywhere by the error's data where the time is known.
func TestRetryAfter(t *testing.T) {
	refuses := func(fault *mcp.Error) func() mcp.Middleware {
		return func() mcp.Middleware {
			return func(next mcp.Handler) mcp.Handler {
				return func(f *mcp.Frame) (protocol.Result, error) {
					if f.Request().Method == protocol.MethodToolsCall {
						return nil, fmt.Errorf("wrapped: %w", fault)
					}
					return next(f)
				}
			}
		}
	}
	once := func() mcp.Middleware {
		return middleware.RateLimit(&middleware.RateLimitOptions{Rate: 0.5, Burst: 1})
	}
	for _, tt := range []struct {
		name  string
		stage func() mcp.Middleware
		calls int
		after string // Retry-After of the last call
		data  string // part of the last answer
	}{
		{"a rate limit", once, 2, "2", `"data":{"retryAfterMs":2000}`},
		{"busy", refuses(&mcp.Error{Code: protocol.CodeBusy}), 1, "1", `"message":"Too many requests"}`},
		{"unavailable", refuses(&mcp.Error{Code: protocol.CodeUnavailable, RetryAfter: 90 * time.Second}), 1, "90", `"code":503,"message":"Service unavailable","data":{"retryAfterMs":90000}`},
		{"rounded up", refuses(&mcp.Error{Code: 17, RetryAfter: 1500*time.Millisecond + 1}), 1, "2", `"data":{"retryAfterMs":1501}`},
		{"data of its own", refuses(&mcp.Error{Code: 17, Data: "mine", RetryAfter: time.Second}), 1, "1", `"data":"mine"`},
		{"any other error", refuses(&mcp.Error{Code: 17}), 1, "", `"code":17`},
	} {
		for _, rev := range testdep.Revisions() {
			t.Run(tt.name+" in "+rev.String(), onClock(func(t *testing.T) {
				d := &harness.BareClient{T: t, H: harness.Fixture(t, nil, tt.stage()).Handler(), Rev: rev}
				d.Initialize()
				body, headers := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`, []string{}
				if rev.Modern() {
					body = harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},$META}}`, rev)
					headers = []string{"Mcp-Method", "tools/call", "Mcp-Name", "add"}
				}
				var res *httptest.ResponseRecorder
				for range tt.calls {
					if res != nil && res.Header().Get("Retry-After") != "" {
						t.Errorf("Retry-After %q with %s", res.Header().Get("Retry-After"), res.Body)
					}
					res = d.Do(http.MethodPost, body, headers...)
				}
				d.Want(res, http.StatusOK, tt.data)
				if got := res.Header().Get("Retry-After"); got != tt.after {
					t.Errorf("Retry-After %q, want %q, with %s", got, tt.after, res.Body)
				}
			}))
		}
	}
}

// What a server refuses because of its load, or because it shuts down, is
// refused with 503 and Retry-After, whatever asks for it.
func TestRefusedForNow(t *testing.T) {
	wants := func(t *testing.T, what string, res *httptest.ResponseRecorder) {
		t.Helper()
		if res.Code != http.StatusServiceUnavailable || res.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %d, Retry-After %q, %s; want 503 and 1", what, res.Code, res.Header().Get("Retry-After"), res.Body)
		}
	}
	hello := func(rev protocol.Revision) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, harness.Hello(rev.String()))
	}
	for _, rev := range testdep.Revisions() {
		if rev.Modern() {
			s := harness.Fixture(t, nil)
			d := &harness.BareClient{T: t, H: s.Handler(), Rev: rev}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			wants(t, "a call", d.Do(http.MethodPost, harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}`, rev), "Mcp-Method", "tools/list"))
			continue
		}
		s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{Sessions: 1}})
		d := &harness.BareClient{T: t, H: s.Handler(), Rev: rev}
		d.Initialize()
		d.Session = ""
		wants(t, "a second session", d.Do(http.MethodPost, hello(rev)))
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		wants(t, "a session at shutdown", d.Do(http.MethodPost, hello(rev)))
	}
	s := harness.Fixture(t, &mcp.Options{})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	res := httptest.NewRecorder()
	websocket.Handler(s).ServeHTTP(res, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	wants(t, "a WebSocket", res)
}

// A client finds the time in the error, over every transport.
func TestRetryAfterOfClient(t *testing.T) {
	s := harness.Fixture(t, nil, middleware.RateLimit(&middleware.RateLimitOptions{Rate: 0.01, Burst: 1}))
	web, socket := httptest.NewServer(s.Handler()), httptest.NewServer(websocket.Handler(s))
	defer web.Close()
	defer socket.Close()
	for name, to := range map[string]client.Transport{
		"HTTP":      client.HTTP(web.URL, nil),
		"WebSocket": client.WebSocket(socket.URL, nil),
	} {
		c, err := client.Connect(t.Context(), to, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err = c.Call(t.Context(), "add", map[string]int{"a": 1, "b": 2})
		}
		fault, ok := errors.AsType[*protocol.Error](err)
		if !ok || fault.RetryAfter < 10*time.Second || fault.RetryAfter > 100*time.Second || !client.Retriable(err) {
			t.Errorf("%s: %v, want an error that passes in about 100 seconds", name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// onClock runs a test in a bubble, whose clock goes on only while all wait.
func onClock(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}
