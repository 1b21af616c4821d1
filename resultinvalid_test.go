package mcp_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
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
	}{
		"a rule": {mcp.Tool("bad", func(*mcp.Frame, empty) (small, error) { return small{1}, nil }), "does not match its output schema: /n"},
		"what has no JSON": {mcp.Tool("bad", func(*mcp.Frame, empty) (struct{ F float64 }, error) { return struct{ F float64 }{math.NaN()}, nil }),
			"cannot be encoded"},
		"a ResultOf": {mcp.Tool("bad", func(*mcp.Frame, empty) (*mcp.ResultOf[small], error) {
			return &mcp.ResultOf[small]{Value: small{1}}, nil
		}),
			"does not match its output schema: /n"},
		"OutputSchema": {mcp.Tool("bad", func(*mcp.Frame, empty) (*mcp.Result, error) {
			return mcp.NewResult().Structured(map[string]int{"n": 1}), nil
		},
			mcp.OutputSchema(schema)), "does not match its output schema: /n"},
		"nothing structured": {mcp.Tool("bad", func(*mcp.Frame, empty) (*mcp.Result, error) { return mcp.NewResult().Text("x"), nil },
			mcp.OutputSchema(schema)), "it has no structured content"},
	} {
		for _, rev := range []protocol.Revision{protocol.V20250618, protocol.Latest} {
			for _, tr := range transportsOf(rev) {
				t.Run(name+"/"+rev.String()+"/"+tr.name, func(t *testing.T) {
					var log, lines logText
					s := mcp.NewServer(mcp.Info{Name: "bad", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
					s.Use(middleware.Logging(zerolog.New(&lines)))
					s.MustAdd(tt.tool, mcp.Tool("good", func(*mcp.Frame, empty) (small, error) { return small{7}, nil }))
					p := join(t, tr, rev, s)
					p.want(p.ask("tools/call", `"name":"bad","arguments":{}`), `"code":-32603`, `the result of tool \"bad\" `, tt.want)
					p.want(p.ask("tools/call", `"name":"good","arguments":{}`), `"n":7`)
					if n := strings.Count(log.String(), `"level":"error"`); n != 1 || !strings.Contains(log.String(), `"tool":"bad"`) || !strings.Contains(log.String(), tt.want) {
						t.Errorf("%d lines at error level: %s", n, log.String())
					}
					for line := range strings.Lines(lines.String()) {
						if strings.Contains(line, `"name":"bad"`) != strings.Contains(line, `"code":-32603`) {
							t.Errorf("logged %s", line)
						}
					}
					if !strings.Contains(lines.String(), `"name":"bad"`) || !strings.Contains(lines.String(), `"name":"good"`) {
						t.Errorf("logged %s", lines.String())
					}
				})
			}
		}
	}
}
