package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
)

type in struct {
	Key string  `json:"key,omitempty"`
	N   float64 `json:"n,omitempty"`
}

type out struct {
	Runs int    `json:"runs"`
	Key  string `json:"key"`
}

// counted returns a server whose tools tell how often one of them ran.
func counted(o middleware.CacheOptions, more ...mcp.Middleware) (s *mcp.Server, runs *int) {
	quiet := zerolog.Nop()
	s = mcp.NewServer(mcp.Info{Name: "counted", Version: "1"}, &mcp.Options{Logger: &quiet})
	runs = new(int)
	run := func(_ *mcp.Frame, in in) (out, error) {
		*runs++
		return out{*runs, in.Key}, nil
	}
	s.MustAdd(
		mcp.Tool("read", run, mcp.ReadOnly()),
		mcp.Tool("other", run, mcp.ReadOnly()),
		mcp.Tool("write", run),
		mcp.Tool("fail", func(*mcp.Frame, in) (string, error) { *runs++; return "", errors.New("no") }, mcp.ReadOnly()),
		mcp.Tool("meta", func(*mcp.Frame, in) (*mcp.Result, error) {
			*runs++
			return mcp.NewResult().Text("m").Meta("com.example/k", *runs), nil
		}, mcp.ReadOnly()),
		mcp.Tool("large", func(*mcp.Frame, in) (string, error) { *runs++; return strings.Repeat("x", 10_000), nil }, mcp.ReadOnly()),
		mcp.Tool("ask", func(f *mcp.Frame, _ in) (string, error) {
			*runs++
			a, err := mcp.Elicit[struct {
				Name string `json:"name"`
			}](f, "k", "Who?")
			return a.Value.Name, err
		}, mcp.ReadOnly()),
		mcp.Tool("own", func(f *mcp.Frame, _ in) (string, error) {
			return "", s.AddToSession(f, mcp.Tool("mine", run, mcp.ReadOnly()))
		}),
	)
	s.Use(append([]mcp.Middleware{middleware.Cache(s, &o)}, more...)...)
	return s, runs
}

func TestCache(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		t.Run(rev.String(), func(t *testing.T) {
			s, runs := counted(middleware.CacheOptions{})
			c := mcptest.New(t, s, mcptest.Revision(rev), mcptest.Trace(spectest.NewHostile(t).Hear), mcptest.Accepting(map[string]any{"name": "Ada"}))
			call := func(name, args string) string {
				raw, err := c.TryRequest("tools/call", map[string]any{"name": name, "arguments": rawJSON(args)})
				if err != nil {
					return err.Error()
				}
				return string(raw)
			}
			for _, tt := range []struct {
				name, first, second string
				runs                int
			}{
				{"read", `{"key":"a","n":1}`, ` {"n": 1, "key": "a"}`, 1},
				{"read", `{"key":"b"}`, `{"key":"c"}`, 2},
				{"read", `{"key":"d","n":1}`, `{"key":"d","n":1.0}`, 2},
				{"other", `{"key":"a","n":1}`, `{"key":"a","n":1}`, 1},
				{"other", `{}`, `null`, 1},
				{"write", `{"key":"a"}`, `{"key":"a"}`, 2},
				{"fail", `{}`, `{}`, 2},
				{"meta", `{}`, `{}`, 1},
				{"nobody", `{}`, `{}`, 0},
			} {
				before := *runs
				first, second := call(tt.name, tt.first), call(tt.name, tt.second)
				if got := *runs - before; got != tt.runs {
					t.Errorf("%s %s, %s: %d runs, want %d", tt.name, tt.first, tt.second, got, tt.runs)
				}
				if (tt.runs < 2) != (first == second) && tt.name != "fail" {
					t.Errorf("%s: first %s, then %s", tt.name, first, second)
				}
				if rev.Modern() && !strings.Contains(second, `"counted"`) && tt.name != "nobody" {
					t.Errorf("%s lacks the server's name: %s", tt.name, second)
				}
			}
			if rev.Has(protocol.FeatureElicitation) {
				before := *runs
				if first, second := call("ask", `{}`), call("ask", `{}`); !strings.Contains(first, "Ada") || !strings.Contains(second, "Ada") || *runs < before+2 {
					t.Errorf("an answer of the client was kept: %d runs, %s, %s", *runs-before, first, second)
				}
			}
			if !rev.Modern() {
				call("own", `{}`)
				if first, second := call("mine", `{}`), call("mine", `{}`); first == second {
					t.Errorf("a result of a session's own tool was kept: %s", second)
				}
			}
		})
	}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// direct calls through the middleware of s, as principal.
func direct(t *testing.T, s *mcp.Server, o middleware.CacheOptions, next mcp.Handler) func(principal, name, args string) string {
	h := middleware.Cache(s, &o)(next)
	return func(user, name, args string) string {
		r, err := h(request(core.WithPrincipal(context.Background(), user), "tools/call", name, args))
		return show(t, r, err)
	}
}

func TestCacheKeepsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counted(middleware.CacheOptions{})
		runs := 0
		call := direct(t, s, middleware.CacheOptions{TTL: time.Second, Only: func(tool protocol.Tool) bool { return tool.Name != "other" }},
			func(*mcp.Frame) (protocol.Result, error) { runs++; return textResult(fmt.Sprint("run ", runs)), nil })
		for _, tt := range []struct {
			principal, name string
			sleep           time.Duration
			runs            int
		}{
			{"ada", "read", 0, 1},
			{"bob", "read", 0, 2},
			{"ada", "read", time.Second - 1, 2},
			{"ada", "read", 1, 3},
			{"ada", "other", 0, 4},
			{"ada", "other", 0, 5},
		} {
			time.Sleep(tt.sleep)
			if call(tt.principal, tt.name, "{}"); runs != tt.runs {
				t.Errorf("%s, %s: %d runs, want %d", tt.principal, tt.name, runs, tt.runs)
			}
		}
	})
}

// A token of the same principal with fewer scopes does not get what a handler
// has given to one with more.
func TestCacheKeepsScopesApart(t *testing.T) {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "scoped", Version: "1"}, &mcp.Options{Logger: &quiet})
	s.Use(middleware.Cache(s, &middleware.CacheOptions{}))
	runs := 0
	s.MustAdd(mcp.Tool("read", func(f *mcp.Frame, in in) (string, error) {
		if err := f.RequireScopes("folder:" + in.Key); err != nil {
			return "", err
		}
		runs++
		return "secret", nil
	}, mcp.ReadOnly()))
	for _, tt := range []struct {
		scopes []string
		ok     bool
		runs   int
	}{{[]string{"folder:a", "x"}, true, 1}, {[]string{"x"}, false, 1}, {nil, false, 1}, {[]string{"x", "folder:a"}, true, 1}} {
		c := mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: "alice", Scopes: tt.scopes}))
		_, err := c.TryRequest("tools/call", map[string]any{"name": "read", "arguments": map[string]any{"key": "a"}})
		if (err == nil) != tt.ok || runs != tt.runs {
			t.Errorf("%q: %v after %d runs", tt.scopes, err, runs)
		}
	}
}

// When all results are too large together, the one not used for longest goes.
func TestCacheIsBounded(t *testing.T) {
	s, _ := counted(middleware.CacheOptions{})
	runs := 0
	call := direct(t, s, middleware.CacheOptions{MaxBytes: 3 * 1400}, func(f *mcp.Frame) (protocol.Result, error) {
		runs++
		size := 1000
		if string(f.Request().Params.Arguments) == `{"key":"huge"}` {
			size = 10_000
		}
		return textResult(strings.Repeat("x", size)), nil
	})
	for i, step := range []struct {
		key  string
		runs int
	}{
		{"a", 1}, {"b", 2}, {"c", 3}, {"a", 3}, {"d", 4}, {"a", 4}, {"c", 4}, {"b", 5}, {"huge", 6}, {"huge", 7}, {"b", 7}, {"a", 7},
	} {
		if call("", "read", fmt.Sprintf(`{"key":%q}`, step.key)); runs != step.runs {
			t.Errorf("step %d, %s: %d runs, want %d", i, step.key, runs, step.runs)
		}
	}
}

// A limit of size behind the cache holds for what was kept.
func TestCacheWithSizeLimit(t *testing.T) {
	s, runs := counted(middleware.CacheOptions{}, middleware.ResultSizeLimit(5000))
	c := mcptest.New(t, s, mcptest.Trace(spectest.New(t).Hear))
	for range 2 {
		if got := string(c.Request("tools/call", map[string]any{"name": "large"})); !strings.Contains(got, "bytes; ask for less, with a filter or a limit]") {
			t.Errorf("got %.100s", got)
		}
	}
	if *runs != 2 {
		t.Errorf("%d runs: what was refused was kept", *runs)
	}
	for range 2 {
		c.Request("tools/call", map[string]any{"name": "read"})
	}
	if *runs != 3 {
		t.Errorf("%d runs, want 3: what is small enough is kept", *runs)
	}
}

// A tool that is hidden is not answered from the cache.
func TestCacheHonoursFilters(t *testing.T) {
	hidden := false
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &quiet})
	s.MustAdd(mcp.Tool("read", func(*mcp.Frame, in) (string, error) { return "kept", nil }, mcp.ReadOnly(),
		mcp.VisibleTo(func(*mcp.Frame) bool { return !hidden })))
	s.Use(middleware.Cache(s, &middleware.CacheOptions{}))
	c := mcptest.New(t, s, mcptest.Trace(spectest.New(t).Hear))
	c.Request("tools/call", map[string]any{"name": "read"})
	hidden = true
	if raw, err := c.TryRequest("tools/call", map[string]any{"name": "read"}); err == nil {
		t.Errorf("got %s, want an error as of an unknown tool", raw)
	}
}

// A server that is mounted keeps results for those it is mounted into, and each
// names itself.
func TestCacheOfMounted(t *testing.T) {
	child, runs := counted(middleware.CacheOptions{})
	for i, name := range []string{"first", "second"} {
		quiet := zerolog.Nop()
		parent := mcp.NewServer(mcp.Info{Name: name, Version: "1"}, &mcp.Options{Logger: &quiet})
		if err := parent.Mount("c", child); err != nil {
			t.Fatal(err)
		}
		c := mcptest.New(t, parent, mcptest.Revision(protocol.Latest), mcptest.Trace(spectest.New(t).Hear))
		got := string(c.Request("tools/call", map[string]any{"name": "c_read"}))
		if !strings.Contains(got, `"runs":1`) || !strings.Contains(got, fmt.Sprintf("%q", name)) || *runs != 1 {
			t.Errorf("server %d, %d runs: %s", i, *runs, got)
		}
	}
}
