package hostile_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
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
		harness.Await(r.t, r.told, "refusal")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

func newRefusing(t *testing.T, o *mcp.Options) (*harness.Refusing, *refusals) {
	if o == nil {
		o = &mcp.Options{}
	}
	o.HTTP.SSE = true
	x := &harness.Refusing{T: t, S: harness.Fixture(t, o), Hold: harness.NewGate(), Calls: new(sync.WaitGroup)}
	x.S.MustAdd(x.Hold.Tool("gate"))
	x.Store = o.Store
	heard := hearRefusals(t, x.S)
	mux := http.NewServeMux()
	mux.Handle("/mcp", x.S.Handler())
	mux.Handle("/ws", websocket.Handler(x.S))
	web := httptest.NewServer(mux)
	x.URL = web.URL
	t.Cleanup(func() {
		close(x.Hold.Open)
		x.Calls.Wait()
		web.CloseClientConnections()
		web.Close()
	})
	return x, heard
}

type refusalWay struct {
	place, what string
	options     mcp.Options
	do          func(x *harness.Refusing)
	why         string
	via         string // "" is http
}

// refusalWays are all in which a message or a request is refused before the dispatcher. place
// is where the fault is made or handed on, "" for one that another way has already.
func refusalWays() []refusalWay {
	return []refusalWay{
		{"Handler.ServeHTTP", "host", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Host: evil.example") }, "host", ""},
		{"", "origin", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Origin: https://evil.example") }, "origin", ""},
		{"Handler.notAllowed", "PUT", mcp.Options{}, func(x *harness.Refusing) { x.Do("PUT", "/mcp", "") }, "http_method", ""},
		{"", "DELETE without a session", mcp.Options{}, func(x *harness.Refusing) { x.Do("DELETE", "/mcp", "") }, "http_method", ""},
		{"Handler.open", "content type", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Content-Type: text/plain") }, "content_type", ""},
		{"Handler.open", "compressed", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Content-Encoding: gzip") }, "content_type", ""},
		{"Handler.open", "accept", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Accept: image/png") }, "accept", ""},
		{"Handler.get", "accept of a stream", mcp.Options{}, func(x *harness.Refusing) { x.Do("GET", "/mcp", "", "Accept: application/json") }, "accept", ""},
		{"Handler.get", "a browser", mcp.Options{}, func(x *harness.Refusing) { x.Do("GET", "/mcp", "", "Accept: text/html") }, "accept", ""},
		{"bodyReader.readAll", "a long body", mcp.Options{Limits: mcp.Limits{Message: 64}}, func(x *harness.Refusing) { x.Post(strings.Repeat(" ", 100)) }, "too_long", ""},
		{"unreadable", "a body that takes too long", mcp.Options{Timeouts: mcp.Timeouts{Read: 20 * time.Millisecond}}, func(x *harness.Refusing) {
			c, err := net.Dial("tcp", strings.TrimPrefix(x.URL, "http://"))
			if err != nil {
				x.T.Fatal(err)
			}
			x.T.Cleanup(func() { c.Close() })
			fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		}, "incomplete", ""},
		{"admission.admit", "no JSON", mcp.Options{}, func(x *harness.Refusing) { x.Post(`{"jsonrpc"`) }, "parse_error", ""},
		{"admission.admit", "gzip without Content-Encoding", mcp.Options{}, func(x *harness.Refusing) { x.Post("\x1f\x8b\b") }, "parse_error", ""},
		{"", "no message", mcp.Options{}, func(x *harness.Refusing) { x.Post(`{"jsonrpc":"1.0","id":1,"method":"ping"}`) }, "invalid_request", ""},
		{"admission.admit", "params", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`)
		}, "invalid_params", ""},
		{"admission.admitModern", "a response", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","id":1,"result":{}}`, "Mcp-Protocol-Version: 2026-07-28")
		}, "era", ""},
		{"admission.admitModern", "another version in the header", mcp.Options{}, func(x *harness.Refusing) { x.Modern("ping", "", "Mcp-Protocol-Version: 2025-06-18") }, "header_mismatch", ""},
		{"", "no _meta", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Mcp-Protocol-Version: 2026-07-28") }, "invalid_params", ""},
		{"admission.checkNotification", "version of a notification", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "Mcp-Protocol-Version: 2025-06-18")
		}, "header_mismatch", ""},
		{"", "a notification of no version", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}}}`)
		}, "unsupported_version", ""},
		{"admission.admitLegacy", "initialized already", mcp.Options{}, func(x *harness.Refusing) { x.Post(strings.TrimSpace(harness.Opened), x.In("2025-03-26")) }, "initialized", ""},
		{"admission.checkVersion", "a version that nobody knows", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Mcp-Protocol-Version: 1999-01-01") }, "unsupported_version", ""},
		{"admission.session", "no session", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged) }, "no_session", ""},
		{"", "GET without one that is known", mcp.Options{}, func(x *harness.Refusing) { x.Do("GET", "/mcp", "", "Mcp-Session-Id: nobody") }, "session_not_found", ""},
		{"admission.admitBatch", "a batch without a session", mcp.Options{}, func(x *harness.Refusing) { x.Post("[" + harness.Pinged + "]") }, "batch", ""},
		{"admission.admitBatch", "an empty batch", mcp.Options{}, func(x *harness.Refusing) { x.Post("[]", x.In("2025-03-26")) }, "batch", ""},
		{"admission.admitBatch", "a broken message in a batch", mcp.Options{}, func(x *harness.Refusing) { x.Post("["+harness.Pinged+`,{"jsonrpc":"2.0","id":1}]`, x.In("2025-03-26")) }, "invalid_request", ""},
		{"", "bad params in a batch", mcp.Options{}, func(x *harness.Refusing) {
			x.Post("["+harness.Pinged+`,{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}]`, x.In("2025-03-26"))
		}, "invalid_params", ""},
		{"admission.admitBatch", "initialize in a batch", mcp.Options{}, func(x *harness.Refusing) { x.Post("["+strings.TrimSpace(harness.Opened)+"]", x.In("2025-03-26")) }, "batch", ""},
		{"admission.admitBatch", "a modern request in a batch", mcp.Options{}, func(x *harness.Refusing) { x.Post("["+harness.ModernSay+"]", x.In("2025-03-26")) }, "batch", ""},
		{"", "another name in the header", mcp.Options{}, func(x *harness.Refusing) {
			x.Modern("tools/call", `"name":"greet","arguments":{"name":"Ada"}`, "Mcp-Name: add")
		}, "header_mismatch", ""},
		{"HeaderValue", "no name in the header", mcp.Options{}, func(x *harness.Refusing) { x.Modern("tools/call", `"name":"greet"`) }, "header_mismatch", ""},
		{"HeaderValue", "a name that is no base64", mcp.Options{}, func(x *harness.Refusing) { x.Modern("tools/call", `"name":"greet"`, "Mcp-Name: =?base64?-?=") }, "header_mismatch", ""},
		{"matchHeader", "no method in the header", mcp.Options{}, func(x *harness.Refusing) { x.Modern("ping", "", "Mcp-Method:") }, "header_mismatch", ""},
		{"mismatch", "another method in the header", mcp.Options{}, func(x *harness.Refusing) { x.Modern("ping", "", "Mcp-Method: tools/list") }, "header_mismatch", ""},
		{"CheckHeaderParam", "an argument that is in the header alone", mcp.Options{}, func(x *harness.Refusing) { x.Mirrored(`{}`, "Mcp-Param-Tenant: a") }, "header_mismatch", ""},
		{"CheckHeaderParam", "another argument in the header", mcp.Options{}, func(x *harness.Refusing) { x.Mirrored(`{"tenant":"b"}`, "Mcp-Param-Tenant: a") }, "header_mismatch", ""},

		{"endpoint.subscribe", "a subscription without events", mcp.Options{}, func(x *harness.Refusing) {
			x.Modern("subscriptions/listen", `"notifications":{}`, "Accept: application/json")
		}, "accept", ""},
		{"errDrains", "a subscription while the server drains", mcp.Options{}, func(x *harness.Refusing) { x.Drain(); x.Modern("subscriptions/listen", `"notifications":{}`) }, "draining", ""},
		{"errDrains", "a stream while the server drains", mcp.Options{}, func(x *harness.Refusing) { h := x.In("2025-11-25"); x.Drain(); x.Do("GET", "/mcp", "", h) }, "draining", ""},
		{"errDrains", "a connection of HTTP+SSE while the server drains", mcp.Options{}, func(x *harness.Refusing) { x.Drain(); x.Do("GET", "/mcp", "") }, "draining", "sse"},
		{"errDrains", "a WebSocket while the server drains", mcp.Options{}, func(x *harness.Refusing) { x.Drain(); x.Do("GET", "/ws", "") }, "draining", "websocket"},
		{"errShutsDown", "a request while the server shuts down", mcp.Options{}, func(x *harness.Refusing) { x.Down(); x.Modern("tools/list", "") }, "down", ""},
		{"errShutsDown", "initialize while the server shuts down", mcp.Options{}, func(x *harness.Refusing) { x.Down(); x.In("2025-11-25") }, "down", ""},
		{"errShutsDown", "a WebSocket while the server shuts down", mcp.Options{}, func(x *harness.Refusing) { x.Down(); x.Do("GET", "/ws", "") }, "down", "websocket"},
		{"Manager.ServeUpgrade", "the host of a WebSocket", mcp.Options{}, func(x *harness.Refusing) { x.Do("GET", "/ws", "", "Host: evil.example") }, "host", "websocket"},
		{"Manager.ServeUpgrade", "what is no WebSocket", mcp.Options{}, func(x *harness.Refusing) { x.Do("GET", "/ws", "") }, "upgrade", "websocket"},
		{"Manager.ServeUpgrade", "too many WebSockets", mcp.Options{Limits: mcp.Limits{Connections: 1}}, func(x *harness.Refusing) { x.SSE(); x.Do("GET", "/ws", "") }, "busy", "websocket"},
		{"endpoint.connect", "too many connections", mcp.Options{Limits: mcp.Limits{Connections: 1}}, func(x *harness.Refusing) { x.SSE(); x.Do("GET", "/mcp", "") }, "busy", "sse"},
		{"tooMany", "too many sessions", mcp.Options{Limits: mcp.Limits{Sessions: 1}}, func(x *harness.Refusing) {
			x.Post(harness.Pinged, x.In("2025-11-25"))
			x.Session = ""
			x.In("2025-11-25")
		}, "busy", ""},
		{"sessionNotFound", "a session that nobody has", mcp.Options{}, func(x *harness.Refusing) { x.Post(harness.Pinged, "Mcp-Session-Id: nobody") }, "session_not_found", ""},
		{"readClient", "initialize without params", mcp.Options{}, func(x *harness.Refusing) { x.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`) }, "invalid_params", ""},
		{"readClient", "capabilities that are none", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":7}}}`)
		}, "invalid_params", ""},
		{"readClient", "a clientInfo that is none", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":7}}`)
		}, "invalid_params", ""},
		{"readClient", "no legacy revision", mcp.Options{Revisions: []protocol.Revision{protocol.Latest}}, func(x *harness.Refusing) { x.In("2025-11-25") }, "unsupported_version", ""},
		{"tooMuch", "a long clientInfo", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"` + strings.Repeat("x", 40_000) + `"}}}`)
		}, "invalid_params", ""},
		{"tooMuch", "many capabilities", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":[` + strings.Repeat("1,", 300) + `1]}}`)
		}, "invalid_params", ""},
		{"", "a log level that there is not", mcp.Options{}, func(x *harness.Refusing) {
			x.Post(strings.Replace(harness.ModernSay, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"loud",`, 1), "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
		}, "invalid_params", ""},
		{"Requests.Enter", "a second request with the id", mcp.Options{}, func(x *harness.Refusing) { x.Busy("1", "1") }, "duplicate_id", ""},
		{"Requests.Enter", "too many requests", mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, func(x *harness.Refusing) { x.Busy("1", "2") }, "busy", ""},
		{"unknownStream", "no such event", mcp.Options{}, func(x *harness.Refusing) { x.Do("GET", "/mcp", "", x.In("2025-11-25"), "Last-Event-Id: 77-1") }, "last_event", ""},
		{"endpoint.session", "the session of a store that does not answer", stored(), func(x *harness.Refusing) { h := x.Elsewhere(); x.Kill(); x.Post(harness.Pinged, h) }, "unavailable", ""},
		{"endpoint.open", "a session in a store that does not answer", stored(), func(x *harness.Refusing) { x.Kill(); x.In("2025-11-25") }, "unavailable", ""},
		{"endpoint.endSession", "the end of a session in a store that does not answer", stored(), func(x *harness.Refusing) { h := x.In("2025-11-25"); x.Kill(); x.Do("DELETE", "/mcp", "", h) }, "unavailable", ""},

		{"streamNotFound", "no such stream of HTTP+SSE", mcp.Options{}, func(x *harness.Refusing) { x.Do("POST", "/mcp?sessionId=nobody", harness.Pinged) }, "session_not_found", "sse"},
		{"request.modernFault", "a modern request over HTTP+SSE", mcp.Options{}, func(x *harness.Refusing) { x.Do("POST", x.SSE(), harness.ModernSay) }, "era", "sse"},

		{"Conn.receiveLong", "a long line", mcp.Options{}, func(x *harness.Refusing) { x.Lines(strings.Repeat("x", 2000) + "\n") }, "too_long", "pipe"},
		{"Conn.readAll", "a line that does not end", mcp.Options{}, func(x *harness.Refusing) { x.Lines(`{"json`) }, "incomplete", "pipe"},
		{"Conn.receive", "no JSON on a line", mcp.Options{}, func(x *harness.Refusing) { x.Lines("{\n") }, "parse_error", "pipe"},
		{"", "a response that is none", mcp.Options{}, func(x *harness.Refusing) { x.Lines(`{"jsonrpc":"2.0","id":1,"result":7,"error":7}` + "\n") }, "invalid_request", "pipe"},
		{"Conn.accept", "params on a line", mcp.Options{}, func(x *harness.Refusing) {
			x.Lines(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}` + "\n")
		}, "invalid_params", "pipe"},
		{"", "params of a notification", mcp.Options{}, func(x *harness.Refusing) { x.Lines(`{"jsonrpc":"2.0","method":"x/y","params":{"_meta":7}}` + "\n") }, "invalid_params", "pipe"},
		{"Conn.receiveBatch", "a batch on a line", mcp.Options{}, func(x *harness.Refusing) { x.Lines("[" + harness.Pinged + "]\n") }, "batch", "pipe"},
		{"Conn.receiveBatch", "initialize in a batch on a line", mcp.Options{}, func(x *harness.Refusing) { x.Lines(harness.Opened, "["+strings.TrimSpace(harness.Opened)+"]\n") }, "batch", "pipe"},
		{"Conn.receiveBatch", "no message in a batch on a line", mcp.Options{}, func(x *harness.Refusing) { x.Lines(harness.Opened, `[{"jsonrpc":"2.0","id":1}]`+"\n") }, "invalid_request", "pipe"},
		{"request.modernFault", "a modern request in a batch on a line", mcp.Options{}, func(x *harness.Refusing) { x.Lines(harness.Opened, "["+harness.ModernSay+"]\n") }, "batch", "pipe"},
		{"request.admit", "not initialized", mcp.Options{}, func(x *harness.Refusing) { x.Lines(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n") }, "no_session", "pipe"},
		{"request.admit", "a revision that nobody knows", mcp.Options{}, func(x *harness.Refusing) {
			x.Lines(strings.Replace(harness.ModernSay, "2026-07-28", "1999-01-01", 1) + "\n")
		}, "unsupported_version", "pipe"},
		{"request.open", "initialize twice", mcp.Options{}, func(x *harness.Refusing) {
			x.Lines(harness.Opened, strings.Replace(harness.Opened, `"id":0`, `"id":1`, 1))
		}, "initialized", "pipe"},
		{"request.begin", "an id twice", mcp.Options{Timeouts: mcp.Timeouts{Grace: time.Millisecond}}, func(x *harness.Refusing) {
			one := strings.Replace(harness.ModernSay, `"tools/list","params":{`, `"tools/call","params":{"name":"gate",`, 1) + "\n"
			x.Lines(one, one)
		}, "duplicate_id", "pipe"},
		{"Conn.enqueue", "more waits than may", mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, func(x *harness.Refusing) { x.Crowd() }, "busy", "pipe"},
		{"serverStream.subscribe", "too many subscriptions", mcp.Options{Limits: mcp.Limits{SubscriptionsPerConnection: 1}}, func(x *harness.Refusing) {
			x.Lines(harness.Listen("1", `{}`)+"\n", harness.Listen("2", `{}`)+"\n")
		}, "busy", "pipe"},
		{"request.skip", "what waits when its connection ends", mcp.Options{Limits: mcp.Limits{Concurrent: 1}}, func(x *harness.Refusing) { x.WaitInVain() }, "down", "pipe"},
		{"Manager.serveSocket", "too many connections of a socket", mcp.Options{Limits: mcp.Limits{Connections: 1}}, func(x *harness.Refusing) { x.SSE(); x.Dial() }, "busy", "socket"},
		{"errDrains", "a socket while the server drains", mcp.Options{}, func(x *harness.Refusing) { x.Drain(); x.Dial() }, "draining", "socket"},
	}
}

// stored are the options of servers whose store dies when they do what is refused.
func stored() mcp.Options {
	return mcp.Options{Store: &harness.DyingStore{Store: scale.NewLocal()}, StateKeys: harness.SharedKeys}
}

// Each way tells once, with its word, and the log has one line of it.
func TestRefusals(t *testing.T) {
	for _, way := range refusalWays() {
		t.Run(way.what, func(t *testing.T) {
			t.Parallel()
			var log harness.LogText
			o := way.options
			logger := zerolog.New(&log).Level(zerolog.InfoLevel)
			o.Logger = &logger
			x, told := newRefusing(t, &o)
			way.do(x)
			via := cmp.Or(way.via, "http")
			for _, e := range told.heard(1) {
				if e.Reason != way.why || string(e.Transport) != via || e.Err == nil || e.Frame != nil {
					t.Errorf("%s via %s: %+v, want %s via %s", e.Reason, e.Transport, e.Err, way.why, via)
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
		var log harness.LogText
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
	"Posted.take":       {1, "the reader, which waits for nothing, has to be slower than 64 messages"},
	"Replicas.answered": {2, "what another replica is handed, and does not take: Handler.notify tells of it"},
}

// Whoever adds a fault to the packages before the dispatcher adds the way to it, too.
func TestRefusalsAreAllProvoked(t *testing.T) {
	places := map[string]int{}
	for _, dir := range []string{"internal/streamable", "internal/conn"} {
		files, err := filepath.Glob("../../../" + dir + "/*.go")
		if err != nil || len(files) < 5 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				faultsIn(t, name, places)
			}
		}
	}
	faultsIn(t, "../../../internal/wire/headerparam.go", places)
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
	text, err := os.ReadFile("../../../frame/event.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "Reason of refused is")
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
