package behavior_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// The compiler takes an option where its type is assignable, and nowhere else.
func TestOptionsAreTyped(t *testing.T) {
	kinds := []reflect.Type{
		reflect.TypeFor[mcp.ToolOption](), reflect.TypeFor[mcp.ResourceOption](), reflect.TypeFor[mcp.PromptOption](), reflect.TypeFor[mcp.MethodOption](),
	}
	for kindsOf, options := range map[string][]any{
		"ToolOption ResourceOption PromptOption MethodOption": {mcp.Doc, mcp.Title, mcp.Icons, mcp.Meta, mcp.Scopes, mcp.VisibleTo, mcp.Timeout, func() mcp.Bundle { return nil }},
		"ToolOption": {mcp.ReadOnly, mcp.Destructive, mcp.Idempotent, mcp.OpenWorld, mcp.InputSchema, mcp.OutputSchema,
			mcp.Strict, mcp.StructuredOnly, mcp.Text[harness.Sized], mcp.AsTask, func() mcp.ToolOptions { return nil }},
		"ResourceOption":              {mcp.MIME, mcp.Name, mcp.Annotated, mcp.Cache, mcp.CachePublic, mcp.Size, mcp.Unconfined},
		"ResourceOption PromptOption": {mcp.Complete, mcp.CompleteFrom},
	} {
		for _, option := range options {
			var fits []string
			for _, kind := range kinds {
				if reflect.TypeOf(option).Out(0).AssignableTo(kind) {
					fits = append(fits, kind.Name())
				}
			}
			if got := strings.Join(fits, " "); got != kindsOf {
				t.Errorf("%T fits %s, want %s", option, got, kindsOf)
			}
		}
	}
}

// Both kinds of funcs find the Frame of their request.
func TestContextOfHandlers(t *testing.T) {
	name := func(ctx context.Context) (string, error) {
		f, ok := mcp.FromContext(ctx)
		if !ok {
			return "", fmt.Errorf("no Frame in %v", ctx)
		}
		return f.Request().Method, nil
	}
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("a", func(ctx context.Context, _ struct{}) (string, error) { return name(ctx) }),
		mcp.Tool("b", func(f *mcp.Frame, _ struct{}) (string, error) { return name(f) }),
		mcp.Resource("a:b", name),
		mcp.Resource("a:c", func(f *mcp.Frame) (string, error) { return name(f) }),
	)
	harness.InEach(t, s, func(t *testing.T, _ protocol.Revision, c *mcptest.Client) {
		for _, tool := range []string{"a", "b"} {
			if got := c.Call(tool, nil).Text(); got != "tools/call" {
				t.Errorf("%s: %q", tool, got)
			}
		}
		for _, uri := range []string{"a:b", "a:c"} {
			if got := c.Read(uri); len(got) != 1 || got[0].Text != "resources/read" {
				t.Errorf("%s: %+v", uri, got)
			}
		}
	})
	if _, ok := mcp.FromContext(context.Background()); ok {
		t.Error("there is a Frame in the background")
	}
}

func TestStrict(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "strict", Version: "1"}, nil)
	double := func(_ *mcp.Frame, in struct {
		N int `json:"n"`
	}) (int, error) {
		return 2 * in.N, nil
	}
	s.MustAdd(mcp.Tool("lenient", double), mcp.Tool("strict", double, mcp.Strict()))
	c := mcptest.New(t, s)
	for _, tt := range []struct {
		tool      string
		arguments string
		fails     bool
	}{{"lenient", `{"n":"5"}`, false}, {"strict", `{"n":"5"}`, true}, {"strict", `{"n":5}`, false}} {
		result := c.Call(tt.tool, json.RawMessage(tt.arguments))
		if result.IsError != tt.fails || !tt.fails && result.Text() != "10" {
			t.Errorf("%s %s: %s", tt.tool, tt.arguments, result.Text())
		}
	}
}

// A result is checked against the schema that the tool was given.
func TestOutputSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","maximum":9}},"required":["n"]}`
	s := mcp.NewServer(mcp.Info{Name: "output", Version: "1"}, nil)
	echo := func(_ *mcp.Frame, in map[string]any) (map[string]any, error) { return in, nil }
	s.MustAdd(mcp.Tool("echo", echo, mcp.InputSchema(json.RawMessage(`{"type":"object"}`)), mcp.OutputSchema(json.RawMessage(schema))))
	c := mcptest.New(t, s)
	if tools := c.Tools(); len(tools) != 1 || string(tools[0].OutputSchema) != schema {
		t.Errorf("tools/list says %+v", tools)
	}
	if got := string(c.Call("echo", map[string]any{"n": 3}).Value); got != `{"n":3}` {
		t.Errorf("got %s", got)
	}
	for _, wrong := range []map[string]any{{"n": 10}, {"n": "3"}, {}} {
		if result, err := c.TryCall("echo", wrong); err == nil {
			t.Errorf("%v was sent: %s", wrong, result.Raw)
		}
	}
	for _, bad := range []string{`{"type":5}`, `nonsense`, `{"$ref":"https://example.com/schema"}`} {
		err := s.Add(mcp.Tool("bad", echo, mcp.InputSchema(json.RawMessage(`{"type":"object"}`)), mcp.OutputSchema(json.RawMessage(bad))))
		if err == nil || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A client hears the log messages that it wants.
func TestLogLevelOfClient(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		s := mcp.NewServer(mcp.Info{Name: "log", Version: "1"}, nil)
		s.MustAdd(mcp.Tool("log", func(f *mcp.Frame, _ struct{}) (string, error) {
			_ = f.Log(protocol.LevelInfo, "quiet")
			_ = f.Log(protocol.LevelError, "loud")
			return "", nil
		}))
		c := mcptest.New(t, s, mcptest.Revision(rev), mcptest.LogLevel(protocol.LevelWarning))
		c.Call("log", nil)
		if logs := c.Logs(); len(logs) != 1 || string(logs[0].Data) != `"loud"` {
			t.Errorf("%s: %v", rev, logs)
		}
	}
}
