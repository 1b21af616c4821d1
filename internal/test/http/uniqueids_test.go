package http_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// Two processes that do the same give what leaves them no id twice: a client, a
// store or a proxy may know both.
func TestIDsOfTwoProcesses(t *testing.T) {
	seen := map[string]string{}
	for _, process := range []string{"first", "second"} {
		s := harness.Fixture(t, nil)
		web := harness.WebAs(t, s, "", nil)
		m := tasks.NewManager(tasks.Config{}, nil)
		for range 3 {
			opened := web.Send(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+harness.Hello("2025-11-25")+`}}`)
			task, err := m.Create("", time.Hour, 0, func(error) {})
			if err != nil {
				t.Fatal(err)
			}
			for kind, id := range map[string]string{
				"session": opened.Header.Get("Mcp-Session-Id"), "stream": harness.OpenSSE(t, s, protocol.LatestLegacy).(*harness.SSEClient).Endpoint, "task": task.Record().ID,
			} {
				if other := seen[id]; other != "" || id == "" {
					t.Errorf("%s %q of the %s process is a %s, too", kind, id, process, other)
				}
				seen[id] = kind + " of the " + process
			}
		}
	}
}
