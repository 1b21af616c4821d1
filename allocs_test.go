package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/events"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/schema"
)

type benchFilter struct {
	Lang string `json:"lang" validate:"required,len=2"`
	Kind string `json:"kind,omitempty" validate:"omitempty,oneof=book film"`
}

type benchIn struct {
	Query  string      `json:"query" validate:"required,min=2,max=80"`
	Limit  int         `json:"limit" validate:"min=1,max=100"`
	Sort   string      `json:"sort" validate:"oneof=date title rank"`
	Tags   []string    `json:"tags" validate:"max=5,dive,min=1,max=20"`
	Since  string      `json:"since" validate:"datetime=2006-01-02"`
	Filter benchFilter `json:"filter" validate:"required"`
}

type benchRow struct {
	ID    int     `json:"id"`
	Title string  `json:"title"`
	URL   string  `json:"url"`
	Score float64 `json:"score"`
	Lang  string  `json:"lang"`
	Fresh bool    `json:"fresh"`
}

type benchOut struct {
	Total int        `json:"total"`
	Rows  []benchRow `json:"rows"`
}

var benchArgs = []byte(`{"query":"golang mcp","limit":20,"sort":"rank","tags":["go","protocol","server"],"since":"2025-01-31","filter":{"lang":"en","kind":"book"}}`)

var benchMessage = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, benchArgs)

var benchResult = func() benchOut {
	out := benchOut{Total: 20}
	for i := range 20 {
		out.Rows = append(out.Rows, benchRow{i, fmt.Sprintf("Result number %d", i), fmt.Sprintf("https://example.com/items/%d", i), 1 / float64(i+1), "en", i%2 == 0})
	}
	return out
}()

func benchServer(tools int) *Server {
	quiet := zerolog.Nop()
	s := NewServer(Info{Name: "bench", Version: "1.0.0"}, &Options{Logger: &quiet})
	search := func(_ *Frame, in benchIn) (benchOut, error) { return benchResult, nil }
	s.MustAdd(Tool("search", search))
	for i := 1; i < tools; i++ {
		s.MustAdd(Tool(fmt.Sprintf("search%d", i), search))
	}
	return s
}

// call is what a transport does with a message: bytes in, bytes out.
func serveOnce(s *Server, text, dst []byte) ([]byte, error) {
	var m protocol.Message
	var r core.Request
	if fault := wire.Scan(text, &m); fault != nil {
		return nil, fault
	}
	if fault := r.Read(&m); fault != nil {
		return nil, fault
	}
	rev, fault := wire.CheckModern(&r.Params.Meta, s.opts.Revisions)
	if fault != nil {
		return nil, fault
	}
	f, fault := s.connections.Frame(context.Background(), nil, core.Config{Request: &r, Revision: rev})
	if fault != nil {
		return nil, fault
	}
	dst, refused := s.dispatch().Serve(f, dst)
	if refused != nil {
		return nil, fmt.Errorf("%s", dst)
	}
	return dst, nil
}

// plainCall does the work of call with encoding/json and structs alone, and
// checks nothing.
func plainCall(text []byte) ([]byte, error) {
	var m struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  struct {
			Name      string  `json:"name"`
			Arguments benchIn `json:"arguments"`
			Meta      struct {
				Version      string                  `json:"io.modelcontextprotocol/protocolVersion"`
				ClientInfo   protocol.Implementation `json:"io.modelcontextprotocol/clientInfo"`
				Capabilities struct{}                `json:"io.modelcontextprotocol/clientCapabilities"`
			} `json:"_meta"`
		} `json:"params"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	type textItem struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	twin, err := json.Marshal(benchResult)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", m.ID, struct {
		ResultType string     `json:"resultType"`
		Structured benchOut   `json:"structuredContent"`
		Content    []textItem `json:"content"`
		Meta       any        `json:"_meta"`
	}{"complete", benchResult, []textItem{{"text", string(twin)}}, map[string]any{facts.MetaServerInfo: Info{Name: "bench", Version: "1.0.0"}}}})
}

func TestCallEqualsPlainCall(t *testing.T) {
	ours, err := serveOnce(benchServer(1), benchMessage, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := plainCall(benchMessage)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal(ours, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain, &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the two calls that the benchmarks compare differ:\n%s\n%s", ours, plain)
	}
}

// TestCallAllocations holds the ceiling on what a checked call allocates
// besides its handler.
func TestCallAllocations(t *testing.T) {
	s := benchServer(1)
	dst := make([]byte, 0, 64<<10)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := serveOnce(s, benchMessage, dst); err != nil {
			t.Fatal(err)
		}
	}); n > 40 {
		t.Errorf("%v allocations, want at most 40", n)
	}
}

// TestEventTypesCostNothing: calls allocate the same at a server with event types and without.
// A server without event types makes no logs and no webhooks.
func TestEventTypesCostNothing(t *testing.T) {
	var least [2]float64
	for i := range least {
		s := benchServer(1)
		s.opts.Webhooks = &WebhookOptions{}
		if i == 1 {
			s.MustAdd(EventType("news", func(context.Context, struct{}, map[string]string) (bool, error) { return true, nil }))
		}
		dst := make([]byte, 0, 64<<10)
		least[i] = math.Inf(1) // of many: under the race detector, pools lose things at random
		for range 200 {
			least[i] = min(least[i], testing.AllocsPerRun(1, func() {
				if _, err := serveOnce(s, benchMessage, dst); err != nil {
					t.Fatal(err)
				}
			}))
		}
		if i == 0 && (s.events.made.Load() != nil || s.events.hooks.Load() != nil) {
			t.Error("a server without event types has logs or webhooks")
		}
	}
	if least[0] != least[1] {
		t.Errorf("a call has %v allocations without event types, and %v with one", least[0], least[1])
	}
}

func BenchmarkCall(b *testing.B) {
	for _, tools := range []int{1, 1000} {
		b.Run(fmt.Sprintf("talaria/tools=%d", tools), func(b *testing.B) {
			s := benchServer(tools)
			dst := make([]byte, 0, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := serveOnce(s, benchMessage, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := plainCall(benchMessage); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkStage(b *testing.B) {
	s := benchServer(1)
	plan, err := schema.Compile(reflect.TypeFor[benchIn](), nil)
	if err != nil {
		b.Fatal(err)
	}
	encoder, err := jsonx.NewEncoder(reflect.TypeFor[benchOut]())
	if err != nil {
		b.Fatal(err)
	}
	v := validator.New(validator.WithRequiredStructEnabled())
	dst := make([]byte, 0, 64<<10)
	lister := s.catalog.View(frame.Internal(facts.Private{}).New(context.Background(), core.Config{Revision: protocol.Latest}), nil)
	stages := []struct {
		name string
		run  func() error
	}{
		{"scan", func() error {
			var m protocol.Message
			var p protocol.Params
			if fault := wire.Scan(benchMessage, &m); fault != nil {
				return fault
			}
			if fault := wire.ScanParams(&m, &p); fault != nil {
				return fault
			}
			return nil
		}},
		{"plan", func() error { var in benchIn; return plan.Decode(context.Background(), benchArgs, &in) }},
		{"plan/encoding-json+validator", func() error {
			var in benchIn
			if err := json.Unmarshal(benchArgs, &in); err != nil {
				return err
			}
			return v.Struct(&in)
		}},
		{"dispatch", func() error {
			r := core.Request{ID: protocol.NewID(1), Method: "server/discover"}
			f, _ := s.connections.Frame(context.Background(), nil, core.Config{Request: &r, Revision: protocol.Latest})
			s.dispatch().Serve(f, dst)
			return nil
		}},
		{"encode", func() error { _, err := encoder.Append(dst, &benchResult); return err }},
		{"encode/encoding-json", func() error { _, err := json.Marshal(&benchResult); return err }},
		{"list/tools=1", func() error {
			_, err := lister.Page(KindTool, nil)
			return err
		}},
	}
	for _, stage := range stages {
		b.Run(stage.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := stage.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

// webCall is a call over HTTP that is made again and again, as net/http hands it to
// a handler.
type webCall struct {
	handler http.Handler
	request *http.Request
	text    string
	body    strings.Reader
	header  http.Header
	answer  bytes.Buffer
	status  int
}

// newWebCall returns a call of a small tool in a revision, in a session if that
// has some; store may be nil.
func newWebCall(tb testing.TB, revision string, store scale.Store) *webCall {
	quiet := zerolog.Nop()
	opts := &Options{Logger: &quiet}
	if store != nil {
		opts.Store, opts.StateKeys = store, [][]byte{[]byte("sixteen bytes or more")}
	}
	s := NewServer(Info{Name: "web", Version: "1.0.0"}, opts)
	tb.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	s.MustAdd(Tool("add", func(_ *Frame, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }))
	c := &webCall{handler: s.Handler(), header: make(http.Header)}
	meta := ""
	c.request = httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/mcp", nil)
	h := c.request.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("Mcp-Protocol-Version", revision)
	ctx := context.WithValue(context.Background(), http.ServerContextKey, &http.Server{})
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})
	ctx, cancel := context.WithCancel(ctx)
	tb.Cleanup(cancel)
	c.request = c.request.WithContext(ctx)
	if revision == "2026-07-28" {
		h.Set("Mcp-Method", "tools/call")
		h.Set("Mcp-Name", "add")
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"web","version":"1.0.0"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}`
	} else {
		c.text = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + revision +
			`","capabilities":{},"clientInfo":{"name":"web","version":"1.0.0"}}}`
		c.call(tb)
		h.Set("Mcp-Session-Id", c.header.Get("Mcp-Session-Id"))
	}
	c.text = `{"jsonrpc":"2.0","id":1234567890,"method":"tools/call","params":{"name":"add","arguments":{"a":1234,"b":-987}` + meta + `}}`
	return c
}

// call makes the call once.
func (c *webCall) call(tb testing.TB) {
	c.body.Reset(c.text)
	clear(c.header)
	c.answer.Reset()
	c.status = 0
	c.request.Body, c.request.ContentLength = io.NopCloser(&c.body), int64(len(c.text))
	c.handler.ServeHTTP(c, c.request)
	if c.status != http.StatusOK || !bytes.Contains(c.answer.Bytes(), []byte(`"result"`)) {
		tb.Fatalf("%d %s", c.status, c.answer.Bytes())
	}
}

// Header implements http.ResponseWriter.
func (c *webCall) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *webCall) WriteHeader(status int) { c.status = status }

// Write implements http.ResponseWriter.
func (c *webCall) Write(text []byte) (int, error) { return c.answer.Write(text) }

// webCalls are the calls that are measured. most is how often each may allocate
// memory, one for the body of the request included; net/http comes on top.
var webCalls = []struct {
	name, revision string
	shared         bool
	most           float64
}{
	{"modern", "2026-07-28", false, 10},
	{"legacy", "2025-11-25", false, 10},
	{"legacy/shared", "2025-11-25", true, 22},
}

// sharedStore returns the Store of a call that has one, else nil.
func sharedStore(shared bool) scale.Store {
	if !shared {
		return nil
	}
	return scale.NewLocal()
}

func TestWebCallAllocations(t *testing.T) {
	for _, tt := range webCalls {
		t.Run(tt.name, func(t *testing.T) {
			c := newWebCall(t, tt.revision, sharedStore(tt.shared))
			least := math.Inf(1) // of many: under the race detector, pools lose things at random
			for range 200 {
				least = min(least, testing.AllocsPerRun(1, func() { c.call(t) }))
			}
			if least > tt.most {
				t.Errorf("%v allocations, want at most %v", least, tt.most)
			}
		})
	}
}

func BenchmarkWebCall(b *testing.B) {
	for _, tt := range webCalls {
		b.Run(tt.name, func(b *testing.B) {
			c := newWebCall(b, tt.revision, sharedStore(tt.shared))
			b.ReportAllocs()
			for b.Loop() {
				c.call(b)
			}
		})
	}
}

// BenchmarkRules compares the question whether a client may be notified of a resource with the
// one whether a webhook gets an event that it does not, as replicas ask them.
func BenchmarkRules(b *testing.B) {
	quiet := zerolog.Nop()
	all := VisibleTo(func(f *Frame) bool { return f.Principal() != "" })
	type in struct{ Document string }
	type comment struct{ Document, ID, Text string }
	s := NewServer(Info{Name: "bench", Version: "1"}, &Options{Logger: &quiet, Webhooks: &WebhookOptions{}})
	s.MustAdd(
		Resource("docs://a", func(*Frame) (string, error) { return "", nil }, all),
		EventType("comment", func(f *Frame, in in, c comment) (bool, error) { return in.Document == c.Document, nil }),
		EventType("hidden", func(f *Frame, in in, c comment) (bool, error) { return in.Document == c.Document, nil }, all),
		EventType("map", func(f *Frame, in map[string]string, c map[string]string) (bool, error) {
			return in["document"] == c["Document"], nil
		}),
	)
	id := &Identity{Issuer: "https://id.example.com", Subject: "ann", Scopes: []string{"docs"}}
	as := aloneAs(id, id.Principal())
	b.Run("resource", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !s.subscriptions.mayHear(as, core.Config{Revision: protocol.Latest}, "docs://a") {
				b.Fatal("no")
			}
		}
	})
	for _, name := range []string{"comment", "hidden", "map"} {
		b.Run("webhook/"+name, func(b *testing.B) {
			event := appendEvent(&Occurrence{ID: "1"}, name, fmt.Appendf(nil, `{"Document":"a","ID":"1","Text":%q}`, strings.Repeat("x", 400)))
			asks := make([]*events.Ask, 64)
			for i := range asks {
				asks[i] = &events.Ask{Event: event, Of: &events.Subscription{
					ID: fmt.Sprint(i), Principal: id.Principal(), Prepared: id, Revision: "2026-07-28", Name: name,
					Arguments: fmt.Appendf(nil, `{"Document":"document-%d-%s"}`, i, strings.Repeat("x", 70)),
				}}
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n++; n%len(asks) != 0 {
					continue
				}
				s.events.ask(b.Context(), s, asks)
				for _, a := range asks {
					if a.Verdict != events.No {
						b.Fatal(a.Verdict)
					}
					a.Verdict = events.Unasked
				}
			}
		})
	}
}
