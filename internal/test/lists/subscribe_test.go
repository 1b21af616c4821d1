package lists_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// watched returns a server with resources and a prompt, so that it honours
// every filter.
func watched(t *testing.T, opts mcp.Options) *mcp.Server {
	s := harness.ListenServer(t, opts)
	s.MustAdd(mcp.Bytes("file:///a", []byte("a")), prompt("first"))
	return s
}

func prompt(name string) mcp.Component {
	return mcp.Prompt(name, func(*mcp.Frame, struct{}) (string, error) { return name, nil })
}

func TestListenToEverything(t *testing.T) {
	for name, open := range wires {
		t.Run(name, func(t *testing.T) {
			s := watched(t, mcp.Options{})
			w := open(t, s)
			filter := `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///a","file:///\"new\""]}`
			w.Say(harness.Listen("7", filter))
			wantHeard(t, w, harness.Tagged("7", "subscriptions/acknowledged", `,"notifications":`+filter))
			for _, step := range []struct {
				do   func()
				want string
			}{
				{func() { s.MustAdd(prompt("second")) }, harness.Tagged("7", "prompts/list_changed", "")},
				{func() { s.MustAdd(mcp.Bytes("file:///b", nil)) }, harness.Tagged("7", "resources/list_changed", "")},
				{func() { s.Remove(mcp.KindResource, "file:///b") }, harness.Tagged("7", "resources/list_changed", "")},
				{func() { s.ResourceUpdated("file:///b"); s.ResourceUpdated("file:///a") }, harness.Tagged("7", "resources/updated", `,"uri":"file:///a"`)},
				{func() { s.ResourceUpdated(`file:///"new"`) }, harness.Tagged("7", "resources/updated", `,"uri":"file:///\"new\""`)},
				{func() { s.Remove(mcp.KindTool, "first") }, harness.Tagged("7", "tools/list_changed", "")},
			} {
				step.do()
				wantHeard(t, w, step.want)
			}
		})
	}
}

// legacyWire is a legacy session with its stream of unasked messages open.
type legacyWire struct {
	say  func(line string) string // returns the answer
	hear func() string            // returns the next message that nobody asked for
}

var legacyWires = map[string]func(t *testing.T, s *mcp.Server) legacyWire{
	"stdio": func(t *testing.T, s *mcp.Server) legacyWire {
		w := harness.PipeWire(t, s)
		return legacyWire{hear: w.Hear, say: func(line string) string {
			w.Say(line)
			if !harness.IsRequest(line) {
				return ""
			}
			return w.Hear()
		}}
	},
	"http": func(t *testing.T, s *mcp.Server) legacyWire {
		c := harness.OpenHTTP(t, s, protocol.V20250618).(*harness.HTTPClient)
		var stream *bufio.Reader
		return legacyWire{hear: func() string { return nextData(t, stream) }, say: func(line string) string {
			answer := strings.Join(c.Say(line), "")
			if stream == nil {
				stream = openStreamOf(t, c)
			}
			return answer
		}}
	},
}

// openStreamOf opens the stream of a legacy HTTP session.
func openStreamOf(t *testing.T, c *harness.HTTPClient) *bufio.Reader {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	c.SetHeaders(req, "")
	res, err := c.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("GET: status %d", res.StatusCode)
	}
	t.Cleanup(func() { res.Body.Close() })
	return bufio.NewReader(res.Body)
}

func nextData(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "\n" {
			return strings.TrimSuffix(data, "\n")
		}
	}
}

func TestLegacySubscriptions(t *testing.T) {
	for name, open := range legacyWires {
		t.Run(name, func(t *testing.T) {
			s := watched(t, mcp.Options{Limits: mcp.Limits{ResourcesPerSubscription: 2}})
			w := open(t, s)
			w.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			for i, step := range []struct {
				method, params string
				answer         string
				do             func()
				want           string // heard after do
			}{
				{"subscribe", `{"uri":"file:///a"}`, `"result":{}`, func() { s.ResourceUpdated("file:///b"); s.ResourceUpdated("file:///a") },
					`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`},
				{"subscribe", `{"uri":"file:///b"}`, `"result":{}`, func() { s.ResourceUpdated("file:///b") },
					`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///b"}}`},
				{"subscribe", `{"uri":"file:///c"}`, `"error":{"code":429,"message":"the subscriptions of the session are at their limit, 2 resources or 262144 bytes of URIs"}`, nil, ""},
				{"subscribe", `{"uri":"` + strings.Repeat("x", 9000) + `"}`, `"error":{"code":-32602,"message":"params.uri is longer than 8192 bytes"}`, nil, ""},
				{"subscribe", `{}`, `"error":{"code":-32602,"message":"params.uri is missing: it names the resource"}`, nil, ""},
				{"unsubscribe", `{"uri":"file:///a"}`, `"result":{}`, func() { s.ResourceUpdated("file:///a"); s.Remove(mcp.KindPrompt, "first") },
					`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`},
				{"unsubscribe", `{"uri":"file:///a"}`, `"result":{}`, nil, ""},
			} {
				got := w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/%s","params":%s}`, i+1, step.method, step.params))
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i+1, step.answer); got != want {
					t.Fatalf("step %d\ngot  %s\nwant %s", i, got, want)
				}
				if step.do == nil {
					continue
				}
				step.do()
				if got := w.hear(); got != step.want {
					t.Fatalf("step %d, then heard\ngot  %s\nwant %s", i, got, step.want)
				}
				harness.CheckSpec(t, protocol.V20250618, "", step.want)
			}
		})
	}
}

func TestSubscribeWithoutResources(t *testing.T) {
	for _, transport := range harness.TransportsOf(protocol.V20250618) {
		c := harness.OpenSession(t, transport, harness.ListenServer(t, mcp.Options{}))
		if got := harness.Ask(t, c, "resources/subscribe", `{"uri":"file:///a"}`); !strings.Contains(got, "-32601") {
			t.Errorf("%s: got %s", transport.Name, got)
		}
	}
}

// TestListenOverOtherConnections takes over connections with TLS, and leaves
// those of HTTP/2 and HTTP/1.0 alone.
func TestListenOverOtherConnections(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			s := harness.ListenServer(t, mcp.Options{})
			server := httptest.NewUnstartedServer(s.Handler())
			server.EnableHTTP2 = proto == "HTTP/2.0"
			server.StartTLS()
			t.Cleanup(server.Close)
			client := server.Client()
			if !server.EnableHTTP2 {
				client.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(harness.Listen("1", harness.ToolsFilter)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{
				"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.Proto != proto {
				t.Fatalf("got %s", res.Proto)
			}
			w := &post{t: t, body: bufio.NewReader(res.Body)}
			wantHeard(t, w, harness.Tagged("1", "subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true}`))
			for i := range 3 {
				s.MustAdd(harness.Tool(fmt.Sprint("more", i)))
				wantHeard(t, w, harness.Tagged("1", "tools/list_changed", ""))
			}
			shutDown(t, s, w)
			wantHeard(t, w, harness.Ended("1"), "")
		})
	}
}
