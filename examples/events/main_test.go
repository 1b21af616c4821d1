package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

// A comment reaches those who watch its document, and no others.
func TestComments(t *testing.T) {
	var s *mcp.Server
	mcptest.Each(t, func() *mcp.Server { s = newServer(nil); return s }, func(t *testing.T, c *mcptest.Client) {
		mine, other := c.Watch("comment.created", Watch{"doc_1"}), c.Watch("comment.created", Watch{"doc_2"})
		c.Call("add_comment", Comment{"doc_1", "Hello"})
		if o := mine.Next(); !strings.HasPrefix(o.ID, "comment-") || string(o.Data) != `{"document":"doc_1","text":"Hello"}` {
			t.Errorf("received %+v: %s", o, o.Data)
		}
		mine.None()
		other.None()
	})
}

// A receiver gets each comment once, over restarts of it and of the server; what others send
// is refused.
func TestReceiver(t *testing.T) {
	var mu sync.Mutex
	var got []string
	path, store := filepath.Join(t.TempDir(), "state.json"), scale.NewLocal()
	receiver := func() *Receiver {
		r, err := NewReceiver(path, func(e Event) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(e.Data))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	wait := func(n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			have := len(got)
			mu.Unlock()
			if have == n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("received %d comments, want %d", have, n)
			}
		}
	}
	r := receiver()
	var handler atomic.Pointer[Receiver]
	handler.Store(r)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handler.Load().ServeHTTP(w, req) }))
	defer endpoint.Close()
	texts := []string{"one", "two", "three"}
	for i, text := range texts {
		s := newServer(&mcp.Options{Webhooks: &mcp.WebhookOptions{Loopback: true}, Store: store, StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}})
		host := httptest.NewServer(serve(s))
		ctx, cancel := context.WithCancel(t.Context())
		c, err := client.Connect(ctx, client.HTTP(host.URL, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 { // later, the server has it from its store
			if err := r.Subscribe(ctx, c, "doc_1", endpoint.URL); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Call(ctx, "add_comment", Comment{"doc_1", text}); err != nil {
			t.Fatal(err)
		}
		wait(i + 1)
		cancel()
		_ = c.Close()
		host.Close()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		r = receiver() // another process has the file
		handler.Store(r)
	}
	forged := httptest.NewRecorder()
	r.ServeHTTP(forged, httptest.NewRequest("POST", "/", strings.NewReader(`{"eventId":"x","data":{}}`)))
	if forged.Code != 401 {
		t.Errorf("a forged event: %d", forged.Code)
	}
	if want := []string{`{"document":"doc_1","text":"one"}`, `{"document":"doc_1","text":"two"}`, `{"document":"doc_1","text":"three"}`}; !slices.Equal(got, want) {
		t.Errorf("received %v", got)
	}
}
