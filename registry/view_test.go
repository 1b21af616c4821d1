package registry

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/protocol"
)

func TestView(t *testing.T) {
	list, own := New(Config{PageSize: 2}), New(Config{})
	named := func(name, doc string) *Entry {
		return &Entry{Definition: &protocol.Tool{Name: name, Description: doc, InputSchema: []byte(`{"type":"object"}`)}}
	}
	if err := list.Add(named("a", "list"), named("c", "list"), named("d", "list")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		add  *Entry // to own, before the view is taken
		want string
	}{
		{nil, "a list, c list, d list"},
		{named("b", "own"), "a list, b own, c list, d list"},
		{named("c", "own"), "a list, b own, c own, d list"},
	} {
		if tt.add != nil {
			if err := own.Add(tt.add); err != nil {
				t.Fatal(err)
			}
		}
		view := list.View(in(protocol.Latest), own)
		var got, paged []string
		for _, e := range view.all(KindTool) {
			found, ok := view.Get(KindTool, e.Key())
			if !ok || found != e {
				t.Errorf("Get(%q) = %v, %v", e.Key(), found, ok)
			}
			got = append(got, e.Key()+" "+e.Definition.(*protocol.Tool).Description)
		}
		if joined := strings.Join(got, ", "); joined != tt.want {
			t.Errorf("got %s, want %s", joined, tt.want)
		}
		for _, page := range allPages(t, view) {
			for _, name := range []string{"a", "b", "c", "d"} {
				if strings.Contains(page, `"name":"`+name+`"`) {
					paged = append(paged, name)
				}
			}
		}
		if keys := strings.Fields(strings.NewReplacer(" list", "", " own", "", ",", "").Replace(tt.want)); !slices.Equal(paged, keys) {
			t.Errorf("pages: got %q, want %q", paged, keys)
		}
	}
	if _, ok := list.View(in(protocol.Latest), nil).Get(KindTool, "b"); ok {
		t.Error("a component of one client is in the view of another")
	}
}

// allPages follows the cursors.
func allPages(t *testing.T, view View) (pages []string) {
	t.Helper()
	var cursor []byte
	for range 5 {
		page, err := view.Page(KindTool, cursor)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(page))
		_, rest, more := strings.Cut(string(page), `"nextCursor":`)
		if !more {
			return pages
		}
		value, _, _ := strings.Cut(rest, ",")
		cursor = []byte(strings.TrimRight(value, "}")) // the end of the page, in revisions without what follows
	}
	t.Fatal("the pages do not end")
	return nil
}

// What the filter does not want is in no page and cannot be found, in the
// catalog and in what the client has of its own.
func TestViewFilter(t *testing.T) {
	l, own := New(Config{PageSize: 2, Filter: func(_ *frame.Frame, kind Kind, key string) bool {
		return kind != KindPrompt || !strings.HasSuffix(key, "x")
	}}), newItems(t, 2, "cx", "f")
	if err := l.Add(items("a", "bx", "c", "d", "ex")...); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		own  *Catalog
		want []string
	}{"catalog": {nil, []string{"a c", "d"}}, "both": {own, []string{"a c", "d f"}}} {
		v := l.View(in(protocol.LatestLegacy), tt.own)
		var pages []string
		for cursor := []byte(nil); ; {
			raw, err := v.Page(KindPrompt, cursor)
			if err != nil {
				t.Fatal(err)
			}
			var p pageOf
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatal(err)
			}
			pages = append(pages, p.names())
			if cursor = p.NextCursor; cursor == nil {
				break
			}
		}
		if !slices.Equal(pages, tt.want) {
			t.Errorf("%s: pages %q, want %q", name, pages, tt.want)
		}
		if got := strings.Join(keysOf(v.all(KindPrompt)), " "); got != strings.Join(tt.want, " ") {
			t.Errorf("%s: All %q", name, got)
		}
		for _, key := range []string{"bx", "cx", "ex"} {
			if _, ok := v.Get(KindPrompt, key); ok {
				t.Errorf("%s: Get(%q) found it", name, key)
			}
		}
		if _, ok := v.Get(KindPrompt, "a"); !ok {
			t.Errorf("%s: a is gone", name)
		}
	}
}

// TestListed: a client that sees a tool with Listed has a list of those names alone; others, and
// catalogs around, have all.
func TestListed(t *testing.T) {
	c, outer, own, seen := New(Config{PageSize: 2}), New(Config{}), New(Config{}), true
	named := func(name string) *Entry {
		return &Entry{Definition: &protocol.Tool{Name: name, InputSchema: []byte(`{"type":"object"}`), Meta: map[string]any{"own": name}}}
	}
	finder := named("find")
	finder.Listed = []string{"find", "b", "nothing", "d", "e"}
	finder.Visible = func(*frame.Frame) bool { return seen }
	if err := errors.Join(c.Add(named("a"), named("b"), named("c"), named("d"), named("e"), finder), own.Add(named("mine"))); err != nil {
		t.Fatal(err)
	}
	if _, err := outer.Internal(facts.Private{}).Mount(c, "in_", func(h frame.Handler) frame.Handler { return h }, func(error) {}, func([]*Entry) {}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		catalog *Catalog
		seen    bool
		want    string // an exclamation mark is for what is always loaded
	}{
		{c, true, "b! d! e! find!"},
		{c, false, "a b! c d! e! mine"},
		{outer, true, "in_a in_b in_c in_d in_e in_find mine"},
	} {
		seen = row.seen
		for _, rev := range protocol.Revisions() {
			var got []string
			for _, page := range allPages(t, row.catalog.View(in(rev), own)) {
				var list struct {
					Tools []struct {
						Name string
						Meta map[string]any `json:"_meta"`
					}
				}
				if err := json.Unmarshal([]byte(page), &list); err != nil {
					t.Fatal(err)
				}
				for _, tool := range list.Tools {
					if tool.Meta["own"] == nil {
						t.Errorf("%s lost its _meta", tool.Name)
					}
					if tool.Meta["anthropic/alwaysLoad"] == true {
						tool.Name += "!"
					}
					got = append(got, tool.Name)
				}
			}
			if text := strings.Join(got, " "); text != row.want {
				t.Errorf("%s: the list has %s, want %s", rev, text, row.want)
			}
		}
	}
}
