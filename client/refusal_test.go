package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// An error for a lack of credentials says how to give some.
func TestUnauthorized(t *testing.T) {
	url := handler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	for name, tr := range map[string]Transport{"http": HTTP(url, nil), "sse": SSE(url, nil)} {
		_, err := Connect(t.Context(), tr, nil)
		if StatusCode(err) != http.StatusUnauthorized || Retriable(err) {
			t.Errorf("%s: status %d, Retriable %v", name, StatusCode(err), Retriable(err))
		}
		said := strings.ReplaceAll(fmt.Sprint(err), url, "") // its port may have any digits
		for _, want := range []string{"401", "HTTPOptions.Header", "HeaderFunc", "auth/oauth"} {
			if strings.Count(said, want) != 1 {
				t.Errorf("%s: %v, want %s once", name, err, want)
			}
		}
	}
}

// What is refused for want of rights has its status and its JSON-RPC error.
func TestStatusCodeOfAnAnswer(t *testing.T) {
	tests := []struct{ status, want int }{{http.StatusUnauthorized, 401}, {http.StatusForbidden, 403}, {http.StatusBadRequest, 0}, {http.StatusOK, 0}}
	for _, tt := range tests {
		server := fixture(t, nil).Handler()
		url := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") != protocol.MethodToolsCall {
				server.ServeHTTP(w, r)
				return
			}
			body, err := io.ReadAll(r.Body)
			var m protocol.Message
			if fault := wire.Scan(body, &m); err != nil || fault != nil {
				t.Errorf("%s: %v, %v", body, err, fault)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tt.status)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":4711,"message":"scope files:write is missing","data":{"scope":"files:write"}}}`, m.ID)
		}))
		c := connect(t, HTTP(url, nil), modernOptions())
		_, err := c.Call(t.Context(), "sum", sumIn{1, 2})
		if got := StatusCode(err); got != tt.want {
			t.Errorf("%d: StatusCode %d, want %d", tt.status, got, tt.want)
		}
		own, ok := errors.AsType[*Error](err)
		if !ok || own.Code != 4711 || string(own.Data) != `{"scope":"files:write"}` || !strings.Contains(err.Error(), "files:write is missing") {
			t.Errorf("%d: %+v", tt.status, err)
		}
		if stats := c.Stats(); stats.Failed != 1 || stats.Pending != 0 {
			t.Errorf("%d: %+v", tt.status, stats)
		}
	}
}
