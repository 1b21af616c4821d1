package behavior_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// A result whose _meta names a server, as one that a handler passes on from another server,
// has each member once, and names this server.
func TestResultNamesItsServer(t *testing.T) {
	const key = "io.modelcontextprotocol/serverInfo"
	meta := func() map[string]any {
		return map[string]any{key: map[string]string{"name": "other"}, "own": 12345678901234567}
	}
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("tool", func(*mcp.Frame, struct{}) (protocol.Result, error) {
			return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: "x"}}, Meta: meta()}, nil
		}),
		mcp.Tool("nothing_else", func(*mcp.Frame, struct{}) (protocol.Result, error) {
			return &protocol.CallToolResult{Meta: map[string]any{key: 1}}, nil
		}),
		mcp.Tool("built", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Text("x").Meta(key, 1).Meta("own", 12345678901234567), nil
		}),
		mcp.Prompt("prompt", func(*mcp.Frame, struct{}) (*mcp.Messages, error) {
			return mcp.NewMessages().User("x").Meta(key, 1).Meta("own", 12345678901234567), nil
		}),
		mcp.Resource("x:1", func(*mcp.Frame) (string, error) { return "x", nil }),
		mcp.Method("own/raw", func(*mcp.Frame, struct{}) (json.RawMessage, error) {
			return json.RawMessage(`{"a":1,"_meta":{"` + key + `":{"name":"other"},"own":12345678901234567},"resultType":"complete"}`), nil
		}),
		mcp.Method("own/map", func(*mcp.Frame, struct{}) (map[string]any, error) {
			return map[string]any{"a": 1, "_meta": meta()}, nil
		}),
	)
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			result, err := next(f)
			switch r := result.(type) {
			case *protocol.ReadResourceResult:
				r.Meta = meta()
			case protocol.JSONResult:
				if f.Request().Method == protocol.MethodComplete {
					r.Meta = meta()
					return r, err
				}
			}
			return result, err
		}
	})
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		for _, tt := range []struct {
			method string
			params map[string]any
		}{
			{protocol.MethodToolsCall, map[string]any{"name": "tool"}},
			{protocol.MethodToolsCall, map[string]any{"name": "nothing_else"}},
			{protocol.MethodToolsCall, map[string]any{"name": "built"}},
			{protocol.MethodPromptsGet, map[string]any{"name": "prompt"}},
			{protocol.MethodResourcesRead, map[string]any{"uri": "x:1"}},
			{"own/raw", nil},
			{"own/map", nil},
		} {
			raw, err := c.TryRequest(tt.method, tt.params)
			if err != nil {
				t.Errorf("%s %v: %v", tt.method, tt.params, err)
				continue
			}
			scan := jsonx.Scanner{Buf: raw}
			if _, err := scan.Skip(); err != nil {
				t.Errorf("%s %v: %v in %s", tt.method, tt.params, err, raw)
			}
			var got struct {
				A    int
				Meta map[string]json.RawMessage `json:"_meta"`
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Error(err)
			}
			if name := string(got.Meta[key]); rev.Modern() && !strings.Contains(name, `"bare"`) {
				t.Errorf("%s %v: the server is %s", tt.method, tt.params, name)
			}
			if own := string(got.Meta["own"]); own != "12345678901234567" && tt.params["name"] != "nothing_else" {
				t.Errorf("%s %v: _meta is %v", tt.method, tt.params, got.Meta)
			}
			if strings.HasPrefix(tt.method, "own/") && got.A != 1 {
				t.Errorf("%s", raw)
			}
		}
	}, mcptest.Trace(func(bool, []byte) {}))
}
