package mcptest_test

import (
	"errors"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// A client is who it is said to be, over both wires and in every revision.
func TestAs(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("add", func(f *mcp.Frame, _ struct{}) (string, error) { return f.Identity().Subject, nil }, mcp.Scopes("notes:write")))
	for _, rev := range testdep.Revisions() {
		for _, wire := range [][]mcptest.Option{{}, {mcptest.OverHTTP()}} {
			as := func(options ...mcptest.Option) (text string, code protocol.Code) {
				c := mcptest.New(t, s, append(append(options, mcptest.Revision(rev), mcptest.Trace(spectest.New(t).Hear)), wire...)...)
				result, err := c.TryRequest("tools/call", map[string]any{"name": "add"})
				if fault, ok := errors.AsType[*protocol.Error](err); ok {
					return "", fault.Code
				}
				if err != nil {
					t.Fatal(err)
				}
				return string(result), 0
			}
			if _, code := as(); code != protocol.CodeUnauthorized {
				t.Errorf("%v: nobody got %d", rev, code)
			}
			if _, code := as(mcptest.As(mcp.Identity{Subject: "bob"})); code != protocol.CodeInsufficientScope {
				t.Errorf("%v: bob got %d", rev, code)
			}
			if text, code := as(mcptest.As(mcp.Identity{Subject: "alice", Scopes: []string{"notes:write"}})); code != 0 || text == "" {
				t.Errorf("%v: alice got %d", rev, code)
			}
		}
	}
}
