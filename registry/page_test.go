package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

func TestPages(t *testing.T) {
	tests := []struct {
		size int
		keys []string
		want []string
	}{
		{0, nil, []string{""}},
		{2, nil, []string{""}},
		{2, []string{"a"}, []string{"a"}},
		{2, []string{"a", "b"}, []string{"a b"}},
		{2, []string{"a", "b", "c"}, []string{"a b", "c"}},
		{1, []string{"a", "b"}, []string{"a", "b"}},
		{0, []string{"a", "b", "c"}, []string{"a b c"}},
		{2, []string{`"quo\te"`, "ünï", "\x01"}, []string{"\x01 \"quo\\te\"", "ünï"}},
	}
	for _, tt := range tests {
		if got := walk(t, newItems(t, tt.size, tt.keys...)); !slices.Equal(got, tt.want) {
			t.Errorf("%q in pages of %d: %q, want %q", tt.keys, tt.size, got, tt.want)
		}
	}
}

// What a page looks like in each family of revisions.
func TestPageBytes(t *testing.T) {
	l := New(Config{
		PageSize: 1, Meta: []byte(`"who":"me"`),
		Cache: protocol.Cache{TTL: 5 * time.Second},
	})
	if err := l.Add(items("a", "b")...); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rev  protocol.Revision
		want string
	}{
		{protocol.V20241105, `{"prompts":[{"name":"a"}],"nextCursor":"YWE"}`},
		{protocol.V20251125, `{"prompts":[{"name":"a"}],"nextCursor":"YWE"}`},
		{protocol.V20260728, `{"resultType":"complete","prompts":[{"name":"a"}],"nextCursor":"YWE","ttlMs":5000,"cacheScope":"private","_meta":{"who":"me"}}`},
	}
	for _, tt := range tests {
		got, err := l.View(in(tt.rev), nil).Page(KindPrompt, nil)
		if err != nil || string(got) != tt.want {
			t.Errorf("%v: %s, %v\nwant %s", tt.rev, got, err, tt.want)
		}
	}
}

// The modern hints are there without being asked for: the schema requires them.
func TestPageDefaultHints(t *testing.T) {
	got, err := New(Config{}).View(in(protocol.V20260728), nil).Page(KindPrompt, nil)
	if want := `{"resultType":"complete","prompts":[],"ttlMs":0,"cacheScope":"public"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// A cursor keeps its place while entries come and go: what stays is listed
// exactly once.
func TestCursorIsStable(t *testing.T) {
	tests := []struct {
		name   string
		change func(l *Catalog)
		want   string // the page after [b d]
	}{
		{"nothing", func(*Catalog) {}, "f h"},
		{"entry before the cursor", func(l *Catalog) { _ = l.Add(items("a", "c")...) }, "f h"},
		{"entry after the cursor", func(l *Catalog) { _ = l.Add(items("e")...) }, "e f"},
		{"first of the page goes", func(l *Catalog) { l.Remove(KindPrompt, "b") }, "f h"},
		{"the cursor's own entry goes", func(l *Catalog) { l.Remove(KindPrompt, "d") }, "f h"},
		{"the next entry goes", func(l *Catalog) { l.Remove(KindPrompt, "f") }, "h"},
		{"all the rest goes", func(l *Catalog) { l.Remove(KindPrompt, "f", "h") }, ""},
		{"everything goes", func(l *Catalog) { l.Remove(KindPrompt, "b", "d", "f", "h") }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newItems(t, 2, "b", "d", "f", "h")
			first := page(t, l, nil)
			tt.change(l)
			if got := page(t, l, first.NextCursor).names(); got != tt.want {
				t.Errorf("second page %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBadCursors(t *testing.T) {
	l := newItems(t, 1, "a", "b")
	for _, cursor := range []string{
		`""`, `null`, `5`, `true`, `{}`, `["YWE"]`, `"YWE`, `"nonsense"`, `"*"`,
		`"YWE="`, // padded
		`"YmE"`,  // another version
		`"YW"`,   // one bit too many
		`"\ud800"`,
	} {
		_, err := l.View(in(protocol.Latest), nil).Page(KindPrompt, []byte(cursor))
		var fault *protocol.Error
		if !errors.As(err, &fault) || fault.Code != protocol.CodeInvalidParams || fault.Message == "" {
			t.Errorf("cursor %s: error %v, want one with code -32602", cursor, err)
		}
	}
}

// The cursor of the last page's end is honest, too: nothing follows.
func TestMadeUpCursorsThatDecode(t *testing.T) {
	l := newItems(t, 2, "b", "d")
	for key, want := range map[string]string{"": "b d", "a": "b d", "b": "d", "c": "d", "d": "", "zzz": "", "\xff": ""} {
		if got := page(t, l, fmt.Appendf(nil, "%q", encodeCursor(key))).names(); got != want {
			t.Errorf("after %q: %q, want %q", key, got, want)
		}
	}
}

func TestPagesAreKeptAsBytes(t *testing.T) {
	defined := 0
	l := New(Config{PageSize: 2})
	for _, key := range []string{"a", "b", "c"} {
		if err := l.Add(special(key, &extra{defined: &defined})); err != nil {
			t.Fatal(err)
		}
	}
	next := page(t, l, nil).NextCursor
	page(t, l, next)
	defined = 0
	v := viewOf(l)
	for _, cursor := range [][]byte{nil, next} {
		one, _ := v.Page(KindPrompt, cursor)
		two, _ := v.Page(KindPrompt, cursor)
		if unsafe.SliceData(one) != unsafe.SliceData(two) {
			t.Errorf("page %s was made twice", cursor)
		}
	}
	if defined != 0 {
		t.Errorf("entries were encoded %d times for pages that are there", defined)
	}
	if got := testing.AllocsPerRun(100, func() { _, _ = v.Page(KindPrompt, nil) }); got != 0 {
		t.Errorf("%v allocations for a first page that is there, want 0", got)
	}
	l.Remove(KindPrompt, "c")
	if page(t, l, nil).NextCursor != nil {
		t.Error("a change did not make the kept page anew")
	}
}

// Pages of skills end where their bytes do, and those that a walk meets are kept.
func TestPagesOfSkillsAreKept(t *testing.T) {
	l := New(Config{PageSize: 100})
	for i := range 5 {
		head := fmt.Appendf(nil, `{"name":"s%d","description":%q}`, i, strings.Repeat("x", maxSkillsPage*2/5))
		if err := l.Add(&Entry{Definition: &wire.Skill{URI: fmt.Sprintf("skill://s%d/SKILL.md", i), Frontmatter: head, Resources: []wire.SkillFile{}}}); err != nil {
			t.Fatal(err)
		}
	}
	v := viewOf(l)
	var walk [][]byte
	for _, round := range []string{"made", "kept"} {
		var cursor []byte
		for at := 0; at == 0 || cursor != nil; at++ {
			text, err := v.Page(kindSkill, cursor)
			if err != nil {
				t.Fatal(err)
			}
			if round == "made" {
				walk = append(walk, text)
			} else if unsafe.SliceData(text) != unsafe.SliceData(walk[at]) {
				t.Errorf("page %d was made twice", at)
			}
			var page struct{ NextCursor json.RawMessage }
			if err := json.Unmarshal(text, &page); err != nil {
				t.Fatal(err)
			}
			cursor = page.NextCursor
		}
	}
	if len(walk) != 3 {
		t.Errorf("got %d pages, want 3 of two skills at most", len(walk))
	}
	for i := range 5 {
		if _, err := v.Page(kindSkill, fmt.Appendf(nil, "%q", encodeCursor(fmt.Sprintf("skill://s%d/", i)))); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(l.list(kindSkill).pages); got != 3 {
		t.Errorf("%d pages are kept, want the 3 of a walk", got)
	}
}

// Cursors that a client makes up cost a page each, but leave nothing behind.
func TestMadeUpCursorsLeaveNothing(t *testing.T) {
	l := newItems(t, 10)
	for i := range 100 {
		if err := l.Add(items(fmt.Sprintf("key-%02d", i))...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		for _, suffix := range []string{"", "a", "b"} {
			page(t, l, fmt.Appendf(nil, "%q", encodeCursor(fmt.Sprintf("key-%02d%s", i, suffix))))
		}
	}
	if got := len(l.list(KindPrompt).pages); got > 11 {
		t.Errorf("%d pages are kept, want at most the 10 of a walk and the empty one", got)
	}
}

// An entry that stops encoding costs an error that names it, not the list.
func TestPageError(t *testing.T) {
	l, fickle := New(Config{}), &extra{}
	if err := l.Add(special("fickle", fickle)); err != nil {
		t.Fatal(err)
	}
	fickle.fail = errors.New("no more")
	_, err := viewOf(l).Page(KindPrompt, nil)
	if want := `prompts "fickle": `; err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, fickle.fail) {
		t.Errorf("error %v, want %s and the cause", err, want)
	}
	fickle.fail = nil
	if _, err := viewOf(l).Page(KindPrompt, nil); err != nil {
		t.Errorf("the error was kept: %v", err)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add([]byte(`"YWE"`))
	f.Add([]byte(`null`))
	l := newItems(f, 1, "a", "b", "c")
	f.Fuzz(func(t *testing.T, cursor []byte) {
		if cursor == nil {
			return
		}
		got, err := viewOf(l).Page(KindPrompt, cursor)
		var fault *protocol.Error
		switch {
		case err != nil && (!errors.As(err, &fault) || fault.Code != protocol.CodeInvalidParams):
			t.Errorf("cursor %q: %v, want -32602", cursor, err)
		case err == nil && !json.Valid(got):
			t.Errorf("cursor %q: %s is not JSON", cursor, got)
		}
	})
}

// Lists of tools with views are as fast as others: they are kept whole, and for
// clients that do not see everything each definition is.
func BenchmarkViews(b *testing.B) {
	for _, filtered := range []bool{false, true} {
		for _, view := range []string{"", "ui://a/b"} {
			c := New(Config{})
			if filtered {
				c.config.Filter = func(*frame.Frame, Kind, string) bool { return true }
			}
			all := []*Entry{{Definition: &protocol.Resource{URI: "ui://a/b", Name: "b", MIMEType: wire.ViewType}}}
			for i := range 100 {
				d := &protocol.Tool{Name: fmt.Sprint("tool", i), InputSchema: []byte(`{"type":"object"}`), Meta: map[string]any{"a": 1}}
				if view != "" {
					d.Meta = wire.MetaWithUI(d.Meta, wire.ToolUI{View: view})
				}
				all = append(all, &Entry{Definition: d, View: view})
			}
			if err := c.Add(all...); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("filtered=%v/views=%v", filtered, view != ""), func(b *testing.B) {
				for b.Loop() {
					if _, err := c.View(in(protocol.Latest), nil).Page(KindTool, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
