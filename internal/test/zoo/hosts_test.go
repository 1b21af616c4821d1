package zoo

import (
	"testing"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/protocol"
)

// Of what hosts refuse or change, a schema that is made from a type has names of
// members, which are the author's, recursion, and values of any type.
func TestHostsTakeTheZoo(t *testing.T) {
	types, bytes := map[string]map[string]bool{}, 0
	for _, c := range Cases() {
		tool := protocol.Tool{Name: "t", Description: "d", InputSchema: c.Plan.Internal(facts.Private{}).Narrow}
		bytes += len(tool.InputSchema)
		for _, f := range hostrules.Check("", []protocol.Tool{tool}) {
			if !f.Rule.Fails {
				continue
			}
			if types[f.Rule.ID] == nil {
				types[f.Rule.ID] = map[string]bool{}
			}
			types[f.Rule.ID][c.Group+" "+c.Name] = true
			if f.Rule.ID != "member" && f.Rule.ID != "ref" && f.Rule.ID != "type-none" {
				t.Errorf("%s %s: %s at %s: %s", c.Group, c.Name, f.Rule.ID, f.Path, tool.InputSchema)
			}
		}
	}
	if len(types["member"]) != 5 || len(types["ref"]) != 10 || len(types["type-none"]) != 9 {
		t.Errorf("%d types have such names, want 5; %d recur, want 10; %d have values of any type, want 9", len(types["member"]), len(types["ref"]), len(types["type-none"]))
	}
	t.Logf("%d types, %d bytes", len(Cases()), bytes)
}
