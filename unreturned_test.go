package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// secretText is what users' code panics with here. No peer may hear it.
const secretText = "pa55phrase"

// ways are how code may fail to return.
var ways = map[string]func(){
	"panic":  func() { panic(secretText) },
	"goexit": runtime.Goexit,
}

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

// The traps fail as their value says, wherever they are used.
type (
	trapText   struct{}
	trapJSON   struct{}
	trapStruct struct {
		Way string `json:"way"`
	}
	trapAnswer struct{ way string }
	trapError  struct{ way string }
)

func (t *trapText) UnmarshalText(text []byte) error { ways[string(text)](); return nil }

func (t *trapJSON) UnmarshalJSON(text []byte) error {
	ways[strings.Trim(string(text), `"`)]()
	return nil
}

func (trapJSON) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

func (trapAnswer) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "object"} }

func (t trapAnswer) MarshalJSON() ([]byte, error) { ways[t.way](); return []byte("{}"), nil }

func (t trapError) Error() string { ways[t.way](); return "" }

type wayIn struct {
	Way string `json:"way"`
}

// trapServer returns a server whose tools do not return, and one that does.
func trapServer(log io.Writer, opts mcp.Options, how ...mcp.ToolOption) *mcp.Server {
	if opts.Logger == nil {
		logger := zerolog.New(log)
		opts.Logger = &logger
	}
	if opts.Schema == nil {
		opts.Schema = &schema.Options{}
	}
	opts.Schema = &schema.Options{
		Localize: opts.Schema.Localize,
		Formats:  map[string]func(string) bool{"never": func(way string) bool { ways[way](); return true }},
		Rules: []schema.Rule{schema.NewRule("never", func(_ context.Context, way, _ string) error {
			ways[way]()
			return nil
		}, schema.Describe("never returns")), schema.NewStructRule("never returns", func(_ context.Context, v *trapStruct) error {
			ways[v.Way]()
			return nil
		})},
	}
	s := mcp.NewServer(mcp.Info{Name: "traps", Version: "1"}, &opts)
	s.MustAdd(
		mcp.Tool("fine", func(*mcp.Frame, struct{}) (string, error) { return "all is well", nil }),
		mcp.Tool("handler", func(_ *mcp.Frame, in wayIn) (string, error) { ways[in.Way](); return "", nil }, how...),
		mcp.Tool("text", func(*mcp.Frame, struct {
			Way trapText `json:"way"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("json", func(*mcp.Frame, struct {
			Way trapJSON `json:"way"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("structrule", func(*mcp.Frame, trapStruct) (string, error) { return "", nil }, how...),
		mcp.Tool("rule", func(*mcp.Frame, struct {
			Way string `json:"way" validate:"never"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("format", func(*mcp.Frame, struct {
			Way string `json:"way" jsonschema:"format=never"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("result", func(_ *mcp.Frame, in wayIn) (struct {
			X trapAnswer `json:"x"`
		}, error) {
			return struct {
				X trapAnswer `json:"x"`
			}{trapAnswer{in.Way}}, nil
		}, how...),
		mcp.Tool("error", func(_ *mcp.Frame, in wayIn) (string, error) { return "", trapError{in.Way} }, how...),
		mcp.Tool("data", func(_ *mcp.Frame, in wayIn) (string, error) {
			return "", &mcp.Error{Code: 1, Message: "no", Data: trapAnswer{in.Way}}
		}, how...),
	)
	return s
}

// trapTools are those of trapServer that do not return.
var trapTools = []string{"handler", "text", "json", "structrule", "rule", "format", "result", "error", "data"}

var unreturnedBehaviours = []behaviour{
	{what: "code in a call that does not return", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		for _, name := range trapTools {
			for way := range ways {
				var log logText
				p := join(t, tr, rev, trapServer(&log, mcp.Options{}))
				answer := p.askAs(`"p"`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{"way":%q}`, name, way))
				p.want(answer, `{"jsonrpc":"2.0","id":"p","error":{"code":-32603,"message":"Internal error: the handler panicked"}}`)
				p.want(p.ask("tools/call", `"name":"fine"`), "all is well")
				if got := log.String(); !strings.Contains(got, "ways") && !strings.Contains(got, "goroutine") {
					t.Errorf("%s, %s: the log has no stack: %s", name, way, got)
				}
			}
		}
	}},
	{what: "more calls that end their goroutines than may run", run: func(t *testing.T, tr transportUnderTest, rev protocol.Revision) {
		p := join(t, tr, rev, trapServer(io.Discard, mcp.Options{Limits: mcp.Limits{Concurrent: 2}}))
		for range 5 {
			p.want(p.ask("tools/call", `"name":"handler","arguments":{"way":"goexit"}`), `"code":-32603`)
		}
		p.want(p.ask("tools/call", `"name":"fine"`), "all is well")
	}},
}

func TestCodeThatDoesNotReturn(t *testing.T) { runBehaviours(t, unreturnedBehaviours) }

// What a task does not return from makes it fail, and nothing else.
func TestTasksThatDoNotReturn(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			var log logText
			s := trapServer(&log, mcp.Options{Limits: mcp.Limits{TasksRunning: 1}}, mcp.AsTask(&mcp.TaskOptions{Wait: -1}))
			c := &taskClient{t: t, c: transport.open(t, s, protocol.Latest)}
			for _, name := range trapTools {
				for way := range ways {
					task := c.ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"way":%q}`, name, way)).Result
					got := c.until(task.TaskID, "completed", "failed")
					if got.Result.Status != "failed" || got.Result.Error == nil || got.Result.Error.Code != -32603 ||
						got.Result.StatusMessage != "Internal error: the handler panicked" {
						t.Errorf("%s, %s: %+v", name, way, got)
					}
				}
			}
			if got := strings.Count(log.String(), "handler panicked"); got < len(trapTools)*len(ways) {
				t.Errorf("the log tells of %d of %d failures", got, len(trapTools)*len(ways))
			}
		})
	}
}

// A handler with a time limit runs on a goroutine of its own, whose end is not
// the end of the time.
func TestLimitedCallsThatDoNotReturn(t *testing.T) {
	p := join(t, transports[0], protocol.Latest, trapServer(io.Discard, mcp.Options{Timeouts: mcp.Timeouts{Call: time.Hour}}))
	for way := range ways {
		p.want(p.ask("tools/call", fmt.Sprintf(`"name":"handler","arguments":{"way":%q}`, way)), `"code":-32603`)
	}
}
