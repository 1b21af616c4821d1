package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// listenServer returns a server with one tool and nothing else.
func listenServer(t testing.TB, opts mcp.Options) *mcp.Server {
	t.Helper()
	quiet := zerolog.Nop()
	opts.Logger = &quiet
	s := mcp.NewServer(mcp.Info{Name: "listen", Version: "1"}, &opts)
	s.MustAdd(tool("first"))
	return s
}

func tool(name string) mcp.Component {
	return mcp.Tool(name, func(*mcp.Frame, empty) (string, error) { return name, nil })
}

// listener is a client that says messages and hears whatever comes, when it comes.
type listener interface {
	say(line string)
	// hear returns the next message, "" at the end.
	hear() string
}

// openWire opens a client on which one subscription is opened: over HTTP it is
// the POST of that.
type openWire func(t *testing.T, s *mcp.Server) listener

var wires = map[string]openWire{"stdio": pipeWire, "http": postWire}

type pipe struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Reader
}

func pipeWire(t *testing.T, s *mcp.Server) listener {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := s.ServeConn(context.Background(), transport.NewStream(inR, outW, nil))
		served <- err
	}()
	t.Cleanup(func() {
		inW.Close()
		go io.Copy(io.Discard, outR) // what comes last
		if err := <-served; err != nil && !errors.Is(err, mcp.ErrServerClosed) {
			t.Errorf("ServeConn: %v", err)
		}
	})
	return &pipe{t, inW, bufio.NewReader(outR)}
}

func (p *pipe) say(line string) {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pipe) hear() string {
	line, err := p.lines.ReadString('\n')
	if err != nil && err != io.EOF {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

type post struct {
	t      *testing.T
	url    string
	header http.Header
	status int
	body   *bufio.Reader
}

func postWire(t *testing.T, s *mcp.Server) listener {
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return &post{t: t, url: server.URL, header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
	}}
}

func (p *post) say(line string) {
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

func (p *post) hear() string {
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

// listen returns a subscriptions/listen request.
func listen(id, filter string) string {
	return expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,$META}}`, id, filter), protocol.Latest)
}

// tagged returns a notification of the subscription id.
func tagged(id, method, rest string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}}`, method, id, rest)
}

// ended returns the result that ends the subscription id.
func ended(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%[1]s,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%[1]s,"io.modelcontextprotocol/serverInfo":{"name":"listen","version":"1"}}}}`, id)
}

// wantHeard hears as many messages as want has, and checks them.
func wantHeard(t *testing.T, w listener, want ...string) {
	t.Helper()
	for _, message := range want {
		got := w.hear()
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
	checkSpec(t, protocol.Latest, `{"method":"subscriptions/listen"}`, message)
}

func TestListen(t *testing.T) {
	const ids = `"a\u0062<>" 9007199254740993 0 "" -1`
	for name, open := range wires {
		for id := range strings.FieldsSeq(ids) {
			t.Run(name+"/"+id, func(t *testing.T) {
				s := listenServer(t, mcp.Options{})
				w := open(t, s)
				w.say(listen(id, `{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["file:///a"]}`))
				wantHeard(t, w, tagged(id, "subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true}`))
				s.MustAdd(tool("second"))
				wantHeard(t, w, tagged(id, "tools/list_changed", ""))
				s.ResourceUpdated("file:///a")
				s.Remove(mcp.KindTool, "second")
				wantHeard(t, w, tagged(id, "tools/list_changed", ""))
				shutDown(t, s, w)
				wantHeard(t, w, ended(id))
				if _, ok := w.(*post); ok {
					wantHeard(t, w, "")
				}
			})
		}
	}
}

// shutDown shuts the server down. What serves a pipe runs on until the client
// ends it.
func shutDown(t *testing.T, s *mcp.Server, w listener) {
	t.Helper()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	t.Cleanup(func() {
		if p, ok := w.(*pipe); ok {
			p.in.Close()
		}
		if err := <-stopped; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

func TestListenTellsNothingElse(t *testing.T) {
	for name, open := range wires {
		t.Run(name, func(t *testing.T) {
			s := listenServer(t, mcp.Options{})
			w := open(t, s)
			w.say(listen("1", `{"toolsListChanged":false}`))
			wantHeard(t, w, tagged("1", "subscriptions/acknowledged", `,"notifications":{}`))
			s.MustAdd(tool("second"))
			shutDown(t, s, w)
			wantHeard(t, w, ended("1"))
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
				{`{"resourceSubscriptions":["a","b","c"]}`, `{"code":-32602,"message":"params.notifications.resourceSubscriptions has more than 2 entries, which is the limit"}`},
			} {
				s := listenServer(t, mcp.Options{Limits: mcp.Limits{Resources: 2}})
				w := open(t, s)
				w.say(listen("1", tt.filter))
				wantHeard(t, w, `{"jsonrpc":"2.0","id":1,"error":`+tt.want+`}`)
			}
		})
	}
	t.Run("http, JSON alone", func(t *testing.T) {
		w := postWire(t, listenServer(t, mcp.Options{})).(*post)
		w.header.Set("Accept", "application/json")
		w.say(listen("1", `{}`))
		wantHeard(t, w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"subscriptions/listen needs a client that accepts text/event-stream"}}`)
	})
}

func TestListenLimits(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		s := listenServer(t, mcp.Options{Limits: mcp.Limits{Subscriptions: 1}})
		first, second := postWire(t, s), pipeWire(t, s)
		first.say(listen("1", `{}`))
		wantHeard(t, first, tagged("1", "subscriptions/acknowledged", `,"notifications":{}`))
		second.say(listen("2", `{}`))
		wantHeard(t, second, `{"jsonrpc":"2.0","id":2,"error":{"code":429,"message":"the server has 1 subscriptions open, which is the limit"}}`)
	})
	t.Run("connection", func(t *testing.T) {
		w := pipeWire(t, listenServer(t, mcp.Options{Limits: mcp.Limits{PerConnection: 1}}))
		w.say(listen("1", `{}`))
		wantHeard(t, w, tagged("1", "subscriptions/acknowledged", `,"notifications":{}`))
		w.say(listen("2", `{}`))
		wantHeard(t, w, `{"jsonrpc":"2.0","id":2,"error":{"code":429,"message":"the connection has 1 subscriptions open, which is the limit"}}`)
	})
}

// TestListenOnOneConnection has several subscriptions on one pipe, beside
// calls, and ends one of them.
func TestListenOnOneConnection(t *testing.T) {
	s := listenServer(t, mcp.Options{Limits: mcp.Limits{Concurrent: 1}})
	w := pipeWire(t, s)
	for _, id := range []string{"1", "2"} {
		w.say(listen(id, `{"toolsListChanged":true}`))
		wantHeard(t, w, tagged(id, "subscriptions/acknowledged", `,"notifications":{"toolsListChanged":true}`))
	}
	w.say(listen("2", `{}`))
	wantHeard(t, w, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"a request with id 2 is under way"}}`)
	call := expand(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"first",$META}}`, protocol.Latest)
	answer := `{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","content":[{"type":"text","text":"first"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"listen","version":"1"}}}}`
	w.say(call)
	wantHeard(t, w, answer)

	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.say(call) // its answer comes after the subscription was cancelled
	wantHeard(t, w, answer)
	s.MustAdd(tool("second"))
	wantHeard(t, w, tagged("2", "tools/list_changed", ""))
	w.(*pipe).in.Close()
	wantHeard(t, w, ended("2"))
}

// TestLegacyConnectionHearsOfChanges checks that a client is told, once it is
// initialized, also of what happened before.
func TestLegacyConnectionHearsOfChanges(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	s := listenServer(t, mcp.Options{})
	w := pipeWire(t, s)
	w.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if got := w.hear(); !strings.Contains(got, `"tools":{"listChanged":true}`) {
		t.Fatalf("initialize: got %s", got)
	}
	s.MustAdd(tool("second"))
	s.MustAdd(tool("third"))
	w.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	wantPlain(t, w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
	w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	wantPlain(t, w, changed)
	s.Remove(mcp.KindTool, "third")
	wantPlain(t, w, changed)
}

func wantPlain(t *testing.T, w listener, want string) {
	t.Helper()
	if got := w.hear(); got != want {
		t.Fatalf("heard\ngot  %s\nwant %s", got, want)
	}
	checkSpec(t, protocol.V20250618, "", want)
}
