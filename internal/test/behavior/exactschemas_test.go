package behavior_test

import (
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// ruled has rules that some host does not take as keywords.
type ruled struct {
	Code  string         `json:"code,omitempty" validate:"ne=root" jsonschema:"pattern=^[a-z\\-]+$"`
	Level *int           `json:"level" jsonschema:"nullable,enum=1,enum=5,default=5"`
	Names map[string]int `json:"names,omitempty" validate:"dive,keys,alpha,endkeys"`
	Big   uint64         `json:"big,omitempty"`
	Wait  time.Duration  `json:"wait,omitempty" mcp:"unit=s" validate:"gt=1s"`
	Other string         `json:"other,omitempty" validate:"required_with=Code"`
}

// What hosts do not take is said in words unless ExactSchemas is set, and calls are
// judged alike. A mounted server keeps its own choice.
func TestExactSchemas(t *testing.T) {
	server := func(exact bool) *mcp.Server {
		s := harness.Bare(mcp.Options{ExactSchemas: exact})
		s.MustAdd(mcp.Tool("set", func(_ *mcp.Frame, in ruled) (ruled, error) { return in, nil }))
		return s
	}
	const narrow = `{"type":"object","properties":{` +
		`"code":{"type":"string","description":"Must be a string other than \"root\".","pattern":"^[a-z-]+$"},` +
		`"level":{"description":"Must be one of 1, 5.","anyOf":[{"type":"integer","maximum":5,"minimum":1},{"type":"null"}],"default":5},` +
		`"names":{"type":"object","description":"Each name must be text made of the letters a-z and A-Z only.","additionalProperties":{"type":"integer"}},` +
		`"big":{"type":"integer","minimum":0},"wait":{"type":"integer","description":"In seconds.","maximum":9223372036,"minimum":2},` +
		`"other":{"type":"string","description":"Required when code is given."}},"additionalProperties":false}`
	const exact = `{"type":"object","properties":{` +
		`"code":{"type":"string","not":{"const":"root"},"pattern":"^[a-z\\-]+$"},` +
		`"level":{"type":["integer","null"],"enum":[1,5,null],"default":5},` +
		`"names":{"type":"object","additionalProperties":{"type":"integer","format":"int64"},"propertyNames":{"type":"string","pattern":"^[a-zA-Z]+$"}},` +
		`"big":{"type":"integer","minimum":0,"format":"uint64"},"wait":{"type":"integer","description":"In seconds.","maximum":9223372036,"minimum":-9223372036,"exclusiveMinimum":1},` +
		`"other":{"type":"string","description":"Required when code is given."}},"additionalProperties":false,` +
		`"dependentSchemas":{"code":{"properties":{"other":{"minLength":1}},"required":["other"]}}}`
	parent := harness.Bare(mcp.Options{})
	parent.MustAdd(mcp.Tool("set", func(_ *mcp.Frame, in ruled) (ruled, error) { return in, nil }))
	if err := parent.Mount("own", server(true)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		server *mcp.Server
		want   map[string]string
	}{
		{server(false), map[string]string{"set": narrow}},
		{server(true), map[string]string{"set": exact}},
		{parent, map[string]string{"set": narrow, "own_set": exact}},
	} {
		harness.InEach(t, tt.server, func(t *testing.T, _ protocol.Revision, c *mcptest.Client) {
			for _, tool := range c.Tools() {
				if got := string(tool.InputSchema); got != tt.want[tool.Name] {
					t.Errorf("%s is\n%s\nwant\n%s", tool.Name, got, tt.want[tool.Name])
				}
				good := map[string]any{"code": "a-b", "other": "x", "level": nil, "wait": 2, "names": map[string]int{"a": 1}}
				if r, err := c.TryCall(tool.Name, good); err != nil || r.IsError {
					t.Errorf("%s refuses %v: %v, %v", tool.Name, good, r, err)
				}
				for _, bad := range []map[string]any{
					{"code": "root", "other": "x"}, {"code": "A", "other": "x"}, {"code": "a"}, {"level": 3}, {"names": map[string]int{"1": 1}}, {"wait": 1}, {"big": -1},
				} {
					if r, err := c.TryCall(tool.Name, bad); err == nil && !r.IsError {
						t.Errorf("%s takes %v", tool.Name, bad)
					}
				}
			}
		})
	}
}
