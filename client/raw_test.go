package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// OnRequest answers in legacy and modern revisions, and nothing is declared, filled in or checked
// beside it.
func TestOnRequest(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		var mu sync.Mutex
		var asked []string
		exact := false // the form's default was not filled in here
		opts := only(rev)
		opts.Trace = func(fromServer bool, message []byte) {
			mu.Lock()
			defer mu.Unlock()
			exact = exact || !fromServer && strings.Contains(string(message), `"content":{"name":"Ada"}`)
		}
		opts.Tasks, opts.Roots = TasksOff, []protocol.Root{{URI: "file:///unused"}}
		opts.Capabilities = protocol.ClientCapabilities{Sampling: &protocol.SamplingCapability{}, Elicitation: &protocol.ElicitationCapability{}}
		opts.OnRequest = func(_ context.Context, method string, params json.RawMessage) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, method+" "+string(jsonx.Lookup(params, []string{"message"})))
			return map[string]any{"action": "accept", "content": map[string]string{"name": "Ada"}}, nil
		}
		c := connect(t, serving(t, fixture(t, nil)), opts)
		if got := c.caps; got.Roots != nil || got.Extensions != nil {
			t.Errorf("declared %+v", got)
		}
		if !rev.Has(protocol.FeatureElicitation) {
			return
		}
		got, err := Call[string](t.Context(), c, "greet", nil)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || got != "Hello, red Ada!" || !exact {
			t.Errorf("%q, %v; as it was given: %v", got, err, exact)
		}
		if want := []string{`elicitation/create "Who are you?"`}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
}

// The capabilities go out as they stand, also where the revision lacks them.
func TestOnRequestDeclares(t *testing.T) {
	declared := make(chan string, 1)
	tr := scripted(t, func(s *script) {
		h := s.until("initialize")
		declared <- string(jsonx.Lookup(h.Params, []string{"capabilities"}))
		s.result(h, `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"script","version":"1"}}`)
		s.drain()
	})
	can := protocol.ClientCapabilities{
		Elicitation: &protocol.ElicitationCapability{URL: &struct{}{}},
		Extensions:  map[string]json.RawMessage{tasksExtension: json.RawMessage(`{}`)},
	}
	connect(t, tr, &Options{
		Revisions: []protocol.Revision{protocol.V20241105}, Capabilities: can,
		OnRequest: func(context.Context, string, json.RawMessage) (any, error) { return nil, nil },
	})
	want, err := json.Marshal(can)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-declared; got != string(want) {
		t.Errorf("declared %s, want %s", got, want)
	}
}

// What OnRequest returns is what the server gets.
func TestOnRequestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		result any
		err    error
		want   string
	}{
		"result":      {"x/own", json.RawMessage(`{"a":[1]}`), nil, `"result":{"a":[1]}`},
		"ping":        {"ping", nil, errors.New("not asked"), `"result":{}`},
		"fault":       {"roots/list", nil, fmt.Errorf("so: %w", &protocol.Error{Code: 42, Message: "no"}), `"error":{"code":42,"message":"no"}`},
		"error":       {"roots/list", nil, errors.New("no"), `"error":{"code":-1,"message":"no"}`},
		"unencodable": {"roots/list", func() {}, nil, `does not encode`},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			tr := scripted(t, func(s *script) {
				s.legacyHello("2025-06-18")
				s.say(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{"a":1}}`, tt.method)
				if h := s.next(); h != nil {
					got <- h.raw
				}
				s.drain()
			})
			opts := *legacy
			opts.OnRequest = func(_ context.Context, method string, params json.RawMessage) (any, error) {
				if method != tt.method || string(params) != `{"a":1}` {
					t.Errorf("asked %s %s", method, params)
				}
				return tt.result, tt.err
			}
			connect(t, tr, &opts)
			if answer := <-got; !strings.Contains(answer, tt.want) {
				t.Errorf("answer %s, want %s", answer, tt.want)
			}
		})
	}
}

// Trace hears every message of both sides, in the order of the link, also the
// errors that come with an HTTP status.
func TestTrace(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		s.MustAdd(mcp.Tool("secret", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, mcp.Scopes("secrets")))
		for name, tr := range map[string]Transport{"pipe": serving(t, s), "http": HTTP(handler(t, s.Handler()), &HTTPOptions{NoStream: true})} {
			var mu sync.Mutex
			var sides [2][]string // of the server, of the client
			opts := only(rev)
			opts.Trace = func(fromServer bool, message []byte) {
				var m heard
				if err := json.Unmarshal(message, &m); err != nil {
					t.Errorf("%s: %v", message, err)
				}
				what := m.Method
				switch {
				case m.Error != nil:
					what = "error"
				case what == "":
					what = "result"
				}
				mu.Lock()
				defer mu.Unlock()
				side := 1
				if fromServer {
					side = 0
				}
				sides[side] = append(sides[side], what)
			}
			if rev.Modern() {
				opts.LogLevel = protocol.LevelDebug
			}
			c := connect(t, tr, opts)
			if _, err := c.Call(t.Context(), "work", nil, OnProgress(func(Progress) {})); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Call(t.Context(), "secret", nil); err == nil {
				t.Error("no error")
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			progress := "notifications/progress "
			hello, bye := "initialize notifications/initialized ", "result "
			if rev.Modern() {
				hello = "server/discover "
			}
			if got, want := strings.Join(sides[1], " "), hello+"tools/call tools/call"; got != want {
				t.Errorf("%s: sent %s, want %s", name, got, want)
			}
			if got, want := strings.Join(sides[0], " "), bye+strings.Repeat(progress, 3)+"notifications/message result error"; got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	})
}

// A progress token of the caller's own goes out, unless the client needs one.
func TestOwnProgressToken(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []CallOption
		want    string
	}{
		{"own", nil, `"progressToken":"mine"`},
		{"callback", []CallOption{OnProgress(func(Progress) {})}, `"progressToken":2`},
	} {
		got := make(chan string, 1)
		tr := scripted(t, func(s *script) {
			s.legacyHello("2025-06-18")
			h := s.until("x/own")
			got <- h.raw
			s.result(h, `{}`)
			s.drain()
		})
		c := connect(t, tr, legacy)
		if err := c.Request(t.Context(), "x/own", json.RawMessage(`{"_meta":{"progressToken":"mine"}}`), nil, tt.options...); err != nil {
			t.Error(err)
		}
		if text := <-got; !strings.Contains(text, `"_meta":{`+tt.want+`}`) {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
}

// A client without limits does not ask for progress.
func TestNoLimitNoToken(t *testing.T) {
	in(t, &Options{Timeout: -1, MaxTimeout: -1}, func(s *script) {
		h := s.until("tools/call")
		if strings.Contains(h.raw, "progressToken") {
			t.Errorf("sent %s", h.raw)
		}
		time.Sleep(2 * 10 * time.Minute)
		s.result(h, `{"content":[]}`)
		s.drain()
	}, func(t *testing.T, c *Client) {
		if _, err := c.Call(t.Context(), "x", nil); err != nil {
			t.Error(err)
		}
	})
}

// Tasks that are declared by hand are driven by hand.
func TestTasksDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := modernOptions()
		opts.Tasks = TasksOff
		opts.Capabilities.Extensions = map[string]json.RawMessage{tasksExtension: json.RawMessage(`{}`)}
		c := connect(t, serving(t, tasking(t)), opts)
		r, err := c.Call(t.Context(), "later", sumIn{2, 3})
		if err != nil || r.Task == nil {
			t.Errorf("Call: %+v, %v", r, err)
		}
		var raw json.RawMessage
		if err := c.Request(t.Context(), protocol.MethodToolsCall, map[string]any{"name": "later", "arguments": sumIn{2, 3}}, &raw); err != nil || resultType(raw) != "task" {
			t.Errorf("Request: %s, %v", raw, err)
		}
		time.Sleep(4 * time.Second) // until the tools have run
	})
}

// A client that neither repeats nor reconnects does not begin a new session.
func TestSessionOver(t *testing.T) {
	s := &forgetful{inner: fixture(t, nil).Handler(), sessions: map[string]bool{}}
	opts := only(protocol.V20251125)
	opts.NoReconnect = true
	c := connect(t, HTTP(handler(t, s), &HTTPOptions{NoStream: true}), opts)
	s.forget()
	if err := c.Ping(t.Context(), Retry(1)); !errors.Is(err, ErrSessionExpired) {
		t.Errorf("%v, want that the session has expired", err)
	}
	if err := c.Ping(t.Context()); !errors.Is(err, ErrConnection) || c.State() != StateDisconnected {
		t.Errorf("%v, and %v", err, c.State())
	}
	if _, inits := s.counts(); inits != 0 {
		t.Errorf("%d initializations", inits)
	}
}

// A caller's own initialize within a session is a request of that session.
func TestInitializeAgain(t *testing.T) {
	var mu sync.Mutex
	var sessions []string
	inner := fixture(t, nil).Handler()
	url := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sessions = append(sessions, r.Header.Get("Mcp-Session-Id"))
		mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	c := connect(t, HTTP(url, &HTTPOptions{NoStream: true}), only(protocol.V20251125))
	if err := c.Request(t.Context(), protocol.MethodInitialize, json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`), nil); err == nil {
		t.Error("a session was initialized twice")
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("the session has gone: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if own := sessions[1]; own == "" || !slices.Equal(sessions, []string{"", own, own, own}) {
		t.Errorf("sessions %q", sessions)
	}
}
