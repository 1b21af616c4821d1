package asking_test

import (
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// The answer to one question is never taken for that to another: a key that is
// used twice is an error, in every revision and before the second is asked.
func TestAskKeysAreUsedOnce(t *testing.T) {
	s := askingServer(new(atomic.Int64))
	deleteTwo := func(f *mcp.Frame, _ struct{}) (string, error) {
		for _, name := range []string{"a", "b"} {
			if _, err := mcp.Elicit[cupOrder](f, "sure", "Delete "+name+"?"); err != nil {
				return "", err
			}
		}
		return "deleted both", nil
	}
	s.MustAdd(
		mcp.Tool("delete", deleteTwo),
		mcp.Tool("nameless", func(f *mcp.Frame, _ struct{}) (string, error) {
			_, err := mcp.Elicit[cupOrder](f, "", "Sure?")
			return "", err
		}),
	)
	askedEverywhere(t, protocol.V20250618, func(t *testing.T, rev protocol.Revision, options ...mcptest.Option) {
		c := harness.NewAsked(t, s, rev, append(options, elicits(client.Accept(cupOrder{"large", 1})))...)
		const want = `isError mcp: the key "sure" is that of an earlier question of this request; give each a key of its own, such as "sure2"`
		if got := harness.Outcome(c.Client, "delete"); got != want || c.Questions() != 1 {
			t.Errorf("got %q after %d questions", got, c.Questions())
		}
		if got := harness.Outcome(c.Client, "nameless"); got != "isError mcp: a question needs a key, which tells it from the others of its request" {
			t.Errorf("without a key: %q", got)
		}
	})
}
