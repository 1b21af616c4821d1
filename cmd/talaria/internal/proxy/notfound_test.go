package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// TestNotFound checks that a client of any revision can tell a resource that does not
// exist from refused arguments, at a server of any revision.
func TestNotFound(t *testing.T) {
	const legacy, modern = protocol.CodeResourceNotFound, protocol.CodeInvalidParams
	for _, back := range protocol.Revisions() {
		for _, front := range protocol.Revisions() {
			for _, test := range []struct {
				code         protocol.Code
				data         string
				atOld, atNew bool // what it means of a server of that revision: there is no resource
			}{
				{modern, `{"uri":"x:1"}`, false, true},
				{modern, `{"uri":"x:1","more":1}`, false, true},
				{modern, `{"uri":"x:2","more":1}`, false, false},
				{modern, `"x:1"`, false, false},
				{modern, `null`, false, false},
				{legacy, `{"uri":"x:1"}`, true, true},
				{legacy, `null`, true, true},
				{protocol.CodeInternal, `{"uri":"x:1"}`, false, false},
			} {
				t.Run(fmt.Sprintf("%s-%s %d %s", front, back, test.code, test.data), func(t *testing.T) {
					fault := &protocol.Error{Code: test.code, Message: "no"}
					if test.data != "null" {
						fault.Data = json.RawMessage(test.data)
					}
					behind := mcptest.NewScript(t, back, map[string]func(json.RawMessage) (any, error){
						protocol.MethodResourcesRead: func(json.RawMessage) (any, error) { return nil, fault },
					})
					p := start(t, Options{Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
						o.Revisions = []protocol.Revision{back}
						return client.Connect(ctx, behind.Transport(), o)
					}})
					gone := test.atOld
					if back.Modern() {
						gone = test.atNew
					}
					want := test.code
					switch {
					case gone && front.Modern():
						want = modern
					case gone:
						want = legacy
					}
					c := mcptest.New(t, p.Server(), mcptest.Revision(front))
					_, err := c.TryRead("x:1")
					got, ok := err.(*protocol.Error)
					if !ok || got.Code != want {
						t.Fatalf("got %v, want the code %d", err, want)
					}
					var data struct{ URI string }
					raw, _ := got.Data.(json.RawMessage)
					_ = json.Unmarshal(raw, &data) // text has no URI
					if named := data.URI == "x:1"; gone && !named || front.Modern() && want == modern && !gone && named {
						t.Errorf("data %s, and it is %v that there is no resource", raw, gone)
					}
				})
			}
		}
	}
}
