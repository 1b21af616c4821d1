package harness

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// asked is a conversation whose messages are checked against the schemas.
type asked struct {
	*mcptest.Client
	mu   sync.Mutex
	Sent int      // requests of the client
	Got  []string // methods that the server asked
}

func NewAsked(t *testing.T, s *mcp.Server, rev protocol.Revision, options ...mcptest.Option) *asked {
	a := &asked{}
	watch := spectest.NewHostile(t) // some answers are wrong on purpose
	a.Client = mcptest.New(t, s, append(options, mcptest.Revision(rev), mcptest.Trace(func(fromServer bool, message []byte) {
		watch.Hear(fromServer, message)
		var m struct {
			ID     json.RawMessage
			Method string
			Result struct {
				InputRequests map[string]struct{ Method string }
			}
		}
		_ = json.Unmarshal(message, &m) // most results are of another kind
		a.mu.Lock()
		defer a.mu.Unlock()
		switch asks := m.Method != "" && m.ID != nil; {
		case asks && !fromServer:
			a.Sent++
		case asks:
			a.Got = append(a.Got, m.Method)
		}
		for _, q := range m.Result.InputRequests {
			a.Got = append(a.Got, q.Method)
		}
	}))...)
	return a
}

// questions returns how often the client was asked.
func (a *asked) Questions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.Got)
}

// Outcome is what a call has come to: its text, or its error.
func Outcome(c *mcptest.Client, name string) string {
	r, err := c.TryCall(name, nil)
	switch {
	case err != nil:
		return "error " + err.Error()
	case r.IsError:
		return "isError " + r.Text()
	}
	return r.Text()
}
