package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// hello is the answer of a legacy server to initialize.
const hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}},"serverInfo":{"name":"raw","version":"1"}}`

// lists serves a legacy server with these lists, whose other answers are those of more.
func lists(tools, prompts, resources, templates string, more func(m *protocol.Message) string) client.Transport {
	return client.Local(answering(func(m *protocol.Message) string {
		switch m.Method {
		case "initialize":
			return hello
		case "ping":
			return `{}`
		case "tools/list":
			return `{"tools":[` + tools + `]}`
		case "prompts/list":
			return `{"prompts":[` + prompts + `]}`
		case "resources/list":
			return `{"resources":[` + resources + `]}`
		case "resources/templates/list":
			return `{"resourceTemplates":[` + templates + `]}`
		}
		if more != nil {
			return more(m)
		}
		return ""
	}))
}

// plainTool is a tool of a list, with an input schema.
func plainTool(name, schema string) string {
	text, _ := json.Marshal(name)
	return `{"name":` + string(text) + `,"inputSchema":` + schema + `}`
}

// TestHostileLists has upstreams whose lists break hosts or the gateway: those of the others
// are all there, and what clients get is valid.
func TestHostileLists(t *testing.T) {
	const object = `{"type":"object"}`
	deep := strings.Repeat(`{"properties":{"a":`, 400) + `{}` + strings.Repeat(`}}`, 400)
	var pages atomic.Int64
	changing := client.Local(answering(func(m *protocol.Message) string {
		switch m.Method {
		case "initialize":
			return hello
		case "tools/list":
			n := pages.Add(1)
			return fmt.Sprintf(`{"tools":[%s],"nextCursor":"c%d"}`, plainTool(fmt.Sprint("t", n), object), n)
		}
		return ""
	}))
	endless := client.Local(answering(func(m *protocol.Message) string {
		switch m.Method {
		case "initialize":
			return hello
		case "tools/list":
			return fmt.Sprintf(`{"tools":[],"nextCursor":"c%d"}`, pages.Add(1))
		}
		return ""
	}))
	for _, tt := range []struct {
		name string
		t    client.Transport
		want int // tools that clients see of it
	}{
		{"names", lists(strings.Join([]string{plainTool("a\nb", object), plainTool("a_b", object), plainTool("", object), plainTool("\x1b[2J", object),
			plainTool("ü", object), plainTool(strings.Repeat("x", 300), object), plainTool("..", object), plainTool("a b", object)}, ","), "", "", "", nil), 8},
		{"no schema", lists(`{"name":"a"}`, "", "", "", nil), 1},
		{"null for a schema", lists(plainTool("a", `null`), "", "", "", nil), 1},
		{"a text for a schema", lists(plainTool("a", `"object"`), "", "", "", nil), 0},
		{"a list for a schema", lists(plainTool("a", `[]`), "", "", "", nil), 0},
		{"true for a schema", lists(plainTool("a", `true`), "", "", "", nil), 0},
		{"the schema of a list", lists(plainTool("a", `{"type":"array"}`)+","+plainTool("b", object), "", "", "", nil), 1},
		{"a schema with two types", lists(plainTool("a", `{"type":["object","null"]}`), "", "", "", nil), 0},
		{"a schema without a type", lists(plainTool("a", `{"properties":{"q":{}}}`), "", "", "", nil), 1},
		{"a schema in a circle", lists(plainTool("a", `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"$ref":"#/$defs/b"}}}`), "", "", "", nil), 1},
		{"a schema elsewhere", lists(plainTool("a", `{"type":"object","$ref":"file:///etc/passwd"}`), "", "", "", nil), 1},
		{"a deep schema", lists(plainTool("a", deep), "", "", "", nil), 0},
		{"a schema of 10 MB", lists(plainTool("a", `{"type":"object","description":"`+strings.Repeat("x", 10<<20)+`"}`), "", "", "", nil), 0},
		{"an output schema that is none", lists(`{"name":"a","inputSchema":{"type":"object"},"outputSchema":7}`, "", "", "", nil), 1},
		{"pages without end", changing, 0},
		{"empty pages without end", endless, 0},
		{"other lists", lists(plainTool("a", object), `{"name":""},{"name":"p\n","arguments":[{"name":"x"},{"name":"x"},{"name":""}]},{"name":"q","arguments":null}`,
			`{"uri":"","name":""},{"uri":"no uri\n","name":"x"},{"uri":"note://{x}","name":"x"},{"uri":"note://good","name":"same"},{"uri":"`+strings.Repeat("x", 100_000)+`","name":"long"}`,
			`{"uriTemplate":"note://{x}","name":"x"},{"uriTemplate":"{","name":"x"},{"uriTemplate":"","name":"x"},{"uriTemplate":"{+x}{+y}{+z}","name":"all"}`, nil), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.name, "without end") || strings.Contains(tt.name, "10 MB") {
				testdep.NoRace(t, "one goroutine reads much")
			}
			log := &logText{}
			s := newServer(t, "front", log)
			g := New(s, nil)
			defer func() { _ = g.Close() }()
			if err := errors.Join(g.Set("good", Upstream{Transport: local(greeter(t, "good"))}), g.Set("bad", Upstream{Transport: tt.t})); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			warm := g.Warm(ctx)
			for front, rev := range eras {
				c := connect(t, s, rev, nil)
				good, bad := 0, 0
				for tool, err := range c.Tools(t.Context(), client.NoCache()) {
					if err != nil {
						t.Fatalf("%s: %v (%v)", front, err, warm)
					}
					if strings.HasPrefix(tool.Name, "good_") {
						good++
					} else {
						bad++
					}
					var schema struct{ Type string }
					if !wellNamed(tool.Name) || json.Unmarshal(tool.InputSchema, &schema) != nil || schema.Type != "object" {
						t.Errorf("%s: a host refuses %q with %.100s", front, tool.Name, tool.InputSchema)
					}
					if len(tool.OutputSchema) > 0 && tool.OutputSchema[0] != '{' {
						t.Errorf("%s: %q has the output schema %.100s", front, tool.Name, tool.OutputSchema)
					}
				}
				if good != 4 || bad != tt.want {
					t.Errorf("%s: %d tools of the good server, %d of the other, want %d: %v\n%v", front, good, bad, tt.want, warm, g.Status())
				}
				for _, list := range []func() error{
					func() error { return drain(c.Prompts(t.Context(), client.NoCache())) },
					func() error { return drain(c.Resources(t.Context(), client.NoCache())) },
					func() error { return drain(c.Templates(t.Context(), client.NoCache())) },
				} {
					if err := list(); err != nil {
						t.Errorf("%s: %v", front, err)
					}
				}
				if got := text(c.Call(t.Context(), "good_steps", greetIn{"x"})); got != "done" {
					t.Errorf("%s: got %q", front, got)
				}
				if r, err := c.Read(t.Context(), "note://good"); err != nil || r.Contents[0].Text != "note of good" {
					t.Errorf("%s: %v %v", front, r, err)
				}
			}
			if got := log.String(); strings.Contains(got, "panic") || strings.Contains(got, "not published") || strings.Contains(got, "\x1b") {
				t.Errorf("the log has %.2000s", got)
			}
		})
	}
}

// wellNamed reports whether every host accepts the name of a tool.
func wellNamed(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// drain reads a list.
func drain[T any](list func(yield func(T, error) bool)) (err error) {
	list(func(_ T, fault error) bool { err = fault; return fault == nil })
	return err
}

// TestHostileAnswers has an upstream whose answers would mislead the clients of the gateway.
func TestHostileAnswers(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"a revision that it does not speak", `"error":{"code":-32022,"message":"no","data":{"supported":["1999-01-01"],"requested":"x"}}`, `Server "bad" refuses the request: `},
		{"headers that do not match", `"error":{"code":-32020,"message":"no"}`, `Server "bad" refuses the request: `},
		{"a capability that is missing", `"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`, `Server "bad" refuses the request: `},
		{"a session that is over", `"error":{"code":-32001,"message":"Session not found"}`, `Server "bad" refuses the request: `},
		{"an unknown method", `"error":{"code":-32601,"message":"Unknown\u001b[2J tool"}`, `Server "bad" refuses the request: `},
		{"invalid params", `"error":{"code":-32602,"message":"no such thing"}`, `no such thing`},
		{"an error of its own", `"error":{"code":7,"message":"seven"}`, `seven`},
		{"an error without a message", `"error":{"code":7}`, ``},
		{"no result", `"result":null`, `Server "bad" cannot be reached: `},
		{"a result that is a text", `"result":"x"`, `Server "bad" cannot be reached: `},
		{"content that is none", `"result":{"content":"x"}`, `Server "bad" cannot be reached: `},
		{"content of an unknown type", `"result":{"content":[{"type":"hologram","x":1}]}`, ``},
		{"structured content that is a text", `"result":{"content":[],"structuredContent":"x"}`, ``},
		{"_meta of the server", `"result":{"content":[{"type":"text","text":"hi"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"evil"},"a":1}}`, `hi`},
		{"a task", `"result":{"resultType":"task","taskId":"t","status":"working"}`, ``},
		{"a question that was not asked for", `"result":{"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}},"requestState":"s"}`, ``},
	} {
		for front, rev := range eras {
			t.Run(tt.name+"/"+front, func(t *testing.T) {
				var calls atomic.Int64
				up := client.Local(func(_ context.Context, conn transport.Conn) error {
					for {
						line, err := conn.Read()
						if err != nil {
							return nil
						}
						var m struct {
							ID     json.RawMessage
							Method string
						}
						if json.Unmarshal(line, &m) != nil || m.ID == nil {
							continue
						}
						answer := `"error":{"code":-32601,"message":"unknown"}`
						switch m.Method {
						case "initialize":
							answer = `"result":` + hello
						case "tools/list":
							answer = `"result":{"tools":[` + plainTool("x", `{"type":"object"}`) + `]}`
						case "prompts/list":
							answer = `"result":{"prompts":[]}`
						case "resources/list":
							answer = `"result":{"resources":[]}`
						case "tools/call":
							calls.Add(1)
							answer = tt.answer
						}
						// Answers to what nobody asked, and more of what nobody wants, come first.
						flood := []string{`{"jsonrpc":"2.0","id":99999,"result":{}}`, `{"jsonrpc":"2.0","id":"x","result":{}}`,
							`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"other","progress":1}}`, `[]`, `{`, `7`,
							`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"notifications/unknown"}`}
						if m.Method != "tools/call" {
							flood = nil
						}
						for _, text := range append(flood, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)) {
							if conn.Write([]byte(text)) != nil {
								return nil
							}
						}
						if conn.Flush() != nil {
							return nil
						}
					}
				})
				_, s := start(t, map[string]Upstream{"bad": {Transport: up}, "good": {Transport: local(greeter(t, "good"))}})
				url := serveHTTP(t, s)
				c, err := client.Connect(t.Context(), bearer(url, "ada"), &client.Options{Revisions: []protocol.Revision{rev}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				got := text(c.Call(t.Context(), "bad_x", nil))
				if !strings.Contains(got, tt.want) || strings.Contains(got, "\x1b") {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				// The client of the gateway may believe once that the request was refused before it ran.
				if n := calls.Load(); n < 1 || n > 2 || n == 2 && !strings.Contains(tt.answer, "-3202") {
					t.Errorf("the upstream was called %d times", n)
				}
				if got := text(c.Call(t.Context(), "good_steps", greetIn{"x"})); got != "done" {
					t.Errorf("the other upstream: got %q", got)
				}
			})
		}
	}
}

// TestHostileFloods has an upstream that floods the gateway with progress and with changes of
// its lists, while other calls work.
func TestHostileFloods(t *testing.T) {
	up := client.Local(func(_ context.Context, conn transport.Conn) error {
		for {
			line, err := conn.Read()
			if err != nil {
				return nil
			}
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct {
					Meta struct {
						Token json.RawMessage `json:"progressToken"`
					} `json:"_meta"`
				}
			}
			if json.Unmarshal(line, &m) != nil || m.ID == nil {
				continue
			}
			answer := `"error":{"code":-32601,"message":"unknown"}`
			switch m.Method {
			case "initialize":
				answer = `"result":` + hello
			case "tools/list":
				answer = `"result":{"tools":[` + plainTool("x", `{"type":"object"}`) + `]}`
			case "prompts/list":
				answer = `"result":{"prompts":[]}`
			case "resources/list":
				answer = `"result":{"resources":[]}`
			case "tools/call":
				for i := range testdep.Rounds(20_000, 20_000) {
					text := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"x"}}`, m.Params.Meta.Token, i)
					if i%3 == 0 || m.Params.Meta.Token == nil {
						text = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
					}
					if conn.Write([]byte(text)) != nil || conn.Flush() != nil {
						return nil
					}
				}
				answer = `"result":{"content":[{"type":"text","text":"over"}]}`
			}
			if conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)) != nil || conn.Flush() != nil {
				return nil
			}
		}
	})
	_, s := start(t, map[string]Upstream{"bad": {Transport: up}, "good": {Transport: local(greeter(t, "good"))}})
	for front, rev := range eras {
		c, other := connect(t, s, rev, nil), connect(t, s, rev, nil)
		release := make(chan struct{})
		done := make(chan string, 1)
		go func() {
			done <- text(c.Call(t.Context(), "bad_x", nil, client.OnProgress(func(client.Progress) { <-release })))
		}()
		for range 50 {
			if got := text(other.Call(t.Context(), "good_steps", greetIn{"x"})); got != "done" {
				t.Errorf("%s: got %q", front, got)
			}
		}
		if got := toolNames(t, other); len(got) != 5 {
			t.Errorf("%s: got %q", front, got)
		}
		close(release)
		if got := <-done; got != "over" {
			t.Errorf("%s: got %q", front, got)
		}
	}
}

// TestOwnToolStays has a tool of the server with the full name of one of an upstream: it
// keeps its name.
func TestOwnToolStays(t *testing.T) {
	s := newServer(t, "front", nil)
	s.MustAdd(mcp.Tool("bad_x", func(*mcp.Frame, struct{}) (string, error) { return "mine", nil }))
	g := New(s, nil)
	defer func() { _ = g.Close() }()
	if err := g.Set("bad", Upstream{Transport: lists(plainTool("x", `{"type":"object"}`)+","+plainTool("y", `{"type":"object"}`), "", "", "", nil)}); err != nil {
		t.Fatal(err)
	}
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := connect(t, s, protocol.V20260728, nil)
	if got := toolNames(t, c); len(got) != 2 {
		t.Errorf("got %q", got)
	}
	if got := text(c.Call(t.Context(), "bad_x", nil)); got != "mine" {
		t.Errorf("got %q", got)
	}
}
