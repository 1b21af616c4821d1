package harness

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

var LegacyRevisions = []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125}

// asking the endpoint directly, without a socket.
type Direct struct {
	T         *testing.T
	S         *mcp.Server
	Principal string
}

func (d Direct) Do(method, id, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://example.com/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if id != "" {
		r.Header.Set("Mcp-Session-Id", id)
	}
	ctx := r.Context()
	if method == "GET" { // a stream that opens has no other end
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	w := httptest.NewRecorder()
	d.S.Handler().ServeHTTP(w, r.WithContext(core.WithPrincipal(ctx, d.Principal)))
	return w
}

func (d Direct) Open(name string) string {
	d.T.Helper()
	w := d.Do("POST", "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`, name))
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != 200 || id == "" {
		d.T.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}
