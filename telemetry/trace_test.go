package telemetry_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/telemetry"
)

// span is what a backend knows of a span.
type span struct{ Trace, ID, Parent, Name, Kind string }

// backend is where the spans of several processes come together.
type backend struct {
	mu    sync.Mutex
	spans []span
}

func (b *backend) add(s span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spans = append(b.spans, s)
}

// OnStart implements sdktrace.SpanProcessor.
func (b *backend) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (b *backend) OnEnd(s sdktrace.ReadOnlySpan) { b.add(flat(s)) }

// Shutdown implements sdktrace.SpanProcessor.
func (b *backend) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (b *backend) ForceFlush(context.Context) error { return nil }

func flat(s sdktrace.ReadOnlySpan) span {
	parent := ""
	if s.Parent().IsValid() {
		parent = s.Parent().SpanID().String()
	}
	return span{s.SpanContext().TraceID().String(), s.SpanContext().SpanID().String(), parent, s.Name(), strings.ToUpper(s.SpanKind().String())}
}

// options returns the options of a process whose spans come here.
func (b *backend) options() *telemetry.Options {
	return &telemetry.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b))}
}

// tree checks that all spans are one trace with one root, and returns it: one span a
// line, siblings in the order of their names, but for what depends on how long things
// take.
func (b *backend) tree(t *testing.T) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	below := map[string][]span{}
	ids, traces := map[string]bool{"": true}, map[string]bool{}
	for _, s := range b.spans {
		below[s.Parent] = append(below[s.Parent], s)
		ids[s.ID], traces[s.Trace] = true, true
	}
	for _, s := range b.spans {
		if !ids[s.Parent] {
			t.Errorf("%s %s is an orphan", s.Name, s.Kind)
		}
	}
	if len(traces) != 1 || len(below[""]) != 1 {
		t.Errorf("%d traces, %d roots: %v", len(traces), len(below[""]), below[""])
	}
	var text strings.Builder
	var write func(parent string, depth int)
	write = func(parent string, depth int) {
		slices.SortFunc(below[parent], func(a, b span) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind)) })
		for _, s := range below[parent] {
			if s.Name == "tasks/get" || s.Name == protocol.MethodCancelled {
				continue // how a client waits for a task is a matter of time
			}
			fmt.Fprintf(&text, "%s%s %s\n", strings.Repeat("  ", depth), s.Name, s.Kind)
			write(s.ID, depth+1)
		}
	}
	write("", 0)
	return text.String()
}

// stdio is set in the process that is a server over standard input and output.
const stdio = "TELEMETRY_TEST_STDIO"

// TestMain is that server, or runs the tests. It says its spans on standard error.
func TestMain(m *testing.M) {
	if os.Getenv(stdio) == "" {
		os.Exit(m.Run())
	}
	s := worker()
	to := &backend{}
	if _, err := telemetry.Server(s, to.options()); err != nil {
		panic(err)
	}
	err := s.ServeStdio(context.Background())
	for _, span := range to.spans {
		_ = json.NewEncoder(os.Stderr).Encode(span)
	}
	if err != nil {
		os.Exit(1)
	}
}

// worker is a server with a tool for each kind of call.
func worker() *mcp.Server {
	s := calc(nil)
	type form struct {
		Name string `json:"name"`
	}
	s.MustAdd(
		mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
			for _, key := range []string{"first", "second"} {
				if _, err := mcp.Elicit[form](f, key, "Who?"); err != nil {
					return "", err
				}
			}
			return "asked", nil
		}),
		mcp.Tool("import", func(f *mcp.Frame, _ struct{}) (string, error) { return "done", nil },
			mcp.AsTask(&mcp.TaskOptions{Wait: -1, PollInterval: 1})),
	)
	return s
}

// child starts a server of its own process, and tells its spans to b once the client
// is closed.
func (b *backend) child(t *testing.T) client.Transport {
	r, w := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			var s span
			if json.Unmarshal(lines.Bytes(), &s) == nil && s.ID != "" {
				b.add(s)
			}
		}
	}()
	t.Cleanup(func() { _ = w.Close(); <-read })
	command := client.Command(os.Args[0])
	command.Env, command.Stderr = []string{stdio + "=yes"}, w
	return command
}

// TestOneTrace: whatever is called, over whatever, in whichever era, all of it is one
// trace with one root.
func TestOneTrace(t *testing.T) {
	answer := func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) {
		return client.Accept(map[string]string{"name": "Ann"})
	}
	for _, call := range []struct {
		tool           string
		modern, legacy string // the servers' spans below the client's
	}{
		{"add", "tools/call add SERVER", "tools/call add SERVER"},
		{"ask", "tools/call ask SERVER\ntools/call ask SERVER\ntools/call ask SERVER", "tools/call ask SERVER"},
		{"import", "tools/call import SERVER", "tools/call import SERVER"},
	} {
		for _, name := range []string{"pipe", "http", "websocket", "stdio"} {
			for _, rev := range eras {
				t.Run(call.tool+" "+name+" "+rev.String(), func(t *testing.T) {
					to := &backend{}
					var transport client.Transport
					if name == "stdio" {
						transport = to.child(t)
					} else {
						s := worker()
						stop, err := telemetry.Server(s, trusting(to))
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(stop)
						transport = over[name](t, s)
					}
					plan(t, to, func(ctx context.Context) {
						o := client.Options{Revisions: []protocol.Revision{rev}, Elicit: answer}
						telemetry.Client(&o, to.options())
						c, err := client.Connect(ctx, transport, &o)
						if err != nil {
							t.Fatal(err)
						}
						if _, err := c.Call(ctx, call.tool, map[string]any{}); err != nil {
							t.Error(err)
						}
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					})
					want := call.modern
					if !rev.Modern() {
						want = call.legacy
					}
					want = "  tools/call " + call.tool + " CLIENT\n    " + strings.ReplaceAll(want, "\n", "\n    ") + "\n"
					if got := to.tree(t); !strings.Contains(got, want) {
						t.Errorf("the tree is\n%swant in it\n%s", got, want)
					}
				})
			}
		}
	}
}

// trusting are the options of a server that continues every trace, as behind a
// gateway: strangers come over HTTP here.
func trusting(to *backend) *telemetry.Options {
	o := to.options()
	o.Trust = func(*mcp.Frame) bool { return true }
	return o
}

// plan runs fn in a span of a program.
func plan(t *testing.T, to *backend, fn func(ctx context.Context)) {
	ctx, root := to.options().TracerProvider.Tracer("plan").Start(t.Context(), "plan")
	fn(ctx)
	root.End()
}
