package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

func TestConnect(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		c := connect(t, serving(t, fixture(t, nil)), only(rev))
		if c.Revision() != rev || c.State() != StateReady {
			t.Errorf("revision %v, state %v", c.Revision(), c.State())
		}
		if c.Server().Info.Name != "fixture" || c.Server().Instructions != "Use the tools." || c.Server().Capabilities.Tools == nil {
			t.Errorf("server %+v, instructions %q, capabilities %+v", c.Server().Info, c.Server().Instructions, c.Server().Capabilities)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("Ping: %v", err)
		}
	})
}

func TestCall(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		c := connect(t, serving(t, fixture(t, nil)), only(rev))
		sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{2, 3})
		if err != nil || sum.Sum != 5 {
			t.Errorf("sum %v, %v", sum, err)
		}
		if sum, err := Call[sumOut](t.Context(), c, "sum", map[string]any{"a": 20, "b": 3}); err != nil || sum.Sum != 23 {
			t.Errorf("sum %v, %v", sum, err)
		}
		r, err := c.Call(t.Context(), "fail", nil)
		if err != nil || !r.IsError || r.Text() != "disk full" {
			t.Errorf("fail: %+v, %v", r, err)
		}
		_, err = Call[string](t.Context(), c, "fail", nil)
		if failed, ok := errors.AsType[*ToolError](err); !ok || failed.Tool != "fail" || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("fail: %v", err)
		}
		_, err = c.Call(t.Context(), "refuse", nil)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Code != 4711 || string(e.Data) != `{"after":60}` || e.Op != "call refuse" {
			t.Errorf("refuse: %v", err)
		}
		r, err = c.Call(t.Context(), "media", nil)
		if err != nil || r.Text() != "see\nhere" {
			t.Errorf("media: %+v, %v", r, err)
		}
		if image, ok := r.Image(); !ok || string(image.Data) != "png" {
			t.Errorf("image %v", image)
		}
		if images := r.Images(); len(images) != 2 || string(images[0].Data) != "png" || images[1].MIMEType != "image/gif" {
			t.Errorf("images %v", images)
		}
		if _, err := c.Call(t.Context(), "sum", 5); err == nil || !strings.Contains(err.Error(), "must encode to a JSON object") {
			t.Errorf("arguments that are no object: %v", err)
		}
	})
}

func TestOperations(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		c := connect(t, serving(t, fixture(t, nil)), only(rev))
		var tools []string
		for tool, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			tools = append(tools, tool.Name)
		}
		slices.Sort(tools)
		if got := strings.Join(tools, " "); got != "fail greet media refuse sum think wait work" {
			t.Errorf("tools %s", got)
		}
		page, err := listResources(t.Context(), c, "")
		if err != nil || len(page.items) != 3 || page.next == nil {
			t.Fatalf("page %+v, %v", page, err)
		}
		if page, err = listResources(t.Context(), c, *page.next); err != nil || len(page.items) != 1 || page.next != nil {
			t.Errorf("second page %+v, %v", page, err)
		}
		if _, err := listResources(t.Context(), c, "invalid!!!"); code(err) != protocol.CodeInvalidParams {
			t.Errorf("bad cursor: %v", err)
		}
		for template, err := range c.Templates(t.Context()) {
			if err != nil || template.URITemplate != "users://{id}/profile" {
				t.Errorf("template %v, %v", template, err)
			}
		}
		for prompt, err := range c.Prompts(t.Context()) {
			if err != nil || prompt.Name != "plan" || len(prompt.Arguments) != 1 {
				t.Errorf("prompt %v, %v", prompt, err)
			}
		}
		read, err := c.Read(t.Context(), "test://a")
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "contents of a" {
			t.Errorf("read %+v, %v", read, err)
		}
		if _, err := c.Read(t.Context(), "test://none"); !errors.Is(err, ErrNotFound) {
			t.Errorf("reading what is not there: %v", err)
		}
		prompt, err := c.GetPrompt(t.Context(), "plan", map[string]string{"city": "Oslo"})
		if err != nil || len(prompt.Messages) != 1 || prompt.Messages[0].Content.(protocol.TextContent).Text != "Plan a trip to Oslo" {
			t.Errorf("prompt %+v, %v", prompt, err)
		}
		if err := c.SetLevel(t.Context(), protocol.LevelError); err != nil {
			t.Errorf("SetLevel: %v", err)
		}
		if err := c.SetLevel(t.Context(), 99); err == nil {
			t.Error("a level that is none was set")
		}
	})
}

func TestRequest(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		c := connect(t, serving(t, fixture(t, nil)), only(rev))
		var list struct {
			Tools []struct{ Name string }
		}
		if err := c.Request(t.Context(), "tools/list", map[string]any{"_meta": map[string]any{"com.example/x": 1}}, &list); err != nil || len(list.Tools) != 3 {
			t.Errorf("list %v, %v", list, err)
		}
		err := c.Request(t.Context(), "no/such", nil, nil)
		if !errors.Is(err, ErrUnsupported) || code(err) != protocol.CodeMethodNotFound {
			t.Errorf("unknown method: %v", err)
		}
		if err := c.Request(t.Context(), "no/such", 5, nil); err == nil || !strings.Contains(err.Error(), "params must encode to a JSON object") {
			t.Errorf("params: %v", err)
		}
		if err := c.Notify(t.Context(), "notifications/com.example", map[string]int{"n": 1}); err != nil {
			t.Errorf("Notify: %v", err)
		}
	})
}

func TestProgressAndLogs(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		logs := make(chan LogEntry, 10)
		opts := only(rev)
		opts.OnLog = func(l LogEntry) { logs <- l }
		opts.LogLevel = protocol.LevelDebug
		c := connect(t, serving(t, fixture(t, nil)), opts)
		var heard []Progress
		r, err := c.Call(t.Context(), "work", nil, OnProgress(func(p Progress) { heard = append(heard, p) }))
		if err != nil || r.Text() != "done" {
			t.Fatalf("result %+v, %v", r, err)
		}
		if len(heard) != 3 || heard[2].Progress != 3 || heard[2].Total != 3 {
			t.Errorf("progress %+v", heard)
		}
		if rev.Has(protocol.FeatureProgressMessage) && heard[0].Message != "step 1" {
			t.Errorf("message %q", heard[0].Message)
		}
		select {
		case l := <-logs:
			if l.Level != protocol.LevelWarning || l.Logger != "worker" || l.Text() != "worked" {
				t.Errorf("log %+v", l)
			}
		case <-t.Context().Done():
		}
	})
}

func code(err error) protocol.Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return 0
}

func TestConnectFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		tr   Transport
		opts *Options
		want string
	}{
		{"no transport", nil, nil, "no transport"},
		{"modern client, legacy server", scripted(t, func(s *script) {
			s.fault(s.next(), -32601, "Method not found")
			s.drain()
		}), only(protocol.V20260728), "Method not found"},
		{"legacy client, modern server", scripted(t, func(s *script) {
			s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}}`, s.next().ID)
			s.drain()
		}), only(protocol.V20250618), "the server speaks [2026-07-28], this client [2025-06-18]"},
		{"a revision of its own", scripted(t, func(s *script) {
			s.result(s.next(), `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
			s.drain()
		}), only(protocol.V20250618), "the server speaks [1999-01-01]"},
		{"hangs up", scripted(t, func(s *script) { s.next() }), only(protocol.V20250618), "closed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Connect(context.Background(), tt.tr, tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Connect: %v, %v; want an error with %q", c, err, tt.want)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	var asked []string
	tr := scripted(t, func(s *script) {
		s.result(s.until("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{"completions":{}},"serverInfo":{"name":"x","version":"1"}}`)
		s.next()
		for h := s.next(); h != nil; h = s.next() {
			asked = append(asked, string(h.Params))
			s.result(h, `{"completion":{"values":["Oslo","Ostrava"],"total":7,"hasMore":true}}`)
		}
	})
	opts := *legacy
	c := connect(t, tr, &opts)
	for _, q := range []Completion{
		{Prompt: "plan", Argument: "city", Value: "Os"},
		{Template: "users://{id}", Argument: "id", Context: map[string]string{"b": "2", "a": "\"1\""}},
	} {
		got, err := c.Complete(t.Context(), q)
		if err != nil || len(got.Values) != 2 || got.Total != 7 || !got.HasMore {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	want := []string{
		`{"ref":{"type":"ref/prompt","name":"plan"},"argument":{"name":"city","value":"Os"}}`,
		`{"ref":{"type":"ref/resource","uri":"users://{id}"},"argument":{"name":"id","value":""},"context":{"arguments":{"a":"\"1\"","b":"2"}}}`,
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %s", asked)
	}
}

// Pages that never end are an error, not an endless loop.
func TestEndlessPages(t *testing.T) {
	tr := scripted(t, func(s *script) {
		s.legacyHello("2025-06-18")
		for h := s.next(); h != nil; h = s.next() {
			s.result(h, `{"tools":[{"name":"x","inputSchema":{}}],"nextCursor":"again"}`)
		}
	})
	opts := *legacy
	c := connect(t, tr, &opts)
	n := 0
	for _, err := range c.Tools(t.Context()) {
		if n++; err != nil {
			if !strings.Contains(err.Error(), "does not end") {
				t.Error(err)
			}
			break
		}
	}
	if n != 3 {
		t.Errorf("%d items", n)
	}
}

// Whoever listens hears what it is for, whatever the others do.
func TestNotifications(t *testing.T) {
	tr := scripted(t, func(s *script) {
		s.legacyHello("2025-06-18")
		for h := s.next(); h != nil; h = s.next() {
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":{"n":1}}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"nonsense","data":1}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			if h.Method == "ping" {
				s.result(h, "{}")
			}
		}
	})
	opts := *legacy
	logs := make(chan LogEntry, 9)
	opts.OnLog = func(l LogEntry) { logs <- l }
	opts.OnNotification = func(Notification) { panic("boom") } // costs the others nothing
	c := connect(t, tr, &opts)
	changes := c.Notifications(t.Context(), protocol.MethodToolsChanged)
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := <-logs; l.Level != protocol.LevelError || l.Text() != `{"n":1}` {
		t.Errorf("log %+v", l)
	}
	for n := range changes {
		if n.Method != protocol.MethodToolsChanged || n.Params != nil {
			t.Errorf("notification %+v", n)
		}
		break
	}
	if !c.Supports("tools") || !c.Supports("resources", "subscribe") || c.Supports("prompts") || c.Supports("tools", "listChanged") || c.Supports() {
		t.Errorf("hello %s", c.Server().Raw)
	}
}

// A level lets through what is as severe, and nothing less.
func TestLevels(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		s.MustAdd(mcp.Tool("chat", func(f *mcp.Frame, _ struct{}) (string, error) {
			return "", errors.Join(f.Log(protocol.LevelInfo, "1"), f.Log(protocol.LevelWarning, "2"), f.Log(protocol.LevelError, "3"))
		}))
		logs := make(chan LogEntry, 10)
		opts := only(rev)
		opts.OnLog = func(l LogEntry) { logs <- l }
		c := connect(t, serving(t, s), opts)
		if err := c.SetLevel(t.Context(), protocol.LevelWarning); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Call(t.Context(), "chat", nil); err != nil || r.IsError {
			t.Fatalf("%+v, %v", r, err)
		}
		if a, b := <-logs, <-logs; a.Text() != "2" || b.Text() != "3" {
			t.Errorf("logs %+v, %+v", a, b)
		}
	})
}
