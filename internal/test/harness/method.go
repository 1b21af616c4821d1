package harness

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// Talker is a client of one revision that is through with its handshake.
type Talker struct {
	Conversation
	T    testing.TB
	Rev  protocol.Revision
	last int
	Met  string // the answer to initialize or server/discover
}

// Everywhere runs a test for a client of each transport and revision.
func Everywhere(t *testing.T, server func(t *testing.T) *mcp.Server, test func(t *testing.T, c *Talker)) {
	for _, rev := range testdep.Revisions() {
		for _, over := range TransportsOf(rev) {
			t.Run(over.Name+"/"+rev.String(), func(t *testing.T) {
				test(t, Greet(t, over, server(t), rev))
			})
		}
	}
}

func Greet(t testing.TB, over TransportUnderTest, s *mcp.Server, rev protocol.Revision) *Talker {
	c := &Talker{Conversation: over.Open(t, s, rev), T: t, Rev: rev}
	if rev.Modern() {
		c.Met = c.Ask("server/discover", "{}")
	} else {
		c.Met = c.Ask("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, rev))
		c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// Ask sends a request and returns its answer.
func (c *Talker) Ask(method, params string) string {
	c.last++
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.last, method, c.Dress(params))
	answers := c.Say(line)
	for _, answer := range answers {
		CheckSpec(c.T, c.Rev, line, answer)
	}
	return answers[len(answers)-1]
}

// dress adds what the revision wants in the params of each request.
func (c *Talker) Dress(params string) string {
	if !c.Rev.Modern() {
		return params
	}
	meta := fmt.Sprintf(`{"_meta":{%q:%q,%q:{}}`, facts.MetaVersion, c.Rev, facts.MetaCapabilities)
	if params == "{}" {
		return meta + "}"
	}
	return meta + "," + params[1:]
}

func Fault(t testing.TB, answer string) (code int, message string) {
	t.Helper()
	var m struct {
		Error *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Error == nil {
		t.Fatalf("no error: %s", answer)
	}
	return m.Error.Code, m.Error.Message
}
