package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

// From 2025-11-25 on a stream begins with an event that has an id and no message,
// where clients may come back at all: by that id they get what was sent to a
// connection that was broken before anything had come on it, also elsewhere.
func TestStreamsArePrimed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rev     protocol.Revision
		history int
		at      int // the replica where the client comes back
		primed  bool
	}{
		{"before", protocol.V20250618, 0, 0, false},
		{"primed", protocol.V20251125, 0, 0, true},
		{"primed, and back elsewhere", protocol.V20251125, 0, 1, true},
		{"clients do not come back", protocol.V20251125, -1, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplicas(t, 2, newShaky())
				defer r.close()
				r.all[0].config.History = tt.history
				if tt.history == 0 {
					r.all[0].config.History = defaultHistory
				}
				s, err := r.all[0].Open(t.Context(), core.ClientInfo{Revision: tt.rev})
				if err != nil {
					t.Fatal(err)
				}
				first := serve(s, "")
				synctest.Wait()
				if got := len(first.primed); got > 1 || got == 1 != tt.primed {
					t.Fatalf("%d events without a message", got)
				}
				if !tt.primed {
					first.leave()
					return
				}
				r.post(0, s.ID(), "a") // which the client does not get
				time.Sleep(time.Second)
				again := r.get(tt.at, s.ID(), first.primed[0])
				time.Sleep(time.Second)
				again.wantMessages(t, "a")
				if len(again.primed) > 0 { // at whichever replica
					t.Errorf("a stream that goes on is primed: %q", again.primed)
				}
				again.leave()
				first.leave()
			})
		})
	}
}
