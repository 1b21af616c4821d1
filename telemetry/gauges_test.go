package telemetry_test

import (
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/telemetry"
)

// TestGauges: what a server has is told while there is a session and a call, and
// nothing of it after stop.
func TestGauges(t *testing.T) {
	told := newCollector()
	s := calc(nil)
	var during map[string]int
	s.MustAdd(mcp.Tool("look", func(*mcp.Frame, struct{}) (string, error) {
		during = told.series(t, "talaria.server.active_requests")
		return "", nil
	}))
	stop, err := telemetry.Server(s, told.options())
	if err != nil {
		t.Fatal(err)
	}
	c := mcptest.New(t, s, mcptest.OverHTTP(), mcptest.Revision(protocol.V20250618))
	c.Call("look", nil)
	if during[""] != 1 {
		t.Errorf("during a call the requests are %v", during)
	}
	if got := told.series(t, "talaria.server.limit.used"); got["talaria.limit=sessions"] != 1 || len(got) != 4 {
		t.Errorf("with a session there is %v", got)
	}
	if got := told.series(t, "talaria.server.limit.max"); got["talaria.limit=sessions"] == 0 {
		t.Errorf("the limits are %v", got)
	}
	if got := told.series(t, "talaria.server.draining"); got[""] != 0 || len(got) != 1 {
		t.Errorf("draining is %v", got)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := told.series(t, "talaria.server.draining"); got[""] != 1 {
		t.Errorf("after the end, draining is %v", got)
	}
	if got := told.series(t, "talaria.server.limit.used"); got["talaria.limit=sessions"] != 0 {
		t.Errorf("after the end there is %v", got)
	}
	if got := told.series(t, "mcp.server.session.duration"); len(got) != 1 {
		t.Errorf("the session's duration is %v", got)
	}
	stop()
	stop()
	if got := told.series(t, "talaria.server.draining"); len(got) != 0 {
		t.Errorf("after stop there is %v", got)
	}
}
