package session

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// One replica after another takes over the stream of a session, on which messages go
// out that are made there, and that others make: each arrives once, the ids of all
// events of the session are different, and what is made beside the stream costs the
// store one command.
func TestStreamIDs(t *testing.T) {
	const parts, here, there = 50, 10, 10
	takeOvers := testdep.Rounds(20, 100) // of 1,000 messages each
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, 3, newShaky())
		defer r.close()
		id := r.open(0)
		seen := make(map[string]bool)
		unique := func(ids ...string) {
			for _, id := range ids {
				if id == "" || seen[id] {
					t.Fatalf("the id %q twice, after %d", id, len(seen))
				}
				seen[id] = true
			}
		}
		post := func(s *Session, name string, n int) {
			if sent, err := s.Route(t.Context(), fmt.Appendf(nil, `"%s%d"`, name, n)); !sent || err != nil {
				t.Fatalf("message %s%d: %v, %v", name, n, sent, err)
			}
		}
		var g *get
		last, made := "", 0
		for round := range takeOvers {
			at := round % 3
			if s := r.all[at].Local(id); s != nil && round%5 == 0 {
				r.all[at].evictCopy(s, core.ErrSessionIdle) // and comes back, as another copy
			}
			copies := []*Session{r.at(at, id), r.at((at+1)%3, id), r.at((at+2)%3, id)}
			next := r.get(at, id, last)
			synctest.Wait()
			if g != nil {
				g.leave()
			}
			g = next
			for part := range parts {
				for n := range there {
					post(copies[1+n%2], "there", made+n)
				}
				synctest.Wait()
				before := r.store.commands()
				apart := part%2 == 1
				for n := range here {
					post(copies[0], "here", made+n)
					if apart {
						synctest.Wait()
					}
				}
				synctest.Wait()
				// One that comes while the stream sends another has to be read.
				if n := r.store.commands() - before; apart && n != here || n > 2*here {
					t.Fatalf("part %d of round %d: %d messages cost %d commands", part, round, here, n)
				}
				made += here
			}
			var answer sink
			stream := copies[0].OpenStream(&answer, protocol.NewID(7))
			if err := stream.Send([]byte(`"ahead"`)); err != nil {
				t.Fatal(err)
			}
			stream.End([]byte(`"answer"`))
			_, ids := (&get{sink: sink{got: answer.got}}).messages()
			unique(ids...)
			messages, ids := g.messages()
			if want := parts * (here + there); len(messages) != want || g.over() {
				t.Fatalf("round %d has brought %d messages, want %d", round, len(messages), want)
			}
			unique(g.primed...)
			unique(ids...)
			last = ids[len(ids)-1]
		}
		g.leave()
		if want := takeOvers * (parts*(here+there) + 2); len(seen) < want {
			t.Errorf("%d events, want %d", len(seen), want)
		}
	})
}
