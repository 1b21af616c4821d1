package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// Functions that take the Frame of a handler return an error for one that is nil or zero,
// and name themselves.
func TestNoFrame(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	s := harness.Fixture(t, nil)
	if err := s.AddSet("set", harness.Tool("hidden")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		use  func(f *mcp.Frame) error
	}{
		{"AddToSession", func(f *mcp.Frame) error { return s.AddToSession(f, harness.Tool("own")) }},
		{"RemoveFromSession", func(f *mcp.Frame) error { _, err := s.RemoveFromSession(f, mcp.KindTool, "own"); return err }},
		{"EnableSet", func(f *mcp.Frame) error { return s.EnableSet(f, "set") }},
		{"DisableSet", func(f *mcp.Frame) error { return s.DisableSet(f, "set") }},
		{"Call", func(f *mcp.Frame) error { _, err := s.Call(f, "nothing", nil); return err }},
		{"Ask", func(f *mcp.Frame) error { return mcp.Ask(f) }},
		{"Ask", func(f *mcp.Frame) error { _, err := mcp.Elicit[form](f, "key", "Name?"); return err }},
		{"Ask", func(f *mcp.Frame) error { _, err := mcp.ElicitURL(f, "key", "Go", "https://example.com"); return err }},
		{"Ask", func(f *mcp.Frame) error { _, err := frame.Sample(f, "key", protocol.SampleParams{}); return err }},
		{"Ask", func(f *mcp.Frame) error { _, err := frame.Roots(f, "key"); return err }},
		{"Once", func(f *mcp.Frame) error {
			_, err := mcp.Once(f, "key", func() (int, error) { return 1, nil })
			return err
		}},
	} {
		for name, f := range map[string]*mcp.Frame{"nil": nil, "zero": {}} {
			err := safely.Try(func() error { return tt.use(f) })
			if err == nil || !strings.Contains(err.Error(), tt.name) || !strings.Contains(err.Error(), "the Frame is nil or zero; use that of the handler that calls") {
				t.Errorf("%s with a %s Frame: %v", tt.name, name, err)
			}
		}
	}
	key, stored := mcp.NewKey[int]("n"), mcp.NewStoredKey[int]("test/n")
	for name, use := range map[string]func(f *mcp.Frame){
		"Key.Set":          func(f *mcp.Frame) { key.Set(f, 1) },
		"Key.Get":          func(f *mcp.Frame) { key.Get(f) },
		"Key.GetOrSet":     func(f *mcp.Frame) { key.GetOrSet(f, func() int { return 1 }) },
		"Key.Update":       func(f *mcp.Frame) { key.Update(f, func(n int) int { return n }) },
		"Key.Update, kept": func(f *mcp.Frame) { stored.Update(f, func(n int) int { return n }) },
		"Set":              func(f *mcp.Frame) { f.Set("n", 1) },
		"Get":              func(f *mcp.Frame) { f.Get("n") },
		"GetOrSet":         func(f *mcp.Frame) { f.GetOrSet("n", func() any { return 1 }) },
	} {
		for _, f := range []*mcp.Frame{nil, {}} {
			failure, _ := errors.AsType[*safely.Failure](safely.Call(func() { use(f) }))
			if failure == nil || !strings.Contains(failure.Value, "the Frame is nil or zero; use that of the handler that calls") {
				t.Errorf("%s with the Frame %p: %v", name, f, failure)
			}
		}
	}
	for range s.Tools(&mcp.Frame{}) {
		t.Error("tools for the zero Frame")
	}
	if _, ok := s.Tool(&mcp.Frame{}, "nothing"); ok {
		t.Error("a tool for the zero Frame")
	}
}

// What a program gets wrong is told where it is wrong, with what to do.
func TestMisuse(t *testing.T) {
	pass := func(next mcp.Handler) mcp.Handler { return next }
	for _, test := range []struct {
		name   string
		misuse func(s *mcp.Server) error
		want   string
	}{
		{"a name twice", func(s *mcp.Server) error { return s.Add(harness.Tool("a"), harness.Tool("a")) }, `"a" is registered already; choose another name`},
		{"no component", func(s *mcp.Server) error { return s.Add(nil) }, "component 0 is nil"},
		{"no connection", func(s *mcp.Server) error { return s.ServeConn(context.Background(), nil) }, "ServeConn: the conn is nil"},
		{"no listener", func(s *mcp.Server) error { return s.Serve(context.Background(), nil) }, "Serve: the listener is nil"},
		{"no middleware", func(s *mcp.Server) error { s.Use(pass, nil); return nil }, "Use: middleware 1 is nil; leave it out"},
		{"middleware too late", func(s *mcp.Server) error {
			harness.OpenStream(t, s, 0).Say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			s.Use(pass)
			return nil
		}, "Use after the server began to serve; call it before"},
		{"a schema of no object", func(s *mcp.Server) error {
			return s.Add(mcp.Tool("a", func(*mcp.Frame, map[string]any) (string, error) { return "", nil }, mcp.InputSchema([]byte(`{"type":"string"}`))))
		}, `put "type": "object" at its root`},
		{"a schema in an unknown dialect", func(s *mcp.Server) error {
			return s.Add(mcp.Tool("a", func(*mcp.Frame, map[string]any) (string, error) { return "", nil }, mcp.InputSchema([]byte(`{"$schema":"urn:mine","type":"object"}`))))
		}, "urn:mine"},
		{"a method of the protocol", func(s *mcp.Server) error {
			return s.Add(mcp.Method("tools/call", func(*mcp.Frame, struct{}) (struct{}, error) { return struct{}{}, nil }))
		}, "tools/call"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("panic: %v", p)
					}
				}()
				return test.misuse(harness.Fixture(t, nil))
			}()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
