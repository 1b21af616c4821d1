package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/client/skills"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// pageTests are lists in pages. A page is one letter, the name of its only item, and
// the rest is what it has as nextCursor; the first page is the first one, and others
// are found by the cursor before the colon. want and modern are the items in legacy
// and modern revisions; one that ends with "!" is the beginning of the error.
var pageTests = []struct {
	name         string
	pages        []string // cursor:letter nextCursor
	want, modern string
}{
	{"one page", []string{":a"}, "a", "a"},
	{"null", []string{":a null"}, "a", "a"},
	{"pages", []string{":a \"x\"", "x:b \"y\"", "y:c"}, "a b c", "a b c"},
	{"null at the end", []string{":a \"x\"", "x:b null"}, "a b", "a b"},
	{"empty", []string{":a \"\"", "\"\":b"}, "a", "a b"},
	{"empty later", []string{":a \"x\"", "x:b \"\"", "\"\":c"}, "a b", "a b c"},
	{"repeated", []string{":a \"x\"", "x:b \"x\""}, "a b nextCursor of page 2 repeats the cursor \"x\"!", "a b nextCursor of page 2 repeats the cursor \"x\"!"},
	{"empty repeated", []string{":a \"\"", "\"\":b \"\""}, "a", "a b nextCursor of page 2 repeats the cursor \"\"!"},
	{"cycle of two", []string{":a \"x\"", "x:b \"y\"", "y:c \"x\""}, "a b c nextCursor of page 3 repeats the cursor \"x\"!", "a b c nextCursor of page 3 repeats the cursor \"x\"!"},
	{"cycle of three", []string{":a \"x\"", "x:b \"y\"", "y:c \"\"", "\"\":d \"x\""}, "a b c", "a b c d nextCursor of page 4 repeats the cursor \"x\"!"},
	{"control characters", []string{":a \"\\u001b[2J\"", "\u001b[2J:b \"\\u001b[2J\""}, "a b nextCursor of page 2 repeats the cursor \"\\x1b[2J\"!", "a b nextCursor of page 2 repeats the cursor \"\\x1b[2J\"!"},
	{"number", []string{":a 5"}, "nextCursor must be a string, got 5!", "nextCursor must be a string, got 5!"},
	{"object", []string{":a {}"}, "nextCursor must be a string, got {}!", "nextCursor must be a string, got {}!"},
}

// listed is a method of the protocol whose result is a list, with an item of it.
var listed = []struct{ method, member, item string }{
	{protocol.MethodToolsList, "tools", `{"name":"%s","inputSchema":{"type":"object"}}`},
	{protocol.MethodPromptsList, "prompts", `{"name":"%s"}`},
	{protocol.MethodResourcesList, "resources", `{"uri":"x:%[1]s","name":"%[1]s"}`},
	{protocol.MethodResourceTemplates, "resourceTemplates", `{"uriTemplate":"x:%[1]s","name":"%[1]s"}`},
	{"skills/list", "skills", `{"name":"%[1]s","uri":"skill://%[1]s/SKILL.md","frontmatter":{"name":"%[1]s","description":"d"},"resources":"dynamic"}`},
}

// paged returns a server with these pages for every list.
func paged(t *testing.T, rev protocol.Revision, pages []string) *mcptest.Script {
	capabilities := `"capabilities":{"tools":{},"prompts":{},"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}`
	answers := map[string]func(json.RawMessage) (any, error){
		protocol.MethodInitialize: func(json.RawMessage) (any, error) {
			return json.RawMessage(fmt.Sprintf(`{"protocolVersion":%q,%s,"serverInfo":{"name":"s","version":"1"}}`, rev, capabilities)), nil
		},
		protocol.MethodDiscover: func(json.RawMessage) (any, error) {
			return json.RawMessage(fmt.Sprintf(`{"resultType":"complete","supportedVersions":[%q],%s,"ttlMs":0,"cacheScope":"private"}`, rev, capabilities)), nil
		},
	}
	if rev.Modern() {
		delete(answers, protocol.MethodInitialize)
	} else {
		delete(answers, protocol.MethodDiscover)
	}
	for _, l := range listed {
		answers[l.method] = func(params json.RawMessage) (any, error) {
			var p struct{ Cursor *string }
			if len(params) > 0 {
				if err := json.Unmarshal(params, &p); err != nil {
					return nil, err
				}
			}
			for _, page := range pages {
				cursor, rest, _ := strings.Cut(page, ":")
				if p.Cursor == nil != (cursor == "") || p.Cursor != nil && *p.Cursor != strings.Trim(cursor, `"`) {
					continue
				}
				item, next, more := strings.Cut(rest, " ")
				if more {
					next = `,"nextCursor":` + next
				}
				result := fmt.Sprintf(`{%q:[%s]%s`, l.member, fmt.Sprintf(l.item, item), next)
				if rev.Modern() {
					result += `,"resultType":"complete","ttlMs":60000,"cacheScope":"private"`
				}
				return json.RawMessage(result + "}"), nil
			}
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "no such cursor")
		}
	}
	return mcptest.NewScript(t, rev, answers)
}

// walked returns the items and the error of a list, in the form of pageTests.
func walked[T any](t *testing.T, method, label string, list iter.Seq2[T, error], name func(T) string) string {
	var got []string
	for item, err := range list {
		if err == nil {
			got = append(got, strings.TrimPrefix(name(item), label))
			continue
		}
		if !errors.Is(err, client.ErrInvalidResult) || !strings.Contains(err.Error(), method) {
			t.Errorf("error %v, want one that is ErrInvalidResult and names %s", err, method)
		}
		_, text, _ := strings.Cut(err.Error(), "nextCursor")
		got = append(got, "nextCursor"+text)
	}
	return strings.Join(got, " ")
}

// lister has the lists that clients, pools and groups have.
type lister interface {
	Tools(context.Context, ...client.CallOption) iter.Seq2[protocol.Tool, error]
	Prompts(context.Context, ...client.CallOption) iter.Seq2[protocol.Prompt, error]
	Resources(context.Context, ...client.CallOption) iter.Seq2[protocol.Resource, error]
	Templates(context.Context, ...client.CallOption) iter.Seq2[protocol.ResourceTemplate, error]
}

// walks returns what walks through each list finds. failed, if not nil, is the error
// of a list that does not return one.
func walks(t *testing.T, l lister, prefix string, failed func() error) map[string]string {
	ctx := t.Context()
	got := map[string]string{}
	walk := func(name, found string) {
		if failed != nil && failed() != nil {
			_, text, _ := strings.Cut(failed().Error(), "nextCursor")
			found += "nextCursor" + text
		}
		got[name] = found
	}
	walk("Tools", walked(t, protocol.MethodToolsList, prefix+"_", l.Tools(ctx), func(x protocol.Tool) string { return x.Name }))
	walk("Prompts", walked(t, protocol.MethodPromptsList, prefix+"_", l.Prompts(ctx), func(x protocol.Prompt) string { return x.Name }))
	walk("Resources", walked(t, protocol.MethodResourcesList, prefix+".", l.Resources(ctx), func(x protocol.Resource) string { return x.Name }))
	walk("Templates", walked(t, protocol.MethodResourceTemplates, prefix+".", l.Templates(ctx), func(x protocol.ResourceTemplate) string { return x.Name }))
	return got
}

// TestPages walks through lists whose cursors are empty, null or repeated, by every
// way to list, in every revision.
func TestPages(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		for _, test := range pageTests {
			t.Run(fmt.Sprintf("%s %s", rev, test.name), func(t *testing.T) {
				want := test.want
				if rev.Modern() {
					want = test.modern
				}
				script := paged(t, rev, test.pages)
				web := httptest.NewServer(script)
				defer web.Close()
				opts := client.Options{Revisions: []protocol.Revision{rev}}
				for name, to := range map[string]client.Transport{"stream": script.Transport(), "HTTP": client.HTTP(web.URL, nil)} {
					got := lists(t, to, opts)
					for _, way := range slices.Sorted(maps.Keys(got)) {
						want, failed := strings.CutSuffix(want, "!")
						if strings.HasPrefix(way, "group ") && failed {
							want = want[strings.Index(want, "nextCursor"):] // it leaves the server out
						}
						if got[way] != want && !(failed && strings.HasPrefix(got[way], want)) {
							t.Errorf("%s, %s: got %s, want %s", name, way, got[way], want)
						}
					}
				}
			})
		}
	}
}

// lists returns what every way to list finds.
func lists(t *testing.T, to client.Transport, opts client.Options) map[string]string {
	t.Helper()
	c, err := client.Connect(t.Context(), to, &opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := walks(t, c, "", nil)
	for key, found := range walks(t, c, "", nil) { // from the cache, in modern revisions
		got["again "+key] = found
	}
	for _, l := range listed {
		got["List "+l.method] = walked(t, l.method, "", c.List(t.Context(), l.method, l.member), func(x json.RawMessage) string {
			var named struct{ Name string }
			if err := json.Unmarshal(x, &named); err != nil {
				t.Error(err)
			}
			return named.Name
		})
	}
	got["skills"] = walked(t, "skills/list", "", skills.List(t.Context(), c), func(x *skills.Skill) string { return x.Name })
	p := pool.New(to, &pool.Options{Size: 1, Client: &opts})
	defer p.Close()
	for key, found := range walks(t, p, "", nil) {
		got["pool "+key] = found
	}
	g := group.New(nil)
	defer g.Close()
	if err := g.Add("g", to, &opts); err != nil {
		t.Fatal(err)
	}
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, found := range walks(t, g, "g", func() error { return g.Status()[0].Err }) {
		got["group "+key] = found
	}
	return got
}
