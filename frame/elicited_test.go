package frame

import (
	"context"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

// The id of a URL question is that of one request and one key, and there where
// the revision has such ids.
func TestElicitationID(t *testing.T) {
	for _, rev := range protocol.Revisions() {
		one, two := newFrame(context.Background(), core.Config{Revision: rev}), newFrame(context.Background(), core.Config{Revision: rev})
		id := one.ElicitationID("login")
		if rev != protocol.V20251125 {
			if id != "" {
				t.Errorf("%v: id %q", rev, id)
			}
			continue
		}
		if id == "" || id != one.WithContext(t.Context()).ElicitationID("login") {
			t.Errorf("id %q is not that of the request", id)
		}
		if id == one.ElicitationID("pay") || id == two.ElicitationID("login") {
			t.Errorf("id %q is that of another question, too", id)
		}
	}
}
