package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/protocol"
)

// extra is what an entry of these tests says in its _meta.
type extra struct {
	fail    error
	panics  bool
	defined *int // counts Define, if not nil
}

func (e *extra) MarshalJSON() ([]byte, error) {
	if e.panics {
		panic("define")
	}
	if e.defined != nil {
		*e.defined++
	}
	return []byte(`0`), e.fail
}

// item returns an Entry whose definition is its name.
func item(key string) *Entry { return &Entry{Definition: &protocol.Prompt{Name: key}} }

// special is an item with something extra.
func special(key string, e *extra) *Entry {
	return &Entry{Definition: &protocol.Prompt{Name: key, Meta: map[string]any{"extra": e}}}
}

func items(keys ...string) []*Entry {
	list := make([]*Entry, len(keys))
	for i, key := range keys {
		list[i] = item(key)
	}
	return list
}

// newItems returns a Catalog with pages of that size.
func newItems(t testing.TB, size int, keys ...string) *Catalog {
	t.Helper()
	c := New(Config{PageSize: size})
	if err := c.Add(items(keys...)...); err != nil {
		t.Fatal(err)
	}
	return c
}

func keysOf(list []*Entry) []string {
	keys := make([]string, len(list))
	for i, e := range list {
		keys[i] = e.Key()
	}
	return keys
}

// in is the request of somebody who speaks rev.
func in(rev protocol.Revision) *frame.Frame {
	return frame.Internal(facts.Private{}).New(context.Background(), core.Config{Revision: rev})
}

// viewOf is what there is for somebody.
func viewOf(c *Catalog) View { return c.View(in(protocol.LatestLegacy), nil) }

func all(c *Catalog) []*Entry { return viewOf(c).all(KindPrompt) }

func get(c *Catalog, key string) (*Entry, bool) { return c.get(KindPrompt, key) }

// pageOf is a page as a client reads it.
type pageOf struct {
	Prompts    []struct{ Name string }
	NextCursor json.RawMessage
}

func (p pageOf) names() string {
	var names []string
	for _, i := range p.Prompts {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

func page(t testing.TB, l *Catalog, cursor []byte) pageOf {
	t.Helper()
	raw, err := viewOf(l).Page(KindPrompt, cursor)
	if err != nil {
		t.Fatalf("Page(%s): %v", cursor, err)
	}
	var p pageOf
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatalf("Page(%s) = %s: %v", cursor, raw, err)
	}
	return p
}

// walk reads every page from the front.
func walk(t testing.TB, l *Catalog) (pages []string) {
	t.Helper()
	for cursor := []byte(nil); ; {
		p := page(t, l, cursor)
		pages = append(pages, p.names())
		if p.NextCursor == nil {
			return pages
		}
		cursor = p.NextCursor
	}
}

func TestCatalogOrder(t *testing.T) {
	l := newItems(t, 0, "b", "é", "a")
	if err := l.Add(items("Z", "aa")...); err != nil {
		t.Fatal(err)
	}
	want := []string{"Z", "a", "aa", "b", "é"}
	if got := keysOf(all(l)); !slices.Equal(got, want) {
		t.Errorf("All() = %q, want %q: sorted by key, whatever the order of adding", got, want)
	}
	if got := len(all(l)); got != len(want) {
		t.Errorf("Len() = %d, want %d", got, len(want))
	}
	for _, key := range want {
		if e, ok := get(l, key); !ok || e.Key() != key {
			t.Errorf("Get(%q) = %v, %v", key, e, ok)
		}
	}
	if _, ok := get(l, "c"); ok {
		t.Error(`Get("c") found what was never added`)
	}
}

func TestCatalogAddAllOrNone(t *testing.T) {
	tests := []struct {
		name string
		add  []*Entry
		want []string // parts of the error
	}{
		{"taken", items("new", "old"), []string{`prompts: "old" is registered already`}},
		{"twice at once", items("new", "new"), []string{`"new" is registered already`}},
		{"does not encode", append(items("new"), special("bad", &extra{fail: errors.New("no JSON")})), []string{`"bad": `}},
		{"every fault", append(items("old"), special("bad", &extra{fail: errors.New("no JSON")})), []string{`"old" is`, `"bad": `}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newItems(t, 0, "old")
			told := 0
			internals{l}.Watch(func([]*Entry) { told++ })
			err := l.Add(tt.add...)
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want it to contain %q", err, part)
				}
			}
			if got := keysOf(all(l)); !slices.Equal(got, []string{"old"}) || told != 0 {
				t.Errorf("after the error: %q, %d notices; want the list as it was", got, told)
			}
		})
	}
}

func TestCatalogRemove(t *testing.T) {
	l := newItems(t, 0, "a", "b", "c")
	if n := l.Remove(KindPrompt, "c", "nobody", "a", "a"); n != 2 {
		t.Errorf("Remove returned %d, want 2", n)
	}
	if got := keysOf(all(l)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left %q, want [b]", got)
	}
	if err := l.Add(items("a")...); err != nil {
		t.Errorf("a removed key cannot be added again: %v", err)
	}
}

// All hands out a snapshot: later changes do not show in it.
func TestCatalogSnapshot(t *testing.T) {
	l := newItems(t, 0, "a", "b")
	before := all(l)
	l.Remove(KindPrompt, "a")
	if err := l.Add(items("0")...); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(before); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("an old snapshot became %q", got)
	}
}

func TestCatalogWatch(t *testing.T) {
	l := newItems(t, 0, "a")
	var told []string
	watch := func(name string) func() {
		return internals{l}.Watch(func([]*Entry) { told = append(told, fmt.Sprintf("%s:%d", name, len(all(l)))) })
	}
	stopFirst := watch("first")
	watch("second")
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"add", func() { _ = l.Add(items("b")...) }, "first:2 second:2"},
		{"add nothing", func() { _ = l.Add() }, ""},
		{"remove nothing", func() { l.Remove(KindPrompt, "nobody") }, ""},
		{"remove", func() { l.Remove(KindPrompt, "b") }, "first:1 second:1"},
		{"stop", stopFirst, ""},
		{"stop twice", stopFirst, ""},
		{"add again", func() { _ = l.Add(items("c")...) }, "second:2"},
	}
	for _, step := range steps {
		told = nil
		step.do()
		if got := strings.Join(told, " "); got != step.want {
			t.Errorf("%s told %q, want %q", step.name, got, step.want)
		}
	}
}

// Coming hears of components before anybody can find them, and of those that
// come only, not of a change that fails.
func TestCatalogComing(t *testing.T) {
	var told []string
	var c *Catalog
	c = New(Config{Coming: func(entries []*Entry) {
		for _, e := range entries {
			_, there := get(c, e.Key())
			told = append(told, fmt.Sprintf("%s:%v", e.Key(), there))
		}
	}})
	_ = c.Add(items("a", "b")...)
	_ = c.Add(items("c", "a")...)
	c.Remove(KindPrompt, "a")
	if got := strings.Join(told, " "); got != "a:false b:false" {
		t.Errorf("told %q, want a and b before they were there", got)
	}
}

// A watcher may use the list, and stop itself.
func TestCatalogWatchReentrant(t *testing.T) {
	l := newItems(t, 0)
	calls := 0
	var stop func()
	stop = internals{l}.Watch(func([]*Entry) {
		calls++
		stop()
		_ = l.Add(items(fmt.Sprint("more", calls))...)
	})
	if err := l.Add(items("a")...); err != nil {
		t.Fatal(err)
	}
	if calls != 1 || len(all(l)) != 2 {
		t.Errorf("%d calls, %d entries; want 1 and 2", calls, len(all(l)))
	}
}

// Users' code runs while an entry is added; its panic must not lock the list.
func TestCatalogSurvivesPanic(t *testing.T) {
	l := newItems(t, 0, "a")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = l.Add(special("b", &extra{panics: true}))
	}()
	if err := l.Add(items("c")...); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(all(l)); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("got %q, want [a c]", got)
	}
}

// Readers meet whole snapshots while the list changes under them.
func TestCatalogConcurrent(t *testing.T) {
	l := newItems(t, 7)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 60 {
				key := fmt.Sprintf("w%d-%02d", w, i)
				if err := l.Add(items(key, key+"x")...); err != nil {
					t.Error(err)
				}
				if i%3 == 0 {
					l.Remove(KindPrompt, key)
				}
			}
		})
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for range 60 {
				stop := internals{l}.Watch(func([]*Entry) {})
				all := keysOf(all(l))
				if !slices.IsSorted(all) || len(slices.Compact(all)) != len(all) {
					t.Errorf("not sorted, or doubled: %q", all)
				}
				cursor := []byte(fmt.Sprintf("%q", encodeCursor(fmt.Sprintf("w%d", rnd.IntN(5)))))
				page(t, l, cursor)
				page(t, l, nil)
				get(l, "w0-01")
				stop()
			}
		})
	}
	wg.Wait()
	if got, want := len(all(l)), 4*(2*60-20); got != want {
		t.Errorf("%d entries at the end, want %d", got, want)
	}
}

// What comes and goes at once is one change.
func TestCatalogChange(t *testing.T) {
	l := newItems(t, 0, "a", "b")
	var told []string
	internals{l}.Watch(func(changed []*Entry) { told = append(told, fmt.Sprint(len(changed))) })
	for _, step := range []struct {
		remove []string
		add    []*Entry
		fails  bool
		want   string
		told   string
	}{
		{nil, nil, false, "a b", ""},
		{[]string{"a"}, items("a"), false, "a b", "2"},
		{[]string{"a"}, items("b"), true, "a b", "2"},
		{[]string{"a", "nobody"}, items("c", "d"), false, "b c d", "2 3"},
		{[]string{"b", "c", "d"}, nil, false, "", "2 3 3"},
	} {
		err := l.change(func() (set, []*Entry, error) {
			gone := set{}
			for _, key := range step.remove {
				if e, ok := get(l, key); ok {
					gone[e] = true
				}
			}
			return gone, step.add, l.check(step.add, gone)
		})
		if (err != nil) != step.fails {
			t.Errorf("change(%q, %q): %v", step.remove, keysOf(step.add), err)
		}
		if got, heard := strings.Join(keysOf(all(l)), " "), strings.Join(told, " "); got != step.want || heard != step.told {
			t.Errorf("change(%q, %q) left %q and told of %q, want %q and %q", step.remove, keysOf(step.add), got, heard, step.want, step.told)
		}
	}
}

// Kinds have names of their own, and a change of one leaves the pages of
// another.
func TestCatalogKinds(t *testing.T) {
	c := newItems(t, 0, "x")
	v := viewOf(c)
	before, err := v.Page(KindPrompt, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Add(
		&Entry{Definition: &protocol.Tool{Name: "x", InputSchema: []byte(`{}`)}},
		&Entry{Definition: &protocol.Resource{URI: "x", Name: "r"}},
		&Entry{Definition: &protocol.ResourceTemplate{URITemplate: "x", Name: "t"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[Kind]string{
		KindTool:     `{"tools":[{"name":"x","inputSchema":{}}]}`,
		KindResource: `{"resources":[{"uri":"x","name":"r"}]}`,
		KindTemplate: `{"resourceTemplates":[{"uriTemplate":"x","name":"t"}]}`,
		KindPrompt:   `{"prompts":[{"name":"x"}]}`,
	} {
		page, err := v.Page(kind, nil)
		if err != nil || string(page) != want {
			t.Errorf("%s: %s, %v, want %s", kind, page, err, want)
		}
		if e, ok := c.get(kind, "x"); !ok || e.Kind() != kind {
			t.Errorf("%s: Get %v, %v", kind, e, ok)
		}
	}
	if after, _ := v.Page(KindPrompt, nil); unsafe.SliceData(before) != unsafe.SliceData(after) {
		t.Error("new tools have the page of the prompts made anew")
	}
	if n := c.Remove(KindTool, "x"); n != 1 || len(all(c)) != 1 {
		t.Errorf("Remove took %d, and there are %d prompts", n, len(all(c)))
	}
	if n := c.Remove("nothing", "x"); n != 0 {
		t.Errorf("Remove of an unknown kind took %d", n)
	}
	if err := c.Add(&Entry{Definition: "x"}); err == nil || !strings.Contains(err.Error(), "string") {
		t.Errorf("what is no component was added: %v", err)
	}
}

// Catalogs that offer the same have the same digest, in whatever order it came.
func TestDigest(t *testing.T) {
	digest := func(entries ...*Entry) string {
		t.Helper()
		c := New(Config{})
		for _, e := range entries {
			if err := c.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		first, err := c.Internal(facts.Private{}).Digest(KindTool, KindPrompt)
		again, _ := c.Internal(facts.Private{}).Digest(KindTool, KindPrompt)
		if err != nil || again != first {
			t.Errorf("%q, then %q, %v", first, again, err)
		}
		return first
	}
	tool := func(name, doc string) *Entry {
		return &Entry{Definition: &protocol.Tool{Name: name, Description: doc, InputSchema: json.RawMessage(`{"type":"object"}`)}}
	}
	one := digest(tool("a", ""), tool("b", "x"))
	if digest(tool("b", "x"), tool("a", "")) != one {
		t.Error("the order matters")
	}
	scoped := tool("a", "")
	scoped.Scopes = []string{"admin"}
	for what, other := range map[string]string{
		"nothing": digest(), "one of two": digest(tool("a", "")), "another text": digest(tool("a", ""), tool("b", "y")), "a scope": digest(scoped, tool("b", "x")),
		"a prompt": digest(tool("a", ""), tool("b", "x"), &Entry{Definition: &protocol.Prompt{Name: "p"}}),
	} {
		if other == one {
			t.Errorf("%s makes no difference", what)
		}
	}
}
