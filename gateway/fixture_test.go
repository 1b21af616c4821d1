package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/backendtest"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// The two eras, each with the revision that its servers and clients speak here.
var eras = map[string]protocol.Revision{"legacy": protocol.V20250618, "modern": protocol.V20260728}

// logText is a log that several goroutines may write to.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
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

type greetIn struct {
	Who string `json:"who"`
}

type form struct {
	Sure string `json:"sure"`
}

// newServer returns a server that speaks only some revisions.
func newServer(t testing.TB, name string, log *logText, revs ...protocol.Revision) *mcp.Server {
	t.Helper()
	logger := zerolog.Nop()
	if log != nil {
		logger = zerolog.New(log)
	}
	return mcp.NewServer(mcp.Info{Name: name, Version: "1"}, &mcp.Options{Revisions: revs, Logger: &logger})
}

// greeter is an upstream with tools, of which greet asks twice, a prompt that asks, and
// resources.
func greeter(t testing.TB, name string, revs ...protocol.Revision) *mcp.Server {
	s := newServer(t, name, nil, revs...)
	sure := func(f *mcp.Frame, who string) (string, error) {
		a, err := mcp.Elicit[form](f, "sure", "Greet "+who+"?")
		if err != nil {
			return "", err
		}
		b, err := mcp.Elicit[form](f, "really", "Really greet "+who+"?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s greets %s: %s, %s", name, who, a.Value.Sure, b.Value.Sure), nil
	}
	s.MustAdd(
		mcp.Tool("greet", func(f *mcp.Frame, in greetIn) (string, error) { return sure(f, in.Who) }, mcp.Doc("Greets somebody.")),
		mcp.Tool("echo", func(_ *mcp.Frame, in greetIn) (greetIn, error) { return in, nil }, mcp.ReadOnly()),
		mcp.Tool("steps", func(f *mcp.Frame, in greetIn) (string, error) {
			for i := range 3 {
				if err := f.Progress(float64(i+1), 3, "step"); err != nil {
					return "", err
				}
			}
			return "done", nil
		}),
		mcp.Tool("fails", func(*mcp.Frame, greetIn) (string, error) { return "", fmt.Errorf("no luck") }),
		mcp.Prompt("letter", func(f *mcp.Frame, in greetIn) (string, error) { return sure(f, in.Who) },
			mcp.Complete("who", func(_ *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
				return mcp.Suggest(q.Value, "Ada", "Bob"), nil
			})),
		mcp.Resource("note://"+name, func(*mcp.Frame) (string, error) { return "note of " + name, nil }),
		mcp.Template("note://"+name+"/{who}", func(f *mcp.Frame, in greetIn) (string, error) {
			if in.Who == "asked" {
				return sure(f, in.Who)
			}
			return "note to " + in.Who, nil
		}),
	)
	return s
}

// local returns the transport to a server in this process.
func local(s *mcp.Server) client.Transport { return client.Local(s.ServeConn) }

// connect returns a client of s that speaks rev.
func connect(t testing.TB, s *mcp.Server, rev protocol.Revision, o *client.Options) *client.Client {
	t.Helper()
	own := client.Options{}
	if o != nil {
		own = *o
	}
	own.Revisions = []protocol.Revision{rev}
	c, err := client.Connect(t.Context(), local(s), &own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answers is a client's Elicit that agrees and repeats the question.
func answers(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
	return client.Accept(form{"yes to " + q.Message})
}

// start returns a gateway of upstreams, and its server.
func start(t testing.TB, upstreams map[string]Upstream) (*Gateway, *mcp.Server) {
	t.Helper()
	log := &logText{}
	s := newServer(t, "front", log)
	g := New(s, nil)
	t.Cleanup(func() {
		if text := log.String(); strings.Contains(text, "panic") {
			t.Error(text)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range slices.Sorted(mapsKeys(upstreams)) {
		if err := g.Set(name, upstreams[name]); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if err := g.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	return g, s
}

// toolNames returns the tools that a client lists.
func toolNames(t testing.TB, c *client.Client) (all []string) {
	t.Helper()
	for tool, err := range c.Tools(t.Context(), client.NoCache()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tool.Name)
	}
	return all
}

// text returns the text of a call, or its error.
func text(r *client.CallToolResult, err error) string {
	if r == nil {
		return "error: " + err.Error()
	}
	return r.Text()
}

func mapsKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// scripted serves a legacy server that answers each method with the same result.
func scripted(results map[string]string) func(ctx context.Context, conn transport.Conn) error {
	return answering(func(m *protocol.Message) string { return results[m.Method] })
}

// paged serves a legacy server that lists one tool a page.
func paged(tools []string) func(ctx context.Context, conn transport.Conn) error {
	return answering(func(m *protocol.Message) string {
		switch m.Method {
		case "initialize":
			return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case "tools/list":
			var params struct{ Cursor string }
			_ = json.Unmarshal(m.Params, &params)
			at, _ := strconv.Atoi(params.Cursor)
			return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, tools[at], (at+1)%len(tools))
		}
		return ""
	})
}

// answering serves a server of one func; "" is an unknown method.
func answering(answer func(m *protocol.Message) string) func(ctx context.Context, conn transport.Conn) error {
	return func(_ context.Context, conn transport.Conn) error {
		return backendtest.Scripted(conn, func(m *protocol.Message, _ string) string {
			if result := answer(m); result != "" {
				return `"result":` + result
			}
			return `"error":{"code":-32601,"message":"unknown"}`
		})
	}
}
