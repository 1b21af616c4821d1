package gateway

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// That a resource does not exist is said in the revision of the client, whatever that of
// the upstream is, and no other error says it.
func TestNotFound(t *testing.T) {
	const legacy, modern = protocol.CodeResourceNotFound, protocol.CodeInvalidParams
	for _, back := range testdep.Revisions() {
		for _, test := range []struct {
			code         protocol.Code
			data         string
			atOld, atNew bool // what it means of a server of that revision: there is no resource
		}{
			{modern, `{"uri":"x:1"}`, false, true},
			{modern, `{"uri":"x:2","more":1}`, false, false},
			{modern, `null`, false, false},
			{legacy, `{"uri":"x:1"}`, true, true},
			{legacy, `null`, true, true},
			{protocol.CodeInternal, `{"uri":"x:1"}`, false, false},
		} {
			fault := &protocol.Error{Code: test.code, Message: "no"}
			if test.data != "null" {
				fault.Data = json.RawMessage(test.data)
			}
			behind := newServer(t, "behind", nil, back)
			behind.MustAdd(mcp.Resource("x:1", func(*mcp.Frame) (string, error) { return "", fault }))
			_, server := start(t, map[string]Upstream{"up": {Transport: local(behind)}})
			for _, front := range testdep.Revisions() {
				t.Run(fmt.Sprintf("%s-%s %d %s", front, back, test.code, test.data), func(t *testing.T) {
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
					c := mcptest.New(t, server, mcptest.Revision(front))
					uri := c.Resources()[0].URI
					_, err := c.TryRead(uri)
					got, ok := err.(*protocol.Error)
					if !ok || got.Code != want {
						t.Fatalf("got %v, want the code %d", err, want)
					}
					var data struct{ URI string }
					raw, _ := got.Data.(json.RawMessage)
					_ = json.Unmarshal(raw, &data) // text has no URI
					if named := data.URI == uri; gone && !named || front.Modern() && want == modern && !gone && named {
						t.Errorf("data %s, and it is %v that there is no resource", raw, gone)
					}
				})
			}
		}
	}
}
