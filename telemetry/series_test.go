package telemetry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// TestInventedNames: what clients and handlers make up adds one series each.
func TestInventedNames(t *testing.T) {
	testdep.NoRace(t, "one goroutine makes the calls")
	const many = 10_000
	for _, test := range []struct {
		what, method, params string
		want                 int
	}{
		{"tools", "tools/call", `{"name":"tool-%d"}`, 1},
		{"prompts", "prompts/get", `{"name":"prompt-%d"}`, 1},
		{"methods", "method/%d", `{}`, 1},
		{"resources", "resources/read", `{"uri":"note://%d"}`, 1},
		{"codes of a handler", "tools/call", `{"name":"code","arguments":{"a":%d,"b":0}}`, 6}, // four that the protocol has, one for others, 0 is internal
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			told := newCollector()
			c := mcptest.New(t, told.watch(t, calc(nil), nil))
			before := len(told.series(t, "mcp.server.operation.duration"))
			for i := range many {
				method, params := test.method, test.params
				if strings.Contains(method, "%d") {
					method = fmt.Sprintf(method, i)
				} else {
					params = fmt.Sprintf(params, i)
				}
				_, _ = c.TryRequest(method, rawText(params))
			}
			series := told.series(t, "mcp.server.operation.duration")
			if got := len(series) - before; got != test.want {
				t.Errorf("%d series, want %d", got, test.want)
			}
		})
	}
}

// TestTools: tools that come and go do not make series for ever, and none of the
// SDK's, in which different things are one.
func TestTools(t *testing.T) {
	testdep.NoRace(t, "one goroutine makes the calls")
	told := newCollector()
	s := told.watch(t, calc(nil), nil)
	clients := []*mcptest.Client{mcptest.New(t, s), mcptest.New(t, s, mcptest.Revision(protocol.V20250618))}
	for i := range 2000 {
		name := fmt.Sprintf("tool-%d", i)
		s.MustAdd(mcp.Tool(name, func(f *mcp.Frame, in struct{}) (string, error) { return "", nil }))
		for _, c := range clients {
			c.Call(name, nil)
			_, _ = c.TryCall(name, map[string]int{"bad": 1})
		}
		s.Remove(mcp.KindTool, name)
	}
	targets := map[string]bool{}
	total := 0
	for labels, n := range told.series(t, "mcp.server.operation.duration") {
		if strings.Contains(labels, "otel.metric.overflow") {
			t.Errorf("a series overflows: %s", labels)
		}
		for _, label := range strings.Fields(labels) {
			if name, ok := strings.CutPrefix(label, "gen_ai.tool.name="); ok {
				targets[name] = true
				total += n
			}
		}
	}
	if len(targets) < 300 || len(targets) > 501 || total != 8000 {
		t.Errorf("%d targets, %d calls", len(targets), total)
	}
}
