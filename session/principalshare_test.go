package session

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Whatever the sessions of one principal do, those of another keep what waits for them, the
// events that they can come back for, and the resources that they subscribe to.
func TestOthersTakeNothing(t *testing.T) {
	testdep.NoRace(t, "it sends gigabytes on one goroutine")
	var messages [2][20][]byte
	for n := range messages[0] {
		messages[0][n], messages[1][n] = fmt.Appendf(nil, `"%0100000d"`, n), fmt.Appendf(nil, `"1%0100000d"`, n)
	}
	fill := map[string]func(s *Session, n int){
		"messages without a stream": func(s *Session, n int) { s.Send(messages[0][n]) },
		"streams that read slowly": func(s *Session, n int) {
			out := s.outbox.newest()
			if out == nil {
				out, _ = listen(s, "")
			}
			s.Send(messages[0][n])
			s.Send(messages[1][n])
			s.next(out)
		},
		"answers on broken connections": func(s *Session, n int) { answerWith(s, 500_000) },
		"questions and messages":        func(s *Session, n int) { answerWith(s, 500_000); s.Send(messages[0][n]) },
		"resources": func(s *Session, n int) {
			s.Subscribe(fmt.Sprintf("mem:%09000d", n), 1000)
		},
	}
	for name, fill := range fill {
		for _, principals := range [][2]string{{"mallory", "alice"}, {"", "alice"}, {"mallory", ""}} {
			t.Run(fmt.Sprintf("%s/%q by %q", name, principals[1], principals[0]), func(t *testing.T) {
				m := NewManager(Config{Memory: 16 << 20, MaxEvent: 1 << 20, URIMemory: 16 << 20})
				defer m.Close(context.Background(), core.ErrSessionClosed)
				open := func(principal string) *Session {
					s, err := openFor(m, principal)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				first := open(principals[1])
				first.Send([]byte(`"waits"`))
				var sent sink
				st := first.OpenStream(&sent, protocol.ID{})
				sendAll(t, st, "a")
				sendAll(t, st, "b")
				st.End([]byte("end"))
				sent.want(t, "1-1= 1-2=a 1-3=b 1-4=end")
				for range 100 {
					s := open(principals[0])
					for n := range messages[0] {
						fill(s, n)
					}
				}
				var again sink
				if _, _, err := first.history.resume("1-1", &again, nil); err != nil {
					t.Error(err)
				}
				again.want(t, "1-2=a 1-3=b 1-4=end")
				out, _ := listen(first, "")
				if !first.Send([]byte(`"comes"`)) {
					t.Error("a message was refused")
				}
				if got := take(first, out); got != `"waits" "comes"` {
					t.Errorf("the reader got %s", got)
				}
				if !first.Subscribe("mem:one", 10) || !open(principals[1]).Subscribe("mem:two", 10) {
					t.Error("there is no room for the URI of a resource")
				}
			})
		}
	}
}

// Principals without sessions have no account, and no share if they are not limited.
func TestAccounts(t *testing.T) {
	m := NewManager(Config{Memory: 16 << 20, URIMemory: 16 << 20, MaxPerPrincipal: -1})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	for n := range 1000 {
		s, err := openFor(m, fmt.Sprint(n%10))
		if err != nil {
			t.Fatal(err)
		}
		s.Send([]byte(`"waits"`))
		answerWith(s, 100)
		s.Subscribe("mem:one", 10)
		if n == 999 && (len(m.budget.accounts) != 1 || m.budget.accounts["9"].share() != 16<<20) {
			t.Errorf("%d accounts", len(m.budget.accounts))
		}
		if ok, err := m.end(context.Background(), s.ID(), core.ErrSessionDeleted); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(m.budget.accounts) != 0 || m.budget.used != 0 || m.budget.queued != 0 || m.uris.Used() != 0 {
		t.Errorf("%d accounts, %d bytes used, %d queued, %d of URIs", len(m.budget.accounts), m.budget.used, m.budget.queued, m.uris.Used())
	}
}

// That a list has changed reaches a client that is too far behind, without the members for
// which there is no room.
func TestChangeWithMembers(t *testing.T) {
	for i, topic := range topics.SessionTopics {
		bare := string(wire.AppendNotification(nil, topic, nil))
		with := wire.AppendNotification(nil, topic, []byte(`{"_meta":{"acme/why":"deploy"}}`))
		s := openSession(t, NewManager(Config{Memory: 1 << 20}))
		if !s.Send(with) {
			t.Error("there is room")
		}
		for n := 0; s.Send(fmt.Appendf(nil, `"%d"`, n)); n++ {
		}
		next := topics.SessionTopics[(i+1)%len(topics.SessionTopics)]
		if !s.Send(wire.AppendNotification(nil, next, []byte(`{"_meta":{"acme/why":"deploy"}}`))) {
			t.Error("a change was refused")
		}
		s.dropUnread()
		out, _ := listen(s, "")
		var got []string
		for _, m, _ := s.next(out); m != nil; _, m, _ = s.next(out) {
			got = append(got, string(m))
		}
		if want := []string{bare, string(wire.AppendNotification(nil, next, nil))}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
