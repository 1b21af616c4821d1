package mcptest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
)

// Lint fails a test once, with everything that some host refuses and that is not
// allowed, in every revision; notes are only logged.
func TestLint(t *testing.T) {
	text := func(context.Context, struct{}) (string, error) { return "", nil }
	odd := mcp.NewServer(mcp.Info{Name: "odd", Version: "1"}, &mcp.Options{Instructions: strings.Repeat("x", 2049)})
	odd.MustAdd(mcp.Tool("weather.now", text, mcp.Doc("The weather.")), mcp.Tool("bare", text, mcp.ReadOnly()))
	good := mcp.NewServer(mcp.Info{Name: "good", Version: "1"}, nil)
	good.MustAdd(mcp.Tool("good", text, mcp.Doc("Is good."), mcp.ReadOnly()))
	empty := mcp.NewServer(mcp.Info{Name: "empty", Version: "1"}, nil)
	for _, rev := range testdep.Revisions() {
		for _, tt := range []struct {
			name   string
			server *mcp.Server
			allow  []string
			fails  string
			want   []string
		}{
			{"good", good, nil, "", nil},
			{"good, allowed", good, []string{"name", "ref:good"}, "", nil},
			{"odd", odd, nil, "Errorf", []string{"refused  name  weather.now: Claude Desktop and OpenAI take", "refused  text-none  bare: ", "changed  text-2048  the list: the instructions"}},
			{"one tool", odd, []string{"name:weather.now", "text-2048"}, "Errorf", []string{"text-none  bare"}},
			{"another tool", odd, []string{"name:bare", "text-none", "text-2048"}, "Errorf", []string{"name  weather.now"}},
			{"all", odd, []string{"name", "text-none", "text-2048"}, "", nil},
			{"wrong", odd, []string{"nam"}, "Fatalf", []string{`there is no rule "nam"; did you mean name?`}},
			{"empty", empty, nil, "", nil},
		} {
			got := &failures{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				mcptest.New(got, tt.server, mcptest.Revision(rev)).Lint(tt.allow...)
			}()
			<-done
			if got.kind != tt.fails || tt.fails != "" && got.n != 1 {
				t.Errorf("%v %s: %d %s: %s", rev, tt.name, got.n, got.kind, got.text)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.text, want) {
					t.Errorf("%v %s: no %q in %s", rev, tt.name, want, got.text)
				}
			}
			if strings.Contains(got.text, "hints") || tt.name == "odd" && !strings.Contains(got.logged, "costs    hints  weather.now") {
				t.Errorf("%v %s: failed with %s, logged %s", rev, tt.name, got.text, got.logged)
			}
		}
	}
}

// failures is a testing.TB that notes how it failed and what it logged.
type failures struct {
	testing.TB
	kind, text, logged string
	n                  int
}

func (f *failures) Helper() {}
func (f *failures) Logf(format string, args ...any) {
	f.logged += fmt.Sprintf(format, args...)
}
func (f *failures) Errorf(format string, args ...any) {
	f.kind, f.text, f.n = "Errorf", fmt.Sprintf(format, args...), f.n+1
}
func (f *failures) Fatalf(format string, args ...any) {
	f.kind, f.text, f.n = "Fatalf", fmt.Sprintf(format, args...), f.n+1
	runtime.Goexit()
}
