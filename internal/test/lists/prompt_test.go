package lists_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

func TestPromptFaults(t *testing.T) {
	type in struct {
		A string `json:"a"`
	}
	fn := func(*mcp.Frame, in) (string, error) { return "", nil }
	mapped := func(*mcp.Frame, map[string]string) (string, error) { return "", nil }
	tests := []struct {
		name string
		c    mcp.Component
		want string
	}{
		{"name", mcp.Prompt("a b", harness.Text), "a name has 1 to 128 letters"},
		{"nil", mcp.Prompt[*mcp.Frame, struct{}, string]("p", nil), "the func is nil"},
		{"result", mcp.Prompt("p", func(*mcp.Frame, struct{}) (int, error) { return 0, nil }), "a prompt cannot return int; return *mcp.Messages"},
		{"type", mcp.Prompt("p", func(*mcp.Frame, chan int) (string, error) { return "", nil }), "chan int"},
		{"nil option", mcp.Prompt("p", harness.Text, nil), "option 0 is nil"},
		{"completion", mcp.Prompt("p", fn, mcp.CompleteFrom("b", "x")), `Complete("b"): there is no such argument; there are ["a"]`},
		{"twice", mcp.Prompt("p", fn, mcp.CompleteFrom("a", "x"), mcp.CompleteFrom("a", "y")), `Complete("a") is there twice`},
		{"bare map", mcp.Prompt("p", func(*mcp.Frame, map[string]string) (string, error) { return "", nil }), "a map[string]string does not say which arguments there are; declare them with mcp.Arguments"},
		{"pointer to a map", mcp.Prompt("p", func(*mcp.Frame, *map[string]string) (string, error) { return "", nil }), "a prompt cannot take a *map[string]string"},
		{"map of any", mcp.Prompt("p", func(*mcp.Frame, map[string]any) (string, error) { return "", nil }), "a prompt cannot take a map[string]interface {}"},
		{"any", mcp.Prompt("p", func(*mcp.Frame, any) (string, error) { return "", nil }), "arguments are an object"},
		{"list", mcp.Prompt("p", func(*mcp.Frame, []string) (string, error) { return "", nil }), "arguments are an object"},
		{"arguments of a struct", mcp.Prompt("p", fn, mcp.Arguments(mcp.PromptArgument{Name: "a"})), "Arguments is for a map[string]string; the fields of a lists_test.in"},
		{"arguments without name", mcp.Prompt("p", mapped, mcp.Arguments(mcp.PromptArgument{})), "argument 0 has no name"},
		{"arguments twice", mcp.Prompt("p", mapped, mcp.Arguments(mcp.PromptArgument{Name: "a", Required: true}), mcp.Arguments(mcp.PromptArgument{Name: "a", Required: true})), `mcp: prompt "p": Arguments: "a" is there twice$`},
		{"completion of none", mcp.Prompt("p", mapped, mcp.Arguments(mcp.PromptArgument{Name: "a"}), mcp.CompleteFrom("b", "x")), `Complete("b"): there is no such argument; there are ["a"]`},
		{"nil completion", mcp.Prompt("p", fn, mcp.Complete("a", nil)), `Complete("a"): the func is nil`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := harness.Bare(mcp.Options{}).Add(test.c)
			if err == nil || !strings.Contains(err.Error()+"$", test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

type named map[string]string

// A prompt that is made from data lists the arguments that it declares, completes
// them, and refuses calls that do not fit them, over every revision.
func TestDeclaredArguments(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Prompt("made", func(_ *mcp.Frame, in map[string]string) (string, error) {
			return fmt.Sprintf("%s from %q, %d arguments", in["who"], in["from"], len(in)), nil
		}, mcp.Arguments(mcp.PromptArgument{Name: "who", Title: "Name", Description: "whom to greet", Required: true}, mcp.PromptArgument{Name: "from"}),
			mcp.CompleteFrom("who", "Ada", "Bob")),
		mcp.Prompt("none", func(_ *mcp.Frame, in named) (string, error) { return fmt.Sprint(len(in)), nil }, mcp.Arguments()),
	)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		title := "Name"
		if !rev.Has(protocol.FeatureTitles) {
			title = ""
		}
		prompts := c.Prompts()
		want := []protocol.PromptArgument{{Name: "who", Title: title, Description: "whom to greet", Required: true}, {Name: "from"}}
		if len(prompts) != 2 || !slices.Equal(prompts[0].Arguments, want) || prompts[1].Arguments != nil {
			t.Errorf("prompts %+v", prompts)
		}
		said := func(name string, args map[string]string) string {
			p, err := c.TryGetPrompt(name, args)
			if err != nil {
				return err.Error()
			}
			return p.Messages[0].Content.(mcp.TextContent).Text
		}
		for _, tt := range []struct {
			name string
			args map[string]string
			want string
		}{
			{"made", map[string]string{"who": "Ada"}, `Ada from "", 1 arguments`},
			{"made", map[string]string{"who": "", "from": "x"}, ` from "x", 2 arguments`},
			{"made", map[string]string{"from": "x"}, `/who: is required`},
			{"made", nil, `/who: is required`},
			{"made", map[string]string{"who": "Ada", "whom": "x"}, `/whom: unknown property; did you mean /who? Allowed: from, who`},
			{"none", nil, "0"},
			{"none", map[string]string{"a": "b"}, `/a: unknown property; the object has no properties`},
		} {
			if got := said(tt.name, tt.args); !strings.Contains(got, tt.want) {
				t.Errorf("%s %v: %s, want %s", tt.name, tt.args, got, tt.want)
			}
		}
		unchecked := mcptest.New(t, s, mcptest.Revision(rev)) // of what the schema of the specification does not allow
		if _, err := unchecked.TryRequest("prompts/get", map[string]any{"name": "made", "arguments": map[string]any{"who": map[string]int{"a": 7}}}); err == nil || !strings.Contains(err.Error(), "/who") {
			t.Errorf("an argument that is no string: %v", err)
		}
		// As for a prompt with fields, digits are text, and null is an optional argument that is not set.
		if got, err := unchecked.TryRequest("prompts/get", map[string]any{"name": "made", "arguments": map[string]any{"who": 7, "from": nil}}); err != nil || !strings.Contains(string(got), `7 from \"\", 1 arguments`) {
			t.Errorf("a number and null: %s, %v", got, err)
		}
		if got := c.Complete("made", "who", "b", nil); len(got) == 0 || got[0] != "Bob" {
			t.Errorf("completed %v", got)
		}
		if _, err := c.TryComplete("made", "whom", "", nil); err == nil || !strings.Contains(err.Error(), `no argument "whom"`) {
			t.Errorf("completion of an unknown argument: %v", err)
		}
	})
}

// TestPromptNotFound: an unknown prompt has a code of its own, what the func of a prompt
// does not find has none.
func TestPromptNotFound(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Prompt("p", func(*mcp.Frame, struct{}) (string, error) { return "", fmt.Errorf("template 7: %w", mcp.ErrNotFound) }))
	ask := asker(t, s)
	for name, want := range map[string]string{"p": `"code":-32603,"message":"Internal error: template 7: `, "other": `"code":-32602,"message":"Unknown prompt: other"`} {
		if got := ask("prompts/get", fmt.Sprintf(`"name":%q`, name)); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestHandlerErrors: errors of prompts and resources keep what they are.
func TestHandlerErrors(t *testing.T) {
	tests := []struct {
		err  error
		mask bool
		want string
	}{
		{errors.New("disk full"), false, `"code":-32603,"message":"Internal error: disk full"`},
		{errors.New("disk full"), true, `{"code":-32603,"message":"Internal error"}`},
		{fmt.Errorf("wrapped: %w", &mcp.Error{Code: 4711, Message: "not today"}), true, `"code":4711,"message":"not today"`},
	}
	for _, test := range tests {
		s := harness.Bare(mcp.Options{MaskErrors: test.mask})
		fail := func(*mcp.Frame, struct{}) (string, error) { return "", test.err }
		s.MustAdd(mcp.Prompt("p", fail), mcp.Resource("a:b", func(f *mcp.Frame) (string, error) { return fail(f, struct{}{}) }))
		ask := asker(t, s)
		for method, params := range map[string]string{"prompts/get": `"name":"p"`, "resources/read": `"uri":"a:b"`} {
			if got := ask(method, params); !strings.Contains(got, test.want) {
				t.Errorf("%s, %v: got %s, want %s", method, test.err, got, test.want)
			}
		}
	}
}

func TestCompletionLimits(t *testing.T) {
	ask := asker(t, harness.Fixture(t, nil))
	complete := func(value string) string {
		return ask("completion/complete", fmt.Sprintf(`"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"library","value":%q}`, value))
	}
	got := complete("")
	if n := strings.Count(got, `"lib`); n != 100 || !strings.Contains(got, `"total":250,"hasMore":true`) {
		t.Errorf("got %d values in %s, want 100 of 250", n, got)
	}
	if got := complete("lib00"); !strings.Contains(got, `"total":21,"hasMore":false`) {
		t.Errorf("got %s, want 10 that begin with it and 11 more with its letters", got)
	}
}

func TestSuggest(t *testing.T) {
	values := []string{"Go", "python", "cargo", "Gecko", "ö-go"}
	tests := []struct {
		typed string
		want  []string
	}{
		{"", values},
		{"go", []string{"Go", "cargo", "ö-go", "Gecko"}},
		{"GO", []string{"Go", "cargo", "ö-go", "Gecko"}},
		{"ö", []string{"ö-go"}},
		{"x", nil},
		{"pyn", []string{"python"}},
	}
	for _, test := range tests {
		if got := mcp.Suggest(test.typed, values...).Values; !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.typed, got, test.want)
		}
	}
}

// An argument has no schema, so what it may be stands in its description.
func TestPromptArgumentValues(t *testing.T) {
	type reviewIn struct {
		Tone string `json:"tone" validate:"oneof=kind blunt" jsonschema_description:"how to say it"`
		Lang string `json:"lang,omitempty" validate:"oneof=c go" jsonschema:"default=go"`
		Free string `json:"free,omitempty" jsonschema_description:"anything"`
	}
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Prompt("review", func(*mcp.Frame, reviewIn) (string, error) { return "", nil }))
	got := asker(t, s)("prompts/list", "")
	for _, want := range []string{
		`"description":"how to say it (one of: kind, blunt)"`,
		`"description":"Optional one of: c, go (default: go)"`,
		`"description":"anything"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
