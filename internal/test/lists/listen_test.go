package lists_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// openWire opens a client on which one subscription is opened: over HTTP it is
// the POST of that.
type openWire func(t *testing.T, s *mcp.Server) harness.Listener

var wires = map[string]openWire{"stdio": harness.PipeWire, "http": postWire}

type post struct {
	t      *testing.T
	url    string
	header http.Header
	status int
	body   *bufio.Reader
}

func postWire(t *testing.T, s *mcp.Server) harness.Listener {
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return &post{t: t, url: server.URL, header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
	}}
}

func (p *post) Say(line string) {
	ctx, cancel := context.WithCancel(p.t.Context())
	p.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(line))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = p.header
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { res.Body.Close() })
	p.status = res.StatusCode
	p.body = bufio.NewReader(res.Body)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text, _ := io.ReadAll(res.Body)
		p.body = bufio.NewReader(strings.NewReader("data: " + string(text) + "\n"))
	}
}

func (p *post) Hear() string {
	for {
		line, err := p.body.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				p.t.Fatal(err)
			}
			return ""
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSuffix(data, "\n")
		}
	}
}

// wantHeard hears as many messages as want has, and checks them.
func wantHeard(t *testing.T, w harness.Listener, want ...string) {
	t.Helper()
	for _, message := range want {
		got := w.Hear()
		if got != message {
			t.Fatalf("heard\ngot  %s\nwant %s", got, message)
		}
		checkListenSpec(t, got)
	}
}

func checkListenSpec(t *testing.T, message string) {
	t.Helper()
	if message == "" || strings.Contains(message, `"error":`) || strings.Contains(message, `"content":`) {
		return
	}
	harness.CheckSpec(t, protocol.Latest, `{"method":"subscriptions/listen"}`, message)
}

func TestListen(t *testing.T) {
	const ids = `"a\u0062<>" 9007199254740993 0 "" -1`
	for name, open := range wires {
		for id := range strings.FieldsSeq(ids) {
			t.Run(name+"/"+id, func(t *testing.T) {
				s := harness.ListenServer(t, mcp.Options{})
				w := open(t, s)
				w.Say(harness.Listen(id, `{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["file:///a"]}`))
				wantHeard(t, w, harness.Tagged(id, "subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true}`))
				s.MustAdd(harness.Tool("second"))
				wantHeard(t, w, harness.Tagged(id, "tools/list_changed", ""))
				s.ResourceUpdated("file:///a")
				s.Remove(mcp.KindTool, "second")
				wantHeard(t, w, harness.Tagged(id, "tools/list_changed", ""))
				shutDown(t, s, w)
				wantHeard(t, w, harness.Ended(id))
				if _, ok := w.(*post); ok {
					wantHeard(t, w, "")
				}
			})
		}
	}
}

// shutDown shuts the server down. What serves a pipe runs on until the client
// ends it.
func shutDown(t *testing.T, s *mcp.Server, w harness.Listener) {
	t.Helper()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	t.Cleanup(func() {
		if p, ok := w.(*harness.Pipe); ok {
			p.In.Close()
		}
		if err := <-stopped; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

func TestListenTellsNothingElse(t *testing.T) {
	for name, open := range wires {
		t.Run(name, func(t *testing.T) {
			s := harness.ListenServer(t, mcp.Options{})
			w := open(t, s)
			w.Say(harness.Listen("1", `{"toolsListChanged":false}`))
			wantHeard(t, w, harness.Tagged("1", "subscriptions/acknowledged", `,"notifications":{}`))
			s.MustAdd(harness.Tool("second"))
			shutDown(t, s, w)
			wantHeard(t, w, harness.Ended("1"))
		})
	}
}

func TestListenFaults(t *testing.T) {
	for name, open := range wires {
		t.Run(name, func(t *testing.T) {
			for _, tt := range []struct {
				filter, want string
			}{
				{`{"toolsListChanged":"yes"}`, `{"code":-32602,"message":"params.notifications.toolsListChanged must be a boolean, got string"}`},
				{`7`, `{"code":-32602,"message":"params.notifications must be an object, got number"}`},
				{`{"resourceSubscriptions":["a","b","c"]}`, `{"code":-32602,"message":"params.notifications.resourceSubscriptions has more than 2 entries, the limit"}`},
			} {
				s := harness.ListenServer(t, mcp.Options{Limits: mcp.Limits{ResourcesPerSubscription: 2}})
				w := open(t, s)
				w.Say(harness.Listen("1", tt.filter))
				wantHeard(t, w, `{"jsonrpc":"2.0","id":1,"error":`+tt.want+`}`)
			}
		})
	}
	t.Run("http, JSON alone", func(t *testing.T) {
		w := postWire(t, harness.ListenServer(t, mcp.Options{})).(*post)
		w.header.Set("Accept", "application/json")
		w.Say(harness.Listen("1", `{}`))
		wantHeard(t, w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"subscriptions/listen needs a client that accepts text/event-stream"}}`)
	})
}

func TestListenLimits(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		s := harness.ListenServer(t, mcp.Options{Limits: mcp.Limits{Subscriptions: 1}})
		first, second := postWire(t, s), harness.PipeWire(t, s)
		first.Say(harness.Listen("1", `{}`))
		wantHeard(t, first, harness.Tagged("1", "subscriptions/acknowledged", `,"notifications":{}`))
		second.Say(harness.Listen("2", `{}`))
		wantHeard(t, second, `{"jsonrpc":"2.0","id":2,"error":{"code":429,"message":"the server has 1 subscriptions open, the limit"}}`)
	})
	t.Run("connection", func(t *testing.T) {
		w := harness.PipeWire(t, harness.ListenServer(t, mcp.Options{Limits: mcp.Limits{SubscriptionsPerConnection: 1}}))
		w.Say(harness.Listen("1", `{}`))
		wantHeard(t, w, harness.Tagged("1", "subscriptions/acknowledged", `,"notifications":{}`))
		w.Say(harness.Listen("2", `{}`))
		wantHeard(t, w, `{"jsonrpc":"2.0","id":2,"error":{"code":429,"message":"the connection has 1 subscriptions open, the limit"}}`)
	})
}

// TestListenOnOneConnection has several subscriptions on one pipe, beside
// calls, and ends one of them.
func TestListenOnOneConnection(t *testing.T) {
	s := harness.ListenServer(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	w := harness.PipeWire(t, s)
	for _, id := range []string{"1", "2"} {
		w.Say(harness.Listen(id, `{"toolsListChanged":true}`))
		wantHeard(t, w, harness.Tagged(id, "subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true}`))
	}
	w.Say(harness.Listen("2", `{}`))
	wantHeard(t, w, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"a request with id 2 is under way"}}`)
	call := harness.Expand(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"first",$META}}`, protocol.Latest)
	answer := `{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","content":[{"type":"text","text":"first"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"listen","version":"1"}}}}`
	w.Say(call)
	wantHeard(t, w, answer)

	w.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.Say(call) // its answer comes after the subscription was cancelled
	wantHeard(t, w, answer)
	s.MustAdd(harness.Tool("second"))
	wantHeard(t, w, harness.Tagged("2", "tools/list_changed", ""))
	w.(*harness.Pipe).In.Close()
	wantHeard(t, w, harness.Ended("2"))
}

// TestLegacyConnectionHearsOfChanges checks that a client is told, once it is
// initialized, also of what happened before.
func TestLegacyConnectionHearsOfChanges(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	s := harness.ListenServer(t, mcp.Options{})
	w := harness.PipeWire(t, s)
	w.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if got := w.Hear(); !strings.Contains(got, `"tools":{"listChanged":true}`) {
		t.Fatalf("initialize: got %s", got)
	}
	s.MustAdd(harness.Tool("second"))
	s.MustAdd(harness.Tool("third"))
	w.Say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	harness.WantPlain(t, w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
	w.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	harness.WantPlain(t, w, changed)
	s.Remove(mcp.KindTool, "third")
	harness.WantPlain(t, w, changed)
}
