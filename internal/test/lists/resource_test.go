package lists_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// asker asks a server in the modern revision and returns the result, or the
// error as JSON.
func asker(t *testing.T, s *mcp.Server) func(method, params string) string {
	t.Helper()
	c := harness.OpenStream(t, s, protocol.Latest)
	return func(method, params string) string {
		t.Helper()
		if params != "" {
			params += ","
		}
		line := harness.Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s$META}}`, method, params), protocol.Latest)
		answers := c.Say(line)
		var m struct{ Result, Error json.RawMessage }
		if err := json.Unmarshal([]byte(answers[len(answers)-1]), &m); err != nil {
			t.Fatal(err)
		}
		harness.CheckSpec(t, protocol.Latest, line, answers[len(answers)-1])
		if m.Error != nil {
			return string(m.Error)
		}
		return string(m.Result)
	}
}

func TestResourceFaults(t *testing.T) {
	type id struct {
		ID int `json:"id"`
	}
	type ownContext struct{ context.Context }
	byID := func(*mcp.Frame, id) (string, error) { return "", nil }
	two := 2.0
	tests := []struct {
		name string
		c    mcp.Component
		want string
	}{
		{"no scheme", mcp.Resource("config/app", harness.ReadText), "a URI begins with its scheme"},
		{"a drive", mcp.Resource("C:/app", harness.ReadText), "a URI begins with its scheme"},
		{"a drive, \\", mcp.Resource(`c:\app`, harness.ReadText), "a URI begins with its scheme"},
		{"nil", mcp.Resource[*mcp.Frame, string]("a:b", nil), "the func is nil"},
		{"nil template", mcp.Template[*mcp.Frame, id, string]("a:{id}", nil), "the func is nil"},
		{"template without variables", mcp.Template("a:b", byID), "use mcp.Resource where there are none"},
		{"resource with variables", mcp.Resource("a:{id}", harness.ReadText), "use mcp.Template"},
		{"context", mcp.Resource("a:b", func(ownContext) (string, error) { return "", nil }), "the first parameter of the func is a lists_test.ownContext; it must be a *mcp.Frame or a context.Context"},
		{"nil option", mcp.Resource("a:b", harness.ReadText, nil), "option 0 is nil"},
		{"nil in a bundle", mcp.Template("a:{id}", byID, mcp.Bundle{mcp.Doc("d"), nil}), "option 1 is nil"},
		{"variable without field", mcp.Template("a:{id}/{key}", byID), `variable {key} has no field in lists_test.id; add one with json:"key"`},
		{"field without variable", mcp.Template("a:{key}", byID), "field ID: the URI has no variable {id}"},
		{"broken template", mcp.Template("a:{id", byID), `"{id" lacks its }`},
		{"size of a template", mcp.Template("a:{id}", byID, mcp.Size(1)), "Size: the resources of a template differ in size"},
		{"MIME", mcp.Resource("a:b", harness.ReadText, mcp.MIME("x y")), `MIME("x y")`},
		{"size", mcp.Resource("a:b", harness.ReadText, mcp.Size(-1)), "Size(-1) must not be negative"},
		{"priority", mcp.Resource("a:b", harness.ReadText, mcp.Annotated(mcp.Annotations{Priority: &two})), "it must be between 0 and 1"},
		{"audience", mcp.Resource("a:b", harness.ReadText, mcp.Annotated(mcp.Annotations{Audience: []mcp.Role{"system"}})), `Audience has "system"`},
		{"cache", mcp.Resource("a:b", harness.ReadText, mcp.Cache(-1)), "Cache(-1ns) must not be negative"},
		{"unconfined", mcp.Template("a:{id}", byID, mcp.Unconfined("key")), `Unconfined("key"): there is no such variable`},
		{"completion", mcp.Template("a:{id}", byID, mcp.CompleteFrom("key", "x")), `Complete("key"): there is no such template variable; there are ["id"]`},
		{"result", mcp.Resource("a:b", func(*mcp.Frame) (*mcp.Result, error) { return nil, nil }), "a resource cannot return *mcp.Result"},
		{"file", mcp.File("file:///x", "no such file"), "no such file"},
		{"file is a directory", mcp.File("file:///x", "."), "use mcp.Directory"},
		{"bytes with braces", mcp.Bytes("a:{id}", nil), "take the braces out of the URI"},
		{"directory", mcp.Directory("file:///x", fstest.MapFS{}), "the URI must end in a slash"},
		{"directory without files", mcp.Directory("file:///x/", nil), "the file system is nil"},
		{"nil option of a tool", mcp.Tool("t", harness.Text, mcp.ToolOptions{mcp.ReadOnly(), nil}), "option 1 is nil"},
		{"completion without variables", mcp.Resource("a:b", harness.ReadText, mcp.CompleteFrom("key", "x")), `Complete("key"): there is no such template variable`},
		{"unconfined without variables", mcp.Resource("a:b", harness.ReadText, mcp.Unconfined("key")), `Unconfined("key"): there is no such variable`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := harness.Bare(mcp.Options{}).Add(test.c)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestAddIsAllOrNothing(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Prompt("taken", harness.Text))
	err := s.Add(mcp.Tool("t", harness.Text), mcp.Resource("a:b", harness.ReadText), mcp.Template("a:{x}", func(*mcp.Frame, struct {
		X string `json:"x"`
	}) (string, error) {
		return "", nil
	}), mcp.Prompt("taken", harness.Text))
	if err == nil || !strings.Contains(err.Error(), `"taken" is registered already`) {
		t.Fatalf("got error %v, want one that names the prompt", err)
	}
	ask := asker(t, s)
	if got := ask("tools/list", ""); !strings.Contains(got, `"tools":[]`) {
		t.Errorf("tools: %s", got)
	}
	if got := ask("resources/list", ""); !strings.Contains(got, "-32601") {
		t.Errorf("resources: %s", got)
	}
}

// TestCapabilitiesFollowComponents: what is not offered is not declared and
// has no methods; what was offered once keeps them.
func TestCapabilitiesFollowComponents(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	ask := asker(t, s)
	methods := []string{"resources/list", "resources/templates/list", "prompts/list"}
	for _, m := range methods {
		if got := ask(m, ""); !strings.Contains(got, "-32601") {
			t.Errorf("%s before: %s", m, got)
		}
	}
	for m, params := range map[string]string{
		"resources/read": `"uri":"a:b"`, "prompts/get": `"name":"p"`,
		"completion/complete": `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`,
	} {
		if got := ask(m, params); !strings.Contains(got, "-32601") {
			t.Errorf("%s before: %s", m, got)
		}
	}
	declared := func() string {
		var result struct{ Capabilities map[string]any }
		if err := json.Unmarshal([]byte(ask("server/discover", "")), &result); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, name := range []string{"completions", "prompts", "resources"} {
			if _, ok := result.Capabilities[name]; ok {
				list = append(list, name)
			}
		}
		return strings.Join(list, " ")
	}
	if got := declared(); got != "" {
		t.Errorf("declared before: %s", got)
	}
	s.MustAdd(mcp.Resource("a:b", harness.ReadText), mcp.Prompt("p", func(*mcp.Frame, struct {
		On bool `json:"on"`
	}) (string, error) {
		return "", nil
	}))
	if got := declared(); got != "completions prompts resources" {
		t.Errorf("declared: %s", got)
	}
	if n := s.Remove(mcp.KindResource, "a:b", "a:c") + s.Remove(mcp.KindPrompt, "p"); n != 2 {
		t.Errorf("removed %d, want 2", n)
	}
	for _, m := range methods {
		if got := ask(m, ""); !strings.Contains(got, ":[]") {
			t.Errorf("%s after: %s", m, got)
		}
	}
}

// TestResourcePages walks over pages while resources come and go.
func TestResourcePages(t *testing.T) {
	s := harness.Bare(mcp.Options{PageSize: 2})
	for i := range 5 {
		s.MustAdd(mcp.Resource(fmt.Sprintf("n:%d", 2*i), harness.ReadText))
	}
	ask := asker(t, s)
	var uris []string
	cursor := ""
	for page := 0; page == 0 || cursor != ""; page++ {
		params := ""
		if cursor != "" {
			params = fmt.Sprintf(`"cursor":%q`, cursor)
		}
		var result struct {
			Resources  []struct{ URI string }
			NextCursor string
		}
		if err := json.Unmarshal([]byte(ask("resources/list", params)), &result); err != nil {
			t.Fatal(err)
		}
		for _, r := range result.Resources {
			uris = append(uris, r.URI)
		}
		if page == 0 {
			s.MustAdd(mcp.Resource("n:1", harness.ReadText), mcp.Resource("n:3", harness.ReadText)) // one behind, one ahead
			s.Remove(mcp.KindResource, "n:2")                                                       // where the cursor stands
		}
		cursor = result.NextCursor
	}
	if got, want := strings.Join(uris, " "), "n:0 n:2 n:3 n:4 n:6 n:8"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "note.txt")
	write := func(data string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	if err := os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := harness.Bare(mcp.Options{Limits: mcp.Limits{File: 10}})
	s.MustAdd(mcp.File("file:///note", name), mcp.Directory("dir:/", root.FS()))
	ask := asker(t, s)
	read := func(uri string) string { return ask("resources/read", fmt.Sprintf(`"uri":%q`, uri)) }
	expect := func(uri, want string) {
		t.Helper()
		if got := read(uri); !strings.Contains(got, want) || strings.Contains(got, dir) {
			t.Errorf("%s: got %s, want %s and no path", uri, got, want)
		}
	}
	expect("file:///note", `"mimeType":"text/plain","text":"one"`)
	write("two")
	expect("file:///note", `"text":"two"`)
	expect("dir:/note.txt", `"text":"two"`)
	write("\xff")
	expect("file:///note", `"blob":"/w=="`)
	write("longer than ten")
	expect("file:///note", "larger than the limit of 10 bytes")
	expect("dir:/note.txt", "larger than the limit of 10 bytes")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	expect("file:///note", `"code":-32602,"message":"Resource not found: file:///note"`)
	expect("dir:/secret", `"mimeType":"text/plain","text":""`)
	expect("dir:/a%00b", "zero byte")
	expect("dir:/./secret", "not found")
	expect("dir:/..%5c..%5cx", `must not contain \"..\"`)
	expect("dir:/C:%5Cx", "must not begin with a drive")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	expect("dir:/link", `"code":-32603,"message":"the file cannot be read"`)
}

// TestUnconfined lets through what is no path.
func TestUnconfined(t *testing.T) {
	type in struct {
		Q string `json:"q"`
	}
	echo := func(_ *mcp.Frame, in in) (string, error) { return "q=" + in.Q, nil }
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Template("free:{?q}", echo, mcp.Unconfined("q")), mcp.Template("kept:{?q}", echo))
	ask := asker(t, s)
	for uri, want := range map[string]string{
		"free:?q=../x": `"text":"q=../x"`, "free:?q=%2Fetc": `"text":"q=/etc"`,
		"kept:?q=../x": `must not contain`, "kept:?q=%2Fetc": `absolute path`, "kept:?q=a..b": `"text":"q=a..b"`,
		"kept:?q=a%2Fb": `"text":"q=a/b"`, "kept:?q=C:": "a drive", "kept:?q=C:%2Fx": "a drive",
	} {
		if got := ask("resources/read", fmt.Sprintf(`"uri":%q`, uri)); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
	if got := ask("resources/read", fmt.Sprintf(`"uri":"free:?q=%s"`, strings.Repeat("x", 9000))); !strings.Contains(got, "longer than 8192 bytes") {
		t.Errorf("a long URI: %s", got)
	}
}

// TestReadTimeout: a read that ignores its context is answered in time.
func TestReadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := harness.Bare(mcp.Options{Timeouts: mcp.Timeouts{Call: time.Second}})
		wait := func(f *mcp.Frame, _ struct{}) (string, error) {
			<-f.Done()
			return "", context.Cause(f)
		}
		s.MustAdd(mcp.Resource("slow:r", func(f *mcp.Frame) (string, error) { return wait(f, struct{}{}) }), mcp.Prompt("slow", wait, mcp.Timeout(2*time.Second)))
		ask := asker(t, s)
		if got := ask("resources/read", `"uri":"slow:r"`); !strings.Contains(got, `"code":-32603,"message":"reading slow:r timed out after 1s"`) {
			t.Error(got)
		}
		if got := ask("prompts/get", `"name":"slow"`); !strings.Contains(got, `"message":"prompt slow timed out after 2s"`) {
			t.Error(got)
		}
	})
}

// TestRetriedReadIsNotCached: what depends on answers must not be kept.
func TestRetriedReadIsNotCached(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Resource("a:b", harness.ReadText, mcp.CachePublic(time.Minute)))
	ask := asker(t, s)
	if got := ask("resources/read", `"uri":"a:b"`); !strings.Contains(got, `"ttlMs":60000,"cacheScope":"public"`) {
		t.Error(got)
	}
	if got := ask("resources/read", `"uri":"a:b","inputResponses":{}`); !strings.Contains(got, `"ttlMs":0,"cacheScope":"private"`) {
		t.Error(got)
	}
}

// What is not there for everybody is for no cache that others share, whatever
// its options say.
func TestRestrictedReadIsPrivate(t *testing.T) {
	everybody := func(*mcp.Frame) bool { return true }
	public := mcp.CachePublic(time.Minute)
	byPath := func(*mcp.Frame, struct {
		Path string `json:"path"`
	}) (string, error) {
		return "x", nil
	}
	for name, tt := range map[string]struct {
		filter    func(*mcp.Frame, mcp.Kind, string) bool
		component mcp.Component
		scope     string
	}{
		"for everybody":          {nil, mcp.Resource("a:b", harness.ReadText, public), "public"},
		"template for everybody": {nil, mcp.Template("a:{path}", byPath, public), "public"},
		"resource":               {nil, mcp.Resource("a:b", harness.ReadText, public, mcp.VisibleTo(everybody)), "private"},
		"template":               {nil, mcp.Template("a:{path}", byPath, public, mcp.VisibleTo(everybody)), "private"},
		"filter": {func(*mcp.Frame, mcp.Kind, string) bool { return true },
			mcp.Resource("a:b", harness.ReadText, public), "private"},
	} {
		s := harness.Bare(mcp.Options{Filter: tt.filter})
		s.MustAdd(tt.component)
		parent := harness.Bare(mcp.Options{})
		if err := parent.Mount("child", s); err != nil {
			t.Fatal(err)
		}
		for _, server := range []*mcp.Server{s, parent} {
			if got := asker(t, server)("resources/read", `"uri":"a:b"`); !strings.Contains(got, `"ttlMs":60000,"cacheScope":"`+tt.scope+`"`) {
				t.Errorf("%s: %s, want %s", name, got, tt.scope)
			}
		}
	}
}
