package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// TestCursors checks that a client of any revision gets all pages of a server of any
// revision: the empty cursor ends a list in the older ones only.
func TestCursors(t *testing.T) {
	methods := map[string]string{protocol.MethodToolsList: "tools", protocol.MethodPromptsList: "prompts",
		protocol.MethodResourcesList: "resources", protocol.MethodResourceTemplates: "resourceTemplates"}
	for _, back := range testdep.Revisions() {
		for _, front := range testdep.Revisions() {
			for _, test := range []struct{ name, first, second, want, modern string }{
				{"pages", `,"nextCursor":"+"`, ``, "a b", "a b"},
				{"null", `,"nextCursor":null`, ``, "a", "a"},
				{"empty", `,"nextCursor":""`, ``, "a", "a b"},
				{"empty at the end", `,"nextCursor":"x"`, `,"nextCursor":""`, "a b", "a b c"},
			} {
				t.Run(fmt.Sprintf("%s-%s %s", front, back, test.name), func(t *testing.T) {
					answers := map[string]func(json.RawMessage) (any, error){}
					for method, member := range methods {
						answers[method] = func(params json.RawMessage) (any, error) {
							var p map[string]json.RawMessage
							if len(params) > 0 {
								if err := json.Unmarshal(params, &p); err != nil {
									return nil, err
								}
							}
							name, next := "a", test.first
							switch cursor := string(p["cursor"]); {
							case cursor == "":
							case cursor == `""` && strings.Contains(test.second, "nextCursor"):
								name, next = "c", ""
							case strings.Contains(test.first, ":"+cursor):
								name, next = "b", test.second
							default:
								return nil, protocol.Errorf(protocol.CodeInvalidParams, "no cursor %s", cursor)
							}
							return json.RawMessage(fmt.Sprintf(`{%q:[{"name":%q,"uri":"x:a","uriTemplate":"x:a","inputSchema":{"type":"object"}}]%s}`, member, name, next)), nil
						}
					}
					behind := mcptest.NewScript(t, back, answers)
					p := start(t, Options{Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
						o.Revisions = []protocol.Revision{back}
						return client.Connect(ctx, behind.Transport(), o)
					}})
					c := mcptest.New(t, p.Server(), mcptest.Revision(front))
					want := test.want
					if back.Modern() {
						want = test.modern
					}
					for method, member := range methods {
						var names []string
						params := map[string]any{"cursor": nil}
						for range 9 {
							var page map[string]json.RawMessage
							var items []struct{ Name string }
							if err := json.Unmarshal(c.Request(method, params), &page); err != nil {
								t.Fatal(err)
							}
							if err := json.Unmarshal(page[member], &items); err != nil {
								t.Fatal(err)
							}
							for _, item := range items {
								names = append(names, item.Name)
							}
							if page["nextCursor"] == nil || string(page["nextCursor"]) == `""` && !front.Modern() {
								break
							}
							params["cursor"] = page["nextCursor"]
						}
						if got := strings.Join(names, " "); got != want {
							t.Errorf("%s: got %s, want %s", method, got, want)
						}
					}
				})
			}
		}
	}
}
