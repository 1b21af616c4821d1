package harness

import (
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// InEach runs a test against s in every revision, through a client whose
// messages are checked.
func InEach(t *testing.T, s *mcp.Server, test func(t *testing.T, rev protocol.Revision, c *mcptest.Client), options ...mcptest.Option) {
	for _, rev := range testdep.Revisions() {
		t.Run(rev.String(), func(t *testing.T) {
			test(t, rev, mcptest.New(t, s, append(options, mcptest.Revision(rev), mcptest.Trace(spectest.New(t).Hear))...))
		})
	}
}

type Sized struct {
	Size int `json:"size"`
}
