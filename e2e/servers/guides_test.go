package servers

import (
	"encoding/json"
	"errors"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// ours is the server of the guides as it is with this module.
const ours = "github.com/talaria-go/mcp/examples/notes"

// TestGuides: the server of the guides in docs, as it is with each framework of
// Go, offers and answers what ours does; and its clients and tests work.
func TestGuides(t *testing.T) {
	want := observe(t, build(t, ours))
	for _, name := range []string{"gosdk", "mcpgo"} {
		t.Run(name, func(t *testing.T) { same(t, observe(t, build(t, "./notes/"+name)), want) })
	}
	t.Run("tests", func(t *testing.T) {
		if out, err := exec.CommandContext(t.Context(), "go", "test", "./notes/...", ours).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestGuideFastMCP does the same with FastMCP, which e2e/run python installs.
func TestGuideFastMCP(t *testing.T) {
	python := testdep.Env(t, "E2E_PYTHON", "e2e/run python installs what it needs")
	const script = "../python/notes.py"
	server := build(t, ours)
	t.Run("server", func(t *testing.T) { same(t, observe(t, program{python, []string{script}}), observe(t, server)) })
	for name, want := range map[string]struct{ argument, printed string }{"test": {"test", ""}, "client": {server.name, "1\n"}} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), python, script, want.argument).Output()
			if err != nil || string(out) != want.printed {
				t.Errorf("printed %q: %v", out, err)
			}
		})
	}
}

// observed is what a client sees of a server.
type observed struct {
	Tools   []offered
	Prompt  protocol.Prompt
	URI     string
	Added   json.RawMessage
	Refused bool // a text that is too long
	Note    string
	NoNote  bool
	Text    string // of the prompt
	Deleted string
}

// offered is what the description of a tool must say, however its schema is
// written.
type offered struct {
	Name, Description string
	Input             struct {
		Required   []string
		Properties map[string]struct {
			Type, Description    string
			MinLength, MaxLength int
		}
	}
}

// observe uses a server in a legacy and a modern revision, which must look the same.
func observe(t *testing.T, p program) observed {
	t.Helper()
	var seen []observed
	for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		seen = append(seen, observeIn(t, p, rev))
	}
	same(t, seen[1], seen[0])
	return seen[0]
}

func observeIn(t *testing.T, p program, rev protocol.Revision) observed {
	t.Helper()
	u := newUser()
	u.answers(func(q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
		if strings.Contains(string(q.RequestedSchema), `"value"`) {
			return client.Accept(map[string]any{"value": true}) // so FastMCP calls the field of a form for a bool
		}
		return client.Accept(map[string]any{"sure": true})
	})
	s := connect(t, p.stdio(), u, rev)
	var o observed
	for tool, err := range s.Tools(within(t)) {
		if err != nil {
			t.Fatal(err)
		}
		found := offered{Name: tool.Name, Description: tool.Description}
		if err := json.Unmarshal(tool.InputSchema, &found.Input); err != nil {
			t.Fatal(err)
		}
		o.Tools = append(o.Tools, found)
	}
	slices.SortFunc(o.Tools, func(a, b offered) int { return strings.Compare(a.Name, b.Name) })
	for prompt, err := range s.Prompts(within(t)) {
		if err != nil {
			t.Fatal(err)
		}
		for i, argument := range prompt.Arguments { // FastMCP adds a paragraph on how it decodes them
			prompt.Arguments[i].Description, _, _ = strings.Cut(argument.Description, "\n\n")
		}
		o.Prompt = protocol.Prompt{Name: prompt.Name, Description: prompt.Description, Arguments: prompt.Arguments}
	}
	for template, err := range s.Templates(within(t)) {
		if err != nil {
			t.Fatal(err)
		}
		o.URI = template.URITemplate
	}
	added, err := s.Call(within(t), "add_note", map[string]any{"text": "buy milk"})
	if err != nil {
		t.Fatal(err)
	}
	o.Added = added.Structured
	_, err = s.Call(within(t), "add_note", map[string]any{"text": strings.Repeat("x", 201)})
	o.Refused = err != nil
	o.Note = s.read(t, "notes://1").Text
	_, err = s.Read(within(t), "notes://7")
	o.NoNote = err != nil && !errors.Is(err, client.ErrTimeout)
	o.Text = messageText(t, s.prompt(t, "summarize", map[string]string{"style": "haiku"}), 0)
	deleted, err := s.Call(within(t), "delete_note", map[string]any{"id": 1})
	if err != nil {
		t.Fatal(err)
	}
	o.Deleted = deleted.Text()
	return o
}

func same(t *testing.T, got, want observed) {
	t.Helper()
	for i := range reflect.TypeFor[observed]().NumField() {
		g, w := reflect.ValueOf(got).Field(i).Interface(), reflect.ValueOf(want).Field(i).Interface()
		if !reflect.DeepEqual(g, w) {
			t.Errorf("%s: got %+v, want %+v", reflect.TypeFor[observed]().Field(i).Name, g, w)
		}
	}
}
