package hostile_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// trapTools are those of TrapServer that do not return.
var trapTools = []string{"handler", "text", "json", "structrule", "rule", "format", "result", "error", "data"}

var unreturnedBehaviours = []harness.Behavior{
	{What: "code in a call that does not return", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		for _, name := range trapTools {
			for way := range harness.Ways {
				var log harness.LogText
				p := harness.Join(t, tr, rev, harness.TrapServer(&log, mcp.Options{}))
				answer := p.AskAs(`"p"`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{"way":%q}`, name, way))
				p.Want(answer, `{"jsonrpc":"2.0","id":"p","error":{"code":-32603,"message":"Internal error: the handler panicked"}}`)
				p.Want(p.Ask("tools/call", `"name":"fine"`), "all is well")
				if got := log.String(); !strings.Contains(got, "ways") && !strings.Contains(got, "goroutine") {
					t.Errorf("%s, %s: the log has no stack: %s", name, way, got)
				}
			}
		}
	}},
	{What: "more calls that end their goroutines than may run", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		p := harness.Join(t, tr, rev, harness.TrapServer(io.Discard, mcp.Options{Limits: mcp.Limits{Concurrent: 2}}))
		for range 5 {
			p.Want(p.Ask("tools/call", `"name":"handler","arguments":{"way":"goexit"}`), `"code":-32603`)
		}
		p.Want(p.Ask("tools/call", `"name":"fine"`), "all is well")
	}},
}

func TestCodeThatDoesNotReturn(t *testing.T) { harness.RunBehaviors(t, unreturnedBehaviours) }

// What a task does not return from makes it fail, and nothing else.
func TestTasksThatDoNotReturn(t *testing.T) {
	for _, transport := range harness.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			var log harness.LogText
			s := harness.TrapServer(&log, mcp.Options{Limits: mcp.Limits{TasksRunning: 1}}, mcp.AsTask(&mcp.TaskOptions{Wait: -1}))
			c := &harness.TaskClient{T: t, C: transport.Open(t, s, protocol.Latest)}
			for _, name := range trapTools {
				for way := range harness.Ways {
					task := c.Ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"way":%q}`, name, way)).Result
					got := c.Until(task.TaskID, "completed", "failed")
					if got.Result.Status != "failed" || got.Result.Error == nil || got.Result.Error.Code != -32603 ||
						got.Result.StatusMessage != "Internal error: the handler panicked" {
						t.Errorf("%s, %s: %+v", name, way, got)
					}
				}
			}
			if got := strings.Count(log.String(), "handler panicked"); got < len(trapTools)*len(harness.Ways) {
				t.Errorf("the log tells of %d of %d failures", got, len(trapTools)*len(harness.Ways))
			}
		})
	}
}

// A handler with a time limit runs on a goroutine of its own, whose end is not
// the end of the time.
func TestLimitedCallsThatDoNotReturn(t *testing.T) {
	p := harness.Join(t, harness.Transports[0], protocol.Latest, harness.TrapServer(io.Discard, mcp.Options{Timeouts: mcp.Timeouts{Call: time.Hour}}))
	for way := range harness.Ways {
		p.Want(p.Ask("tools/call", fmt.Sprintf(`"name":"handler","arguments":{"way":%q}`, way)), `"code":-32603`)
	}
}
