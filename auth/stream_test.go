package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
)

// Streams end with the token that they began with, calls do not.
func TestStreamsEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
		s.MustAdd(mcp.Tool("slow", func(f *mcp.Frame, _ struct{}) (string, error) {
			select {
			case <-f.Done():
				return "cut off", nil
			case <-time.After(time.Hour):
				return "done", nil
			}
		}))
		verifier := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
			return &auth.Identity{Subject: "alice", Expiry: time.Now().Add(time.Minute)}, nil
		})
		h := auth.Bearer(verifier, &auth.Options{Resource: resource})(s.Handler())
		ask := func(method, session, body string, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer x")
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		session := ask("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).Header().Get("Mcp-Session-Id")

		start := time.Now()
		if w := ask("GET", session, "", "Accept", "text/event-stream"); w.Code != http.StatusOK || time.Since(start) > 2*time.Minute {
			t.Errorf("the stream of a session: status %d, %v", w.Code, time.Since(start))
		}
		start = time.Now()
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`
		w := ask("POST", "", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
		if !strings.Contains(w.Body.String(), `"result"`) || time.Since(start) > 2*time.Minute {
			t.Errorf("a subscription: %v, %s", time.Since(start), w.Body)
		}
		start = time.Now()
		if w := ask("POST", session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`); !strings.Contains(w.Body.String(), "done") {
			t.Errorf("a call: %v, %s", time.Since(start), w.Body)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
