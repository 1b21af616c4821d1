package http_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// strangers are clients who are not https://a#alice, however alike.
var strangers = []string{"a/bob/x", "b/alice/x", "b/a.alice/x"}

// A session belongs to one subject of one issuer: for others it is unknown.
func TestSessionsOfOthers(t *testing.T) {
	s := harness.Fixture(t, nil)
	c := (&bearerClient{t: t, h: behind(s, auth.Options{}), rev: protocol.V20251125, token: "a/alice/x"}).open()
	for _, token := range strangers {
		other := c.as(token)
		if status, _, body := other.ask("tools/list", `{}`); status != http.StatusNotFound || !strings.Contains(body, "Session not found") {
			t.Errorf("%s: status %d, %s", token, status, body)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a stream that opens has no other end
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, method, "/mcp", nil)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Mcp-Session-Id", c.session)
			w := httptest.NewRecorder()
			c.h.ServeHTTP(w, r)
			if w.Code != http.StatusNotFound {
				t.Errorf("%s: %s: status %d", token, method, w.Code)
			}
		}
	}
	// Another token of hers is as good as the first.
	if status, _, _ := c.as("a/alice/y").ask("tools/list", `{}`); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	// Every request needs one.
	if status, challenge, _ := c.as("").ask("tools/list", `{}`); status != http.StatusUnauthorized || !strings.HasPrefix(challenge, "Bearer ") {
		t.Errorf("status %d, %q", status, challenge)
	}
}

// The session of another one ends when its owner does not use it, whatever others send.
func TestOthersKeepNoSession(t *testing.T) {
	requests := map[string]func() *http.Request{
		"request": func() *http.Request {
			return httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		},
		"notification": func() *http.Request {
			return httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		},
		"response": func() *http.Request {
			return httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		},
		"batch": func() *http.Request {
			return httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`))
		},
		"stream": func() *http.Request { return httptest.NewRequest(http.MethodGet, "/mcp", nil) },
		"resumed": func() *http.Request {
			r := httptest.NewRequest(http.MethodGet, "/mcp", nil)
			r.Header.Set("Last-Event-Id", "1")
			return r
		},
		"delete": func() *http.Request { return httptest.NewRequest(http.MethodDelete, "/mcp", nil) },
	}
	for name, request := range requests {
		for _, shared := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var store scale.Store
				if shared {
					store = scale.NewLocal()
				}
				ended := make(chan error, 1)
				s := harness.Bare(mcp.Options{
					Store: store, StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}, Timeouts: mcp.Timeouts{Session: time.Hour},
					OnSessionEnd: func(_ *mcp.Frame, reason error) { ended <- reason },
				})
				c := (&bearerClient{t: t, h: behind(s, auth.Options{}), rev: protocol.V20250326, token: "a/alice/x"}).open()
				if status, _, _ := c.ask("ping", `{}`); status != http.StatusOK {
					t.Fatalf("status %d", status)
				}
				for begun := time.Now(); len(ended) == 0 && time.Since(begun) < 10*time.Hour; time.Sleep(5 * time.Minute) {
					r := request()
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Accept", "application/json, text/event-stream")
					r.Header.Set("Authorization", "Bearer a/bob/x")
					r.Header.Set("Mcp-Session-Id", c.session)
					w := httptest.NewRecorder()
					c.h.ServeHTTP(w, r)
					if w.Code != http.StatusNotFound {
						t.Fatalf("%s: status %d, %s", name, w.Code, w.Body)
					}
				}
				select {
				case reason := <-ended:
					if !errors.Is(reason, mcp.ErrSessionIdle) {
						t.Errorf("%s: %v", name, reason)
					}
				default:
					t.Errorf("%s: the session lives for ever, with a store %v", name, shared)
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// A task belongs to who began it.
func TestTasksOfOthers(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	s.MustAdd(mcp.Tool("work", func(*mcp.Frame, struct{}) (string, error) { return "secret", nil }, mcp.AsTask(&mcp.TaskOptions{TTL: time.Minute, Wait: -1})))
	c := &bearerClient{t: t, h: behind(s, auth.Options{}), rev: protocol.Latest, token: "a/alice/x"}
	_, _, body := c.ask("tools/call", `{"name":"work"}`)
	var answer struct{ Result struct{ TaskID string } }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Result.TaskID == "" {
		t.Fatalf("%v: %s", err, body)
	}
	params := `{"taskId":"` + answer.Result.TaskID + `"}`
	_, _, unknown := c.ask("tasks/get", `{"taskId":"`+strings.Repeat("0", len(answer.Result.TaskID))+`"}`)
	for _, token := range strangers {
		for _, method := range []string{"tasks/get", "tasks/cancel"} {
			if _, _, body := c.as(token).ask(method, params); !strings.Contains(body, `"error"`) || strings.Contains(body, "secret") {
				t.Errorf("%s: %s: %s, of one that is not there %s", token, method, body, unknown)
			}
		}
	}
	if _, _, body := c.ask("tasks/get", params); strings.Contains(body, `"error"`) {
		t.Errorf("her own: %s", body)
	}
}

// A subscription to the tasks of others hears nothing of them.
func TestListensOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := harness.Bare(mcp.Options{})
		block := make(chan struct{})
		s.MustAdd(mcp.Tool("work", func(*mcp.Frame, struct{}) (string, error) { <-block; return "secret", nil }, mcp.AsTask(&mcp.TaskOptions{TTL: time.Minute, Wait: -1})))
		c := &bearerClient{t: t, h: behind(s, auth.Options{}), rev: protocol.Latest, token: "a/alice/x"}
		_, _, body := c.ask("tools/call", `{"name":"work"}`)
		var answer struct{ Result struct{ TaskID string } }
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Result.TaskID == "" {
			t.Fatalf("%v: %s", err, body)
		}
		heard := map[string]chan string{"a/alice/x": make(chan string, 1), "a/bob/x": make(chan string, 1), "b/alice/x": make(chan string, 1)}
		for token, to := range heard {
			go func() {
				_, _, body := c.as(token).ask("subscriptions/listen", `{"notifications":{"toolsListChanged":true,"taskIds":["`+answer.Result.TaskID+`"]}}`)
				to <- body
			}()
		}
		synctest.Wait()
		close(block)
		synctest.Wait()
		if err := s.Shutdown(t.Context()); err != nil { // ends the subscriptions
			t.Fatal(err)
		}
		for token, from := range heard {
			body := <-from
			if !strings.Contains(body, "acknowledged") || strings.Contains(body, answer.Result.TaskID) != (token == c.token) {
				t.Errorf("%s heard: %s", token, body)
			}
		}
	})
}

// The state of a question opens for who was asked alone.
func TestStateOfOthers(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
		answer, err := mcp.Elicit[struct {
			OK bool `json:"ok"`
		}](f, "sure", "Sure?")
		if err != nil {
			return "", err
		}
		if !answer.Accepted() || !answer.Value.OK {
			return "no", nil
		}
		return "done", nil
	}))
	c := &bearerClient{t: t, h: behind(s, auth.Options{}), rev: protocol.Latest, token: "a/alice/x"}
	_, _, body := c.ask("tools/call", `{"name":"ask"}`)
	var asked struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(body), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatalf("%v: %s", err, body)
	}
	again := `{"name":"ask","requestState":"` + asked.Result.RequestState + `","inputResponses":{"sure":{"action":"accept","content":{"ok":true}}}}`
	for token, want := range map[string]string{"a/bob/x": `"error"`, "b/alice/x": `"error"`, "a/alice/y": "done"} {
		if _, _, body := c.as(token).ask("tools/call", again); !strings.Contains(body, want) {
			t.Errorf("%s: %s", token, body)
		}
	}
}
