package mcp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
)

func TestPromptFaults(t *testing.T) {
	type in struct {
		A string `json:"a"`
	}
	fn := func(*mcp.Frame, in) (string, error) { return "", nil }
	tests := []struct {
		name string
		c    mcp.Component
		want string
	}{
		{"name", mcp.Prompt("a b", text), "a name has 1 to 128 letters"},
		{"nil", mcp.Prompt[*mcp.Frame, empty, string]("p", nil), "the func is nil"},
		{"result", mcp.Prompt("p", func(*mcp.Frame, empty) (int, error) { return 0, nil }), "a prompt cannot return int; return *mcp.Messages"},
		{"type", mcp.Prompt("p", func(*mcp.Frame, chan int) (string, error) { return "", nil }), "chan int"},
		{"nil option", mcp.Prompt("p", text, nil), "option 0 is nil"},
		{"completion", mcp.Prompt("p", fn, mcp.CompleteFrom("b", "x")), `Complete("b"): there is no such argument; there are ["a"]`},
		{"twice", mcp.Prompt("p", fn, mcp.CompleteFrom("a", "x"), mcp.CompleteFrom("a", "y")), `Complete("a") is there twice`},
		{"nil completion", mcp.Prompt("p", fn, mcp.Complete("a", nil)), `Complete("a"): the func is nil`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := bare(mcp.Options{}).Add(test.c)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
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
		s := bare(mcp.Options{MaskErrors: test.mask})
		fail := func(*mcp.Frame, empty) (string, error) { return "", test.err }
		s.MustAdd(mcp.Prompt("p", fail), mcp.Resource("a:b", func(f *mcp.Frame) (string, error) { return fail(f, empty{}) }))
		ask := asker(t, s)
		for method, params := range map[string]string{"prompts/get": `"name":"p"`, "resources/read": `"uri":"a:b"`} {
			if got := ask(method, params); !strings.Contains(got, test.want) {
				t.Errorf("%s, %v: got %s, want %s", method, test.err, got, test.want)
			}
		}
	}
}

func TestCompletionLimits(t *testing.T) {
	ask := asker(t, fixture(t, nil))
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
	s := bare(mcp.Options{})
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
