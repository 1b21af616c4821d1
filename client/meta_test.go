package client

import (
	"encoding/json"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// What Meta adds reaches the handler, and takes nothing of the protocol's place.
func TestMeta(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		s.MustAdd(mcp.Tool("meta", func(f *mcp.Frame, _ struct{}) (string, error) {
			return string(jsonx.Lookup(f.Request().Params.Raw, []string{"_meta"})), nil
		}))
		c := connect(t, serving(t, s), only(rev))
		result, err := c.Call(t.Context(), "meta", nil, Meta("example.com/trace", map[string]any{"id": 7}), Meta("example.com/n", 1),
			Meta(facts.MetaVersion, "1999-01-01"), OnProgress(func(Progress) {}))
		if err != nil {
			t.Fatal(err)
		}
		var meta struct {
			Trace struct{ ID int } `json:"example.com/trace"`
			N     int              `json:"example.com/n"`
			Token json.RawMessage  `json:"progressToken"`
			Raw   string           `json:"io.modelcontextprotocol/protocolVersion"`
		}
		if err := json.Unmarshal([]byte(result.Text()), &meta); err != nil {
			t.Fatalf("%q: %v", result.Text(), err)
		}
		if meta.Trace.ID != 7 || meta.N != 1 || meta.Token == nil || meta.Raw == "1999-01-01" || rev.Modern() != (meta.Raw == rev.String()) {
			t.Errorf("_meta is %s", result.Text())
		}
		if _, err := c.Call(t.Context(), "meta", nil, Meta("example.com/bad", make(chan int))); err == nil {
			t.Error("a value that is no JSON was sent")
		}
	})
}
