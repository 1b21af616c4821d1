package registry

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// mounted mounts what from holds into an empty Catalog, and notes faults.
func mounted(t *testing.T, from *Catalog, prefix string) (into *Catalog, faults *[]string, unmount func()) {
	t.Helper()
	into, faults = New(Config{}), new([]string)
	unmount, err := internals{into}.Mount(from, prefix, func(h frame.Handler) frame.Handler { return h }, func(err error) { *faults = append(*faults, err.Error()) }, func([]*Entry) {})
	if err != nil {
		t.Fatal(err)
	}
	return into, faults, unmount
}

func TestMountFollows(t *testing.T) {
	from := newItems(t, 0, "a", "b")
	into, faults, unmount := mounted(t, from, "p.")
	told := 0
	internals{into}.Watch(func(changed []*Entry) { told += len(changed) })
	for _, step := range []struct {
		name string
		do   func()
		want string
		told int
	}{
		{"nothing", func() {}, "p.a p.b", 0},
		{"what comes", func() { _ = from.Add(items("c")...) }, "p.a p.b p.c", 1},
		{"what goes", func() { from.Remove(KindPrompt, "a", "c") }, "p.b", 2},
		{"another in place of one", func() { from.Remove(KindPrompt, "b"); _ = from.Add(items("b")...) }, "p.b", 2},
		{"one that is taken", func() { _ = into.Add(items("p.x")...); _ = from.Add(items("x", "y")...) }, "p.b p.x p.y", 2},
		{"one that is too long", func() { _ = from.Add(items(strings.Repeat("l", 127), "z")...) }, "p.b p.x p.y p.z", 1},
		{"one that was taken out", func() { into.Remove(KindPrompt, "p.b"); _ = from.Add(items("m")...) }, "p.m p.x p.y p.z", 2},
		{"the end, but for what is not from there", unmount, "p.x", 3},
		{"what comes after it", func() { _ = from.Add(items("late")...) }, "p.x", 0},
	} {
		told = 0
		step.do()
		if got := strings.Join(keysOf(all(into)), " "); got != step.want || told != step.told {
			t.Errorf("%s: %q, told of %d; want %q and %d", step.name, got, told, step.want, step.told)
		}
	}
	for i, want := range []string{`"p.x" is registered already`, "has 128 characters at most"} {
		if i >= len(*faults) || !strings.Contains(strings.Join(*faults, "; "), want) {
			t.Errorf("faults %q, want %q among them", *faults, want)
		}
	}
}

// What a handler, a filter and a rule of visibility see has the name that it has
// where it comes from; what is there unseen stays so.
func TestMountRenames(t *testing.T) {
	var seen []string
	note := func(who string) func(f *frame.Frame) bool {
		return func(f *frame.Frame) bool {
			seen = append(seen, who+":"+f.Request().Params.Name)
			return true
		}
	}
	from := New(Config{Filter: func(f *frame.Frame, _ Kind, key string) bool { return note("filter")(f) && key != "hidden" }})
	served := func(f *frame.Frame) (protocol.Result, error) {
		note("serve")(f)
		return wire.EmptyResult{}, nil
	}
	err := from.Add(
		&Entry{Definition: &protocol.Tool{Name: "t", InputSchema: []byte(`{}`)}, Serve: served, Visible: note("visible")},
		&Entry{Definition: &protocol.Tool{Name: "hidden", InputSchema: []byte(`{}`)}, Serve: served},
	)
	if err != nil {
		t.Fatal(err)
	}
	into, _, _ := mounted(t, from, "p.")
	f := frame.Internal(facts.Private{}).Renamed(in(protocol.Latest), "p.t")
	e, ok := into.View(f, nil).Get(KindTool, "p.t")
	if !ok {
		t.Fatal("p.t is not there")
	}
	if _, err := e.Serve(f); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(seen, " "), "visible:t filter:t serve:t"; got != want {
		t.Errorf("seen %q, want %q", got, want)
	}
	if _, ok := into.View(f, nil).Get(KindTool, "p.hidden"); ok {
		t.Error("what the filter hides is there")
	}
}

func TestMountAllOrNothing(t *testing.T) {
	from, into := newItems(t, 0, "a", "b"), newItems(t, 0, "b")
	told := 0
	internals{into}.Watch(func([]*Entry) { told++ })
	_, err := internals{into}.Mount(from, "", func(h frame.Handler) frame.Handler { return h }, func(error) {}, func([]*Entry) {})
	if err == nil || !strings.Contains(err.Error(), `"b" is registered already`) {
		t.Errorf("error %v", err)
	}
	_ = from.Add(items("c")...)
	if got := strings.Join(keysOf(all(into)), " "); got != "b" || told != 0 {
		t.Errorf("%q is there, told %d times", got, told)
	}
}
