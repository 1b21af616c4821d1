package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// post sends a message to a proxy, over HTTP and in a session, and returns the answer.
func post(p *Proxy, session, text string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	p.Server().Handler().ServeHTTP(w, r)
	return w
}

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	lists = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// Abandoned sessions keep no more connections than Options say, and those for no longer.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened atomic.Int32
		to := connect(t, behind(), protocol.V20250618)
		p := start(t, Options{Sessions: 3, Idle: time.Minute, Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
			opened.Add(1)
			return to(ctx, o)
		}})
		refused := 0
		for range 40 {
			session := post(p, "", hello).Header().Get("Mcp-Session-Id")
			if session == "" {
				refused++
				continue
			}
			post(p, session, ready)
			if w := post(p, session, lists); !strings.Contains(w.Body.String(), "echo") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		}
		p.backends.mu.Lock()
		open := len(p.backends.sessions)
		p.backends.mu.Unlock()
		if open != 3 || refused != 37 || opened.Load() != 4 { // one is shared
			t.Errorf("%d connections of sessions, %d refused, %d opened", open, refused, opened.Load())
		}
		time.Sleep(3 * time.Minute)
		p.backends.mu.Lock()
		open = len(p.backends.sessions)
		p.backends.mu.Unlock()
		if open != 0 || post(p, "", hello).Header().Get("Mcp-Session-Id") == "" {
			t.Errorf("%d connections are left, or there is no room", open)
		}
	})
}

// The first requests of a session open one connection together, which is closed if the
// session has ended when it is there.
func TestOpenedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened atomic.Int32
		to := connect(t, behind(), protocol.V20250618)
		p := start(t, Options{Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
			if opened.Add(1) > 1 {
				time.Sleep(time.Second)
			}
			return to(ctx, o)
		}})
		session := post(p, "", hello).Header().Get("Mcp-Session-Id")
		post(p, session, ready)
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() {
				if w := post(p, session, strings.Replace(lists, `"id":2`, fmt.Sprintf(`"id":"%d"`, i), 1)); !strings.Contains(w.Body.String(), "echo") {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			})
		}
		calls.Wait()
		if n := opened.Load(); n != 2 {
			t.Errorf("%d connections were opened, want the shared one and one", n)
		}
		late := post(p, "", hello).Header().Get("Mcp-Session-Id")
		post(p, late, ready)
		calls.Go(func() { post(p, late, lists) })
		synctest.Wait()
		if err := p.backends.leave(late); err != nil {
			t.Error(err)
		}
		calls.Wait()
		p.backends.mu.Lock()
		defer p.backends.mu.Unlock()
		if o := p.backends.sessions[late]; o != nil {
			t.Errorf("the session that has ended has %+v", o)
		}
	})
}
