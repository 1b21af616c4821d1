package behavior_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
)

// uniqueIn has rules that no schema for hosts has.
type uniqueIn struct {
	Tags  []string `json:"tags,omitempty" validate:"omitempty,unique"`
	Again string   `json:"again,omitempty" validate:"omitempty,eqfield=First"`
	First string   `json:"first,omitempty"`
}

// A request that asks for the check of arguments finds what a call finds, and runs no tool.
func TestCheckArguments(t *testing.T) {
	var ran atomic.Int64
	run := func(*mcp.Frame, uniqueIn) (string, error) { ran.Add(1); return "ran", nil }
	server := func(t *testing.T) *mcp.Server {
		child := mcp.NewServer(mcp.Info{Name: "child", Version: "1"}, nil)
		child.MustAdd(mcp.Tool("checks", run))
		s := mcp.NewServer(mcp.Info{Name: "checks", Version: "1"}, nil)
		s.MustAdd(
			mcp.Tool("checks", run),
			mcp.Tool("task", run, mcp.AsTask(nil)),
			mcp.Tool("guarded", run, mcp.Scopes("write")),
			mcp.Tool("hidden", run, mcp.VisibleTo(func(*mcp.Frame) bool { return false })),
			mcp.Tool("plain", func(*mcp.Frame, struct{}) (string, error) { ran.Add(1); return "ran", nil }, mcp.Meta("io.github.talaria-go/checks", true)),
			mcp.Tool("raw", func(*mcp.Frame, struct{}) (string, error) { ran.Add(1); return "ran", nil }, mcp.InputSchema([]byte(`{"type":"object"}`))),
		)
		if err := s.Mount("child", child); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const method = "io.github.talaria-go/check"
	harness.Everywhere(t, server, func(t *testing.T, c *harness.Talker) {
		ran.Store(0)
		for _, tool := range []string{"checks", "task", "child_checks"} {
			if got := c.Ask(method, `{"name":"`+tool+`","arguments":{"tags":["a"]}}`); result(t, got) != `{}` {
				t.Errorf("%s: %s", tool, got)
			}
			for _, wrong := range []string{`{"tags":["a","a"],"more":1}`, `{"again":"x","first":"y"}`, `{"tags":7,"first":[]}`, `7`} {
				wrong = `{"name":"` + tool + `","arguments":` + wrong + `}`
				got := c.Ask(method, wrong)
				if !strings.Contains(got, "io.github.talaria-go/issues") || strings.Contains(wrong, "more") && !strings.Contains(got, `"/more"`) {
					t.Errorf("%s: %s", wrong, got)
				}
				if called := c.Ask("tools/call", wrong); result(t, called) != result(t, got) {
					t.Errorf("%s: %s, and a call %s", wrong, got, called)
				}
			}
		}
		for params, want := range map[string]int{
			`{"name":"plain","arguments":{}}`:              -32601,
			`{"name":"raw","arguments":{}}`:                -32601,
			`{"name":"none","arguments":{}}`:               -32602,
			`{"name":"hidden","arguments":{"tags":["a"]}}`: -32602,
			`{"arguments":{"tags":["a"]}}`:                 -32602,
			`{}`:                                           -32602,
		} {
			if code, message := harness.Fault(t, c.Ask(method, params)); code != want {
				t.Errorf("%s: %d %s, want %d", params, code, message, want)
			}
		}
		if got := c.Ask(method, `{"name":"guarded","arguments":{"tags":["a","a"]}}`); strings.Contains(got, "/tags") {
			t.Errorf("without the scope: %s", got)
		}
		if n := ran.Load(); n != 0 {
			t.Errorf("tools ran %d times", n)
		}
		if got := c.Ask("tools/call", `{"name":"checks","arguments":{"tags":["a"]}}`); !strings.Contains(got, "ran") {
			t.Errorf("a call: %s", got)
		}
	})
}
