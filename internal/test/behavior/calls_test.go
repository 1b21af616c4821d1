package behavior_test

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
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
)

type viaIn struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// via is a tool that calls another one of s in place of its client.
func via(s *mcp.Server) mcp.Component {
	return mcp.Tool("via", func(f *mcp.Frame, in viaIn) (protocol.Result, error) {
		if in.Arguments == nil {
			return s.Call(f, in.Name, nil)
		}
		return s.Call(f, in.Name, in.Arguments)
	})
}

// nestedCalls are the calls that are compared.
var nestedCalls = []struct{ name, arguments string }{
	{"add", `{"a":1,"b":2}`}, {"add", `{"a":"x"}`}, {"add", ``}, {"search", `{"query":"fish","limit":2}`}, {"greet", `{"name":"Ada"}`}, {"nothing", ``},
	{"media", ``}, {"fail", ``}, {"refuse", ``}, {"panic", ``}, {"late", ``}, {"hidden", ``}, {"unseen", ``}, {"scoped", ``}, {"nobody", ``}, {"", ``},
	{"result", ``}, {"badly", ``}, {"masked", ``}, {"progress", ``}, {"log", ``}, {"count", ``}, {"ask", ``}, {"detached", ``}, {"taskless", ``},
}

// nesting returns a server with a tool for each of nestedCalls, and the tool via.
func nesting(t testing.TB, opts *mcp.Options) *mcp.Server {
	if opts == nil {
		opts = &mcp.Options{}
	}
	opts.Filter = func(_ *mcp.Frame, _ mcp.Kind, name string) bool { return !strings.HasSuffix(name, "hidden") }
	s := harness.Fixture(t, opts)
	s.MustAdd(
		harness.Tool("hidden"), mcp.Tool("unseen", harness.Text, mcp.VisibleTo(func(*mcp.Frame) bool { return false })), mcp.Tool("scoped", harness.Text, mcp.Scopes("admin")),
		mcp.Tool("late", func(f *mcp.Frame, _ struct{}) (string, error) { <-f.Done(); return "", context.Cause(f) }, mcp.Timeout(time.Millisecond)),
		mcp.Tool("result", func(*mcp.Frame, struct{}) (*mcp.ResultOf[harness.SumOut], error) {
			r := &mcp.ResultOf[harness.SumOut]{Value: harness.SumOut{Sum: 3}}
			r.Text("three").Meta("com.example/k", 1)
			return r, nil
		}),
		mcp.Tool("badly", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Structured(map[string]int{"sum": 1}), nil
		},
			mcp.OutputSchema([]byte(`{"type":"object","required":["total"]}`))),
		mcp.Tool("masked", func(*mcp.Frame, struct{}) (protocol.Result, error) {
			return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: "no"}}, IsError: true}, errors.New("secret")
		}),
		mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
			_, err := mcp.Elicit[harness.AmountForm](f, "amount", "How much?")
			return "", err
		}),
		mcp.Tool("detached", func(f *mcp.Frame, _ struct{}) (string, error) { return "done", f.Detach() }, mcp.AsTask(&mcp.TaskOptions{Manual: true})),
		mcp.Tool("taskless", harness.Text, mcp.AsTask(&mcp.TaskOptions{Required: true})),
		via(s),
	)
	return s
}

// A call of Server.Call is answered with the bytes that tools/call is answered with.
func TestCallWithin(t *testing.T) {
	for name, server := range map[string]func(t *testing.T) (*mcp.Server, string){
		"alone": func(t *testing.T) (*mcp.Server, string) { return nesting(t, nil), "" },
		"limited": func(t *testing.T) (*mcp.Server, string) {
			s := nesting(t, nil)
			s.Use(middleware.ConcurrencyLimit(1, 0), middleware.Cache(s, nil), middleware.ResultSizeLimit(10_000), middleware.RateLimit(&middleware.RateLimitOptions{Rate: 1e6}))
			return s, ""
		},
		"mounted": func(t *testing.T) (*mcp.Server, string) {
			child, middle, root := nesting(t, nil), harness.Bare(mcp.Options{}), harness.Bare(mcp.Options{})
			if err := errors.Join(root.Mount("eu", middle), middle.Mount("a", child)); err != nil {
				t.Fatal(err)
			}
			for tool := range root.Tools(nil) { // the separator is not fixed here
				if prefix, ok := strings.CutSuffix(tool.Name, "via"); ok {
					return root, prefix
				}
			}
			return nil, ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, rev := range testdep.Revisions() {
				for _, over := range harness.TransportsOf(rev) {
					t.Run(over.Name+"/"+rev.String(), func(t *testing.T) {
						s, prefix := server(t)
						c := harness.Greet(t, over, s, rev)
						for _, tt := range nestedCalls {
							if tt.name == "" && over.Name == "http" {
								continue // its headers are wrong
							}
							members, inner := fmt.Sprintf(`{"name":%q`, prefix+tt.name), fmt.Sprintf(`{"name":%q,"arguments":{"name":%q`, prefix+"via", tt.name)
							if tt.arguments != "" {
								members, inner = members+`,"arguments":`+tt.arguments, inner+`,"arguments":`+tt.arguments
							}
							answer := func(members string) string {
								text := c.Ask("tools/call", members)
								_, rest, _ := strings.Cut(text, `"id":`)
								return strings.TrimLeft(rest, "0123456789")
							}
							direct, nested := answer(members+"}"), answer(inner+"}}")
							if tt.name == "count" && !rev.Modern() { // a session counts on
								nested = strings.ReplaceAll(nested, "2", "1")
							}
							if tt.name == "detached" && rev.Modern() && strings.Contains(direct, "task") {
								direct = nested
							}
							if prefix != "" { // the child knows its own names
								direct = strings.ReplaceAll(direct, prefix, "")
								nested = strings.ReplaceAll(nested, prefix, "")
							}
							if direct != nested || direct == "" {
								t.Errorf("%s %s:\nclient %s\nwithin %s", tt.name, tt.arguments, direct, nested)
							}
						}
					})
				}
			}
		})
	}
}

// Whoever may see what, the tools of Server.Tools are those of tools/list, those that are
// hidden cannot be called, and none of their names is told.
func TestToolsWithin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	allowed := map[string]bool{}
	var names []string
	child, root := harness.Bare(mcp.Options{}), harness.Bare(mcp.Options{Filter: func(_ *mcp.Frame, _ mcp.Kind, name string) bool {
		return strings.HasSuffix(name, "look") || allowed["outer "+name]
	}})
	for i := range 20 {
		name := fmt.Sprint("tool", i)
		names = append(names, name)
		child.MustAdd(mcp.Tool(name, harness.Text, mcp.VisibleTo(func(*mcp.Frame) bool { return allowed["inner "+name] })))
	}
	var offered, called []string
	child.MustAdd(mcp.Tool("look", func(f *mcp.Frame, _ struct{}) (string, error) {
		offered, called = nil, nil
		for tool := range child.Tools(f) {
			offered = append(offered, tool.Name)
		}
		for _, name := range names {
			if _, err := child.Call(f, name, nil); err == nil {
				called = append(called, name)
			} else if !strings.Contains(err.Error(), "Unknown tool") {
				return "", err
			}
		}
		return "", nil
	}))
	if err := root.Mount("m", child); err != nil {
		t.Fatal(err)
	}
	c := mcptest.New(t, root)
	prefix := ""
	for tool := range root.Tools(nil) {
		if strings.HasSuffix(tool.Name, "look") {
			prefix = strings.TrimSuffix(tool.Name, "look")
		}
	}
	for range 500 { // of 20 tools each: 10,000 rights
		want := []string{"look"}
		for _, name := range names {
			allowed["inner "+name], allowed["outer "+prefix+name] = random.IntN(2) == 0, random.IntN(2) == 0
			if allowed["inner "+name] && allowed["outer "+prefix+name] {
				want = append(want, name)
			}
		}
		c.Call(prefix+"look", nil)
		slices.Sort(want)
		var listed []string
		for _, tool := range c.Tools() {
			listed = append(listed, strings.TrimPrefix(tool.Name, prefix))
		}
		slices.Sort(called)
		if !slices.Equal(offered, want) || !slices.Equal(listed, want) || !slices.Equal(called, slices.DeleteFunc(want, func(name string) bool { return name == "look" })) {
			t.Fatalf("offered %v, listed %v, called %v, want %v", offered, listed, called, want)
		}
	}
}

// A mounted server calls by the rules of the outermost one, and of no other.
func TestCallOfMounted(t *testing.T) {
	child, root, other := harness.Bare(mcp.Options{}), harness.Bare(mcp.Options{Filter: func(_ *mcp.Frame, _ mcp.Kind, name string) bool { return !strings.HasSuffix(name, "secret") }}), harness.Bare(mcp.Options{})
	var trace []string
	child.Use(harness.Traced("child", &trace))
	root.Use(harness.Traced("root", &trace))
	other.MustAdd(harness.Tool("plain"))
	child.MustAdd(harness.Tool("secret"), harness.Tool("plain"), via(child), mcp.Tool("astray", func(f *mcp.Frame, _ struct{}) (protocol.Result, error) { return other.Call(f, "plain", nil) }),
		mcp.Tool("up", func(f *mcp.Frame, _ struct{}) (protocol.Result, error) { return root.Call(f, "own", nil) }),
		mcp.Tool("taken", harness.Text))
	root.MustAdd(harness.Tool("own"), mcp.Tool("down", func(f *mcp.Frame, _ struct{}) (protocol.Result, error) { return child.Call(f, "plain", nil) }))
	if err := root.Mount("m", child); err != nil {
		t.Fatal(err)
	}
	prefix := ""
	for tool := range root.Tools(nil) {
		if strings.HasSuffix(tool.Name, "astray") {
			prefix = strings.TrimSuffix(tool.Name, "astray")
		}
	}
	root.MustAdd(harness.Tool(prefix + "mine"))
	child.MustAdd(mcp.Tool("mine", func(*mcp.Frame, struct{}) (string, error) { return "of the child", nil })) // left out of root
	if child.Unmount("", child) {
		t.Fatal("nothing is mounted there")
	}
	for _, rev := range []protocol.Revision{protocol.LatestLegacy, protocol.Latest} {
		c := mcptest.New(t, root, mcptest.Revision(rev))
		for _, tt := range []struct{ tool, arguments, want, trace string }{
			{prefix + "via", `{"name":"plain"}`, "plain", "root:" + prefix + "via child:via root:" + prefix + "plain child:plain"},
			{prefix + "via", `{"name":"secret"}`, "Unknown tool: " + prefix + "secret", "root:" + prefix + "via child:via root:" + prefix + "secret"},
			{prefix + "via", `{"name":"mine"}`, "Unknown tool: mine", "root:" + prefix + "via child:via"},
			{prefix + "via", `{"name":"own"}`, "Unknown tool: " + prefix + "own", "root:" + prefix + "via child:via root:" + prefix + "own"},
			{prefix + "astray", `{}`, "mcp: Call: the request came to another server", "root:" + prefix + "astray child:astray"},
			{prefix + "up", `{}`, "own", "root:" + prefix + "up child:up root:own"},
			{"down", `{}`, "mcp: Call: the request came to another server", "root:down"},
		} {
			trace = nil
			result, err := c.TryCall(tt.tool, json.RawMessage(tt.arguments))
			got := fmt.Sprint(err)
			if err == nil {
				got = result.Text()
			}
			if !strings.Contains(got, tt.want) || strings.Join(trace, " ") != tt.trace {
				t.Errorf("%v %s %s: %q by %v, want %q by %s", rev, tt.tool, tt.arguments, got, trace, tt.want, tt.trace)
			}
		}
	}
}

// What a handler gets of the call, and what it cannot do.
func TestCallResults(t *testing.T) {
	s := nesting(t, nil)
	var inner, outer *mcp.Frame
	s.MustAdd(
		mcp.Tool("outer", func(f *mcp.Frame, _ struct{}) (string, error) {
			if outer = f; f.Outer() != nil {
				t.Error("a client's call has an outer one")
			}
			_, err := s.Call(f, "inner", nil)
			return "ok", err
		}),
		mcp.Tool("inner", func(f *mcp.Frame, _ struct{}) (string, error) {
			inner = f
			if found, ok := mcp.FromContext(context.WithoutCancel(f)); !ok || found != f {
				t.Error("the context of an inner call is that of another")
			}
			return "", nil
		}),
		mcp.Tool("deep", func(f *mcp.Frame, in struct {
			Left int `json:"left"`
		}) (protocol.Result, error) {
			if in.Left == 0 {
				return nil, nil
			}
			return s.Call(f, "deep", map[string]int{"left": in.Left - 1})
		}),
		mcp.Tool("errors", func(f *mcp.Frame, _ struct{}) (string, error) {
			for _, tt := range []struct {
				tool     string
				args     any
				returned bool
				want     string
			}{
				{"fail", nil, true, "disk full"},
				{"add", harness.AddIn{A: 1}, true, "<nil>"},
				{"add", map[string]any(nil), true, "/a: is required"},
				{"add", (*harness.AddIn)(nil), true, "/a: is required"},
				{"add", []int{1}, false, `mcp: Call: the arguments of "add": they must encode to an object, as a struct or a map does`},
				{"add", "text", false, "they must encode to an object"},
				{"add", json.RawMessage(`{`), false, "unexpected end of JSON"},
				{"add", json.RawMessage(`{} {}`), false, `mcp: Call: the arguments of "add"`},
				{"add", json.RawMessage(` {"a":1,"b":2}`), true, "<nil>"},
				{"add", json.RawMessage(``), false, "unexpected end of JSON"},
				{"add", make(chan int), false, "has no JSON form"},
			} {
				result, err := s.Call(f, tt.tool, tt.args)
				if got := fmt.Sprint(err); (result != nil) != tt.returned || !strings.Contains(got, tt.want) {
					t.Errorf("%s %v: %v, %s; want %v, %s", tt.tool, tt.args, result, got, tt.returned, tt.want)
				}
			}
			return "", nil
		}),
		mcp.Tool("after", func(f *mcp.Frame, _ struct{}) (string, error) {
			ended, cancel := context.WithCancelCause(f)
			cancel(errors.New("enough"))
			_, err := s.Call(f.WithContext(ended), "greet", map[string]string{"name": "A"})
			return fmt.Sprint(err), nil
		}),
	)
	c := mcptest.New(t, s)
	c.Call("outer", nil)
	if inner.Outer() != outer || inner.Request().Params.Name != "inner" || outer.Request().Params.Name != "outer" || inner.SessionID() != outer.SessionID() {
		t.Errorf("inner %v of %v, outer %v", inner.Request(), inner.Outer(), outer.Request())
	}
	if method, target := inner.Labels(); method != "tools/call" || target != "inner" {
		t.Errorf("labels %s %s", method, target)
	}
	c.Call("errors", nil)
	if got := c.Call("after", nil).Text(); got != "enough" {
		t.Errorf("after the end: %s", got)
	}
	c.Call("deep", map[string]int{"left": 8})
	if _, err := c.TryCall("deep", map[string]int{"left": 9}); err == nil || !strings.Contains(err.Error(), "calls within calls are 8 deep at most") {
		t.Errorf("9 deep: %v", err)
	}
	var none int
	for range s.Tools(nil) {
		none++
	}
	if none < 20 {
		t.Errorf("%d tools for a program", none)
	}
	for tool := range s.Tools(mcptest.Frame(t)) {
		t.Errorf("a client of another server is offered %s", tool.Name)
	}
	if err := s.Add(mcp.Tool("schema", func(*mcp.Frame, struct{}) (protocol.Result, error) { return nil, nil }, mcp.OutputSchema([]byte(`{"type":"object"}`)))); err == nil || !strings.Contains(err.Error(), "goes out as it is") {
		t.Errorf("an OutputSchema: %v", err)
	}
}

// Two calls of one tool, and tools with equal keys, ask their own questions; what Once
// keeps in one is not found in another. So it is in every revision, also as a task.
func TestQuestionsWithin(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		if !rev.Has(protocol.FeatureElicitation) {
			continue
		}
		for _, task := range []bool{false, true} {
			t.Run(fmt.Sprint(rev, " task ", task), func(t *testing.T) {
				s := harness.Bare(mcp.Options{})
				var mu sync.Mutex
				ran := map[string]int{}
				type of struct {
					Who string `json:"who"`
				}
				s.MustAdd(mcp.Tool("price", func(f *mcp.Frame, in of) (string, error) {
					n, err := mcp.Once(f, "n", func() (int, error) {
						mu.Lock()
						defer mu.Unlock()
						ran[in.Who]++
						return len(in.Who), nil
					})
					if err != nil {
						return "", err
					}
					answer, err := mcp.Elicit[harness.AmountForm](f, "amount", "What for "+in.Who+"?")
					return fmt.Sprint(in.Who, n, "=", answer.Value.Amount), err
				}))
				opts := []mcp.ToolOption{}
				if task {
					opts = append(opts, mcp.AsTask(nil))
				}
				s.MustAdd(mcp.Tool("both", func(f *mcp.Frame, _ struct{}) (string, error) {
					var texts []string
					own, err := mcp.Elicit[harness.AmountForm](f, "amount", "What in all?")
					if err != nil {
						return "", err
					}
					for _, who := range []string{"a", "bb", "a"} {
						r, err := s.Call(f, "price", of{who})
						if err != nil {
							return "", err
						}
						texts = append(texts, r.(*protocol.CallToolResult).Content[0].(protocol.TextContent).Text)
					}
					return fmt.Sprint(own.Value.Amount, " ", strings.Join(texts, " ")), nil
				}, opts...))
				asked := 0
				c := mcptest.New(t, s, mcptest.Revision(rev), mcptest.OnElicit(func(_ context.Context, p *client.ElicitParams) (*client.ElicitResult, error) {
					mu.Lock()
					defer mu.Unlock()
					asked++
					return client.Accept(harness.AmountForm{Amount: asked})
				}))
				if got := c.Call("both", nil).Text(); got != "1 a1=2 bb2=3 a1=4" || ran["a"] != 2 || ran["bb"] != 1 || asked != 4 {
					t.Errorf("got %q, ran %v, asked %d times", got, ran, asked)
				}
			})
		}
	}
}

// Progress of calls within a call grows, whatever they tell.
func TestProgressWithin(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		s := harness.Fixture(t, nil)
		s.MustAdd(mcp.Tool("twice", func(f *mcp.Frame, _ struct{}) (string, error) {
			for range 2 {
				if _, err := s.Call(f, "progress", nil); err != nil {
					return "", err
				}
			}
			if err := f.Progress(1, 4, "over"); err != nil {
				return "", err
			}
			return "", f.Progress(100, 100)
		}))
		for _, over := range harness.TransportsOf(rev) {
			c := harness.Greet(t, over, s, rev)
			var told []string
			params := strings.Replace(c.Dress(`{"name":"twice"}`), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
			if !rev.Modern() {
				params = `{"name":"twice","_meta":{"progressToken":"p"}}`
			}
			for _, message := range c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":%s}`, params)) {
				var m struct {
					Params struct{ Progress, Total float64 }
				}
				if err := json.Unmarshal([]byte(message), &m); err != nil {
					t.Fatal(err)
				}
				if m.Params.Progress > 0 {
					told = append(told, fmt.Sprint(m.Params.Progress, "/", m.Params.Total))
				}
			}
			if got := strings.Join(told, " "); got != "1/2 2/2 3/0 4/0 5/0 100/100" {
				t.Errorf("%s %v: told %s", over.Name, rev, got)
			}
		}
	}
}

// An observer receives a nested call with a context that derives from that of the
// outer one, and a log has a line for each.
func TestObserveWithin(t *testing.T) {
	s := nesting(t, nil)
	type key struct{}
	var mu sync.Mutex
	var told []string
	s.Observe(mcp.Observer{
		Begin: func(f *mcp.Frame) (context.Context, error) {
			path, _ := f.Value(key{}).(string)
			_, target := f.Labels()
			return context.WithValue(f, key{}, path+"/"+target), nil
		},
		End: func(f *mcp.Frame, o mcp.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			if f.Request().Method == protocol.MethodToolsCall {
				told = append(told, fmt.Sprint(f.Value(key{}), " ", o.Status))
			}
		},
	})
	var timed []string
	s.Use(middleware.Timing(func(f *mcp.Frame, _ time.Duration, err error) {
		if f.Request().Method == protocol.MethodToolsCall {
			timed = append(timed, fmt.Sprint(f.Request().Params.Name, " ", err != nil))
		}
	}))
	c := mcptest.New(t, s, mcptest.Revision(protocol.Latest))
	for name, want := range map[string]string{
		"greet": "/via/greet , /via ", "fail": "/via/fail tool_error, /via tool_error", "refuse": "/via/refuse _OTHER, /via _OTHER", "panic": "/via/panic panic, /via panic",
		"late": "/via/late timeout, /via timeout", "masked": "/via/masked tool_error, /via tool_error", "hidden": "/via/hidden invalid_params, /via invalid_params", "add": "/via/add arguments, /via arguments",
		"badly": "/via/badly internal, /via internal",
	} {
		told, timed = nil, nil
		in := map[string]any{"name": name}
		if name == "greet" {
			in["arguments"] = map[string]any{"name": "A"}
		}
		_, _ = c.TryCall("via", in)
		mu.Lock()
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		mu.Unlock()
		if len(timed) != 2 || !strings.HasPrefix(timed[0], name+" ") || !strings.HasPrefix(timed[1], "via ") {
			t.Errorf("%s: timed %v", name, timed)
		}
	}
}

// Limits of the number of calls do not refuse a call its own parts; limits of their rate
// count them.
func TestLimitsWithin(t *testing.T) {
	s := nesting(t, nil)
	s.Use(middleware.ConcurrencyLimit(1, 0), middleware.RateLimit(&middleware.RateLimitOptions{Rate: 0.001, Burst: 2}))
	c := mcptest.New(t, s)
	greet := map[string]any{"name": "greet", "arguments": map[string]string{"name": "A"}}
	if got := c.Call("via", greet).Text(); got != "Hello, A!" {
		t.Errorf("got %s", got)
	}
	c.Call("greet", map[string]string{"name": "A"})
	if _, err := c.TryCall("via", greet); err == nil || !strings.Contains(err.Error(), `Too many calls of tool "greet"`) {
		t.Errorf("the third call: %v", err)
	}
}

// TestCallWithinAllocations holds the ceiling on what a call within a call allocates.
func TestCallWithinAllocations(t *testing.T) {
	s := harness.Fixture(t, nil)
	measured := make(chan float64, 1)
	s.MustAdd(mcp.Tool("measure", func(f *mcp.Frame, _ struct{}) (string, error) {
		measured <- testing.AllocsPerRun(100, func() {
			if _, err := s.Call(f, "add", harness.AddIn{A: 1, B: 2}); err != nil {
				t.Error(err)
			}
		})
		return "", nil
	}))
	mcptest.New(t, s, mcptest.Revision(protocol.Latest)).Call("measure", nil)
	if n := <-measured; n > 20 {
		t.Errorf("%v allocations, want at most 20", n)
	}
}

func BenchmarkCallWithin(b *testing.B) {
	s := harness.Fixture(b, nil)
	s.MustAdd(mcp.Tool("measure", func(f *mcp.Frame, _ struct{}) (string, error) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Call(f, "add", harness.AddIn{A: 1, B: 2}); err != nil {
				b.Error(err)
			}
		}
		return "", nil
	}))
	mcptest.New(b, s, mcptest.Revision(protocol.Latest), mcptest.Timeout(time.Minute)).Call("measure", nil)
}
