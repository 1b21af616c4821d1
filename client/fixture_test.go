package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// logText is a log that may be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// testTransport dials in memory.
type testTransport struct {
	name string
	dial func(ctx context.Context) (transport.Conn, error)
}

func (t *testTransport) String() string            { return t.name }
func (t *testTransport) transport() link.Transport { return link.OverConn("", t.dial) }

// serving returns a Transport to the server; each connection is its own.
func serving(t testing.TB, s *mcp.Server) *testTransport {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	return &testTransport{"memory:server", func(context.Context) (transport.Conn, error) {
		near, far := transport.Pipe()
		running.Go(func() { _ = s.ServeConn(context.Background(), far) }) // its end is the client's doing
		return spectest.Conn(t, near), nil
	}}
}

// connect connects for the length of the test.
func connect(t testing.TB, tr Transport, opts *Options) *Client {
	t.Helper()
	c, err := Connect(context.Background(), tr, opts)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// each runs a test in every revision.
func each(t *testing.T, test func(t *testing.T, rev protocol.Revision)) {
	for _, rev := range testdep.Revisions() {
		t.Run(rev.String(), func(t *testing.T) { test(t, rev) })
	}
}

// only returns options that pin a revision.
func only(rev protocol.Revision) *Options {
	return &Options{Revisions: []protocol.Revision{rev}}
}

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

type nameForm struct {
	Name  string `json:"name" validate:"required"`
	Color string `json:"color,omitempty" jsonschema:"default=red"`
}

type trip struct {
	City string `json:"city" validate:"required" jsonschema_description:"where to"`
}

// fixture returns a server with something of everything.
func fixture(t testing.TB, opts *mcp.Options) *mcp.Server {
	t.Helper()
	if opts == nil {
		opts = &mcp.Options{}
	}
	quiet := zerolog.Nop()
	opts.Logger = &quiet
	if opts.Instructions == "" {
		opts.Instructions = "Use the tools."
	}
	if opts.PageSize == 0 {
		opts.PageSize = 3
	}
	s := mcp.NewServer(mcp.Info{Name: "fixture", Version: "1.2.3"}, opts)
	s.MustAdd(
		mcp.Tool("sum", func(_ *mcp.Frame, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }, mcp.ReadOnly()),
		mcp.Tool("work", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := 1; i <= 3; i++ {
				if err := f.Progress(float64(i), 3, fmt.Sprint("step ", i)); err != nil {
					return "", err
				}
			}
			return "done", f.Log(protocol.LevelWarning, "worked", "worker")
		}),
		mcp.Tool("fail", func(*mcp.Frame, struct{}) (string, error) { return "", errors.New("disk full") }),
		mcp.Tool("refuse", func(*mcp.Frame, struct{}) (string, error) {
			return "", &mcp.Error{Code: 4711, Message: "no", Data: map[string]int{"after": 60}}
		}),
		mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
			<-f.Done()
			return "", context.Cause(f)
		}),
		mcp.Tool("greet", func(f *mcp.Frame, _ struct{}) (string, error) {
			name, err := mcp.Elicit[nameForm](f, "name", "Who are you?")
			if err != nil {
				return "", err
			}
			if !name.Accepted() {
				return "Hello, stranger!", nil
			}
			return "Hello, " + name.Value.Color + " " + name.Value.Name + "!", nil
		}),
		mcp.Tool("think", func(f *mcp.Frame, _ struct{}) (string, error) {
			roots, err := frame.Roots(f, "roots")
			if err != nil {
				return "", err
			}
			answer, err := frame.Sample(f, "thought", protocol.SampleParams{MaxTokens: 9, Messages: []protocol.SampleMessage{{
				Role: protocol.RoleUser, Content: []protocol.Content{protocol.TextContent{Text: roots[0].URI}},
			}}})
			if err != nil {
				return "", err
			}
			return answer.Text(), nil
		}),
		mcp.Tool("media", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Text("see").Text("here").Image([]byte("png"), "image/png").Image([]byte("gif"), "image/gif"), nil
		}),
		mcp.Resource("test://a", func(*mcp.Frame) (string, error) { return "contents of a", nil }),
		mcp.Resource("test://b", func(*mcp.Frame) (string, error) { return "contents of b", nil }),
		mcp.Resource("test://c", func(*mcp.Frame) (string, error) { return "contents of c", nil }),
		mcp.Resource("test://d", func(*mcp.Frame) (string, error) { return "contents of d", nil }),
		mcp.Template("users://{id}/profile", func(_ *mcp.Frame, in struct {
			ID string `json:"id"`
		}) (string, error) {
			return "profile of " + in.ID, nil
		}),
		mcp.Prompt("plan", func(_ *mcp.Frame, in trip) (string, error) { return "Plan a trip to " + in.City, nil }),
	)
	return s
}

// script is a server that a test plays by hand: it reads what the client sends
// and writes what it likes.
type script struct {
	t    testing.TB
	conn transport.Conn
}

// scripted returns a Transport whose every connection is played by play.
func scripted(t testing.TB, play func(s *script)) *testTransport {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	return &testTransport{"memory:script", func(context.Context) (transport.Conn, error) {
		near, far := transport.Pipe()
		running.Go(func() {
			defer func() { _ = far.Close() }() // a pipe's Close has no error
			play(&script{t, far})
		})
		return near, nil
	}}
}

// heard is a message of the client.
type heard struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	raw string
}

// next returns the next message of the client, nil at the end.
func (s *script) next() *heard {
	text, err := s.conn.Read()
	if err != nil {
		return nil
	}
	h := &heard{raw: string(text)}
	if !strings.HasPrefix(h.raw, "[") {
		if err := json.Unmarshal(text, h); err != nil {
			s.t.Errorf("the client sent %q: %v", text, err)
		}
	}
	return h
}

// until reads until a message of that method comes.
func (s *script) until(method string) *heard {
	for {
		h := s.next()
		if h == nil || h.Method == method {
			return h
		}
	}
}

func (s *script) say(format string, args ...any) {
	_ = s.conn.Write(fmt.Appendf(nil, format, args...)) // the client may be gone
}

func (s *script) result(h *heard, result string) {
	if h != nil {
		s.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, h.ID, result)
	}
}

func (s *script) fault(h *heard, code int, message string) {
	if h != nil {
		s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, h.ID, code, message)
	}
}

// legacyHello answers initialize.
func (s *script) legacyHello(rev string) {
	s.result(s.until("initialize"), `{"protocolVersion":"`+rev+`","capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"script","version":"1"}}`)
	s.until("notifications/initialized")
}

// modernHello answers server/discover.
func (s *script) modernHello() {
	s.result(s.until("server/discover"), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{}},"ttlMs":0,"cacheScope":"private"}`)
}

// drain reads to the end.
func (s *script) drain() {
	for s.next() != nil {
	}
}

var legacy = &Options{Revisions: []protocol.Revision{protocol.V20250618}, Timeout: time.Minute}

// cursorOf returns a cursor, nil for "".
func cursorOf(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// listTools gets one page of the tools.
func listTools(ctx context.Context, c *Client, cursor string, options ...CallOption) (*page[Tool], error) {
	p, err := pageOf[Tool](ctx, c, protocol.MethodToolsList, "tools", cursorOf(cursor), options)
	if err == nil {
		p.items = c.tools.learn(p.items, map[string]bool{})
	}
	return p, err
}

// listResources gets one page of the resources.
func listResources(ctx context.Context, c *Client, cursor string, options ...CallOption) (*page[Resource], error) {
	return pageOf[Resource](ctx, c, protocol.MethodResourcesList, "resources", cursorOf(cursor), options)
}
