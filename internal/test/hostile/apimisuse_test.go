package hostile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
)

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
