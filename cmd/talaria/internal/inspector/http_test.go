package inspector

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
)

// TestHTTP: requests of HTTP targets have their status and headers, in both eras.
func TestHTTP(t *testing.T) {
	handler := workbench(t).Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Served-For", "tenant:"+r.Header.Get("X-Tenant")) // a name that tells nothing
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	i := New(Options{Target: server.URL,
		Transport: func(_ io.Writer, around func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
			return client.HTTP(server.URL, &client.HTTPOptions{Client: &http.Client{Transport: around(http.DefaultTransport)}, Header: http.Header{"Authorization": {"Bearer hush-hush"}, "X-Tenant": {"quiet-tenant"}}}), nil
		},
		Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "" },
	})
	defer i.Close()
	for n, revision := range []string{"2026-07-28", "2025-11-25"} {
		ask(t, i, "POST", "/api/connect", `{"revision":"`+revision+`"}`, nil)
		until(t, i, func() bool { s := snapshot(i); return s.State != "connecting" && s.Connection == n+1 })
		finished(t, i, "sum", `{"a":1,"b":2}`)
		var page struct{ Rows []record.Row }
		until(t, i, func() bool {
			ask(t, i, "GET", "/api/traffic?kinds=request&text=tools/call", "", &page)
			return len(page.Rows) == n+1 && page.Rows[0].HTTP != 0
		})
		for secrets, hush := range map[string]bool{"": false, "?secrets=shown": true} {
			w := httptest.NewRecorder()
			API(i).ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprintf("/api/traffic/%d%s", page.Rows[0].Seq, secrets), nil))
			text := w.Body.String()
			if page.Rows[0].HTTP != 200 || !strings.Contains(text, `"name":"Content-Type"`) || strings.Contains(text, "hush-hush") != hush ||
				strings.Contains(text, "quiet-tenant") != hush || !hush && !strings.Contains(text, `"value":"tenant:***","secret":true`) ||
				strings.Contains(text, "Mcp-Session-Id") != (n == 1) {
				t.Errorf("%s%s: %d %s", revision, secrets, page.Rows[0].HTTP, text)
			}
		}
	}
}
