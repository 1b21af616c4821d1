package harness

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
)

// Do serves one request of a session, "" for none, within the process.
func Do(s *mcp.Server, ctx context.Context, method, session, body string, w http.ResponseWriter) {
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	s.Handler().ServeHTTP(w, r)
}

// Initialized opens a session.
func Initialized(t *testing.T, s *mcp.Server) string {
	t.Helper()
	w := httptest.NewRecorder()
	Do(s, t.Context(), http.MethodPost, "", InitLine, w)
	id := w.Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	Do(s, t.Context(), http.MethodPost, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, httptest.NewRecorder())
	return id
}
