package lists_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

func TestMount(t *testing.T) {
	var trace []string
	server := func(t *testing.T) *mcp.Server {
		trace = nil
		child, middle, root := harness.Weather(mcp.Options{}), harness.Bare(mcp.Options{}), harness.Bare(mcp.Options{})
		child.Use(harness.Traced("child", &trace))
		middle.Use(harness.Traced("middle", &trace))
		root.Use(harness.Traced("root", &trace))
		root.MustAdd(harness.Tool("forecast"))
		if err := errors.Join(root.Mount("eu", middle), middle.Mount("weather", child)); err != nil {
			t.Fatal(err)
		}
		return root
	}
	harness.Everywhere(t, server, func(t *testing.T, c *harness.Talker) {
		for _, method := range harness.ListMethods {
			list := c.Ask(method, "{}")
			for _, want := range []string{`"eu_weather_forecast"`, `"eu_weather_describe"`, `"weather://now"`, `"weather://{id}/day"`} {
				if belongs := (method == "tools/list") == strings.Contains(want, "forecast") &&
					(method == "prompts/list") == strings.Contains(want, "describe") &&
					(method == "resources/list") == strings.Contains(want, "now") &&
					(method == "resources/templates/list") == strings.Contains(want, "{"); belongs != strings.Contains(list, want) {
					t.Errorf("%s: %v is wrong of %s in %s", method, !belongs, want, list)
				}
			}
		}
		for _, tt := range []struct{ method, params, want, trace string }{
			{"tools/call", `{"name":"eu_weather_forecast","arguments":{"city":"Oslo"}}`, "forecast for Oslo", "root:eu_weather_forecast middle:weather_forecast child:forecast"},
			{"tools/call", `{"name":"forecast"}`, `"text":"forecast"`, "root:forecast"},
			{"tools/call", `{"name":"weather_forecast"}`, "Unknown tool: weather_forecast", "root:weather_forecast"},
			{"tools/call", `{"name":"eu_weather_forecast"}`, "city", "root:eu_weather_forecast middle:weather_forecast child:forecast"},
			{"prompts/get", `{"name":"eu_weather_describe","arguments":{"id":"one"}}`, "describe one", "root:eu_weather_describe middle:weather_describe child:describe"},
			{"resources/read", `{"uri":"weather://now"}`, `"text":"text"`, "root:weather://now middle:weather://now child:weather://now"},
			{"resources/read", `{"uri":"weather://two/day"}`, `"text":"two"`, "root:weather://two/day middle:weather://two/day child:weather://two/day"},
			{"resources/read", `{"uri":"weather://three/day"}`, "must be one of", "root:weather://three/day middle:weather://three/day child:weather://three/day"},
			{"completion/complete", `{"ref":{"type":"ref/prompt","name":"eu_weather_describe"},"argument":{"name":"id","value":"t"}}`, `"two"`, "root: middle: child:"},
		} {
			trace = nil
			if got := c.Ask(tt.method, tt.params); !strings.Contains(got, tt.want) {
				t.Errorf("%s %s: %s, want %s", tt.method, tt.params, got, tt.want)
			}
			if got := strings.Join(trace, " "); got != tt.trace {
				t.Errorf("%s %s passed %q, want %q", tt.method, tt.params, got, tt.trace)
			}
		}
	})
}

// What the child gets and loses later comes and goes.
func TestMountIsLive(t *testing.T) {
	child, root := harness.Weather(mcp.Options{}), harness.Bare(mcp.Options{})
	if err := root.Mount("w", child); err != nil {
		t.Fatal(err)
	}
	c := harness.NewAsked(t, root, protocol.LatestLegacy)
	names := func() string { return string(c.Request("tools/list", nil)) }
	child.MustAdd(harness.Tool("later"), mcp.Prompt("later", harness.Text))
	c.WaitFor(protocol.MethodToolsChanged)
	if got := names(); !strings.Contains(got, `"w_later"`) || !strings.Contains(got, `"w_forecast"`) {
		t.Errorf("after adding: %s", got)
	}
	if got := string(c.Request("prompts/list", nil)); !strings.Contains(got, `"w_later"`) {
		t.Errorf("prompts after adding: %s", got)
	}
	child.Remove(mcp.KindTool, "forecast", "later")
	child.MustAdd(mcp.Tool("later", func(*mcp.Frame, struct{}) (string, error) { return "another", nil }))
	if got := names(); !strings.Contains(got, `"w_later"`) || strings.Contains(got, `"w_forecast"`) {
		t.Errorf("after removing: %s", got)
	}
	if got := string(c.Request("tools/call", map[string]any{"name": "w_later"})); !strings.Contains(got, "another") {
		t.Errorf("the tool is the one from before: %s", got)
	}
	// A name that is taken stays that of its owner, and does not keep others out.
	root.MustAdd(harness.Tool("w_mine"))
	child.MustAdd(mcp.Tool("mine", harness.Text), harness.Tool("yours"))
	if got := names(); !strings.Contains(got, `"w_yours"`) {
		t.Errorf("after a conflict: %s", got)
	}
	if got := string(c.Request("tools/call", map[string]any{"name": "w_mine"})); !strings.Contains(got, `"w_mine"`) {
		t.Errorf("a mounted tool took the place of another: %s", got)
	}
	root.Remove(mcp.KindTool, "w_mine")
	child.MustAdd(harness.Tool("more"))
	if got := string(c.Request("tools/call", map[string]any{"name": "w_mine"})); !strings.Contains(got, `"text"`) {
		t.Errorf("a name that is free again is not used: %s", got)
	}
}

func TestMountFaults(t *testing.T) {
	a, b, c := harness.Weather(mcp.Options{}), harness.Weather(mcp.Options{}), harness.Bare(mcp.Options{})
	long := harness.Bare(mcp.Options{})
	long.MustAdd(harness.Tool(strings.Repeat("x", 120)))
	if err := errors.Join(a.Mount("c", c), c.Mount("d", harness.Bare(mcp.Options{}))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		err  error
		want []string
	}{
		{"nil", a.Mount("x", nil), []string{"the server is nil"}},
		{"prefix", a.Mount("x/y", b), []string{`mount "x/y"`, "letters"}},
		{"itself", a.Mount("x", a), []string{"one direction only"}},
		{"circle", c.Mount("x", a), []string{"one direction only"}},
		{"taken", a.Mount("", b), []string{`"forecast" is registered already`, `"describe" is`, `"weather://now" is`, `"weather://{id}/day" is`}},
		{"taken URIs", a.Mount("x", b), []string{`"weather://now" is`}},
		{"long", a.Mount("prefix.long", long), []string{"128"}},
	} {
		for _, want := range tt.want {
			if tt.err == nil || !strings.Contains(tt.err.Error(), want) {
				t.Errorf("%s: error %v, want it to contain %q", tt.name, tt.err, want)
			}
		}
	}
	b.MustAdd(harness.Tool("later"))
	if got := asker(t, a)("tools/list", ""); strings.Contains(got, "later") || strings.Contains(got, "x_") {
		t.Errorf("a mount that failed left something: %s", got)
	}
	if err := b.Mount("a", harness.Bare(mcp.Options{})); err != nil {
		t.Error(err)
	}
}

// Names that two mounts make alike collide, and Unmount takes what came with its server,
// whatever the prefixes look like.
func TestMountsAlike(t *testing.T) {
	server := func(tools ...string) *mcp.Server {
		s := harness.Bare(mcp.Options{})
		for _, name := range tools {
			s.MustAdd(harness.Tool(name))
		}
		return s
	}
	root, one := server(), server("b_c", "b_x")
	if err := root.Mount("a", one); err != nil {
		t.Fatal(err)
	}
	if err := root.Mount("a_b", server("c")); err == nil || !strings.Contains(err.Error(), `"a_b_c" is registered already`) {
		t.Errorf("the same name again: %v", err)
	}
	if err := root.Mount("a_b", server("y")); err != nil {
		t.Fatal(err)
	}
	if !root.Unmount("a", one) {
		t.Error("it was not mounted")
	}
	if list := asker(t, root)("tools/list", ""); !strings.Contains(list, `"a_b_y"`) || strings.Contains(list, "a_b_c") || strings.Contains(list, "a_b_x") {
		t.Errorf("left are %s", list)
	}
}

// The child's filter, masking and time limit hold, and what it asks is asked
// through the parent, in every revision.
func TestMountKeepsRules(t *testing.T) {
	child := harness.Bare(mcp.Options{MaskErrors: true, Filter: func(f *mcp.Frame, kind mcp.Kind, name string) bool {
		return !strings.HasPrefix(name, "hidden")
	}})
	child.MustAdd(
		mcp.Tool("fail", func(*mcp.Frame, struct{}) (string, error) { return "", errors.New("secret") }),
		mcp.Resource("a:fail", func(*mcp.Frame) (string, error) { return "", errors.New("secret") }),
		mcp.Resource("a:none", func(*mcp.Frame) (string, error) { return "", fmt.Errorf("secret: %w", mcp.ErrNotFound) }),
		mcp.Tool("hidden", harness.Text),
		mcp.Tool("slow", func(f *mcp.Frame, _ struct{}) (string, error) { <-f.Done(); return "", f.Err() }, mcp.Timeout(20*time.Millisecond)),
		mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
			a, err := mcp.Elicit[struct {
				Name string `json:"name"`
			}](f, "name", "Who?")
			return "Hello " + a.Value.Name, err
		}, mcp.Timeout(time.Minute)),
		mcp.Tool("task", harness.Text, mcp.AsTask(nil)),
	)
	root := harness.Bare(mcp.Options{})
	if err := root.Mount("c", child); err != nil {
		t.Fatal(err)
	}
	for _, rev := range testdep.Revisions() {
		if !rev.Has(protocol.FeatureElicitation) {
			continue
		}
		c := harness.NewAsked(t, root, rev, mcptest.Accepting(map[string]any{"name": "Ada"}))
		if got := string(c.Request("tools/list", nil)); strings.Contains(got, "hidden") || !strings.Contains(got, `"c_ask"`) {
			t.Errorf("%v: %s", rev, got)
		}
		for name, want := range map[string]string{"ask": "Hello Ada", "slow": "timed out after 20ms", "fail": "failed", "task": `"text"`} {
			if got := string(c.Request("tools/call", map[string]any{"name": "c_" + name})); !strings.Contains(got, want) || strings.Contains(got, "secret") {
				t.Errorf("%v: %s: %s, want %s", rev, name, got, want)
			}
		}
		for uri, want := range map[string]string{"a:fail": "Internal error", "a:none": "not found"} {
			if _, err := c.TryRequest("resources/read", map[string]any{"uri": uri}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %s: %v, want %s", rev, uri, err, want)
			}
		}
	}
}

func TestMountTellsOfUpdates(t *testing.T) {
	child, root := harness.Weather(mcp.Options{}), harness.Bare(mcp.Options{})
	if err := root.Mount("w", child); err != nil {
		t.Fatal(err)
	}
	c := harness.NewAsked(t, root, protocol.LatestLegacy)
	c.Request("resources/subscribe", map[string]any{"uri": "weather://now"})
	child.ResourceUpdated("weather://now")
	if got := string(c.WaitFor(protocol.MethodResourceUpdated)); !strings.Contains(got, "weather://now") {
		t.Errorf("heard %s", got)
	}
}

func TestUnmount(t *testing.T) {
	child, root := harness.Weather(mcp.Options{}), harness.Bare(mcp.Options{})
	root.MustAdd(harness.Tool("own"))
	if err := root.Mount("w", child); err != nil {
		t.Fatal(err)
	}
	if root.Unmount("", child) || root.Unmount("w", root) || root.Unmount("w", nil) {
		t.Error("something was unmounted that was not mounted")
	}
	// What takes the place of something mounted stays.
	root.Remove(mcp.KindTool, "w_forecast")
	root.MustAdd(harness.Tool("w_forecast"))
	c := harness.NewAsked(t, root, protocol.LatestLegacy)
	if !root.Unmount("w", child) || root.Unmount("w", child) {
		t.Error("Unmount does not tell what there was")
	}
	c.WaitFor(protocol.MethodPromptsChanged)
	child.MustAdd(harness.Tool("later"))
	var all string
	for _, method := range harness.ListMethods {
		all += string(c.Request(method, nil))
	}
	if !strings.Contains(all, `"own"`) || !strings.Contains(all, `"w_forecast"`) ||
		strings.Contains(all, "later") || strings.Contains(all, "describe") || strings.Contains(all, "weather://") {
		t.Errorf("left are %s", all)
	}
	if got := string(c.Request("tools/call", map[string]any{"name": "w_forecast"})); !strings.Contains(got, `"w_forecast"`) {
		t.Errorf("the server's own tool is gone: %s", got)
	}
	// It can be mounted again, and now also the other way round.
	root.Remove(mcp.KindTool, "w_forecast")
	if err := root.Mount("w", child); err != nil {
		t.Error(err)
	}
	if !root.Unmount("w", child) {
		t.Error("it was not mounted again")
	}
	if err := child.Mount("r", root); err != nil {
		t.Errorf("the other way round: %v", err)
	}
}
