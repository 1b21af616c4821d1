package limits_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
)

// Add logs what is legal in a tool's arguments and yet refused by some hosts, once, and
// not if the tool is not added.
func TestAddWarns(t *testing.T) {
	type nested struct {
		IDs []int `json:"ids[]"`
	}
	var log harness.LogText
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
	s.MustAdd(odd("odd"), mcp.Tool("plain", func(*mcp.Frame, harness.AddIn) (string, error) { return "", nil }, mcp.Doc("Adds.")))
	lines := strings.Count(log.String(), "\n")
	for _, want := range []string{`"component":"tool \"odd\""`, `the name \"uids[]\" is refused by some model providers`, `the name \"ids[]\"`, "any value is accepted",
		`"tool":"odd","rule":"text-none","place":"","fix":"describe it","message":"tool \"odd\": text-none: it has no description, and Bedrock refuses it; describe it"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "plain") || strings.Count(log.String(), `"level":"warn"`) != lines || lines != 4 {
		t.Errorf("%d lines: %s", lines, log.String())
	}
	if err := s.Add(odd("odd")); err == nil || strings.Count(log.String(), "\n") != lines {
		t.Errorf("added twice: %v, and the log has %s", err, log.String())
	}
}

// What hosts do not accept is logged once for each place, with the rule: of Add, Set
// and Mount, of the instructions, and of schemas that were given everything that lint
// reports. Notes are not logged.
func TestWarnsOfHosts(t *testing.T) {
	type node struct {
		Next *node `json:"next"`
	}
	doc := mcp.Doc("Does it.")
	text := func(*mcp.Frame, struct{}) (string, error) { return "", nil }
	raw := func(schema string) mcp.Component {
		return mcp.Tool("raw", func(*mcp.Frame, json.RawMessage) (string, error) { return "", nil }, doc, mcp.InputSchema([]byte(schema)))
	}
	for _, tt := range []struct {
		name string
		add  func(s *mcp.Server) error
		want []string // message of each line
	}{
		{"good", func(s *mcp.Server) error { return s.Add(mcp.Tool("good", text, doc)) }, nil},
		{"name", func(s *mcp.Server) error { return s.Add(mcp.Tool("weather.now", text, doc)) },
			[]string{`tool "weather.now": name: Claude Desktop and OpenAI take letters, digits, _ and - only; rename it`}},
		{"long name", func(s *mcp.Server) error { return s.Add(mcp.Tool(strings.Repeat("x", 65), text, doc)) }, []string{"name-long"}},
		{"set", func(s *mcp.Server) error { return s.AddSet("set", mcp.Tool("weather.now", text, doc)) }, []string{"name"}},
		{"long text", func(s *mcp.Server) error { return s.Add(mcp.Tool("long", text, mcp.Doc(strings.Repeat("x", 2049)))) }, []string{"text-2048"}},
		{"a note", func(s *mcp.Server) error { return s.Add(mcp.Tool("long", text, mcp.Doc(strings.Repeat("x", 1025)))) }, nil},
		{"recursion", func(s *mcp.Server) error {
			return s.Add(mcp.Tool("tree", func(*mcp.Frame, struct {
				Root node `json:"root"`
			}) (string, error) {
				return "", nil
			}, doc))
		}, []string{"ref"}},
		{"own schema", func(s *mcp.Server) error {
			return s.Add(raw(`{"type":"object","properties":{"q":{"type":"string","pattern":"\\d"},"ids[]":{},"n":{"enum":[1]}},"allOf":[{"required":["q"]}]}`))
		}, []string{"member", "root-union", "pattern-plain", "enum-number", "type-none", "type-none"}},
		{"good schema", func(s *mcp.Server) error {
			return s.Add(raw(`{"type":"object","properties":{"q":{"type":"string","minLength":1}}}`))
		}, nil},
		{"mount", func(s *mcp.Server) error {
			child := harness.Bare(mcp.Options{})
			child.MustAdd(mcp.Tool("now", text, doc), mcp.Tool(strings.Repeat("x", 60), text, doc), mcp.Prompt("p", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
			err := s.Mount("eu.w", child)
			child.MustAdd(mcp.Tool("later", text, doc))
			return err
		}, []string{`tool "eu.w_now": name: Claude`, `tool "eu.w_xxx`, `it has 65 characters`, `tool "eu.w_later": name: `}},
		{"mounted name", func(s *mcp.Server) error {
			child := harness.Bare(mcp.Options{})
			child.MustAdd(mcp.Tool("now", text, doc))
			return s.Mount("w", child)
		}, nil},
	} {
		var log harness.LogText
		s := mcp.NewServer(mcp.Info{Name: "warned", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
		if err := tt.add(s); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		if log.String() == "" {
			lines = nil
		}
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %d lines, want %d: %s", tt.name, len(lines), len(tt.want), log.String())
			continue
		}
		for i, line := range lines {
			var entry struct{ Level, Tool, Rule, Place, Fix, Message string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Level != "warn" || entry.Tool == "" || entry.Fix == "" ||
				entry.Rule != tt.want[i] && !strings.Contains(entry.Message, tt.want[i]) {
				t.Errorf("%s: got %s, want %s", tt.name, line, tt.want[i])
			}
		}
	}
	var log harness.LogText
	mcp.NewServer(mcp.Info{Name: "told", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log)), Instructions: strings.Repeat("x", 2049)})
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "text-2048: the instructions have 2049 characters, and Claude Code cuts them at 2,048; shorten it") {
		t.Errorf("got %s", got)
	}
}

// A logger may use the server that logs.
func TestAddLogsUnlocked(t *testing.T) {
	var s *mcp.Server
	done := false
	logger := zerolog.New(writerFunc(func(p []byte) (int, error) {
		if !done {
			done = true
			if err := s.Add(mcp.Tool("more", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, mcp.Doc("More."))); err != nil {
				t.Error(err)
			}
		}
		return len(p), nil
	}))
	s = mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger})
	s.MustAdd(mcp.Tool("none", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
	if !done {
		t.Error("nothing was logged")
	}
}

// writerFunc is an io.Writer that calls a function.
type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
