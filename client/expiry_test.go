package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// forgetful is an HTTP server that can forget its sessions.
type forgetful struct {
	inner http.Handler

	mu       sync.Mutex
	sessions map[string]bool // true until forgotten
	inits    int
	stale    int      // initializations with the id of a session
	calls    []string // tools that were called, whatever the answer
	stubborn bool     // forgets each session right after initialize
	// refuse answers for a session that is forgotten; nil means status 404.
	refuse func(w http.ResponseWriter, id string)
}

func (s *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	id := r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	call := strings.Contains(string(body), `"tools/call"`)
	if call {
		s.calls = append(s.calls, id)
	}
	if strings.Contains(string(body), `"initialize"`) {
		s.inits++
		if id != "" {
			s.stale++
		}
	}
	known := id == "" || s.sessions[id] && !(s.stubborn && call)
	s.mu.Unlock()
	if !known && s.refuse != nil {
		_, id, _ := strings.Cut(string(body), `"id":`)
		id, _, _ = strings.Cut(id, ",")
		s.refuse(w, id)
		return
	}
	if !known {
		http.Error(w, "Session not found", http.StatusNotFound)
		return
	}
	s.inner.ServeHTTP(w, r)
	if id := w.Header().Get("Mcp-Session-Id"); id != "" {
		s.mu.Lock()
		s.sessions[id] = true
		s.mu.Unlock()
	}
}

// forget forgets all sessions.
func (s *forgetful) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
	s.calls, s.inits = nil, 0
}

// counts returns how many calls and initializations there were since.
func (s *forgetful) counts() (calls, inits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls), s.inits
}

// A session that the server has forgotten is begun anew, once, and a call that it
// has refused for that is repeated in the new one, whatever it does: it was not
// processed.
func TestSessionForgotten(t *testing.T) {
	tests := []struct {
		name     string
		tool     string
		options  []CallOption
		stubborn bool
		want     error
		calls    int
	}{
		{"safe", "sum", nil, false, nil, 2},
		{"said to be safe", "media", []CallOption{Idempotent()}, false, nil, 2},
		{"unsafe", "media", nil, false, nil, 2},
		{"not to be repeated", "sum", []CallOption{Retry(1)}, false, ErrSessionExpired, 1},
		{"unsafe and not to be repeated", "media", []CallOption{Retry(1)}, false, ErrSessionExpired, 1},
		{"forgotten again", "sum", nil, true, ErrSessionExpired, 2},
		{"unsafe, forgotten again", "media", nil, true, ErrSessionExpired, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &forgetful{inner: fixture(t, nil).Handler(), sessions: map[string]bool{}}
			c := connect(t, HTTP(handler(t, s), &HTTPOptions{NoStream: true}), only(protocol.V20251125))
			for _, err := range c.Tools(t.Context()) { // their hints say what is safe
				if err != nil {
					t.Fatal(err)
				}
			}
			s.forget()
			s.mu.Lock()
			s.stubborn = tt.stubborn
			s.mu.Unlock()
			var args any
			if tt.tool == "sum" {
				args = sumIn{1, 2}
			}
			_, err := c.Call(t.Context(), tt.tool, args, tt.options...)
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err != nil && !Retriable(err) {
				t.Errorf("%v is not retriable", err)
			}
			if calls, _ := s.counts(); calls != tt.calls {
				t.Errorf("%d calls, want %d", calls, tt.calls)
			}
			if tt.stubborn {
				return
			}
			// Whatever became of the call, there is a new session.
			if err := c.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Call(t.Context(), "sum", sumIn{1, 2}); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if _, inits := s.counts(); inits != 1 {
				t.Errorf("%d initializations, want 1", inits)
			}
		})
	}
}

// Servers have more than one way to say that they do not have a session. What says
// nothing of the kind ends no session.
func TestSessionForgottenForms(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string // ID is that of the request
		renew  bool
	}{
		{404, "", true},
		{404, "<html>not found", true},
		{404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, true},
		{404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"Session has been terminated"}}`, true},
		{404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`, false},
		{400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`, true},
		{400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"Invalid session"}}`, true},
		{400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`, true},
		{400, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Invalid or expired session ID"}}`, true},
		{400, "Invalid session ID\n", true},
		{400, "Bad Request: unknown session", true},
		{410, "session expired", true},
		{400, "Bad Request", false},
		{400, "the session is busy", false},
		{400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"argument session: not found"}}`, false},
		{500, "session not found", false},
	} {
		for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20250618, protocol.V20251125} {
			t.Run(fmt.Sprintf("%d/%.60s/%v", tt.status, tt.body, rev), func(t *testing.T) {
				s := &forgetful{inner: fixture(t, nil).Handler(), sessions: map[string]bool{}}
				s.refuse = func(w http.ResponseWriter, id string) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, strings.Replace(tt.body, "ID,", id+",", 1))
				}
				c := connect(t, HTTP(handler(t, s), &HTTPOptions{NoStream: true}), only(rev))
				s.forget()
				_, err := c.Call(t.Context(), "media", nil)
				calls, inits := s.counts()
				if (err == nil) != tt.renew || (inits == 1) != tt.renew || (calls == 2) != tt.renew {
					t.Errorf("%v after %d calls and %d initializations", err, calls, inits)
				}
				s.refuse = nil
			})
		}
	}
}

// In every revision with sessions, a 404 for one leads to an initialize without its
// id, and what follows is said in the new session.
func TestSessionRenegotiated(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20250618, protocol.V20251125} {
		s := &forgetful{inner: fixture(t, nil).Handler(), sessions: map[string]bool{}}
		c := connect(t, HTTP(handler(t, s), nil), only(rev))
		if _, err := c.Call(t.Context(), "sum", sumIn{1, 2}); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		before := s.calls[0]
		s.mu.Unlock()
		s.forget()
		for range 2 {
			if _, err := c.Call(t.Context(), "sum", sumIn{1, 2}, Idempotent()); err != nil {
				t.Fatalf("%s: %v", rev, err)
			}
		}
		s.mu.Lock()
		if s.inits != 1 || s.stale != 0 || len(s.calls) != 3 || s.calls[0] != before || s.calls[1] == before || s.calls[1] != s.calls[2] {
			t.Errorf("%s: %d initializations, %d with an old session; %q was the session, and then the calls had %q", rev, s.inits, s.stale, before, s.calls)
		}
		s.mu.Unlock()
	}
}

// Many calls that find out at once share one new session.
func TestSessionForgottenTogether(t *testing.T) {
	s := &forgetful{inner: fixture(t, nil).Handler(), sessions: map[string]bool{}}
	c := connect(t, HTTP(handler(t, s), nil), only(protocol.V20250618))
	for _, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.forget()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { // whose tool may do anything
			if _, err := c.Call(t.Context(), "media", nil); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{i, 1}); err != nil || sum.Sum != i+1 {
				t.Errorf("%d + 1 = %v, %v", i, sum, err)
			}
		})
	}
	wg.Wait()
	if _, inits := s.counts(); inits != 1 {
		t.Errorf("%d initializations, want 1", inits)
	}
}

// What else a client sends in a session is repeated as calls are.
func TestSessionForgottenElsewhere(t *testing.T) {
	ctx := context.Background()
	sends := map[string]func(c *Client) error{
		"a notification": func(c *Client) error { return c.Notify(ctx, "notifications/mine", nil) },
		"roots":          func(c *Client) error { return c.SetRoots(ctx, []Root{{URI: "file:///a"}}) },
		"a subscription": func(c *Client) error {
			_, err := c.Listen(ctx, Filter{ResourceSubscriptions: []string{"test://a"}}, nil)
			return err
		},
		"a level": func(c *Client) error { return c.SetLevel(ctx, protocol.LevelError) },
		"a batch": func(c *Client) error {
			results, err := c.Batch(ctx, Operation{Method: "ping"}, Operation{Method: "tools/call", Params: map[string]any{"name": "media"}})
			for _, result := range results {
				err = errors.Join(err, result.Err)
			}
			return err
		},
	}
	for what, send := range sends {
		s := &forgetful{inner: fixture(t, nil).Handler(), sessions: map[string]bool{}}
		opts := only(protocol.V20250326)
		opts.Roots = []Root{}
		c := connect(t, HTTP(handler(t, s), &HTTPOptions{NoStream: true}), opts)
		s.forget()
		if err := send(c); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, inits := s.counts(); inits != 1 {
			t.Errorf("%s: %d initializations, want 1", what, inits)
		}
	}
}

// A call that was processed, and whose answer is lost with the session, is not
// repeated.
func TestSessionForgottenWithAnswer(t *testing.T) {
	s := &forgetful{inner: fixture(t, nil).Handler(), sessions: map[string]bool{}}
	cut := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"media"`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "retry: 1\nid: 7\ndata:\n\n")
			s.forget()
			s.mu.Lock()
			s.calls = append(s.calls, "media")
			s.mu.Unlock()
			return
		}
		s.ServeHTTP(w, r)
	})
	c := connect(t, HTTP(handler(t, cut), &HTTPOptions{NoStream: true}), only(protocol.V20251125))
	if _, err := c.Call(t.Context(), "media", nil); !errors.Is(err, ErrSessionExpired) {
		t.Errorf("%v, want ErrSessionExpired", err)
	}
	if calls, _ := s.counts(); calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

// oldServer speaks HTTP+SSE without a network, so that time can be false: it
// serves one session, whose stream can be cut and come back.
type oldServer struct {
	begin time.Time
	last  chan struct{} // closed when the last event is written

	mu     sync.Mutex
	stream *io.PipeWriter
	fail   int // GETs that are refused next
	gets   []time.Duration
	held   []string // answers while there is no stream
}

// RoundTrip implements http.RoundTripper.
func (s *oldServer) RoundTrip(r *http.Request) (*http.Response, error) {
	res := &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		switch text := string(body); {
		case strings.Contains(text, `"initialize"`):
			s.say(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`)
		case strings.Contains(text, `"tools/call"`):
			s.held = append(s.held, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"late"}]}}`)
		}
		return res, nil
	}
	s.gets = append(s.gets, time.Since(s.begin))
	if s.fail > 0 {
		s.fail--
		return nil, errors.New("connection refused")
	}
	var body *io.PipeReader
	body, s.stream = io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
	res.StatusCode, res.Body = http.StatusOK, body
	res.Header.Set("Content-Type", "text/event-stream")
	s.say("/messages")
	for _, answer := range s.held {
		s.say(answer)
	}
	return res, nil
}

// say writes an event, after the answer to what the client is sending.
func (s *oldServer) say(data string) {
	kind := "message"
	if !strings.HasPrefix(data, "{") {
		kind = "endpoint"
	}
	w := s.stream
	before := s.last
	done := make(chan struct{})
	s.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}()
}

// cut ends the stream and refuses the next GETs.
func (s *oldServer) cut(fail int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.gets, s.begin = fail, nil, time.Now()
	_ = s.stream.Close()
}

// A stream that drops comes back after 1 s times the square of the attempt, and
// the call that waits gets its answer; after five refusals all calls fail and
// the client is disconnected.
func TestStreamDrops(t *testing.T) {
	tests := []struct {
		name  string
		fail  int
		gets  []time.Duration
		state State
	}{
		{"drops and refuses twice", 2, []time.Duration{1e9, 5e9, 14e9}, StateReady},
		{"refuses for good", 6, []time.Duration{1e9, 5e9, 14e9, 29e9, 44e9}, StateDisconnected},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &oldServer{begin: time.Now()}
				opts := only(protocol.V20241105)
				opts.NoReconnect, opts.Timeout = true, time.Hour
				c, err := Connect(t.Context(), SSE("http://example.com/sse", &HTTPOptions{Client: &http.Client{Transport: s}}), opts)
				if err != nil {
					t.Fatal(err)
				}
				type outcome struct {
					text string
					err  error
				}
				result := make(chan outcome, 1)
				go func() {
					r, err := c.Call(t.Context(), "slow", nil)
					if err != nil {
						result <- outcome{err: err}
						return
					}
					result <- outcome{text: r.Text()}
				}()
				synctest.Wait()
				s.cut(tt.fail)
				switch got := <-result; {
				case tt.state == StateReady && (got.err != nil || got.text != "late"):
					t.Errorf("%q, %v", got.text, got.err)
				case tt.state != StateReady && !errors.Is(got.err, ErrConnection):
					t.Errorf("%q, %v, want ErrConnection", got.text, got.err)
				}
				synctest.Wait()
				if !slices.Equal(s.gets, tt.gets) || c.State() != tt.state {
					t.Errorf("GETs at %v, then %v; want %v, then %v", s.gets, c.State(), tt.gets, tt.state)
				}
				_ = c.Close()
			})
		})
	}
}
