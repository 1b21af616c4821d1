package harness

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// SpecWatch checks every message that a client hears. rev is what the client
// means to speak, until initialize has settled it.
type SpecWatch struct {
	T   testing.TB
	Rev protocol.Revision
}

// Heard checks what came back for asked, and returns it.
func (w *SpecWatch) heard(asked string, answers ...string) []string {
	w.T.Helper()
	asked = strings.TrimLeft(asked, "\ufeff")
	for _, answer := range answers {
		var m struct {
			Result struct{ ProtocolVersion string }
		}
		if json.Unmarshal([]byte(answer), &m) == nil && strings.Contains(asked, `"initialize"`) {
			if rev, ok := protocol.ParseRevision(m.Result.ProtocolVersion); ok {
				w.Rev = rev
			}
		}
		rev := w.Rev
		if strings.Contains(asked, facts.MetaVersion) && !strings.Contains(asked, `"initialize"`) && !wire.IsBatch([]byte(asked)) {
			rev = protocol.Latest
		}
		if rev == 0 {
			rev = protocol.LatestLegacy
		}
		CheckSpec(w.T, rev, asked, answer)
	}
	return answers
}

// CheckSpec checks a message of the server, or a batch of them, against the
// official schema of its revision.
func CheckSpec(t testing.TB, rev protocol.Revision, asked, answer string) {
	t.Helper()
	spectest.Check(t, rev, asked, answer)
}
