package behavior_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// A result has no text twin if the tool wants none, but in revisions whose
// clients would get nothing otherwise.
func TestStructuredOnly(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(
		mcp.Tool("bare", func(*mcp.Frame, struct{}) (harness.Sized, error) { return harness.Sized{Size: 3}, nil }, mcp.StructuredOnly()),
		mcp.Tool("twin", func(*mcp.Frame, struct{}) (harness.Sized, error) { return harness.Sized{Size: 3}, nil }),
	)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		structured := rev.Has(protocol.FeatureStructuredContent)
		for name, wantText := range map[string]bool{"bare": !structured, "twin": true} {
			r := c.Call(name, nil)
			if text := r.Text(); (text != "") != wantText || wantText && text != `{"size":3}` {
				t.Errorf("%s: text %q", name, text)
			}
			if has := strings.Contains(string(r.Raw), `"structuredContent":{"size":3}`); has != structured {
				t.Errorf("%s: %s", name, r.Raw)
			}
		}
	})
}

// The methods of Result make the items that their names say, in every revision
// in the form that it has.
func TestResultItems(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(mcp.Tool("items", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
		return mcp.NewResult().JSON(map[string][]int{"list": nil}).
			ResourceLink("file:///notes/1", "first note").
			EmbeddedResource(mcp.ResourceContents{URI: "file:///notes/2", MIMEType: "text/plain", Text: "second"}).
			Image([]byte("a"), "image/png").Image([]byte("b"), "image/gif"), nil
	}))
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		link := `{"type":"resource_link","uri":"file:///notes/1","name":"first note"}`
		if rev < protocol.V20250618 {
			link = `{"type":"text","text":"first note: file:///notes/1"}`
		}
		r := c.Call("items", nil)
		var raw struct{ Content []json.RawMessage }
		if err := json.Unmarshal(r.Raw, &raw); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{`{"type":"text","text":"{\"list\":[]}"}`, link,
			`{"type":"resource","resource":{"uri":"file:///notes/2","mimeType":"text/plain","text":"second"}}`,
			`{"type":"image","data":"YQ==","mimeType":"image/png"}`, `{"type":"image","data":"Yg==","mimeType":"image/gif"}`} {
			if i >= len(raw.Content) || string(raw.Content[i]) != want {
				t.Errorf("item %d of %s, want %s", i, r.Raw, want)
			}
		}
	})
}

// What an item lacks fails the call, with a text that names it.
func TestResultItemsBroken(t *testing.T) {
	s := harness.Fixture(t, nil)
	for name, r := range map[string]*mcp.Result{
		"JSON":                    mcp.NewResult().JSON(func() {}),
		"a link needs a URI":      mcp.NewResult().ResourceLink("", "x"),
		"and a name":              mcp.NewResult().ResourceLink("file:///x", ""),
		"the contents need a URI": mcp.NewResult().EmbeddedResource(mcp.ResourceContents{Text: "x"}),
	} {
		tool := strings.ReplaceAll(name, " ", "_")
		s.MustAdd(mcp.Tool(tool, func(*mcp.Frame, struct{}) (*mcp.Result, error) { return r, nil }))
		if _, err := mcptest.New(t, s).TryCall(tool, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// The lists of a server name what its client is shown, and without a Frame all
// that there is.
func TestServerLists(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "lists", Version: "1"}, nil)
	hidden := mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Principal() != "" })
	s.MustAdd(
		mcp.Tool("z", func(*mcp.Frame, struct{}) (string, error) { return "", nil }), mcp.Tool("a", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, hidden),
		mcp.Prompt("p", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, mcp.Scopes("write")), mcp.Prompt("q", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
		mcp.Resource("x://r", func(*mcp.Frame) (string, error) { return "", nil }, hidden),
		mcp.Template("x://t/{id}", func(*mcp.Frame, struct {
			ID string `json:"id"`
		}) (string, error) {
			return "", nil
		}),
	)
	lists := func(f *mcp.Frame) string {
		var names []string
		for tool := range s.Tools(f) {
			names = append(names, tool.Name)
		}
		for prompt := range s.Prompts(f) {
			names = append(names, prompt.Name)
		}
		for resource := range s.Resources(f) {
			names = append(names, resource.URI)
		}
		for template := range s.Templates(f) {
			names = append(names, template.URITemplate)
		}
		return strings.Join(names, " ")
	}
	if got := lists(nil); got != "a z p q x://r x://t/{id}" {
		t.Errorf("without a client: %s", got)
	}
	if scoped, ok := s.Tool(nil, "a"); !ok || scoped.Name != "a" {
		t.Errorf("without a client: %v, %t", scoped.Name, ok)
	}
	if _, ok := s.Tool(nil, "none"); ok {
		t.Error("a tool that is not there")
	}
	for range s.Tools(nil) { // which stops
		break
	}
	var seen string
	parent := mcp.NewServer(mcp.Info{Name: "parent", Version: "1"}, nil)
	if err := parent.Mount("sub", s); err != nil {
		t.Fatal(err)
	}
	s.MustAdd(mcp.Tool("look", func(f *mcp.Frame, _ struct{}) (string, error) { seen = lists(f); return "", nil }))
	as := mcptest.As(mcp.Identity{Subject: "alice", Scopes: []string{"write"}})
	for _, at := range []struct {
		server  *mcp.Server
		tool    string
		options []mcptest.Option
		want    string
	}{
		{s, "look", nil, "look z q x://t/{id}"},
		{s, "look", []mcptest.Option{as}, "a look z p q x://r x://t/{id}"},
		{parent, "sub_look", nil, "look z q x://t/{id}"},
	} {
		for _, rev := range testdep.Revisions() {
			mcptest.New(t, at.server, append(at.options, mcptest.Revision(rev))...).Call(at.tool, nil)
			if seen != at.want {
				t.Errorf("%v, %s: %s, want %s", rev, at.tool, seen, at.want)
			}
		}
	}
}

func TestFail(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(mcp.Tool("refused", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
		return mcp.NewResult().Text("no room").Fail().Textf("%d of %d are taken", 4, 4), nil
	}))
	harness.InEach(t, s, func(t *testing.T, _ protocol.Revision, c *mcptest.Client) {
		if r := c.Call("refused", nil); !r.IsError || len(r.Content) != 2 || r.Text() != "no room\n4 of 4 are taken" && r.Text() != "no room4 of 4 are taken" {
			t.Errorf("%s", r.Raw)
		}
	})
}

// Hints are in the revisions that have them, false ones too.
func TestHints(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(mcp.Tool("hinted", func(*mcp.Frame, struct{}) (string, error) { return "", nil },
		mcp.OpenWorld(false), mcp.Destructive(false), mcp.Idempotent(), mcp.ReadOnly()))
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		var list struct {
			Tools []struct {
				Name        string
				Annotations json.RawMessage
			}
		}
		if err := json.Unmarshal(c.Request(protocol.MethodToolsList, nil), &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			if tool.Name != "hinted" {
				continue
			}
			want := `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`
			if rev == protocol.V20241105 {
				want = ""
			}
			if got := string(tool.Annotations); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			return
		}
		t.Error("the tool is not in the list")
	})
}

// Limits.Rounds bound how often a modern client is asked.
func TestRoundsOption(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "curious", Version: "1"}, &mcp.Options{Limits: mcp.Limits{Rounds: 2}})
	ask := func(keys ...string) func(f *mcp.Frame, _ struct{}) (string, error) {
		return func(f *mcp.Frame, _ struct{}) (string, error) {
			for _, key := range keys {
				if _, err := mcp.Elicit[harness.Sized](f, key, "How large?"); err != nil {
					return "", err
				}
			}
			return "done", nil
		}
	}
	s.MustAdd(mcp.Tool("two", ask("a", "b")), mcp.Tool("three", ask("a", "b", "c")))
	c := mcptest.New(t, s, mcptest.Trace(spectest.New(t).Hear), mcptest.Accepting(harness.Sized{Size: 1}))
	if got := harness.Outcome(c, "two"); got != "done" {
		t.Errorf("two: %s", got)
	}
	if got := harness.Outcome(c, "three"); !strings.Contains(got, "error ") {
		t.Errorf("three: %s, want an error", got)
	}
}

// A ResultOf has schema, structured content, the text that repeats it, and what
// else was added; one that failed has no structured content.
func TestResultOf(t *testing.T) {
	s := harness.Fixture(t, nil)
	s.MustAdd(
		mcp.Tool("chart", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.Sized], error) {
			r := &mcp.ResultOf[harness.Sized]{Value: harness.Sized{Size: 3}}
			r.Image([]byte("png"), "image/png").Meta("a/b", 1)
			return r, nil
		}),
		mcp.Tool("bare", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.Sized], error) {
			return &mcp.ResultOf[harness.Sized]{Value: harness.Sized{Size: 4}}, nil
		}, mcp.StructuredOnly()),
		mcp.Tool("failed", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.Sized], error) {
			r := &mcp.ResultOf[harness.Sized]{}
			r.Text("no data").Fail()
			return r, nil
		}),
		mcp.Tool("nil", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.Sized], error) { return nil, nil }),
		mcp.Tool("twice", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.Sized], error) {
			r := &mcp.ResultOf[harness.Sized]{}
			r.Structured(5)
			return r, nil
		}),
	)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		structured := rev.Has(protocol.FeatureStructuredContent)
		for _, tool := range c.Tools() {
			if tool.Name == "chart" && structured != strings.Contains(string(tool.OutputSchema), `"size"`) {
				t.Errorf("the schema is %s", tool.OutputSchema)
			}
		}
		r := c.Call("chart", nil)
		if want := `"content":[{"type":"text","text":"{\"size\":3}"},{"type":"image"`; !strings.Contains(string(r.Raw), want) || !strings.Contains(string(r.Raw), `"a/b":1`) {
			t.Errorf("got %s, want %s", r.Raw, want)
		}
		if has := strings.Contains(string(r.Raw), `"structuredContent":{"size":3}`); has != structured {
			t.Errorf("got %s", r.Raw)
		}
		if r := c.Call("bare", nil); structured && strings.Contains(string(r.Raw), `"text"`) {
			t.Errorf("StructuredOnly: got %s", r.Raw)
		}
		if r := c.Call("failed", nil); !r.IsError || r.Text() != "no data" || strings.Contains(string(r.Raw), "structuredContent") {
			t.Errorf("got %s", r.Raw)
		}
		for _, name := range []string{"nil", "twice"} {
			if r, err := c.TryCall(name, nil); err == nil {
				t.Errorf("%s: got %s", name, r.Raw)
			}
		}
	})
}

// Text is in place of what repeats the structured content, in every revision and
// before all other items; a result that failed has none.
func TestText(t *testing.T) {
	s := harness.Fixture(t, nil)
	say := mcp.Text(func(out harness.Sized) string { return fmt.Sprintf("%d pieces", out.Size) })
	s.MustAdd(
		mcp.Tool("plain", func(*mcp.Frame, struct{}) (harness.Sized, error) { return harness.Sized{Size: 3}, nil }, say),
		mcp.Tool("bare", func(*mcp.Frame, struct{}) (harness.Sized, error) { return harness.Sized{Size: 3}, nil }, say, mcp.StructuredOnly()),
		mcp.Tool("pointer", func(*mcp.Frame, struct{}) (*harness.Sized, error) { return &harness.Sized{Size: 3}, nil },
			mcp.Text(func(out *harness.Sized) string { return fmt.Sprintf("%d pieces", out.Size) })),
		mcp.Tool("chart", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.Sized], error) {
			r := &mcp.ResultOf[harness.Sized]{Value: harness.Sized{Size: 3}}
			r.Image([]byte("png"), "image/png").Meta("a/b", 1)
			return r, nil
		}, say),
		mcp.Tool("failed", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.Sized], error) {
			r := &mcp.ResultOf[harness.Sized]{}
			r.Text("no data").Fail()
			return r, nil
		}, say),
	)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		for name, want := range map[string]string{
			"plain":   `"content":[{"type":"text","text":"3 pieces"}]`,
			"bare":    `"content":[{"type":"text","text":"3 pieces"}]`,
			"pointer": `"content":[{"type":"text","text":"3 pieces"}]`,
			"chart":   `"content":[{"type":"text","text":"3 pieces"},{"type":"image"`,
			"failed":  `"content":[{"type":"text","text":"no data"}]`,
		} {
			r := c.Call(name, nil)
			if !strings.Contains(string(r.Raw), want) {
				t.Errorf("%s: got %s, want %s", name, r.Raw, want)
			}
			if has := strings.Contains(string(r.Raw), `"structuredContent":{"size":3}`); has != (name != "failed" && rev.Has(protocol.FeatureStructuredContent)) {
				t.Errorf("%s: got %s", name, r.Raw)
			}
		}
	})
}

// A Text that does not fit the tool is a fault of Add, with both types.
func TestTextFaults(t *testing.T) {
	say := mcp.Text(func(harness.Sized) string { return "" })
	for want, tool := range map[string]mcp.Component{
		"the func takes harness.Sized, but the structured content of the tool is *harness.Sized": mcp.Tool("a", func(*mcp.Frame, struct{}) (*harness.Sized, error) { return nil, nil }, say),
		"but the structured content of the tool is int":                                          mcp.Tool("a", func(*mcp.Frame, struct{}) (*mcp.ResultOf[int], error) { return nil, nil }, say),
		"returns no type that is structured content":                                             mcp.Tool("a", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, say),
		"tool returns no type that is structured content; leave Text out":                        mcp.Tool("a", func(*mcp.Frame, struct{}) (*mcp.Result, error) { return nil, nil }, say, mcp.OutputSchema([]byte(`{"type":"object"}`))),
		"Text: the func is nil": mcp.Tool("a", func(*mcp.Frame, struct{}) (harness.Sized, error) { return harness.Sized{}, nil }, mcp.Text[harness.Sized](nil)),
	} {
		if err := harness.Bare(mcp.Options{}).Add(tool); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `tool "a"`) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
