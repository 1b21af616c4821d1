package behavior_test

import (
	"encoding/json"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
)

// A result that cannot be sent is an error that names the tool and says that it is about
// its result. The log has one line at error level, and the line of the request has the
// code: nothing looks like a success.
func TestInvalidResults(t *testing.T) {
	type small struct {
		N int `json:"n" validate:"min=5"`
	}
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":5}},"required":["n"]}`)
	for name, tt := range map[string]struct {
		tool mcp.Component
		want string
		ask  string // the method, if it is not tools/call
	}{
		"a rule": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (small, error) { return small{1}, nil }), want: "does not match its output schema: /n"},
		"what has no JSON": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (struct{ F float64 }, error) { return struct{ F float64 }{math.NaN()}, nil }),
			want: "cannot be encoded"},
		"no JSON in a Result": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Structured(make(chan int)), nil
		}),
			want: "cannot be sent: "},
		"no JSON in a text": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.Result, error) { return mcp.NewResult().JSON(make(chan int)), nil }),
			want: "cannot be sent: Result.JSON"},
		"no JSON in its _meta": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Text("x").Meta("a", make(chan int)), nil
		}), want: "cannot be sent: "},
		"a nil item": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Add((*mcp.ImageContent)(nil)), nil
		}), want: "cannot be sent: content item 0 is a nil *protocol.ImageContent"},
		"a nil item of a prompt": {tool: mcp.Prompt("bad", func(*mcp.Frame, struct{}) (*mcp.Messages, error) {
			return mcp.NewMessages().Add(mcp.RoleUser, (*mcp.TextContent)(nil)), nil
		}), want: "cannot be sent: content item 0 is a nil *protocol.TextContent", ask: "prompts/get"},
		"a prompt": {tool: mcp.Prompt("bad", func(*mcp.Frame, struct{}) (*mcp.Messages, error) {
			return mcp.NewMessages().User("x").Meta("a", make(chan int)), nil
		}), want: "cannot be sent: ", ask: "prompts/get"},
		"a resource": {tool: mcp.Resource("bad://x", func(*mcp.Frame) (struct{ F float64 }, error) { return struct{ F float64 }{math.Inf(1)}, nil }),
			want: "cannot be encoded: ", ask: "resources/read"},
		"a template": {tool: mcp.Template("bad://{id}", func(_ *mcp.Frame, in struct {
			ID string `json:"id"`
		}) (struct{ F float64 }, error) {
			return struct{ F float64 }{math.Inf(1)}, nil
		}), want: "cannot be encoded: ", ask: "resources/read"},
		"a ResultOf": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.ResultOf[small], error) {
			return &mcp.ResultOf[small]{Value: small{1}}, nil
		}),
			want: "does not match its output schema: /n"},
		"a nil ResultOf": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.ResultOf[small], error) { return nil, nil }),
			want: "cannot be sent: it is a nil *mcp.ResultOf"},
		"a ResultOf with Structured": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.ResultOf[small], error) {
			r := &mcp.ResultOf[small]{Value: small{5}}
			r.Structured(1)
			return r, nil
		}), want: "cannot be sent: the structured content of a *mcp.ResultOf is its Value"},
		"OutputSchema": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Structured(map[string]int{"n": 1}), nil
		},
			mcp.OutputSchema(schema)), want: "does not match its output schema: /n"},
		"nothing structured": {tool: mcp.Tool("bad", func(*mcp.Frame, struct{}) (*mcp.Result, error) { return mcp.NewResult().Text("x"), nil },
			mcp.OutputSchema(schema)), want: "it has no structured content"},
	} {
		for _, rev := range []protocol.Revision{protocol.V20250618, protocol.Latest} {
			for i, tr := range harness.TransportsOf(rev) {
				t.Run(name+"/"+rev.String()+"/"+tr.Name, func(t *testing.T) {
					var log, lines harness.LogText
					s := mcp.NewServer(mcp.Info{Name: "bad", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
					s.Use(middleware.Logging(zerolog.New(&lines)))
					served := s
					if i > 0 && tt.ask != "resources/read" { // a mounted server has no log of its own
						served = mcp.NewServer(mcp.Info{Name: "child", Version: "1"}, nil)
						if err := s.Mount("", served); err != nil {
							t.Fatal(err)
						}
					}
					served.MustAdd(tt.tool, mcp.Tool("good", func(*mcp.Frame, struct{}) (small, error) { return small{7}, nil }))
					p := harness.Join(t, tr, rev, s)
					switch tt.ask {
					case "resources/read":
						p.Want(p.Ask(tt.ask, `"uri":"bad://x"`), `"code":-32603`, `the result of resource \"bad://x\" `, tt.want)
					case "prompts/get":
						p.Want(p.Ask(tt.ask, `"name":"bad"`), `"code":-32603`, `the result of prompts/get \"bad\" `, tt.want)
					default:
						p.Want(p.Ask("tools/call", `"name":"bad","arguments":{}`), `"code":-32603`, `the result of tool`, `\"bad\" `, tt.want)
					}
					p.Want(p.Ask("tools/call", `"name":"good","arguments":{}`), `"n":7`)
					if n := strings.Count(log.String(), `"level":"error"`); n != 1 || !strings.Contains(log.String(), `"name":"bad`) || !strings.Contains(log.String(), tt.want) {
						t.Errorf("%d lines at error level: %s", n, log.String())
					}
					request := `"name":"bad` // in its line
					if tt.ask != "" {
						request = tt.ask
					}
					for line := range strings.Lines(lines.String()) {
						if strings.Contains(line, request) != strings.Contains(line, `"code":-32603`) {
							t.Errorf("logged %s", line)
						}
					}
					if !strings.Contains(lines.String(), request) || !strings.Contains(lines.String(), `"name":"good"`) {
						t.Errorf("logged %s", lines.String())
					}
				})
			}
		}
	}
}

// The data of an error that has no JSON is left out of the answer, and the log says so.
func TestInvalidErrorData(t *testing.T) {
	loop := map[string]any{}
	loop["loop"] = loop
	for name, data := range map[string]any{"NaN": math.NaN(), "a channel": make(chan int), "a cycle": loop, "no JSON": json.RawMessage("{")} {
		for _, rev := range []protocol.Revision{protocol.V20250618, protocol.Latest} {
			for _, tr := range harness.TransportsOf(rev) {
				t.Run(name+"/"+rev.String()+"/"+tr.Name, func(t *testing.T) {
					var log harness.LogText
					s := mcp.NewServer(mcp.Info{Name: "bad", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
					s.MustAdd(
						mcp.Tool("bad", func(*mcp.Frame, struct{}) (string, error) {
							return "", &mcp.Error{Code: 4711, Message: "no", Data: data}
						}),
						mcp.Tool("good", func(*mcp.Frame, struct{}) (string, error) { return "", &mcp.Error{Code: 4711, Message: "no", Data: 5} }),
					)
					p := harness.Join(t, tr, rev, s)
					p.Want(p.Ask("tools/call", `"name":"good"`), `"code":4711`, `"data":5`)
					if text := log.String(); strings.Contains(text, `"level":"error"`) {
						t.Errorf("log: %s", text)
					}
					p.Want(p.Ask("tools/call", `"name":"bad"`), `"code":4711`, `"message":"no"`)
					if text := log.String(); strings.Count(text, `"level":"error"`) != 1 || !strings.Contains(text, `the result of tool \"bad\" is an error without its data`) {
						t.Errorf("log: %s", text)
					}
				})
			}
		}
	}
}

// counted counts how often it is encoded.
type counted struct{ calls *atomic.Int32 }

func (c counted) MarshalJSON() ([]byte, error) {
	c.calls.Add(1)
	return []byte(`"once"`), nil
}

// The data of an error is encoded once for its answer.
func TestErrorDataIsEncodedOnce(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.Latest} {
		for _, tr := range harness.TransportsOf(rev) {
			t.Run(rev.String()+"/"+tr.Name, func(t *testing.T) {
				var calls atomic.Int32
				s := mcp.NewServer(mcp.Info{Name: "bad", Version: "1"}, nil)
				s.MustAdd(mcp.Tool("bad", func(*mcp.Frame, struct{}) (string, error) {
					return "", &mcp.Error{Code: 4711, Message: "no", Data: counted{&calls}}
				}))
				p := harness.Join(t, tr, rev, s)
				p.Want(p.Ask("tools/call", `"name":"bad"`), `"code":4711`, `"data":"once"`)
				if n := calls.Load(); n != 1 {
					t.Errorf("the data was encoded %d times", n)
				}
			})
		}
	}
}
