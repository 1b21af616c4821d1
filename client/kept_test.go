package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testproc"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestKept compares the table of docs/limits.md, "Client memory", with the heap:
// each way of filling a row, with the most expensive input, takes at most the heap
// that the table has, and one of them at least a third of it.
func TestKept(t *testing.T) {
	if !testproc.Isolated(t) {
		return
	}
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "## Client memory\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for what, fills := range map[string]map[string]func(t *testing.T) any{
		"listed tools": {
			"short":        keepTools(`{"name":"%d"}`),
			"schemas":      keepTools(`{"name":"%d","inputSchema":` + jsonList(1000, `{"type":"object"}`) + `}`),
			"icons":        keepTools(`{"name":"%d","icons":` + jsonList(10000, `{}`) + `}`),
			"sizes":        keepTools(`{"name":"%d","icons":[{"sizes":` + jsonList(10000, `""`) + `}]}`),
			"_meta":        keepTools(`{"name":"%d","_meta":{"x":` + jsonList(10000, `{}`) + `}}`),
			"numbers":      keepTools(`{"name":"%d","_meta":{"x":` + jsonList(10000, `1`) + `}}`),
			"members":      keepTools(`{"name":"%d","_meta":{"x":` + jsonList(1000, `{"a":{"a":{"a":{}}}}`) + `}}`),
			"mirrored":     keepTools(`{"name":"%d","inputSchema":{"properties":{` + mirrored(1000) + `}}}`),
			"again, other": keepTools(`{"name":"x","inputSchema":{"type":"object","title":"%d"}}`),
		},
		"compiled schemas of tools": {
			"true":  keepSchemas(`{"anyOf":` + jsonList(2000, "true") + `}`),
			"empty": keepSchemas(`{"anyOf":` + jsonList(2000, "{}") + `}`),
		},
		"notifications that callbacks have not taken": {
			"short": keepNotifications(0, false), "long": keepNotifications(1<<20, false),
		},
		"notifications that a range over `Notifications` has not taken": {
			"short": keepNotifications(0, true), "long": keepNotifications(1<<20, true),
		},
	} {
		most := 0.0 // of the limit
		limit := keptLimit(part, what)
		if limit == 0 {
			t.Errorf("the table has no MiB for %s", what)
			continue
		}
		for way, fill := range fills {
			t.Run(what+", "+way, func(t *testing.T) {
				before := heapInUse()
				kept := fill(t)
				got := heapInUse() - before
				runtime.KeepAlive(kept)
				t.Logf("%.2f MiB of %d MiB", float64(got)/(1<<20), limit>>20)
				if most = max(most, float64(got)/float64(limit)); got > limit*11/10 {
					t.Errorf("%d bytes are kept, where the limit is %d", got, limit)
				}
			})
		}
		if most < 1./3 {
			t.Errorf("%s: no way takes more than %.2f of the limit: it is not the limit of anything", what, most)
		}
	}
}

// keptLimit reads the MiB of a row, in bytes; 0 if there is none.
func keptLimit(table, what string) int {
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 6 && strings.TrimSpace(cells[1]) == what {
			number, _, _ := strings.Cut(strings.TrimSpace(cells[3]), " MiB")
			n, _ := strconv.Atoi(number)
			return n << 20
		}
	}
	return 0
}

func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools had
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func jsonList(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func mirrored(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"type":"string","x-mcp-header":"%d"},`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// idle returns a client that is not connected.
func idle() *Client {
	log := zerolog.Nop()
	c := &Client{opts: Options{Logger: &log}}
	c.tools.client, c.notifications.client = c, c
	return c
}

// keepTools lists tools, one a page, until no more are kept.
func keepTools(tool string) func(t *testing.T) any {
	return func(t *testing.T) any {
		c := idle()
		for n := range maxTools + 10 {
			page, err := decodePage[Tool]([]byte(`{"tools":[`+strings.Replace(tool, "%d", strconv.Itoa(n), 1)+`]}`), "tools")
			if err != nil {
				t.Fatal(err)
			}
			if c.tools.learn(page.items, map[string]bool{}); c.tools.left {
				break
			}
			if n == 200 && !strings.Contains(tool, `"name":"%d"`) {
				break // it is the same tool, again and again
			}
		}
		return c
	}
}

// keepSchemas compiles the schemas of as many tools as there may be.
func keepSchemas(schema string) func(t *testing.T) any {
	return func(t *testing.T) any {
		c := idle()
		for n := range 19 * (maxCompiled / len(schema)) / 10 { // almost half of which make room
			c.tools.learn([]Tool{{Name: strconv.Itoa(n), InputSchema: json.RawMessage(schema)}}, map[string]bool{})
			_ = c.tools.checkArguments(c.tools.get(strconv.Itoa(n)), nil) // they need not fit
		}
		if c.tools.compiled == 0 || c.tools.compiled > maxCompiled {
			t.Errorf("%d bytes are compiled", c.tools.compiled)
		}
		return c
	}
}

// keepNotifications tells of more than is kept, of that size each.
func keepNotifications(size int, listened bool) func(t *testing.T) any {
	return func(t *testing.T) any {
		c := idle()
		c.notifications.running = true // and never takes anything
		l, remove := c.notifications.listen(nil)
		t.Cleanup(remove)
		for range 2 * maxNotifications {
			n := Notification{Method: protocol.MethodLog, Params: make([]byte, size)}
			if listened {
				c.notifications.deliver(delivery{Notification: n})
			} else {
				c.notifications.push(n, nil)
			}
		}
		return []any{c, l}
	}
}

// told is the transport to a server of 2025-06-18 that answers as a function
// says, and as answerBut otherwise.
func told(t *testing.T, answer func(far transport.Conn, m *waitMessage) (result string)) Transport {
	return Conn(func(context.Context) (transport.Conn, error) {
		near, far := transport.Pipe()
		t.Cleanup(func() { far.Close() })
		go func() {
			for {
				text, err := far.Read()
				if err != nil {
					return
				}
				var m waitMessage
				if json.Unmarshal(text, &m) != nil || m.ID == nil {
					continue
				}
				out := answerBut("", text, 0)
				if result := answer(far, &m); result != "" {
					out = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
				}
				_ = far.Write([]byte(out))
			}
		}()
		return near, nil
	})
}

// Cursors are not kept, however long they are, and one that comes again is seen.
func TestKeptCursors(t *testing.T) {
	testdep.NoRace(t, "it measures memory")
	const pages = 64
	n := 0
	c, err := Connect(t.Context(), told(t, func(_ transport.Conn, m *waitMessage) string {
		if m.Method != protocol.MethodPromptsList {
			return ""
		}
		n++
		return fmt.Sprintf(`{"prompts":[{"name":"x"}],"nextCursor":"%0*d"}`, 1_000_000, n%pages)
	}), &Options{LaxCapabilities: true, Revisions: []protocol.Revision{protocol.V20250618}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, before := 0, heapInUse()
	for _, err = range c.Prompts(t.Context()) {
		if got++; got == pages-1 {
			if now := heapInUse() - before; now > 16<<20 {
				t.Errorf("%d bytes more are in use after %d pages", now, got)
			}
		}
	}
	if got != pages+2 || err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("%d items, %v", got, err)
	}
}

// Questions of a server that nobody answers are bounded in size, too.
func TestKeptQuestions(t *testing.T) {
	const size, asked = 1_000_000, 40
	release := make(chan struct{})
	var working atomic.Int64
	c, err := Connect(t.Context(), told(t, func(far transport.Conn, m *waitMessage) string {
		for n := range asked {
			if m.Method != protocol.MethodPing {
				break
			}
			_ = far.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"q%d","method":"x/ask","params":{"x":"%0*d"}}`, n, size, n))
		}
		return ""
	}), &Options{LaxCapabilities: true, Revisions: []protocol.Revision{protocol.V20250618},
		OnRequest: func(context.Context, string, json.RawMessage) (any, error) {
			working.Add(1)
			<-release
			return struct{}{}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer close(release)
	if err := c.Ping(t.Context()); err != nil { // it is answered after the questions
		t.Fatal(err)
	}
	for working.Load() == 0 {
		runtime.Gosched()
	}
	conn := c.life.conn.Load()
	if n, bytes := conn.answering.Load(), conn.questions.Load(); int(n) != maxAskedSize/(size+len(`{"x":""}`)) || bytes > maxAskedSize {
		t.Errorf("%d questions of %d bytes are being answered", n, bytes)
	}
}

// A subscription has agreed to nothing but what it wants, each once.
func TestKeptAccepted(t *testing.T) {
	s := &Subscription{wanted: Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"a:b", "c:d"}}, acked: make(chan struct{})}
	s.acknowledged([]byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":` + strings.TrimSuffix(jsonList(1000, `"c:d","e:f"`), "]") + `],"taskIds":["x"]}}`))
	want := Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"c:d"}}
	if got := s.Accepted(); !reflect.DeepEqual(got, want) {
		t.Errorf("accepted %+v, want %+v", got, want)
	}
}

// A schema that is too long is not compiled; a tool for which there is no room is
// not said to be missing.
func TestKeptNot(t *testing.T) {
	c := idle()
	long := Tool{Name: "long", InputSchema: json.RawMessage(`{"title":"` + strings.Repeat("x", maxCompiled) + `"}`)}
	c.tools.learn([]Tool{long}, map[string]bool{})
	if err := c.tools.checkArguments(c.tools.get("long"), nil); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a long schema: %v", err)
	}
	c, err := Connect(t.Context(), told(t, func(_ transport.Conn, m *waitMessage) string {
		if m.Method != protocol.MethodToolsList {
			return ""
		}
		list := make([]string, maxTools+1)
		for n := range list {
			list[n] = fmt.Sprintf(`{"name":"%d"}`, n)
		}
		return `{"tools":[` + strings.Join(list, ",") + `]}`
	}), &Options{Revisions: []protocol.Revision{protocol.V20250618}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Tool(t.Context(), "5"); err != nil {
		t.Errorf("a tool that is kept: %v", err)
	}
	if _, err := c.Tool(t.Context(), fmt.Sprint(maxTools)); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "more tools than are kept") {
		t.Errorf("a tool for which there is no room: %v", err)
	}
}
