package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/spectest"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// inEach runs a test against s in every revision, through a client whose
// messages are checked.
func inEach(t *testing.T, s *mcp.Server, test func(t *testing.T, rev protocol.Revision, c *mcptest.Client), options ...mcptest.Option) {
	for _, rev := range protocol.Revisions() {
		t.Run(rev.String(), func(t *testing.T) {
			test(t, rev, mcptest.New(t, s, append(options, mcptest.Revision(rev), mcptest.Trace(spectest.New(t).Hear))...))
		})
	}
}

type sized struct {
	Size int `json:"size"`
}

// A result has no text twin if the tool wants none, but in revisions whose
// clients would get nothing otherwise.
func TestStructuredOnly(t *testing.T) {
	s := fixture(t, nil)
	s.MustAdd(
		mcp.Tool("bare", func(*mcp.Frame, empty) (sized, error) { return sized{3}, nil }, mcp.StructuredOnly()),
		mcp.Tool("twin", func(*mcp.Frame, empty) (sized, error) { return sized{3}, nil }),
	)
	inEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		structured := wire.StructuredContent.In(rev)
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

func TestFail(t *testing.T) {
	s := fixture(t, nil)
	s.MustAdd(mcp.Tool("refused", func(*mcp.Frame, empty) (*mcp.Result, error) {
		return mcp.NewResult().Text("no room").Fail().Textf("%d of %d are taken", 4, 4), nil
	}))
	inEach(t, s, func(t *testing.T, _ protocol.Revision, c *mcptest.Client) {
		if r := c.Call("refused", nil); !r.IsError || len(r.Content) != 2 || r.Text() != "no room\n4 of 4 are taken" && r.Text() != "no room4 of 4 are taken" {
			t.Errorf("%s", r.Raw)
		}
	})
}

// Hints are in the revisions that have them, false ones too.
func TestHints(t *testing.T) {
	s := fixture(t, nil)
	s.MustAdd(mcp.Tool("hinted", func(*mcp.Frame, empty) (string, error) { return "", nil },
		mcp.OpenWorld(false), mcp.Destructive(false), mcp.Idempotent(), mcp.ReadOnly()))
	inEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
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
	ask := func(keys ...string) func(f *mcp.Frame, _ empty) (string, error) {
		return func(f *mcp.Frame, _ empty) (string, error) {
			for _, key := range keys {
				if _, err := mcp.Elicit[sized](f, key, "How large?"); err != nil {
					return "", err
				}
			}
			return "done", nil
		}
	}
	s.MustAdd(mcp.Tool("two", ask("a", "b")), mcp.Tool("three", ask("a", "b", "c")))
	c := mcptest.New(t, s, mcptest.Trace(spectest.New(t).Hear), mcptest.Accepting(sized{1}))
	if got := outcome(c, "two"); got != "done" {
		t.Errorf("two: %s", got)
	}
	if got := outcome(c, "three"); !strings.Contains(got, "error ") {
		t.Errorf("three: %s, want an error", got)
	}
}

// A ResultOf has schema, structured content, the text that repeats it, and what
// else was added; one that failed has no structured content.
func TestResultOf(t *testing.T) {
	s := fixture(t, nil)
	s.MustAdd(
		mcp.Tool("chart", func(*mcp.Frame, empty) (*mcp.ResultOf[sized], error) {
			r := &mcp.ResultOf[sized]{Value: sized{3}}
			r.Image([]byte("png"), "image/png").Meta("a/b", 1)
			return r, nil
		}),
		mcp.Tool("bare", func(*mcp.Frame, empty) (*mcp.ResultOf[sized], error) {
			return &mcp.ResultOf[sized]{Value: sized{4}}, nil
		}, mcp.StructuredOnly()),
		mcp.Tool("failed", func(*mcp.Frame, empty) (*mcp.ResultOf[sized], error) {
			r := &mcp.ResultOf[sized]{}
			r.Text("no data").Fail()
			return r, nil
		}),
		mcp.Tool("nil", func(*mcp.Frame, empty) (*mcp.ResultOf[sized], error) { return nil, nil }),
		mcp.Tool("twice", func(*mcp.Frame, empty) (*mcp.ResultOf[sized], error) {
			r := &mcp.ResultOf[sized]{}
			r.Structured(5)
			return r, nil
		}),
	)
	inEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		structured := wire.StructuredContent.In(rev)
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
	s := fixture(t, nil)
	say := mcp.Text(func(out sized) string { return fmt.Sprintf("%d pieces", out.Size) })
	s.MustAdd(
		mcp.Tool("plain", func(*mcp.Frame, empty) (sized, error) { return sized{3}, nil }, say),
		mcp.Tool("bare", func(*mcp.Frame, empty) (sized, error) { return sized{3}, nil }, say, mcp.StructuredOnly()),
		mcp.Tool("pointer", func(*mcp.Frame, empty) (*sized, error) { return &sized{3}, nil },
			mcp.Text(func(out *sized) string { return fmt.Sprintf("%d pieces", out.Size) })),
		mcp.Tool("chart", func(*mcp.Frame, empty) (*mcp.ResultOf[sized], error) {
			r := &mcp.ResultOf[sized]{Value: sized{3}}
			r.Image([]byte("png"), "image/png").Meta("a/b", 1)
			return r, nil
		}, say),
		mcp.Tool("failed", func(*mcp.Frame, empty) (*mcp.ResultOf[sized], error) {
			r := &mcp.ResultOf[sized]{}
			r.Text("no data").Fail()
			return r, nil
		}, say),
	)
	inEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
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
			if has := strings.Contains(string(r.Raw), `"structuredContent":{"size":3}`); has != (name != "failed" && wire.StructuredContent.In(rev)) {
				t.Errorf("%s: got %s", name, r.Raw)
			}
		}
	})
}

// A Text that does not fit the tool is a fault of Add, with both types.
func TestTextFaults(t *testing.T) {
	say := mcp.Text(func(sized) string { return "" })
	for want, tool := range map[string]mcp.Component{
		"the func takes mcp_test.sized, but the structured content of the tool is *mcp_test.sized": mcp.Tool("a", func(*mcp.Frame, empty) (*sized, error) { return nil, nil }, say),
		"but the structured content of the tool is int":                                            mcp.Tool("a", func(*mcp.Frame, empty) (*mcp.ResultOf[int], error) { return nil, nil }, say),
		"returns no type that is structured content":                                               mcp.Tool("a", func(*mcp.Frame, empty) (string, error) { return "", nil }, say),
		"tool returns no type that is structured content; leave Text out":                          mcp.Tool("a", func(*mcp.Frame, empty) (*mcp.Result, error) { return nil, nil }, say, mcp.OutputSchema([]byte(`{"type":"object"}`))),
		"Text: the func is nil": mcp.Tool("a", func(*mcp.Frame, empty) (sized, error) { return sized{}, nil }, mcp.Text[sized](nil)),
	} {
		if err := bare(mcp.Options{}).Add(tool); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `tool "a"`) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
