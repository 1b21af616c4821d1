package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/backendtest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

type comment struct {
	Document string `json:"document"`
	Text     string `json:"text"`
}

type watchIn struct {
	Document string `json:"document" validate:"required"`
	Token    string `json:"token,omitempty" jsonschema:"writeOnly=true"`
}

func comments() mcp.Component {
	return mcp.EventType("comment.created", func(_ *mcp.Frame, in watchIn, c comment) (bool, error) { return in.Document == c.Document, nil }, mcp.Doc("A comment was added"))
}

// started begins a call.
func started(t *testing.T, i *Inspector, kind, name, arguments string) call {
	t.Helper()
	text, err := json.Marshal(map[string]any{"kind": kind, "tool": name, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Call call }
	if code := ask(t, i, "POST", "/api/call", string(text), &made); code != http.StatusAccepted {
		t.Fatalf("%s: %d", name, code)
	}
	return made.Call
}

func (c *calls) now(id int64) call { one, _ := c.get(id); return one }

// TestEvents: event types are listed with their schemas and marked where they are broken; a watch has the events
// that came while it runs and when it has ended, until it is stopped.
func TestEvents(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			s := workbench(t)
			s.MustAdd(comments())
			i := inspect(t, client.Local(s.ServeConn), "")
			i.Connect(rev)
			until(t, i, func() bool { now := snapshot(i); return now.State == "ready" && now.Revision == rev.String() })
			o := listed(t, i, "event")
			if len(o.Entries) != 1 || o.Entries[0].Name != "comment.created" || o.Entries[0].Description != "A comment was added" || o.Entries[0].Wrong != "" {
				t.Fatalf("%s: %+v", rev, o)
			}
			var f form
			ask(t, i, "GET", "/api/form?kind=event&tool=comment.created", "", &f)
			if f.Form == nil || len(f.Form.Fields) != 2 || !strings.Contains(f.Sent, `"payloadSchema"`) {
				t.Errorf("%s: %+v", rev, f)
			}
			var refused struct{ Issues []struct{ Path string } }
			ask(t, i, "POST", "/api/call", `{"kind":"event","tool":"comment.created","arguments":"{}"}`, &refused)
			if len(refused.Issues) != 1 || refused.Issues[0].Path != "/document" {
				t.Errorf("%s: %+v", rev, refused)
			}
			one := started(t, i, "event", "comment.created", `{"document":"a","token":"hush-hush"}`)
			for n := 1; n <= 3; n++ {
				until(t, i, func() bool { // a watch begins a moment after its call
					for _, document := range []string{"a", "b"} {
						if err := s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{document, fmt.Sprint("number ", n)}, ID: fmt.Sprintf("%s-%d", rev, n)}); err != nil {
							t.Fatal(err)
						}
					}
					if now := i.calls.now(one.ID); now.Events > 0 {
						return true
					}
					time.AfterFunc(50*time.Millisecond, i.pulse.beat)
					return false
				})
			}
			until(t, i, func() bool { return i.calls.now(one.ID).Events == 3 })
			now := i.calls.now(one.ID)
			if now.State != "running" || strings.Index(now.Result, "number 3") > strings.Index(now.Result, "number 1") || strings.Contains(now.Result, `"b"`) {
				t.Errorf("%s: %s", rev, now.Result)
			}
			ask(t, i, "DELETE", fmt.Sprint("/api/calls/", one.ID), "", nil)
			until(t, i, func() bool { return i.calls.now(one.ID).State != "running" })
			if over := i.calls.now(one.ID); over.State != "done" || over.Result != now.Result || len(over.Issues) != 0 || over.Error != nil {
				t.Errorf("%s: %+v", rev, over)
			}
			for as, want := range map[string]string{"command": "'talaria' 'events'", "report": "number 3", "go": "", "curl": ""} {
				i.options.Words = []string{"target"}
				text, err := (exporter{i}).exported(i.calls.now(one.ID), as, "share")
				if (err == nil) != (want != "") || !strings.Contains(strings.ReplaceAll(text, "talaria events", "'talaria' 'events'"), want) || strings.Contains(text, "hush-hush") {
					t.Errorf("%s: %s, %v", as, text, err)
				}
			}
			if unknown := started(t, i, "event", "gone", `{}`); true {
				until(t, i, func() bool { return i.calls.now(unknown.ID).State == "error" })
			}
			i.Close()
		})
	}
}

// TestEventFaults: a broken event type is marked.
func TestEventFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"e","inputSchema":{"type":"object"},"payloadSchema":{"type":"object"}}`:              "",
		`{"name":"e","inputSchema":{"type":"objekt"},"payloadSchema":{"type":"object"}}`:              "/inputSchema/type",
		`{"name":"e","inputSchema":{"type":"object"},"payloadSchema":{"type":"object","required":1}}`: "/payloadSchema/required",
		`{"name":"e","inputSchema":{"type":"object"}}`:                                                "/payloadSchema",
		`{"inputSchema":{"type":"object"},"payloadSchema":{"type":"object"}}`:                         "it has no name",
		`{"name":"e","delivery":5}`: "delivery is a number",
	} {
		i := New(Options{Target: "target"})
		e := entryOf(kinds["event"], json.RawMessage(text), 0)
		newJudge(&i.schemas, "event", protocol.Latest).mark(&e)
		if (want == "") != (e.Wrong == "") || !strings.Contains(e.Wrong, want) {
			t.Errorf("%s: %q", text, e.Wrong)
		}
		i.Close()
	}
}

// TestWatchedBound: of many or long events the newest remain.
func TestWatchedBound(t *testing.T) {
	w := &watched{}
	for n := range 300 {
		w.add(json.RawMessage(fmt.Sprint(n)))
	}
	if len(w.list) != maxWatched || string(w.list[0]) != "299" {
		t.Errorf("%d, %s", len(w.list), w.list[0])
	}
	long := json.RawMessage(`"` + strings.Repeat("x", maxWatchedSize) + `"`)
	w.add(long)
	if len(w.list) != 1 || w.size != len(long) {
		t.Errorf("%d events, %d bytes", len(w.list), w.size)
	}
}

// cutting is a listener whose connections can be cut, also those that a handler took over.
type cutting struct {
	net.Listener
	mu  sync.Mutex
	all []net.Conn
}

func (c *cutting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.all = append(c.all, conn)
	}
	return conn, err
}

func (c *cutting) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		_ = conn.Close() // or it was closed before
	}
	c.all = nil
}

// TestListensAgain: lists are refreshed when the subscription of a modern server over HTTP has ended, and a
// change afterwards is seen.
func TestListensAgain(t *testing.T) {
	s := workbench(t)
	web := httptest.NewUnstartedServer(s.Handler())
	accepted := &cutting{Listener: web.Listener}
	web.Listener = accepted
	web.Start()
	defer web.Close()
	i := New(Options{Target: web.URL,
		Transport: func(io.Writer, func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
			return client.HTTP(web.URL, nil), nil
		},
		Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "" },
	})
	defer i.Close()
	i.Connect(0)
	has := func(name string) func() bool {
		return func() bool {
			lists, _ := i.lists()
			if lists["tool"] == nil {
				return false
			}
			for _, e := range lists["tool"].Entries {
				if e.Name == name {
					return true
				}
			}
			return false
		}
	}
	until(t, i, has("sum"))
	for n, name := range []string{"while away", "afterwards"} {
		if n == 0 {
			accepted.cut()
		}
		s.MustAdd(mcp.Tool(strings.ReplaceAll(name, " ", "_"), func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
		until(t, i, has(strings.ReplaceAll(name, " ", "_")))
	}
	if s := snapshot(i); s.State != "ready" {
		t.Errorf("%+v", s)
	}
}

// TestSubscriptionEnds: a server that ends each subscription has its lists read again after a second, or, if
// subscriptions end at once, every half minute, which the lists then say until one lasts.
func TestSubscriptionEnds(t *testing.T) {
	for _, c := range []struct {
		lasts, late time.Duration // a subscription; the greatest age of the list
		note        bool
	}{
		{0, 31 * time.Second, true}, {time.Second, 33 * time.Second, true}, {3 * time.Second, 6 * time.Second, false},
		{10 * time.Second, 13 * time.Second, false}, {29 * time.Second, 32 * time.Second, false}, {time.Minute, 63 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var lists, lasts, listed, listens atomic.Int64
			lasts.Store(int64(c.lasts))
			i := inspect(t, client.Local(func(_ context.Context, conn transport.Conn) error {
				return backendtest.Scripted(conn, func(m *protocol.Message, id string) string {
					switch m.Method {
					case "server/discover":
						return `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"},"ttlMs":0,"cacheScope":"private"}`
					case protocol.MethodToolsList:
						listed.Store(time.Now().Unix())
						return fmt.Sprintf(`"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}`, lists.Add(1))
					case "subscriptions/listen":
						listens.Add(1)
						_ = conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`, id)) // until it is closed
						time.AfterFunc(time.Duration(lasts.Load()), func() {
							_ = conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, id, id)) // the same
						})
						return ""
					}
					return `"error":{"code":-32601,"message":"no"}`
				})
			}), "")
			note := func() string {
				i.mu.Lock()
				defer i.mu.Unlock()
				return i.offered["tool"].Note
			}
			for at := range 600 {
				time.Sleep(time.Second)
				if age := time.Duration(time.Now().Unix()-listed.Load()) * time.Second; age > c.late {
					t.Fatalf("%v: after %d seconds the list is %v old", c.lasts, at, age)
				}
			}
			if got := note(); strings.Contains(got, "ends each subscription") != c.note {
				t.Errorf("%v: %q", c.lasts, got)
			}
			if n, most := listens.Load(), int64(10*time.Minute/(c.lasts+time.Second)); n > most+2 || c.note && n > 40 {
				t.Errorf("%v: %d subscriptions in ten minutes", c.lasts, n)
			}
			lasts.Store(int64(time.Hour))
			time.Sleep(2 * time.Minute)
			n := lists.Load()
			if time.Sleep(30 * time.Minute); note() != "" || lists.Load() != n {
				t.Errorf("%v: the subscription lasts, and %d lists were read; %q", c.lasts, lists.Load()-n, note())
			}
			i.Close()
		})
	}
}
