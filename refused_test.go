package mcp_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// refusals hears of refusals.
type refusals struct {
	t    *testing.T
	mu   sync.Mutex
	list []mcp.Event
	told chan struct{}
}

func hearRefusals(t *testing.T, s *mcp.Server) *refusals {
	r := &refusals{t: t, told: make(chan struct{}, 1000)}
	s.Observe(mcp.Observer{Event: func(e mcp.Event) {
		if e.Kind == "refused" {
			r.mu.Lock()
			r.list = append(r.list, e)
			r.mu.Unlock()
			r.told <- struct{}{}
		}
	}})
	return r
}

// heard returns what was told since the last time, once there are n.
func (r *refusals) heard(n int) []mcp.Event {
	r.t.Helper()
	for range n {
		await(r.t, r.told, "refusal")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// refusing is a server that refuses in every way, and how to talk to it.
type refusing struct {
	t       *testing.T
	s       *mcp.Server
	url     string // of a web server with it
	session string // of revision 2025-03-26, which has batches
	hold    *gate  // the tool "gate"
	calls   *sync.WaitGroup
	store   scale.Store
}

func newRefusing(t *testing.T, o *mcp.Options) (*refusing, *refusals) {
	if o == nil {
		o = &mcp.Options{}
	}
	o.HTTP.SSE = true
	x := &refusing{t: t, s: fixture(t, o), hold: newGate(), calls: new(sync.WaitGroup)}
	x.s.MustAdd(x.hold.tool("gate"))
	x.store = o.Store
	heard := hearRefusals(t, x.s)
	mux := http.NewServeMux()
	mux.Handle("/mcp", x.s.Handler())
	mux.Handle("/ws", websocket.Handler(x.s))
	web := httptest.NewServer(mux)
	x.url = web.URL
	t.Cleanup(func() {
		close(x.hold.open)
		x.calls.Wait()
		web.CloseClientConnections()
		web.Close()
	})
	return x, heard
}

// do sends a request. Headers are "Name: value"; without a
// value one is taken away.
func (x *refusing) do(method, path, body string, headers ...string) *http.Response {
	x.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, x.url+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); {
		case strings.EqualFold(name, "Host"):
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		x.t.Error(err)
		return &http.Response{}
	}
	x.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (x *refusing) post(body string, headers ...string) {
	x.do(http.MethodPost, "/mcp", body, headers...)
}

// modern posts a request of the latest revision.
func (x *refusing) modern(method, members string, headers ...string) {
	x.post((&party{x.t, protocol.Latest, nil}).request("1", method, members), append([]string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}, headers...)...)
}

// in returns the header that names a session, which is opened first.
func (x *refusing) in(revision string) string {
	if x.session == "" {
		x.session = x.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+hello(revision)+`}}`).Header.Get("Mcp-Session-Id")
	}
	return "Mcp-Session-Id: " + x.session
}

// elsewhere is in for a session that another replica has opened.
func (x *refusing) elsewhere() string {
	other := *x
	web := httptest.NewServer(fixture(x.t, &mcp.Options{Store: x.store, StateKeys: sharedKeys}).Handler())
	defer web.Close()
	other.url = strings.TrimSuffix(web.URL, "/")
	return other.in("2025-11-25")
}

// lines talks over a connection of lines, without waiting for answers.
func (x *refusing) lines(lines ...string) {
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.s.ServeConn(context.Background(), transport.NewSocket(far, &transport.SocketOptions{MaxMessage: 1 << 10, ReadTimeout: time.Millisecond}))
	}()
	go io.Copy(io.Discard, near)
	x.t.Cleanup(func() { near.Close(); <-served })
	for _, line := range lines {
		_, _ = io.WriteString(near, line) // it may have ended by then
	}
}

// sse opens a stream of HTTP+SSE and returns where to POST.
func (x *refusing) sse() string {
	lines := bufio.NewScanner(x.do(http.MethodGet, "/mcp", "", "Accept: text/event-stream").Body)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "data: "); ok {
			return at
		}
	}
	x.t.Fatal("no endpoint")
	return ""
}

const (
	pinged    = `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	opened    = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"
	modernSay = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

type refusalWay struct {
	place, what string
	options     mcp.Options
	do          func(x *refusing)
	why         string
	via         string // "" is http
}

// refusalWays are all in which a message or a request is refused before the dispatcher. place
// is where the fault is made or handed on, "" for one that another way has already.
func refusalWays() []refusalWay {
	return []refusalWay{
		{"Handler.ServeHTTP", "host", mcp.Options{}, func(x *refusing) { x.post(pinged, "Host: evil.example") }, "host", ""},
		{"", "origin", mcp.Options{}, func(x *refusing) { x.post(pinged, "Origin: https://evil.example") }, "origin", ""},
		{"Handler.notAllowed", "PUT", mcp.Options{}, func(x *refusing) { x.do("PUT", "/mcp", "") }, "http_method", ""},
		{"", "DELETE without a session", mcp.Options{}, func(x *refusing) { x.do("DELETE", "/mcp", "") }, "http_method", ""},
		{"Handler.open", "content type", mcp.Options{}, func(x *refusing) { x.post(pinged, "Content-Type: text/plain") }, "content_type", ""},
		{"Handler.open", "compressed", mcp.Options{}, func(x *refusing) { x.post(pinged, "Content-Encoding: gzip") }, "content_type", ""},
		{"Handler.open", "accept", mcp.Options{}, func(x *refusing) { x.post(pinged, "Accept: image/png") }, "accept", ""},
		{"Handler.get", "accept of a stream", mcp.Options{}, func(x *refusing) { x.do("GET", "/mcp", "", "Accept: application/json") }, "accept", ""},
		{"Handler.get", "a browser", mcp.Options{}, func(x *refusing) { x.do("GET", "/mcp", "", "Accept: text/html") }, "accept", ""},
		{"bodyReader.readAll", "a long body", mcp.Options{Limits: mcp.Limits{Message: 64}}, func(x *refusing) { x.post(strings.Repeat(" ", 100)) }, "too_long", ""},
		{"unreadable", "a body that takes too long", mcp.Options{Timeouts: mcp.Timeouts{Read: 20 * time.Millisecond}}, func(x *refusing) {
			c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
			if err != nil {
				x.t.Fatal(err)
			}
			x.t.Cleanup(func() { c.Close() })
			fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		}, "incomplete", ""},
		{"admission.admit", "no JSON", mcp.Options{}, func(x *refusing) { x.post(`{"jsonrpc"`) }, "parse_error", ""},
		{"", "no message", mcp.Options{}, func(x *refusing) { x.post(`{"jsonrpc":"1.0","id":1,"method":"ping"}`) }, "invalid_request", ""},
		{"admission.admit", "params", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`)
		}, "invalid_params", ""},
		{"admission.admitModern", "a response", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","id":1,"result":{}}`, "Mcp-Protocol-Version: 2026-07-28")
		}, "era", ""},
		{"admission.admitModern", "another version in the header", mcp.Options{}, func(x *refusing) { x.modern("ping", "", "Mcp-Protocol-Version: 2025-06-18") }, "header_mismatch", ""},
		{"", "no _meta", mcp.Options{}, func(x *refusing) { x.post(pinged, "Mcp-Protocol-Version: 2026-07-28") }, "invalid_params", ""},
		{"admission.checkNotification", "version of a notification", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "Mcp-Protocol-Version: 2025-06-18")
		}, "header_mismatch", ""},
		{"", "a notification of no version", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}}}`)
		}, "unsupported_version", ""},
		{"admission.admitLegacy", "initialized already", mcp.Options{}, func(x *refusing) { x.post(strings.TrimSpace(opened), x.in("2025-03-26")) }, "initialized", ""},
		{"admission.checkVersion", "a version that nobody knows", mcp.Options{}, func(x *refusing) { x.post(pinged, "Mcp-Protocol-Version: 1999-01-01") }, "unsupported_version", ""},
		{"admission.session", "no session", mcp.Options{}, func(x *refusing) { x.post(pinged) }, "no_session", ""},
		{"", "GET without one that is known", mcp.Options{}, func(x *refusing) { x.do("GET", "/mcp", "", "Mcp-Session-Id: nobody") }, "session_not_found", ""},
		{"admission.admitBatch", "a batch without a session", mcp.Options{}, func(x *refusing) { x.post("[" + pinged + "]") }, "batch", ""},
		{"admission.admitBatch", "an empty batch", mcp.Options{}, func(x *refusing) { x.post("[]", x.in("2025-03-26")) }, "batch", ""},
		{"admission.admitBatch", "a broken message in a batch", mcp.Options{}, func(x *refusing) { x.post("["+pinged+`,{"jsonrpc":"2.0","id":1}]`, x.in("2025-03-26")) }, "invalid_request", ""},
		{"", "bad params in a batch", mcp.Options{}, func(x *refusing) {
			x.post("["+pinged+`,{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}]`, x.in("2025-03-26"))
		}, "invalid_params", ""},
		{"admission.admitBatch", "initialize in a batch", mcp.Options{}, func(x *refusing) { x.post("["+strings.TrimSpace(opened)+"]", x.in("2025-03-26")) }, "batch", ""},
		{"admission.admitBatch", "a modern request in a batch", mcp.Options{}, func(x *refusing) { x.post("["+modernSay+"]", x.in("2025-03-26")) }, "batch", ""},
		{"", "another name in the header", mcp.Options{}, func(x *refusing) {
			x.modern("tools/call", `"name":"greet","arguments":{"name":"Ada"}`, "Mcp-Name: add")
		}, "header_mismatch", ""},
		{"encodedHeader", "no name in the header", mcp.Options{}, func(x *refusing) { x.modern("tools/call", `"name":"greet"`) }, "header_mismatch", ""},
		{"encodedHeader", "a name that is no base64", mcp.Options{}, func(x *refusing) { x.modern("tools/call", `"name":"greet"`, "Mcp-Name: =?base64?-?=") }, "header_mismatch", ""},
		{"matchHeader", "no method in the header", mcp.Options{}, func(x *refusing) { x.modern("ping", "", "Mcp-Method:") }, "header_mismatch", ""},
		{"mismatch", "another method in the header", mcp.Options{}, func(x *refusing) { x.modern("ping", "", "Mcp-Method: tools/list") }, "header_mismatch", ""},
		{"checkParam", "an argument that is in the header alone", mcp.Options{}, func(x *refusing) { x.mirrored(`{}`, "Mcp-Param-Tenant: a") }, "header_mismatch", ""},
		{"checkParam", "another argument in the header", mcp.Options{}, func(x *refusing) { x.mirrored(`{"tenant":"b"}`, "Mcp-Param-Tenant: a") }, "header_mismatch", ""},

		{"endpoint.subscribe", "a subscription without events", mcp.Options{}, func(x *refusing) { x.modern("subscriptions/listen", `"notifications":{}`, "Accept: application/json") }, "accept", ""},
		{"errDrains", "a subscription while the server drains", mcp.Options{}, func(x *refusing) { x.drain(); x.modern("subscriptions/listen", `"notifications":{}`) }, "draining", ""},
		{"errDrains", "a stream while the server drains", mcp.Options{}, func(x *refusing) { h := x.in("2025-11-25"); x.drain(); x.do("GET", "/mcp", "", h) }, "draining", ""},
		{"errDrains", "a connection of HTTP+SSE while the server drains", mcp.Options{}, func(x *refusing) { x.drain(); x.do("GET", "/mcp", "") }, "draining", "sse"},
		{"errDrains", "a WebSocket while the server drains", mcp.Options{}, func(x *refusing) { x.drain(); x.do("GET", "/ws", "") }, "draining", "websocket"},
		{"errShutsDown", "a request while the server shuts down", mcp.Options{}, func(x *refusing) { x.down(); x.modern("tools/list", "") }, "down", ""},
		{"errShutsDown", "initialize while the server shuts down", mcp.Options{}, func(x *refusing) { x.down(); x.in("2025-11-25") }, "down", ""},
		{"errShutsDown", "a WebSocket while the server shuts down", mcp.Options{}, func(x *refusing) { x.down(); x.do("GET", "/ws", "") }, "down", "websocket"},
		{"Manager.ServeUpgrade", "the host of a WebSocket", mcp.Options{}, func(x *refusing) { x.do("GET", "/ws", "", "Host: evil.example") }, "host", "websocket"},
		{"Manager.ServeUpgrade", "what is no WebSocket", mcp.Options{}, func(x *refusing) { x.do("GET", "/ws", "") }, "upgrade", "websocket"},
		{"Manager.ServeUpgrade", "too many WebSockets", mcp.Options{Limits: mcp.Limits{Connections: 1}}, func(x *refusing) { x.sse(); x.do("GET", "/ws", "") }, "busy", "websocket"},
		{"endpoint.Connect", "too many connections", mcp.Options{Limits: mcp.Limits{Connections: 1}}, func(x *refusing) { x.sse(); x.do("GET", "/mcp", "") }, "busy", "sse"},
		{"tooMany", "too many sessions", mcp.Options{Limits: mcp.Limits{Sessions: 1}}, func(x *refusing) { x.post(pinged, x.in("2025-11-25")); x.session = ""; x.in("2025-11-25") }, "busy", ""},
		{"sessionNotFound", "a session that nobody has", mcp.Options{}, func(x *refusing) { x.post(pinged, "Mcp-Session-Id: nobody") }, "session_not_found", ""},
		{"readClient", "initialize without params", mcp.Options{}, func(x *refusing) { x.post(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`) }, "invalid_params", ""},
		{"readClient", "capabilities that are none", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":7}}}`)
		}, "invalid_params", ""},
		{"readClient", "a clientInfo that is none", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":7}}`)
		}, "invalid_params", ""},
		{"readClient", "no legacy revision", mcp.Options{Revisions: []protocol.Revision{protocol.Latest}}, func(x *refusing) { x.in("2025-11-25") }, "unsupported_version", ""},
		{"tooMuch", "a long clientInfo", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"` + strings.Repeat("x", 40_000) + `"}}}`)
		}, "invalid_params", ""},
		{"tooMuch", "many capabilities", mcp.Options{}, func(x *refusing) {
			x.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":[` + strings.Repeat("1,", 300) + `1]}}`)
		}, "invalid_params", ""},
		{"", "a log level that there is not", mcp.Options{}, func(x *refusing) {
			x.post(strings.Replace(modernSay, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"loud",`, 1), "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
		}, "invalid_params", ""},
		{"Requests.Enter", "a second request with the id", mcp.Options{}, func(x *refusing) { x.busy("1", "1") }, "duplicate_id", ""},
		{"Requests.Enter", "too many requests", mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, func(x *refusing) { x.busy("1", "2") }, "busy", ""},
		{"unknownStream", "no such event", mcp.Options{}, func(x *refusing) { x.do("GET", "/mcp", "", x.in("2025-11-25"), "Last-Event-Id: 77-1") }, "last_event", ""},
		{"endpoint.Session", "the session of a store that does not answer", stored(), func(x *refusing) { h := x.elsewhere(); x.kill(); x.post(pinged, h) }, "unavailable", ""},
		{"endpoint.open", "a session in a store that does not answer", stored(), func(x *refusing) { x.kill(); x.in("2025-11-25") }, "unavailable", ""},
		{"endpoint.EndSession", "the end of a session in a store that does not answer", stored(), func(x *refusing) { h := x.in("2025-11-25"); x.kill(); x.do("DELETE", "/mcp", "", h) }, "unavailable", ""},

		{"streamNotFound", "no such stream of HTTP+SSE", mcp.Options{}, func(x *refusing) { x.do("POST", "/mcp?sessionId=nobody", pinged) }, "session_not_found", "sse"},
		{"request.modernFault", "a modern request over HTTP+SSE", mcp.Options{}, func(x *refusing) { x.do("POST", x.sse(), modernSay) }, "era", "sse"},

		{"Conn.receiveLong", "a long line", mcp.Options{}, func(x *refusing) { x.lines(strings.Repeat("x", 2000) + "\n") }, "too_long", "pipe"},
		{"Conn.readAll", "a line that does not end", mcp.Options{}, func(x *refusing) { x.lines(`{"json`) }, "incomplete", "pipe"},
		{"Conn.receive", "no JSON on a line", mcp.Options{}, func(x *refusing) { x.lines("{\n") }, "parse_error", "pipe"},
		{"", "a response that is none", mcp.Options{}, func(x *refusing) { x.lines(`{"jsonrpc":"2.0","id":1,"result":7,"error":7}` + "\n") }, "invalid_request", "pipe"},
		{"Conn.accept", "params on a line", mcp.Options{}, func(x *refusing) {
			x.lines(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}` + "\n")
		}, "invalid_params", "pipe"},
		{"", "params of a notification", mcp.Options{}, func(x *refusing) { x.lines(`{"jsonrpc":"2.0","method":"x/y","params":{"_meta":7}}` + "\n") }, "invalid_params", "pipe"},
		{"Conn.receiveBatch", "a batch on a line", mcp.Options{}, func(x *refusing) { x.lines("[" + pinged + "]\n") }, "batch", "pipe"},
		{"Conn.receiveBatch", "initialize in a batch on a line", mcp.Options{}, func(x *refusing) { x.lines(opened, "["+strings.TrimSpace(opened)+"]\n") }, "batch", "pipe"},
		{"Conn.receiveBatch", "no message in a batch on a line", mcp.Options{}, func(x *refusing) { x.lines(opened, `[{"jsonrpc":"2.0","id":1}]`+"\n") }, "invalid_request", "pipe"},
		{"request.modernFault", "a modern request in a batch on a line", mcp.Options{}, func(x *refusing) { x.lines(opened, "["+modernSay+"]\n") }, "batch", "pipe"},
		{"request.admit", "not initialized", mcp.Options{}, func(x *refusing) { x.lines(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n") }, "no_session", "pipe"},
		{"request.admit", "a revision that nobody knows", mcp.Options{}, func(x *refusing) { x.lines(strings.Replace(modernSay, "2026-07-28", "1999-01-01", 1) + "\n") }, "unsupported_version", "pipe"},
		{"request.open", "initialize twice", mcp.Options{}, func(x *refusing) { x.lines(opened, strings.Replace(opened, `"id":0`, `"id":1`, 1)) }, "initialized", "pipe"},
		{"request.begin", "an id twice", mcp.Options{Timeouts: mcp.Timeouts{Grace: time.Millisecond}}, func(x *refusing) {
			one := strings.Replace(modernSay, `"tools/list","params":{`, `"tools/call","params":{"name":"gate",`, 1) + "\n"
			x.lines(one, one)
		}, "duplicate_id", "pipe"},
		{"Conn.enqueue", "more waits than may", mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, func(x *refusing) { x.crowd() }, "busy", "pipe"},
		{"serverStream.subscribe", "too many subscriptions", mcp.Options{Limits: mcp.Limits{PerConnection: 1}}, func(x *refusing) {
			x.lines(listen("1", `{}`)+"\n", listen("2", `{}`)+"\n")
		}, "busy", "pipe"},
		{"request.skip", "what waits when its connection ends", mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, func(x *refusing) { x.waitInVain() }, "down", "pipe"},
		{"Manager.serveSocket", "too many connections of a socket", mcp.Options{Limits: mcp.Limits{Connections: 1}}, func(x *refusing) { x.sse(); x.dial() }, "busy", "socket"},
		{"errDrains", "a socket while the server drains", mcp.Options{}, func(x *refusing) { x.drain(); x.dial() }, "draining", "socket"},
	}
}

// dyingStore is a scale.Store that keeps nothing and finds nothing once it is dead.
type dyingStore struct {
	scale.Store
	dead atomic.Bool
}

func (s *dyingStore) Get(ctx context.Context, looks ...scale.Look) ([]scale.Entry, error) {
	if s.dead.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Get(ctx, looks...)
}

func (s *dyingStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if s.dead.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Put(ctx, writes...)
}

// stored are the options of servers whose store dies when they do what is refused.
func stored() mcp.Options {
	return mcp.Options{Store: &dyingStore{Store: scale.NewLocal()}, StateKeys: sharedKeys}
}

func (x *refusing) kill() { x.store.(*dyingStore).dead.Store(true) }

// mirrored calls a tool of which one argument is in the headers, too.
func (x *refusing) mirrored(arguments, header string) {
	x.s.MustAdd(mcp.Tool("mirrored", func(_ *mcp.Frame, in struct {
		Tenant string `json:"tenant,omitempty" mcp:"header=Tenant"`
	}) (string, error) {
		return in.Tenant, nil
	}))
	x.modern("tools/call", `"name":"mirrored","arguments":`+arguments, "Mcp-Name: mirrored", header)
}

// drain has the server drain until the end of the test.
func (x *refusing) drain() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = x.s.Drain(ctx)
}

func (x *refusing) down() {
	if err := x.s.Shutdown(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
}

// busy has calls of one session under way, of which the last is refused.
func (x *refusing) busy(ids ...string) {
	in := x.in("2025-11-25")
	for i, id := range ids {
		say := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"gate"}}`
		if i == len(ids)-1 {
			x.post(say, in)
			return
		}
		x.calls.Go(func() { x.post(say, in) })
		await(x.t, x.hold.running, "the call")
	}
}

// crowd sends more to a connection than may wait.
func (x *refusing) crowd() {
	here, there := transport.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.s.ServeConn(context.Background(), here)
	}()
	x.t.Cleanup(func() { there.Close(); <-served })
	say := func(id int, method, more string) {
		text := strings.Replace(modernSay, `"id":1,"method":"tools/list","params":{`, fmt.Sprintf(`"id":%d,"method":%q,"params":{%s`, id, method, more), 1)
		if err := there.Write([]byte(text)); err != nil {
			x.t.Error(err)
		}
	}
	say(1, "tools/call", `"name":"gate",`)
	await(x.t, x.hold.running, "the call")
	for id := range 6 { // one waits for a worker, four in the queue
		say(id+2, "x/y", `"x":"`+strings.Repeat("x", 3_700_000)+`",`)
	}
}

// waitInVain ends a connection while a request waits.
func (x *refusing) waitInVain() {
	here, there := transport.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.s.ServeConn(ctx, here)
	}()
	x.t.Cleanup(func() { cancel(); there.Close(); <-served })
	_ = there.Write([]byte(strings.Replace(modernSay, `"tools/list","params":{`, `"tools/call","params":{"name":"gate",`, 1)))
	await(x.t, x.hold.running, "the call")
	_ = there.Write([]byte(strings.Replace(modernSay, `"id":1`, `"id":2`, 1)))
	_ = there.Write([]byte(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	for answer := []byte(nil); !strings.Contains(string(answer), `"id":3`); { // so that it has read the other one, too
		var err error
		if answer, err = there.Read(); err != nil {
			x.t.Fatal(err)
		}
	}
	cancel()
}

// dial connects to a socket of the server.
func (x *refusing) dial() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = x.s.Serve(ctx, listener)
	}()
	x.t.Cleanup(func() { cancel(); <-served })
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { c.Close() })
}

// Each way tells once, with its word, and the log has one line of it.
func TestRefusals(t *testing.T) {
	for _, way := range refusalWays() {
		t.Run(way.what, func(t *testing.T) {
			t.Parallel()
			var log logText
			o := way.options
			logger := zerolog.New(&log).Level(zerolog.InfoLevel)
			o.Logger = &logger
			x, told := newRefusing(t, &o)
			way.do(x)
			via := cmp.Or(way.via, "http")
			for _, e := range told.heard(1) {
				if e.Why != way.why || string(e.Via) != via || e.Err == nil || e.Frame != nil {
					t.Errorf("%s via %s: %+v, want %s via %s", e.Why, e.Via, e.Err, way.why, via)
				}
			}
			if n := len(told.told); n != 0 {
				t.Errorf("%d more were told", n)
			}
			lines := slices.DeleteFunc(strings.Split(log.String(), "\n"), func(line string) bool { return !strings.Contains(line, `"message":"refused"`) })
			if len(lines) != 1 || !strings.Contains(lines[0], `"why":"`+way.why+`"`) || !strings.Contains(lines[0], `"transport":"`+via+`"`) ||
				(way.via != "pipe" && !strings.Contains(lines[0], `"remote":"127.0.0.1:`)) || !strings.Contains(lines[0], `"error":"`) {
				t.Errorf("the log has %q", lines)
			}
		})
	}
}

// The lines of a burst are one, and the next says how many there were, and how many of
// other clients than the one that the first names.
func TestRefusedBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logText
		logger := zerolog.New(&log)
		s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger})
		refuse := func(remote string) {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader("{"))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.RemoteAddr = remote
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}
		for _, remote := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1", "[fe80::1]:1", "10.0.0.1:3"} {
			refuse(remote)
		}
		time.Sleep(11 * time.Second)
		refuse("10.0.0.2:2")
		time.Sleep(11 * time.Second)
		refuse("10.0.0.2:3")
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], `"remote":"10.0.0.1:1"`) || strings.Contains(lines[0], "skipped") ||
			!strings.Contains(lines[1], `"skipped":4,"skipped_of_others":2`) || strings.Contains(lines[2], "skipped") {
			t.Errorf("the log is\n%s", strings.Join(lines, "\n"))
		}
	})
}

// What makes a fault, or hands on one that another package has made.
var faultMakers = []string{
	"protocol.Errorf", "wire.Refused", "wire.Unavailable", "wire.UnsupportedVersion", "wire.CheckModern",
	"wire.Scan", "wire.ScanBatch", "wire.ErrInitializeInBatch", "wire.ErrModernInBatch", "c.Read", "r.Read",
}

// notRefused are places where a fault is made that refuses nothing, or that refusalWays
// cannot bring about, with how many there are.
var notRefused = map[string]struct {
	n   int
	why string
}{
	"panicked":          {1, "the handler has run"},
	"notKept":           {1, "the handler has run"},
	"endpoint.open":     {1, "the handler has run: its session was not kept"},
	"boundedAsker.Ask":  {1, "a question of a handler"},
	"errShutsDown":      {11, "a shutdown between the look at the beginning and a later one"},
	"sseConn.take":      {1, "the reader, which waits for nothing, has to be slower than 64 messages"},
	"Replicas.answered": {2, "what another replica is handed, and does not take: Handler.notify tells of it"},
}

// Whoever adds a fault to the packages before the dispatcher adds the way to it, too.
func TestRefusalsAreAllProvoked(t *testing.T) {
	places := map[string]int{}
	for _, dir := range []string{"internal/streamable", "internal/conn"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) < 5 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				faultsIn(t, name, places)
			}
		}
	}
	known := map[string]int{}
	for _, way := range refusalWays() {
		known[way.place]++
	}
	for place, exception := range notRefused {
		known[place] += exception.n
	}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		if places[place] != known[place] {
			t.Errorf("%s makes %d faults, of which refusalWays and notRefused know %d", place, places[place], known[place])
		}
		delete(known, place)
	}
	delete(known, "")
	for _, place := range []string{"Requests.Enter", "unknownStream"} { // of other packages
		delete(known, place)
	}
	if len(known) > 0 {
		t.Errorf("there are no such places: %v", known)
	}
}

// faultsIn counts where a file makes faults, by the names of the funcs, or of what
// they are kept in.
func faultsIn(t *testing.T, name string, places map[string]int) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range file.Decls {
		place := ""
		if f, ok := declared.(*ast.FuncDecl); ok {
			place = f.Name.Name
			if f.Recv != nil {
				place = strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + place
			}
		}
		ast.Inspect(declared, func(n ast.Node) bool {
			at := place
			switch n := n.(type) {
			case *ast.CallExpr:
				called := types.ExprString(n.Fun)
				if !slices.Contains(faultMakers, called) {
					return true
				}
			case *ast.CompositeLit:
				if types.ExprString(n.Type) != "protocol.Error" {
					return true
				}
			case *ast.Ident:
				if n.Name != "errShutsDown" && n.Name != "errDrains" || place == "" {
					return true
				}
				at = n.Name
			default:
				return true
			}
			if at != "" {
				places[at]++
			}
			return true
		})
	}
}

// The words of refusals are those that the documentation of Event, or of Outcome, has,
// and each of Event's comes about.
func TestRefusalsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("frame/event.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "Why of refused is")
	list, _, _ = strings.Cut(list, "// Fields")
	documented := map[string]bool{}
	for line := range strings.Lines(list) {
		if words, ok := strings.CutPrefix(line, "//\t"); ok && !strings.HasPrefix(words, " ") {
			words, _, _ = strings.Cut(words, "  ")
			for word := range strings.SplitSeq(words, ", ") {
				documented[word] = true
			}
		}
	}
	codes := []string{"parse_error", "invalid_request", "invalid_params", "header_mismatch", "unsupported_version", "session_not_found", "busy", "unavailable"}
	for _, way := range refusalWays() {
		if !documented[way.why] && !slices.Contains(codes, way.why) {
			t.Errorf("%s: %s is not documented", way.what, way.why)
		}
	}
	for word := range documented {
		if !slices.ContainsFunc(refusalWays(), func(way refusalWay) bool { return way.why == word }) {
			t.Errorf("no way is refused with %s", word)
		}
	}
	if len(documented) < 15 {
		t.Errorf("the documentation has %v", documented)
	}
}
