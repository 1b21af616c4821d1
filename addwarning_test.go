package mcp_test

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
)

// Add logs what is legal in a tool's arguments and yet refused by some hosts, once, and
// not if the tool is not added.
func TestAddWarns(t *testing.T) {
	type nested struct {
		IDs []int `json:"ids[]"`
	}
	var log logText
	s := mcp.NewServer(mcp.Info{Name: "warned", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
	odd := func(name string) mcp.Component {
		return mcp.Tool(name, func(*mcp.Frame, struct {
			UIDs  []int  `json:"uids[]"`
			Inner nested `json:"inner"`
			Any   any    `json:"any"`
		}) (string, error) {
			return "", nil
		})
	}
	s.MustAdd(odd("odd"), mcp.Tool("plain", func(*mcp.Frame, addIn) (string, error) { return "", nil }))
	lines := strings.Count(log.String(), "\n")
	for _, want := range []string{`"component":"tool \"odd\""`, `the name \"uids[]\" is refused by some model providers`, `the name \"ids[]\"`, "any value is accepted"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "plain") || strings.Count(log.String(), `"level":"warn"`) != lines || lines != 3 {
		t.Errorf("%d lines: %s", lines, log.String())
	}
	if err := s.Add(odd("odd")); err == nil || strings.Count(log.String(), "\n") != lines {
		t.Errorf("added twice: %v, and the log has %s", err, log.String())
	}
}
