package session

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testproc"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// openNamed opens a session of a client with a name of its own of size bytes.
func openNamed(t *testing.T, m *Manager, n, size int) *Session {
	t.Helper()
	name := fmt.Sprintf("%0*d", size, n)
	s, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125, Info: &protocol.Implementation{Name: name}, Cost: size})
	if err != nil {
		t.Fatal(err)
	}
	s.Use()
	_ = s.Release()
	return s
}

// freed fails if much more is reachable than before.
func freed(t *testing.T, before int) {
	t.Helper()
	after := heap()
	t.Logf("%d bytes before, %d after", before, after)
	if after > before+before/10 {
		t.Errorf("%d bytes are reachable, and %d were", after, before)
	}
}

// The memory of a session is free once the session has ended, however it ends and
// whether or not others begin.
func TestEndedSessionsAreFreed(t *testing.T) {
	if !testproc.Isolated(t) {
		return
	}
	ends := map[string]func(t *testing.T, m *Manager, all []*Session){
		"idle": func(*testing.T, *Manager, []*Session) { time.Sleep(2 * time.Hour) },
		"deleted": func(t *testing.T, m *Manager, all []*Session) {
			for _, s := range all {
				if ok, err := m.end(t.Context(), s.ID(), core.ErrSessionDeleted); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
		},
		"closed with a connection": func(_ *testing.T, m *Manager, all []*Session) {
			for _, s := range all {
				_ = m.Stop(s, core.ErrSessionClosed)
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := NewManager(Config{IdleTimeout: time.Hour})
				defer m.Close(context.Background(), core.ErrSessionClosed)
				end(t, m, []*Session{openNamed(t, m, 0, 1000)})
				before := heap()
				all := make([]*Session, 20_000)
				for i := range all {
					all[i] = openNamed(t, m, i, 1000)
					all[i].Send([]byte(strings.Repeat("x", 100)))
				}
				end(t, m, all)
				if all = nil; m.Len() != 0 {
					t.Errorf("%d sessions", m.Len())
				}
				freed(t, before)
			})
		})
	}
	t.Run("churn beside live ones", func(t *testing.T) {
		m := NewManager(Config{})
		defer m.Close(context.Background(), core.ErrSessionClosed)
		for n := range 9000 {
			openNamed(t, m, n, 10)
		}
		before := heap()
		for n := range testdep.Rounds(18_000, 100_000) {
			if ok, err := m.end(t.Context(), openNamed(t, m, n, 30_000).ID(), core.ErrSessionDeleted); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		freed(t, before)
		if m.fresh.Len() != 9000 {
			t.Errorf("%d sessions are remembered as new", m.fresh.Len())
		}
	})
}

// Sessions whose clients do not read take no message from one that reads at once,
// and no session loses that a list has changed.
func TestSilentSessions(t *testing.T) {
	testdep.NoRace(t, "it sends two million messages on one goroutine")
	for name, silence := range map[string]func(s *Session){
		"without a stream":     func(*Session) {},
		"streams without read": func(s *Session) { listen(s, "") },
	} {
		for _, principal := range []string{"", "same", "other"} {
			t.Run(name+"/"+principal, func(t *testing.T) {
				dropped := 0
				m := NewManager(Config{Memory: 16 << 20, Dropped: func(_ *Session, n int) { dropped += n }})
				defer m.Close(context.Background(), core.ErrSessionClosed)
				open := func(principal string) *Session {
					s, err := openFor(m, principal)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				var silent []*Session
				for range 225 {
					s := open(strings.Replace(principal, "other", "same", 1))
					silence(s)
					silent = append(silent, s)
				}
				reader := open(principal)
				out, _ := listen(reader, "")
				change := wire.AppendNotification(nil, topics.SessionTopics[0], nil)
				got, refused := 0, 0
				for n := range 1500 {
					message := fmt.Appendf(nil, `"%01300d"`, n)
					for _, s := range silent {
						if !s.Send(message) {
							refused++
						}
					}
					if n == 700 {
						for _, s := range append(silent, reader) {
							if !s.Send(change) {
								t.Fatal("the change of a list was refused")
							}
						}
					}
					if !reader.Send(message) {
						t.Fatalf("message %d was refused", n)
					}
					for _, text, _ := reader.next(out); text != nil; _, text, _ = reader.next(out) {
						got++
					}
				}
				if got != 1501 || refused == 0 {
					t.Errorf("the reader got %d of 1501 messages; %d of others were refused, %d dropped", got, refused, dropped)
				}
				for i, s := range silent {
					queue := *s.outbox.queue()
					if n := len(queue); n == 0 || !containsMessage(queue, change) {
						t.Fatalf("session %d lost the change of a list: %d messages wait", i, n)
					}
				}
				for _, s := range append(silent, reader) {
					_ = m.Stop(s, core.ErrSessionDeleted)
				}
				if m.budget.used != 0 || m.budget.queued != 0 || m.budget.unread.Len() != 0 {
					t.Errorf("%d bytes are used, %d by what waits, for %d sessions", m.budget.used, m.budget.queued, m.budget.unread.Len())
				}
			})
		}
	}
}

func containsMessage(queue [][]byte, message []byte) bool {
	for _, m := range queue {
		if string(m) == string(message) {
			return true
		}
	}
	return false
}
