package replica_test

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/replica"
)

func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := replica.NewID()
		if !replica.IsID(id) || seen[id] {
			t.Fatalf("%q: its own form %v, seen before %v", id, replica.IsID(id), seen[id])
		}
		seen[id] = true
	}
	one := replica.NewID()[:21]
	for _, text := range []string{
		"", "x", one, one + "AA", one + "B", one + "=", one + "\x00", one[:20] + "\r\n", one[:20] + "é", strings.Repeat("A", 1<<20), "../../../../etc/passwd",
	} {
		if replica.IsID(text) {
			t.Errorf("%.40q is taken for an id", text)
		}
	}
}
