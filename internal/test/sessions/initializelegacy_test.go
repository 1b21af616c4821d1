package sessions_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

const metaInInitialize = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// initialize selects legacy semantics, whatever else the message or its headers
// say, and so do the messages of its session.
func TestInitializeIsLegacy(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125} {
		for _, tr := range harness.TransportsOf(rev) {
			for name, meta := range map[string]string{
				"none": "", "empty": `,"_meta":{}`, "modern": "," + metaInInitialize,
				"unknown": `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}`, "legacy": `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}`,
			} {
				t.Run(fmt.Sprint(rev, "/", tr.Name, "/", name), func(t *testing.T) {
					c := tr.Open(t, harness.Fixture(t, nil), rev)
					answer := strings.Join(c.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+rev.String()+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}`+meta+`}}`), "")
					if !strings.Contains(answer, `"protocolVersion":"`+rev.String()+`"`) {
						t.Fatalf("got %s", answer)
					}
					c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized","params":{` + strings.TrimPrefix(meta, ",") + `}}`)
					if answer = strings.Join(c.Say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`), ""); !strings.Contains(answer, `"tools":[`) {
						t.Errorf("got %s", answer)
					}
				})
			}
		}
	}
}

// initialize without a version for the session is, in a modern revision, a method that
// does not exist.
func TestInitializeOfModernRevision(t *testing.T) {
	for _, tr := range harness.Transports {
		t.Run(tr.Name, func(t *testing.T) {
			c := tr.Open(t, harness.Fixture(t, nil), protocol.Latest)
			for _, more := range []string{"", `"capabilities":{},`, `"protocolversion":"2025-11-25",`} {
				answer := strings.Join(c.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+more+metaInInitialize+`}}`), "")
				if !strings.Contains(answer, "-32601") {
					t.Errorf("%s: got %s", more, answer)
				}
			}
		})
	}
}

// The headers of a modern revision make no message of a legacy session a modern
// one.
func TestLegacySessionWithModernHeaders(t *testing.T) {
	for name, test := range map[string]struct {
		revisions []protocol.Revision
		version   string
		want      string // revision of the session; "" if initialize is refused
	}{
		"both eras":      {nil, "2026-07-28", "2025-11-25"},
		"legacy only":    {[]protocol.Revision{protocol.V20250618, protocol.V20251125}, "2026-07-28", "2025-11-25"},
		"modern only":    {[]protocol.Revision{protocol.V20260728}, "2026-07-28", ""},
		"legacy header":  {nil, "2025-06-18", "2025-11-25"},
		"unknown header": {nil, "2099-01-01", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Fixture(t, &mcp.Options{Revisions: test.revisions})
			server := httptest.NewServer(s.Handler())
			defer server.Close()
			session := ""
			do := func(method, version, body string) (int, string) {
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				req, err := http.NewRequestWithContext(ctx, method, server.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				req.Header.Set("MCP-Protocol-Version", version)
				req.Header.Set("Mcp-Method", "tools/list")
				req.Header.Set("Mcp-Name", "other")
				if session != "" {
					req.Header.Set("Mcp-Session-Id", session)
				}
				res, err := server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if id := res.Header.Get("Mcp-Session-Id"); id != "" {
					session = id
				}
				if method == http.MethodGet && res.StatusCode == http.StatusOK {
					return res.StatusCode, "" // a stream, which does not end
				}
				text, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return res.StatusCode, string(text)
			}
			status, text := do("POST", test.version, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			if test.want == "" {
				if status != http.StatusBadRequest || !strings.Contains(text, "-32022") || !strings.Contains(text, `"supported":["2026-07-28"`) {
					t.Errorf("initialize: %d %s", status, text)
				}
				return
			}
			if status != http.StatusOK || !strings.Contains(text, `"protocolVersion":"`+test.want+`"`) || session == "" {
				t.Fatalf("initialize: %d %s", status, text)
			}
			if test.revisions != nil {
				return // its other requests name a revision that the server does not have
			}
			if status, text := do("POST", test.version, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
				t.Errorf("initialized: %d %s", status, text)
			}
			if status, text := do("POST", test.version, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); status != http.StatusOK || !strings.Contains(text, `"tools":[`) || strings.Contains(text, "resultType") {
				t.Errorf("tools/list: %d %s", status, text)
			}
			if status, text := do("POST", test.version, `{"jsonrpc":"2.0","id":99,"result":{}}`); status != http.StatusAccepted {
				t.Errorf("an answer: %d %s", status, text)
			}
			if status, text := do("GET", test.version, ""); status != http.StatusOK {
				t.Errorf("GET: %d %s", status, text)
			}
			if status, text := do("DELETE", test.version, ""); status != http.StatusNoContent && status != http.StatusOK {
				t.Errorf("DELETE: %d %s", status, text)
			}
			if status, _ := do("POST", test.version, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`); status != http.StatusNotFound {
				t.Errorf("after DELETE: %d", status)
			}
		})
	}
}
