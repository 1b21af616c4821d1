package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

// regionIn has an argument that clients repeat in a header.
type regionIn struct {
	Region string `json:"region,omitempty" mcp:"header=Region"`
}

// Arguments that headers mirror are compared with them where the client speaks 2026-07-28
// over HTTP (basic/transports/streamable-http), whether one connection serves all callers
// or each has its own. Calls over other transports, of other revisions and of other tools
// have no such headers.
func TestMirroredArguments(t *testing.T) {
	for era, rev := range eras {
		behind := newServer(t, "behind", nil, rev)
		tool := mcp.Tool("where", func(_ *mcp.Frame, in regionIn) (string, error) { return "in " + in.Region, nil }, mcp.ReadOnly())
		behind.MustAdd(tool, mcp.Tool("echo", func(_ *mcp.Frame, in greetIn) (greetIn, error) { return in, nil }))
		for kind, up := range map[string]Upstream{
			"shared": {Transport: local(behind), Shared: true},
			"own":    {Transport: local(behind), For: own(behind)},
		} {
			t.Run(era+"/"+kind, func(t *testing.T) {
				_, s := start(t, map[string]Upstream{"up": up})
				front := httptest.NewServer(s.Handler())
				defer front.Close()
				socket := httptest.NewServer(websocket.Handler(s))
				defer socket.Close()
				call := func(tool, args string, headers ...string) (int, string) {
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
						"io.modelcontextprotocol/clientInfo":{"name":"ada","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args)
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL, strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
						"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
						r.Header.Set(name, value)
					}
					for _, value := range headers {
						r.Header.Add("Mcp-Param-Region", value)
					}
					return do(t, r)
				}
				for _, test := range []struct {
					tool, args string
					headers    []string
					want       string // a part of the answer
				}{
					{"up_where", `{"region":"eu"}`, []string{"eu"}, `"in eu"`},
					{"up_where", `{"region":"eu"}`, []string{"=?base64?ZXU=?="}, `"in eu"`},
					{"up_where", `{}`, nil, `"in "`},
					{"up_where", `{"region":"eu"}`, []string{"us"}, "does not match argument region"},
					{"up_where", `{"region":"eu"}`, nil, "Mcp-Param-Region must be sent once"},
					{"up_where", `{"region":"eu"}`, []string{"eu", "eu"}, "Mcp-Param-Region must be sent once"},
					{"up_where", `{"region":"eu"}`, []string{"=?base64?%?="}, "neither plain ASCII"},
					{"up_where", `{}`, []string{"eu"}, "the argument region is not"},
					{"up_echo", `{"who":"eu"}`, []string{"us"}, "eu"},
				} {
					status, got := call(test.tool, test.args, test.headers...)
					refused := strings.Contains(got, `"code":-32020`)
					if !strings.Contains(got, test.want) || refused != (status == http.StatusBadRequest) || refused != !strings.Contains(test.want, `"`) && test.tool != "up_echo" {
						t.Errorf("%s %s %q: status %d, %s; want %s", test.tool, test.args, test.headers, status, got, test.want)
					}
				}
				for name, tr := range map[string]client.Transport{"http": client.HTTP(front.URL, nil), "websocket": client.WebSocket("ws"+strings.TrimPrefix(socket.URL, "http"), nil), "pipe": local(s)} {
					for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
						c, err := client.Connect(t.Context(), tr, &client.Options{Info: client.Info{Name: "ada", Version: "1"}, Revisions: []protocol.Revision{rev}})
						if err != nil {
							t.Fatal(name, rev, err)
						}
						if got := text(c.Call(t.Context(), "up_where", regionIn{"eu"})); got != "in eu" {
							t.Errorf("%s %s: %s", name, rev, got)
						}
						_ = c.Close()
					}
				}
			})
		}
	}
}

// do returns the status and the body of the answer to r.
func do(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text := new(strings.Builder)
	if err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, text.String()
}
