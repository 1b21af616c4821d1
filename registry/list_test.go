package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// item is an Entry whose definition is its name.
type item struct {
	key     string
	fail    error
	panics  bool
	defined *int // counts Define, if not nil
}

func (i item) Key() string { return i.key }

func (i item) Define(protocol.Revision) (json.RawMessage, error) {
	if i.panics {
		panic("define")
	}
	if i.defined != nil {
		*i.defined++
	}
	text, err := json.Marshal(map[string]string{"name": i.key})
	return text, errors.Join(i.fail, err)
}

func items(keys ...string) []item {
	list := make([]item, len(keys))
	for i, key := range keys {
		list[i].key = key
	}
	return list
}

// newItems returns a list with pages of that size.
func newItems(t testing.TB, size int, keys ...string) *List[item] {
	t.Helper()
	l := NewList[item](Config{Member: "items", PageSize: size})
	if err := l.Add(items(keys...)...); err != nil {
		t.Fatal(err)
	}
	return l
}

func keysOf(list []item) []string {
	keys := make([]string, len(list))
	for i, e := range list {
		keys[i] = e.key
	}
	return keys
}

// pageOf is a page as a client reads it.
type pageOf struct {
	Items      []struct{ Name string }
	NextCursor json.RawMessage
}

func (p pageOf) names() string {
	var names []string
	for _, i := range p.Items {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

func page(t testing.TB, l *List[item], cursor []byte) pageOf {
	t.Helper()
	raw, err := l.Page(cursor, protocol.LatestLegacy)
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
func walk(t testing.TB, l *List[item]) (pages []string) {
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

func TestListOrder(t *testing.T) {
	l := newItems(t, 0, "b", "é", "a")
	if err := l.Add(items("Z", "aa")...); err != nil {
		t.Fatal(err)
	}
	want := []string{"Z", "a", "aa", "b", "é"}
	if got := keysOf(l.All()); !slices.Equal(got, want) {
		t.Errorf("All() = %q, want %q: sorted by key, whatever the order of adding", got, want)
	}
	if got := l.Len(); got != len(want) {
		t.Errorf("Len() = %d, want %d", got, len(want))
	}
	for _, key := range want {
		if e, ok := l.Get(key); !ok || e.key != key {
			t.Errorf("Get(%q) = %v, %v", key, e, ok)
		}
	}
	if _, ok := l.Get("c"); ok {
		t.Error(`Get("c") found what was never added`)
	}
}

func TestListAddAllOrNone(t *testing.T) {
	tests := []struct {
		name string
		add  []item
		want []string // parts of the error
	}{
		{"taken", items("new", "old"), []string{`items: "old" is registered already`}},
		{"twice at once", items("new", "new"), []string{`"new" is registered already`}},
		{"does not encode", []item{{key: "new"}, {key: "bad", fail: errors.New("no JSON")}}, []string{`"bad": no JSON`}},
		{"every fault", append(items("old"), item{key: "bad", fail: errors.New("no JSON")}), []string{`"old" is`, `"bad": no JSON`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newItems(t, 0, "old")
			told := 0
			l.Watch(func() { told++ })
			err := l.Add(tt.add...)
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want it to contain %q", err, part)
				}
			}
			if got := keysOf(l.All()); !slices.Equal(got, []string{"old"}) || told != 0 {
				t.Errorf("after the error: %q, %d notices; want the list as it was", got, told)
			}
		})
	}
}

func TestListRemove(t *testing.T) {
	l := newItems(t, 0, "a", "b", "c")
	if n := l.Remove("c", "nobody", "a", "a"); n != 2 {
		t.Errorf("Remove returned %d, want 2", n)
	}
	if got := keysOf(l.All()); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left %q, want [b]", got)
	}
	if err := l.Add(items("a")...); err != nil {
		t.Errorf("a removed key cannot be added again: %v", err)
	}
}

// All hands out a snapshot: later changes do not show in it.
func TestListSnapshot(t *testing.T) {
	l := newItems(t, 0, "a", "b")
	before := l.All()
	l.Remove("a")
	if err := l.Add(items("0")...); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(before); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("an old snapshot became %q", got)
	}
}

func TestListWatch(t *testing.T) {
	l := newItems(t, 0, "a")
	var told []string
	watch := func(name string) func() {
		return l.Watch(func() { told = append(told, fmt.Sprintf("%s:%d", name, l.Len())) })
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
		{"remove nothing", func() { l.Remove("nobody") }, ""},
		{"remove", func() { l.Remove("b") }, "first:1 second:1"},
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

// A watcher may use the list, and stop itself.
func TestListWatchReentrant(t *testing.T) {
	l := newItems(t, 0)
	calls := 0
	var stop func()
	stop = l.Watch(func() {
		calls++
		stop()
		_ = l.Add(items(fmt.Sprint("more", calls))...)
	})
	if err := l.Add(items("a")...); err != nil {
		t.Fatal(err)
	}
	if calls != 1 || l.Len() != 2 {
		t.Errorf("%d calls, %d entries; want 1 and 2", calls, l.Len())
	}
}

// Users' code runs while an entry is added; its panic must not lock the list.
func TestListSurvivesPanic(t *testing.T) {
	l := newItems(t, 0, "a")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = l.Add(item{key: "b", panics: true})
	}()
	if err := l.Add(items("c")...); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(l.All()); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("got %q, want [a c]", got)
	}
}

// Readers meet whole snapshots while the list changes under them.
func TestListConcurrent(t *testing.T) {
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
					l.Remove(key)
				}
			}
		})
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for range 60 {
				stop := l.Watch(func() {})
				all := keysOf(l.All())
				if !slices.IsSorted(all) || len(slices.Compact(all)) != len(all) {
					t.Errorf("not sorted, or doubled: %q", all)
				}
				cursor := []byte(fmt.Sprintf("%q", encodeCursor(fmt.Sprintf("w%d", rnd.IntN(5)))))
				page(t, l, cursor)
				page(t, l, nil)
				l.Get("w0-01")
				stop()
			}
		})
	}
	wg.Wait()
	if got, want := l.Len(), 4*(2*60-20); got != want {
		t.Errorf("%d entries at the end, want %d", got, want)
	}
}

func TestListUpdate(t *testing.T) {
	l := newItems(t, 0, "a", "b")
	told := 0
	l.Watch(func() { told++ })
	for _, step := range []struct {
		remove []string
		add    []item
		fails  bool
		want   string
		told   int
	}{
		{nil, nil, false, "a b", 0},
		{[]string{"a"}, items("a"), false, "a b", 1},
		{[]string{"a"}, items("b"), true, "a b", 1},
		{[]string{"a", "nobody"}, items("c", "d"), false, "b c d", 2},
		{[]string{"b", "c", "d"}, nil, false, "", 3},
	} {
		if err := l.Update(step.remove, step.add...); (err != nil) != step.fails {
			t.Errorf("Update(%q, %q): %v", step.remove, keysOf(step.add), err)
		}
		if got := strings.Join(keysOf(l.All()), " "); got != step.want || told != step.told {
			t.Errorf("Update(%q, %q) left %q and told %d times, want %q and %d", step.remove, keysOf(step.add), got, told, step.want, step.told)
		}
	}
}

// What keep does not want is in no page and cannot be found, in the list and in
// what the client has of its own.
func TestViewOnly(t *testing.T) {
	l, own := newItems(t, 2, "a", "bx", "c", "d", "ex"), newItems(t, 2, "cx", "f")
	for name, tt := range map[string]struct {
		own  *List[item]
		want []string
	}{"list": {nil, []string{"a c", "d"}}, "both": {own, []string{"a c", "d f"}}} {
		v := l.With(tt.own).Only(func(i item) bool { return !strings.HasSuffix(i.key, "x") })
		var pages []string
		for cursor := []byte(nil); ; {
			raw, err := v.Page(cursor, protocol.LatestLegacy)
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
		if got := strings.Join(keysOf(v.All()), " "); got != strings.Join(tt.want, " ") {
			t.Errorf("%s: All %q", name, got)
		}
		for _, key := range []string{"bx", "cx", "ex"} {
			if _, ok := v.Get(key); ok {
				t.Errorf("%s: Get(%q) found it", name, key)
			}
		}
		if _, ok := v.Get("a"); !ok {
			t.Errorf("%s: a is gone", name)
		}
	}
}
