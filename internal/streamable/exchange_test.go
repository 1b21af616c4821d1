package streamable

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// event is how a message looks in a stream.
func event(message string) string { return "event: message\ndata: " + message + "\n\n" }

// A transcript for each way an answer can go.
func TestAnswers(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"n"}`
	const done = `{"jsonrpc":"2.0","id":1,"result":{"did":1}}`
	const failed = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`
	const json, events = "application/json", "text/event-stream"
	notes := func(n int, then func(c *Call) Answer) func(c *Call) Answer {
		return func(c *Call) Answer {
			for range n {
				if err := c.Send([]byte(note)); err != nil && !errors.Is(err, wire.ErrNoStream) {
					panic(err)
				}
			}
			return then(c)
		}
	}
	ok := func(c *Call) Answer { return result(c, "1") }
	none := func(*Call) Answer { return Answer{} }
	tests := []struct {
		name, accept string
		serve        func(c *Call) Answer
		status       int
		kind, body   string
	}{
		{"JSON", json + ", " + events, notes(0, ok), 200, json, done},
		{"one message before", json + ", " + events, notes(1, ok), 200, events, event(note) + event(done)},
		{"three messages before", events + ", " + json, notes(3, ok), 200, events, strings.Repeat(event(note), 3) + event(done)},
		{"error", json + ", " + events, notes(0, fails(protocol.CodeMethodNotFound)), 404, json, failed},
		{"error after a message", json + ", " + events, notes(1, fails(protocol.CodeMethodNotFound)), 200, events, event(note) + event(failed)},
		{"client without events", json, notes(2, ok), 200, json, done},
		{"client without JSON", events, notes(0, ok), 200, events, event(done)},
		{"client without JSON, error with a status", events, notes(0, fails(protocol.CodeMethodNotFound)), 404, json, failed},
		{"cancelled", json + ", " + events, notes(0, none), 200, events, ""},
		{"cancelled after a message", json + ", " + events, notes(1, none), 200, events, event(note)},
	}
	for _, tt := range tests {
		b := newBackend()
		b.serve = tt.serve
		w := post(New(b.as(), Options{}), call("m", ""), modern, "Mcp-Method: m", "Accept: "+tt.accept)
		if got := w.Header().Get("Content-Type"); w.Code != tt.status || got != tt.kind || w.Body.String() != tt.body {
			t.Errorf("%s: %d %s\n%s\nwant %d %s\n%s", tt.name, w.Code, got, w.Body, tt.status, tt.kind, tt.body)
		}
		buffering, cache := w.Header().Get("X-Accel-Buffering"), w.Header().Get("Cache-Control")
		if stream := tt.kind == events; (buffering == "no") != stream || strings.Contains(cache, "no-cache") != stream {
			t.Errorf("%s: X-Accel-Buffering %q, Cache-Control %q", tt.name, buffering, cache)
		}
	}
}

// Each message leaves at once, and none after the answer.
func TestSend(t *testing.T) {
	b := newBackend()
	var kept *Call
	var flushed []string
	w := httptest.NewRecorder()
	b.serve = func(c *Call) Answer {
		kept = c
		for i := range 2 {
			if err := c.Send(fmt.Append(nil, i)); err != nil {
				t.Error(err)
			}
			flushed = append(flushed, fmt.Sprint(w.Flushed, " ", strings.Count(w.Body.String(), "data:")))
		}
		return result(c, "1")
	}
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(call("m", "")))
	setHeaders(r, headers{content, accept, modern, "Mcp-Method: m"})
	New(b.as(), Options{}).ServeHTTP(w, r)
	if got := strings.Join(flushed, ", "); got != "true 1, true 2" {
		t.Errorf("after each message: %s", got)
	}
	before := w.Body.String()
	if err := kept.Send([]byte("late")); !errors.Is(err, wire.ErrAnswered) || w.Body.String() != before {
		t.Errorf("Send after the answer: %v, wrote %q; want ErrAnswered and nothing", err, w.Body.String()[len(before):])
	}
}

// A JSON answer ends the exchange as well.
func TestSendAfterJSON(t *testing.T) {
	for _, accept := range []string{accept, "Accept: application/json"} {
		b := newBackend()
		var kept *Call
		b.serve = func(c *Call) Answer { kept = c; return result(c, "1") }
		w := post(New(b.as(), Options{}), call("m", ""), modern, "Mcp-Method: m", accept)
		if err := kept.Send([]byte("late")); !errors.Is(err, wire.ErrAnswered) || strings.Contains(w.Body.String(), "late") {
			t.Errorf("%s: %v, body %s", accept, err, w.Body)
		}
	}
}

// A message is one event, whatever white space its JSON has.
func TestEventIsOneLine(t *testing.T) {
	b := newBackend()
	b.serve = func(c *Call) Answer {
		_ = c.Send([]byte("{\n\t\"a\":\r\n1}"))
		return Answer{Response: []byte("{\n}\r")}
	}
	w := post(New(b.as(), Options{}), call("m", ""), modern, "Mcp-Method: m")
	if got, want := w.Body.String(), event("{ \t\"a\":  1}")+event("{ } "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Goroutines of one handler may send at once, also while it answers.
func TestSendConcurrent(t *testing.T) {
	b := newBackend()
	var wg sync.WaitGroup
	b.serve = func(c *Call) Answer {
		for i := range 20 {
			wg.Go(func() {
				for range 5 {
					if err := c.Send(fmt.Appendf(nil, `{"n":%d}`, i)); err != nil && !errors.Is(err, wire.ErrAnswered) {
						t.Error(err)
					}
				}
			})
		}
		return result(c, "1")
	}
	w := post(New(b.as(), Options{}), call("m", ""), modern, "Mcp-Method: m")
	wg.Wait()
	body := w.Body.String()
	if w.Header().Get("Content-Type") == "application/json" {
		if !strings.HasPrefix(body, `{"jsonrpc"`) || strings.Contains(body, "data:") {
			t.Errorf("JSON and events are mixed: %q", body)
		}
		return
	}
	events := strings.SplitAfter(body, "\n\n")
	if last := len(events) - 2; last < 0 || !strings.Contains(events[last], `"result"`) {
		t.Errorf("the answer is not the last event: %q", body)
	}
	for _, e := range events[:len(events)-1] {
		if !strings.HasPrefix(e, "event: message\ndata: {") || strings.Count(e, "\n") != 3 {
			t.Errorf("event %q", e)
		}
	}
}

// A ResponseWriter that middleware has wrapped without Flush still works.
func TestPlainResponseWriter(t *testing.T) {
	b := newBackend()
	b.serve = func(c *Call) Answer {
		if err := c.Send([]byte(`{}`)); err != nil {
			t.Error(err)
		}
		return result(c, "1")
	}
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(call("m", "")))
	setHeaders(r, headers{content, accept, modern, "Mcp-Method: m"})
	w := httptest.NewRecorder()
	New(b.as(), Options{}).ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	if got, want := w.Body.String(), event(`{}`)+event(`{"jsonrpc":"2.0","id":1,"result":{"did":1}}`); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
