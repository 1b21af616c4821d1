package http_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
)

type paged struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// A list that grows, shrinks and fails between its pages: what stays comes once, each
// failure is an error, and a page is within its limit but for one item.
func TestPages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	failure := errors.New("the database is away")
	for range 500 {
		list := map[string]string{}
		grow := func(n int) {
			for range n {
				list[fmt.Sprintf("%06d", random.IntN(1_000_000))] = strings.Repeat("x\n", random.IntN(60))
			}
		}
		grow(random.IntN(40))
		stayed, seen := map[string]bool{}, map[string]bool{}
		for name := range list {
			stayed[name] = true
		}
		limit := 50 + random.IntN(400)
		for cursor, end := "", false; !end; {
			fail, read, names := -1, 0, []string{}
			for name := range list {
				if name > cursor {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			if random.IntN(4) == 0 && len(names) > 0 {
				fail = random.IntN(len(names))
			}
			page, err := mcp.Page(func(yield func(paged, error) bool) {
				for i, name := range names {
					read++
					if i == fail {
						yield(paged{}, failure)
						return
					}
					if !yield(paged{name, list[name]}, nil) {
						return
					}
				}
			}, func(p paged) string { return p.Name }, limit)
			if reached := fail >= 0 && read == fail+1; (err != nil) != reached || err != nil && (err != failure || page.Items != nil || page.Next != "") {
				t.Fatalf("item %d failed of %d that were read: %v, %v", fail, read, page, err)
			}
			if err != nil {
				continue
			}
			text, err := json.Marshal(page.Items)
			if err != nil || len(text) > limit && len(page.Items) > 1 || len(page.Items) == 0 && page.Next != "" || read > len(page.Items)+1 {
				t.Fatalf("%d items, of which %d were read, take %d bytes of %d: %v", len(page.Items), read, len(text), limit, err)
			}
			for _, item := range page.Items {
				if seen[item.Name] {
					t.Fatalf("%s comes twice", item.Name)
				}
				seen[item.Name] = true
			}
			cursor, end = page.Next, page.Next == ""
			for name := range list {
				if random.IntN(10) == 0 {
					delete(list, name)
					delete(stayed, name)
				}
			}
			grow(random.IntN(3))
		}
		for name := range stayed {
			if !seen[name] {
				t.Fatalf("%s is left out", name)
			}
		}
	}
}

func TestPageFaults(t *testing.T) {
	of := func(names ...string) iter.Seq2[paged, error] {
		return func(yield func(paged, error) bool) {
			for _, name := range names {
				if !yield(paged{Name: name}, nil) {
					return
				}
			}
		}
	}
	name := func(p paged) string { return p.Name }
	for _, tt := range []struct {
		items iter.Seq2[paged, error]
		key   func(paged) string
		limit int
		want  string
	}{
		{of("a", "b", "a", "a"), name, 0, `mcp: Page: items 3 and 4 have the key "a", and a page that ends between them would lose one`},
		{of("a", "b", "b"), name, 50, `mcp: Page: items 2 and 3 have the key "b", and a page that ends between them would lose one`},
		{of("a", ""), name, 0, "mcp: Page: item 2 has no key, after which the next page could begin"},
		{nil, name, 0, "mcp: Page: items or key is nil"},
		{of("a"), nil, 0, "mcp: Page: items or key is nil"},
		{of(), name, 0, "<nil>"},
		{of("a"), name, -1, "<nil>"},
	} {
		if page, err := mcp.Page(tt.items, tt.key, tt.limit); fmt.Sprint(err) != tt.want || page.Next != "" {
			t.Errorf("%v, %v; want %s", page, err, tt.want)
		}
	}
	page, err := mcp.Page(of(slices.Collect(func(yield func(string) bool) {
		for i := range 10_000 {
			if !yield(fmt.Sprint("item ", i)) {
				return
			}
		}
	})...), name, 0)
	if text, _ := json.Marshal(page.Items); err != nil || len(text) > 24_000 || len(text) < 23_900 || page.Next != page.Items[len(page.Items)-1].Name {
		t.Errorf("%d items in %d bytes, next %q: %v", len(page.Items), len(text), page.Next, err)
	}
	if _, err := mcp.Page(func(yield func(any, error) bool) { yield(make(chan int), nil) }, func(any) string { return "a" }, 0); err == nil || !strings.Contains(err.Error(), "mcp: Page: item 1: ") {
		t.Errorf("an item without JSON: %v", err)
	}
}
