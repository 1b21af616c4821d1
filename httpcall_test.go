package mcp

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/scale"
)

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
