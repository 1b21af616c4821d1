package lists_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
)

func TestExtensionFaults(t *testing.T) {
	tests := []struct {
		name string
		add  []mcp.Component
		want string // "" is none
	}{
		{"one word", []mcp.Component{mcp.Extension("example", nil)}, `extension "example": an identifier has`},
		{"no name", []mcp.Component{mcp.Extension("com.example/", nil)}, `extension "com.example/": an identifier has`},
		{"two slashes", []mcp.Component{mcp.Extension("com.example/a/b", nil)}, "an identifier has"},
		{"a label that ends badly", []mcp.Component{mcp.Extension("com.example-/a", nil)}, "an identifier has"},
		{"a blank", []mcp.Component{mcp.Extension("com.example/a b", nil)}, "an identifier has"},
		{"no object", []mcp.Component{mcp.Extension("com.example/a", []int{1})}, `extension "com.example/a": the settings are [1]; they must be a JSON object`},
		{"null", []mcp.Component{mcp.Extension("com.example/a", (*struct{})(nil))}, "the settings are null"},
		{"not encodable", []mcp.Component{mcp.Extension("com.example/a", map[string]any{"f": func() {}})}, `extension "com.example/a": the settings do not encode`},
		{"ours", []mcp.Component{mcp.Extension("io.modelcontextprotocol/tasks", nil), mcp.Extension("io.modelcontextprotocol/skills", nil)}, `"io.modelcontextprotocol/skills": the server declares it by itself`},
		{"twice", []mcp.Component{mcp.Extension("com.example/a", nil), mcp.Extension("com.example/a", nil)}, `extensions: "com.example/a" is registered already`},
		{"there already", []mcp.Component{mcp.Extension("com.example/old", map[string]int{"a": 1})}, `"com.example/old" is registered already`},
		{"fine", []mcp.Component{mcp.Extension("com.example/a", nil), mcp.Extension("x/B_c.9", map[string]any{"deep": []any{nil, 1}})}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := harness.Bare(mcp.Options{})
			s.MustAdd(mcp.Extension("com.example/old", nil))
			err := s.Add(tt.add...)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if err := harness.Bare(mcp.Options{}).AddSet("a", mcp.Extension("com.example/a", nil)); err == nil || !strings.Contains(err.Error(), `extension "com.example/a" cannot be in a set`) {
		t.Errorf("in a set: %v", err)
	}
}

// The settings are what they were when the component was added.
func TestExtensionIsCopied(t *testing.T) {
	settings := map[string]any{"a": 1}
	server := func(t *testing.T) *mcp.Server {
		settings["a"] = 1
		s := harness.Bare(mcp.Options{})
		s.MustAdd(mcp.Extension("com.example/a", settings))
		settings["a"] = 2
		return s
	}
	harness.Everywhere(t, server, func(t *testing.T, c *harness.Talker) {
		if got := declared(t, c); got["com.example/a"] != `{"a":1}` {
			t.Errorf("declared %v", got)
		}
	})
}

// A child's extensions come and go with its mount; two children agree, or the
// second one is refused.
func TestExtensionsOfMounts(t *testing.T) {
	child := func(settings any) *mcp.Server {
		s := harness.Bare(mcp.Options{})
		s.MustAdd(mcp.Extension("com.example/a", settings))
		return s
	}
	one, same, other := child(nil), child(struct{}{}), child(map[string]int{"b": 1})
	server := func(t *testing.T) *mcp.Server {
		s, middle := harness.Bare(mcp.Options{}), harness.Bare(mcp.Options{})
		if err := errors.Join(s.Mount("", middle), middle.Mount("", one), middle.Mount("", same)); err != nil {
			t.Fatal(err)
		}
		if err := s.Mount("other", other); err == nil || !strings.Contains(err.Error(), `"com.example/a" is declared with the settings {} already, and not with {"b":1}`) {
			t.Fatalf("a child with other settings: %v", err)
		}
		if err := s.Add(mcp.Extension("com.example/a", map[string]int{"c": 1})); err == nil || !strings.Contains(err.Error(), "is declared with the settings {} already") {
			t.Fatalf("other settings beside a child: %v", err)
		}
		if !middle.Unmount("", one) {
			t.Fatal("not mounted")
		}
		middle.MustAdd(mcp.Extension("com.example/late", nil))
		return s
	}
	harness.Everywhere(t, server, func(t *testing.T, c *harness.Talker) {
		if got := declared(t, c); len(got) != 2 || got["com.example/a"] != "{}" || got["com.example/late"] != "{}" {
			t.Errorf("declared %v", got)
		}
	})
}

// declared returns the extensions that the server of c declares.
func declared(t *testing.T, c *harness.Talker) map[string]string {
	t.Helper()
	var hello struct {
		Result struct {
			Capabilities struct{ Extensions map[string]json.RawMessage }
		}
	}
	text := c.Met
	if err := json.Unmarshal([]byte(text), &hello); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if hello.Result.Capabilities.Extensions == nil {
		t.Errorf("nothing in %s", text)
	}
	all := map[string]string{}
	for id, settings := range hello.Result.Capabilities.Extensions {
		all[id] = string(settings)
	}
	return all
}
