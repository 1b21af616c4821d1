package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// personal is an upstream whose tool has the name of its user in its words.
func personal(t testing.TB, user string, rev protocol.Revision) *mcp.Server {
	s := newServer(t, "crm", nil, rev)
	s.MustAdd(mcp.Tool("search", func(*mcp.Frame, struct {
		Query string `json:"query"`
	}) (string, error) {
		return "found for " + user, nil
	}, mcp.Doc("Searches what "+user+" may see."), mcp.InputSchema(json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"query":{"type":"string","enum":[%q]}}}`, "of "+user)))),
		mcp.Tool("only_"+user, func(*mcp.Frame, struct{}) (string, error) { return "own", nil }))
	return s
}

// TestListsOfCallers has users whose lists differ, at the same time.
func TestListsOfCallers(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			t.Run(back+"/"+front, func(t *testing.T) {
				var mu sync.Mutex
				servers := map[string]*mcp.Server{}
				_, s := start(t, map[string]Upstream{"crm": {For: func(f *mcp.Frame) (string, client.Transport, error) {
					mu.Lock()
					defer mu.Unlock()
					user := f.Identity().Subject
					if user == "nobody" {
						return "", nil, errors.New("nobody has no account")
					}
					if servers[user] == nil {
						servers[user] = personal(t, user, behind)
					}
					return f.Principal(), local(servers[user]), nil
				}}})
				// A server of its own shows that what is mounted is no different.
				outer := newServer(t, "outer", nil)
				if err := outer.Mount("", s); err != nil {
					t.Fatal(err)
				}
				url := serveHTTP(t, s)
				var all sync.WaitGroup
				for i := range 10 {
					user := fmt.Sprintf("user%d", i)
					all.Go(func() {
						c, err := client.Connect(t.Context(), bearer(url, user), &client.Options{Revisions: []protocol.Revision{rev}})
						if err != nil {
							t.Error(err)
							return
						}
						defer func() { _ = c.Close() }()
						for range testdep.Rounds(5, 5) {
							var all []byte
							for tool, err := range c.Tools(t.Context(), client.NoCache()) {
								if err != nil {
									t.Error(err)
									return
								}
								one, _ := json.Marshal(tool)
								all = append(all, one...)
							}
							if !strings.Contains(string(all), "of "+user) || strings.Count(string(all), "user") != strings.Count(string(all), user) ||
								!strings.Contains(string(all), `"crm_only_`) {
								t.Errorf("%s lists %s", user, all)
							}
							r, err := c.Call(t.Context(), "crm_search", map[string]string{"query": "of " + user})
							if err != nil || r.Text() != "found for "+user {
								t.Errorf("%s: %v", user, text(r, err))
							}
							other := fmt.Sprintf("crm_only_user%d", (i+1)%10)
							if r, err := c.Call(t.Context(), other, nil); err == nil && !r.IsError {
								t.Errorf("%s calls %s", user, other)
							}
						}
					})
				}
				all.Wait()
				c, err := client.Connect(t.Context(), bearer(url, "nobody"), &client.Options{Revisions: []protocol.Revision{rev}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				if got := toolNames(t, c); len(got) != 0 {
					t.Errorf("nobody lists %q", got)
				}
				if r, err := c.Call(t.Context(), "crm_search", nil); err != nil || !r.IsError || !strings.Contains(r.Text(), "nobody has no account") {
					t.Errorf("nobody calls: %v", text(r, err))
				}
			})
		}
	}
}

// raw is an upstream with tools of any names.
func named(t testing.TB, all ...string) Upstream {
	tools := make([]string, len(all))
	for i, name := range all {
		text, _ := json.Marshal(name)
		tools[i] = fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, text)
	}
	return Upstream{Shared: true, Transport: client.Local(scripted(map[string]string{
		"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`,
		"tools/list": `{"tools":[` + strings.Join(tools, ",") + `]}`,
		"tools/call": `{"content":[{"type":"text","text":"called"}]}`,
	}))}
}

// TestNames has names that hosts refuse, and names under the prefix of another upstream.
func TestNames(t *testing.T) {
	long := strings.Repeat("n", 80)
	ups := map[string]Upstream{
		"git":     named(t, "log", "hub_x", "a.b", "a_b", long),
		"git_hub": named(t, "x", "y"),
	}
	var first []string
	for _, order := range [][]string{{"git", "git_hub"}, {"git_hub", "git"}} {
		s := newServer(t, "front", nil)
		g := New(s, nil)
		for _, name := range order {
			if err := g.Set(name, ups[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := connect(t, s, protocol.V20260728, nil)
		got := toolNames(t, c)
		if len(got) != 6 || !slices.Contains(got, "git_hub_x") || !slices.Contains(got, "git_a_b") || !slices.Contains(got, "git_log") {
			t.Errorf("got %q", got)
		}
		for _, name := range got {
			if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				t.Errorf("%q is no name that hosts take", name)
			}
			if got := text(c.Call(t.Context(), name, nil)); got != "called" {
				t.Errorf("%s: %q", name, got)
			}
		}
		if first == nil {
			first = got
		} else if !slices.Equal(first, got) {
			t.Errorf("in the other order: %q and %q", first, got)
		}
		for _, st := range g.Status() {
			if st.Name == "git" && !slices.ContainsFunc(st.LeftOut, func(s string) bool { return strings.Contains(s, `"git_hub_x": the name belongs to "git_hub"`) }) {
				t.Errorf("left out: %q", st.LeftOut)
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if got := toolNames(t, c); len(got) != 0 {
			t.Errorf("after Close: %q", got)
		}
	}
}

// TestRules changes tools and hides some.
func TestRules(t *testing.T) {
	var got map[string]json.RawMessage
	up := newServer(t, "crm", nil)
	in := json.RawMessage(`{"type":"object","properties":{"org":{"type":"string"},"query":{"type":"string"}},"required":["org","query"]}`)
	up.MustAdd(
		mcp.Tool("search", func(_ *mcp.Frame, args map[string]json.RawMessage) (string, error) { got = args; return "found", nil }, mcp.InputSchema(in), mcp.Doc("Old.")),
		mcp.Tool("delete", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
		mcp.Tool("list_all", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
		mcp.Tool("free", func(_ *mcp.Frame, args map[string]json.RawMessage) (string, error) { return "", nil }, mcp.InputSchema(json.RawMessage(`{"type":"object"}`))),
		mcp.Tool("wrong", func(_ *mcp.Frame, args map[string]json.RawMessage) (string, error) { return "", nil }, mcp.InputSchema(in)),
		mcp.Prompt("secret", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
	)
	words, org := "New.", map[string]json.RawMessage{"org": json.RawMessage(`"acme"`)}
	g, s := start(t, map[string]Upstream{"crm": {Transport: local(up), Only: []string{"s*", "list_*", "free", "wrong"}, Hide: []string{"secret"}, Rules: []Rule{
		{Tool: "search", Name: "find", Description: &words, Hints: &protocol.ToolAnnotations{ReadOnlyHint: new(bool)}, Fixed: org},
		{Tool: "free", Fixed: org},
		{Tool: "wrong", Fixed: map[string]json.RawMessage{"orgg": json.RawMessage(`1`)}},
		{Tool: "serch"},
	}}})
	c := connect(t, s, protocol.V20260728, nil)
	if names := toolNames(t, c); !slices.Equal(names, []string{"crm_find", "crm_list_all"}) {
		t.Fatalf("got %q", names)
	}
	for range c.Prompts(t.Context()) {
		t.Error("there is a prompt")
	}
	tool, err := c.Tool(t.Context(), "crm_find")
	if err != nil || tool.Description != "New." || string(tool.InputSchema) != `{"properties":{"query":{"type":"string"}},"required":["query"],"type":"object"}` || tool.Annotations == nil {
		t.Errorf("got %+v %s %v", tool, tool.InputSchema, err)
	}
	for _, args := range []string{`{"query":"q"}`, `{"query":"q","org":"evil"}`, `{"ORG":"evil","query":"q","oRg":"evil"}`} {
		if out := text(c.Call(t.Context(), "crm_find", json.RawMessage(args))); out != "found" || string(got["org"]) != `"acme"` || len(got) != 2 {
			t.Errorf("%s: %q, the upstream got %s", args, out, got)
		}
	}
	notes := strings.Join(g.Status()[0].LeftOut, "\n")
	for _, want := range []string{
		`rule 3 of "crm": Fixed: "orgg" is not an argument (did you mean org?) of wrong; the tool is left out`,
		`rule 2 of "crm": Fixed: "org" is not an argument of free; the tool is left out`,
		`rule 4 of "crm": no tool matches "serch"`,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in\n%s", want, notes)
		}
	}
}

// TestChanges has upstreams whose lists change.
func TestChanges(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			t.Run(back+"/"+front, func(t *testing.T) {
				up := greeter(t, "up", behind)
				_, s := start(t, map[string]Upstream{"up": {Transport: local(up)}})
				changed := make(chan struct{}, 100)
				c := connect(t, s, rev, &client.Options{Listen: &client.Filter{ToolsListChanged: true}, OnNotification: func(n client.Notification) {
					if n.Method == protocol.MethodToolsChanged {
						changed <- struct{}{}
					}
				}})
				before := toolNames(t, c)
				up.MustAdd(mcp.Tool("more", func(*mcp.Frame, struct{}) (string, error) { return "more", nil }))
				for !slices.Contains(toolNames(t, c), "up_more") {
					select {
					case <-changed:
					case <-time.After(10 * time.Second):
						t.Fatal("the client is not notified")
					}
				}
				up.Remove(mcp.KindTool, "more")
				for !slices.Equal(toolNames(t, c), before) {
					select {
					case <-changed:
					case <-time.After(10 * time.Second):
						t.Fatal("the client is not notified")
					}
				}
			})
		}
	}
}

// TestResourceUpdates has clients that subscribe to resources.
func TestResourceUpdates(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			t.Run(back+"/"+front, func(t *testing.T) {
				up := greeter(t, "up", behind)
				_, s := start(t, map[string]Upstream{"up": {Transport: local(up)}})
				c := connect(t, s, rev, nil)
				updated := make(chan string, 10)
				for _, uri := range []string{"note://up", "note://up/Ada"} { // of a template
					sub, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{uri}}, func(n client.Notification) { updated <- string(n.Params) })
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = sub.Close() }()
					up.ResourceUpdated(uri)
					select {
					case params := <-updated:
						if !strings.Contains(params, uri+`"`) {
							t.Errorf("got %s", params)
						}
					case <-time.After(10 * time.Second):
						t.Errorf("the client is not notified of %s", uri)
					}
				}
			})
		}
	}
}

// TestTooMuch has upstreams that list more than they may.
func TestTooMuch(t *testing.T) {
	testdep.NoRace(t, "pages, one after the other")
	for what, tools := range map[string]string{
		"more than 10000 items":   strings.TrimSuffix(strings.Repeat(`{"name":"a","inputSchema":{"type":"object"}},`, 10_001), ","),
		"more than 4194304 bytes": strings.TrimSuffix(strings.Repeat(`{"name":"a","description":"`+strings.Repeat("d", 1<<20)+`","inputSchema":{"type":"object"}},`, 5), ","),
	} {
		t.Run(what, func(t *testing.T) {
			var pages []string
			for i, tool := range strings.Split(strings.ReplaceAll(tools, "},{", "}\n{"), "\n") {
				if i%3 == 0 {
					pages = append(pages, tool)
				} else {
					pages[len(pages)-1] += "," + tool
				}
			}
			s := newServer(t, "front", nil)
			g := New(s, nil)
			defer func() { _ = g.Close() }()
			if err := g.Set("up", Upstream{Transport: client.Local(paged(pages)), Shared: true}); err != nil {
				t.Fatal(err)
			}
			if err := g.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("got %v", err)
			}
			if st := g.Status()[0]; st.Err == nil || len(st.Tools) != 0 {
				t.Errorf("got %+v", st)
			}
		})
	}
}

// TestSetRefuses has upstreams that cannot be.
func TestSetRefuses(t *testing.T) {
	g := New(newServer(t, "front", nil), nil)
	here := named(t)
	with := func(change func(u *Upstream)) Upstream { u := here; change(&u); return u }
	for want, test := range map[string]struct {
		name string
		u    Upstream
	}{
		`gateway: server "a b": a name has letters, digits, '_' and '-', 32 at most`: {"a b", here},
		`it needs a Transport, or For, or both`:                                      {"a", Upstream{}},
		`invalid pattern "["`:                                                        {"a", with(func(u *Upstream) { u.Only = []string{"["} })},
		`rule 1 has no Tool`:                                                         {"a", with(func(u *Upstream) { u.Rules = []Rule{{}} })},
		`rule 1: Name is for one tool, and "a*" may be several`:                      {"a", with(func(u *Upstream) { u.Rules = []Rule{{Tool: "a*", Name: "b"}} })},
		`rule 1: Fixed: the value of "x" is not JSON`: {"a", with(func(u *Upstream) {
			u.Rules = []Rule{{Tool: "a", Fixed: map[string]json.RawMessage{"x": json.RawMessage("{")}}}
		})},
	} {
		if err := g.Set(test.name, test.u); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if g.Remove("a") {
		t.Error("there was an upstream")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := g.Set("a", here); err == nil {
		t.Error("it can be set after Close")
	}
	if err := g.Warm(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestClosestTemplate has upstreams whose templates match the same URI: the closest one that
// the client sees is that which its subscription is at, as for a read.
func TestClosestTemplate(t *testing.T) {
	reads := func(name, template string) *mcp.Server {
		s := newServer(t, name, nil)
		s.MustAdd(mcp.Template(template, func(*mcp.Frame, map[string]string) (string, error) { return name, nil }))
		return s
	}
	near, far, none := reads("near", "note://x/{who}"), reads("far", "note://{+rest}"), reads("none", "other://{x}")
	g, s := start(t, map[string]Upstream{"far": {Transport: local(far)}, "near": {For: func(f *mcp.Frame) (string, client.Transport, error) {
		if user := f.ClientInfo().Name; user != "ada" {
			return user, local(none), nil
		}
		return "ada", local(near), nil
	}}})
	for _, test := range []struct {
		user string
		from *mcp.Server
		want string
	}{{"ada", near, "near"}, {"bob", far, "far"}} {
		c := connect(t, s, protocol.V20260728, &client.Options{Info: client.Info{Name: test.user, Version: "1"}})
		toolNames(t, c)
		for range 20 {
			if got := g.publisher.of("note://x/Ada"); len(got) != 2 || got[0].upstream.name != "near" {
				t.Fatalf("%d templates match, the first of %v", len(got), got)
			}
		}
		if r, err := c.Read(t.Context(), "note://x/Ada"); err != nil || !strings.Contains(fmt.Sprint(r.Contents), test.want) {
			t.Errorf("%s reads %+v: %v", test.user, r, err)
		}
		updated := make(chan struct{}, 10)
		sub, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{"note://x/Ada"}}, func(client.Notification) { updated <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		test.from.ResourceUpdated("note://x/Ada")
		select {
		case <-updated:
		case <-time.After(10 * time.Second):
			t.Errorf("%s is not notified by %s", test.user, test.want)
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}
}
