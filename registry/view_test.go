package registry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

func TestView(t *testing.T) {
	list := registry.NewList[*registry.Tool](registry.Config{Member: "tools", PageSize: 2})
	own := registry.NewList[*registry.Tool](registry.Config{Member: "own"})
	named := func(name, doc string) *registry.Tool {
		return &registry.Tool{Definition: protocol.Tool{Name: name, Description: doc, InputSchema: []byte(`{"type":"object"}`)}}
	}
	if err := list.Add(named("a", "list"), named("c", "list"), named("d", "list")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		add  *registry.Tool // to own, before the view is taken
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
		view := list.With(own)
		var got, paged []string
		for _, e := range view.All() {
			found, ok := view.Get(e.Key())
			if !ok || found != e {
				t.Errorf("Get(%q) = %v, %v", e.Key(), found, ok)
			}
			got = append(got, e.Key()+" "+e.Definition.Description)
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
	if _, ok := list.With(nil).Get("b"); ok {
		t.Error("a component of one client is in the view of another")
	}
}

// allPages follows the cursors.
func allPages(t *testing.T, view registry.View[*registry.Tool]) (pages []string) {
	t.Helper()
	var cursor []byte
	for range 5 {
		page, err := view.Page(cursor, protocol.Latest)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(page))
		_, rest, more := strings.Cut(string(page), `"nextCursor":`)
		if !more {
			return pages
		}
		value, _, _ := strings.Cut(rest, ",")
		cursor = []byte(value)
	}
	t.Fatal("the pages do not end")
	return nil
}
