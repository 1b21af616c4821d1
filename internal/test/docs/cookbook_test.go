package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
)

func routes(s *mcp.Server, pages http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Group(func(r chi.Router) {
		r.Use(middleware.Timeout(30 * time.Second))
		r.Mount("/pages", pages)
	})
	r.Mount("/mcp", s.Handler())
	return r
}

type GoDocIn struct {
	Name string `json:"name" validate:"min=1,max=200" jsonschema_description:"a package or a symbol, e.g. strings.Cut"`
}

func goDoc(ctx context.Context, in GoDocIn) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "doc", "-short", "--", in.Name) // after --, a name is never a flag
	cmd.WaitDelay = time.Second                                           // does not wait for grandchildren
	out, err := cmd.CombinedOutput()                                      // never the standard output of the server
	if err != nil {
		return "", fmt.Errorf("go doc: %s", bytes.TrimSpace(out))
	}
	return string(out), nil
}

type pooledGroup struct {
	*group.Group
	search *pool.Pool // the server that the group calls search
}

func (g pooledGroup) Call(ctx context.Context, tool string, args any, options ...client.CallOption) (*client.CallToolResult, error) {
	if name, ok := strings.CutPrefix(tool, "search_"); ok {
		return g.search.Call(ctx, name, args, options...)
	}
	return g.Group.Call(ctx, tool, args, options...)
}

func (g pooledGroup) Close() error { return errors.Join(g.Group.Close(), g.search.Close()) }

// A slow page is cancelled after 30 s, and a call of 40 s is not.
func TestRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) string {
			select {
			case <-ctx.Done():
				return "cancelled"
			case <-time.After(40 * time.Second):
				return "done"
			}
		}
		s := mcp.NewServer(mcp.Info{Name: "slow", Version: "1"}, nil)
		s.MustAdd(mcp.Tool("count", func(ctx context.Context, _ struct{}) (string, error) { return slow(ctx), nil }))
		h := routes(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, slow(r.Context())) }))
		get := ask(h, http.MethodPost, calling(), modernCall)
		if !strings.Contains(get.Body.String(), `"text":"done"`) {
			t.Errorf("the call: %s", get.Body)
		}
		r, err := http.NewRequest(http.MethodGet, "/pages", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := answer{header: http.Header{}}
		h.ServeHTTP(&w, r)
		if w.String() != "cancelled" {
			t.Errorf("the page: %s", w.String())
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// answer is an http.ResponseWriter.
type answer struct {
	bytes.Buffer
	header http.Header
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) WriteHeader(int)     {}

func TestGoDoc(t *testing.T) {
	testdep.LookPath(t, "go")
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("go_doc", goDoc))
	c := mcptest.New(t, s, mcptest.Timeout(time.Minute))
	if got := c.Call("go_doc", GoDocIn{Name: "strings.Cut"}).Text(); !strings.Contains(got, "func Cut(") {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"-http", "no/such.Thing"} {
		if result := c.Call("go_doc", GoDocIn{Name: name}); !result.IsError || !strings.HasPrefix(result.Text(), "go doc: ") {
			t.Errorf("%s: got %q", name, result.Text())
		}
	}
}

// Calls of search use the pool, and those of the other server the group.
func TestPooledGroup(t *testing.T) {
	serve := func(name string) client.Transport {
		s := mcp.NewServer(mcp.Info{Name: name, Version: "1"}, nil)
		s.MustAdd(mcp.Tool("name", func(context.Context, struct{}) (string, error) { return name, nil }))
		return client.Local(s.ServeConn)
	}
	g := pooledGroup{Group: group.New(nil), search: pool.New(serve("pool"), &pool.Options{Size: 2})}
	for _, name := range []string{"search", "other"} {
		if err := g.Add(name, serve(name), nil); err != nil {
			t.Fatal(err)
		}
	}
	for tool, want := range map[string]string{"search_name": "pool", "other_name": "other"} {
		got, err := client.Call[string](t.Context(), g, tool, nil)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", tool, got, err, want)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
