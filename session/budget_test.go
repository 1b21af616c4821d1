package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// heap returns what is reachable now, in bytes.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

func openSession(t *testing.T, m *Manager) *Session {
	t.Helper()
	s, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var long = make([]byte, 5<<20)

// answerWith answers a call with size bytes, after one message ahead of the
// answer, to a client whose connection is gone.
func answerWith(s *Session, size int) {
	st := s.OpenStream(&sink{broken: true}, protocol.ID{})
	_ = st.Send([]byte("ahead")) // the stream is not over
	st.End(long[:size])
}

// All that sessions keep of messages stays within Config.Memory, whatever the
// messages are.
func TestMemoryOfAllSessions(t *testing.T) {
	testdep.NoRace(t, "it measures memory")
	const memory, maxEvent, sessions = 4 << 20, 1 << 20, 100
	for name, fill := range map[string]func(*testing.T, *Session){
		"answers that are too long to keep": func(_ *testing.T, s *Session) { answerWith(s, 5<<20) },
		"answers of the greatest length":    func(_ *testing.T, s *Session) { answerWith(s, maxEvent) },
		"answers of no length": func(_ *testing.T, s *Session) {
			for range 2 * maxRecords {
				s.OpenStream(&sink{broken: true}, protocol.ID{}).End(nil)
			}
		},
		"messages without a stream": func(t *testing.T, s *Session) {
			for i := range 2 * maxQueued {
				s.Send(fmt.Appendf(make([]byte, 100<<10), "%d", i))
			}
		},
		"one long message without a stream": func(t *testing.T, s *Session) { s.Send(make([]byte, 3<<20)) },
		"messages for a stream that nobody reads": func(t *testing.T, s *Session) {
			listen(s, "")
			for i := range 2 * maxQueued {
				s.Send(fmt.Appendf(make([]byte, 60<<10), "%d", i))
			}
		},
		"messages that a stream took": func(t *testing.T, s *Session) {
			out, _ := listen(s, "")
			for i := range 2 * maxQueued {
				if s.Send(fmt.Appendf(make([]byte, 60<<10), "%d", i)) {
					s.next(out)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewManager(Config{Memory: memory, MaxEvent: maxEvent})
			defer m.Close(context.Background(), core.ErrSessionClosed)
			var all []*Session
			for range sessions {
				all = append(all, openSession(t, m))
			}
			before := heap()
			for _, s := range all {
				fill(t, s)
			}
			// The rest is what a session costs with streams and without messages.
			got, limit := heap()-before, memory+memory/4+sessions*8<<10
			t.Logf("%d bytes, %d in the budget", got, m.budget.used)
			if got > limit || m.budget.used > memory {
				t.Errorf("sessions keep %d bytes, more than %d; the budget says %d", got, limit, m.budget.used)
			}
			for _, s := range all {
				_, _ = m.end(context.Background(), s.ID(), core.ErrSessionDeleted)
			}
			if m.budget.used != 0 || m.budget.histories.Len() != 0 {
				t.Errorf("sessions that ended left %d bytes and %d places", m.budget.used, m.budget.histories.Len())
			}
		})
	}
}

// What is too long to keep makes coming back for it an error that says so; the
// rest of the session goes on.
func TestEventTooLongToKeep(t *testing.T) {
	m := NewManager(Config{MaxEvent: 100})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	s := openSession(t, m)
	var first, again sink
	st := s.OpenStream(&first, protocol.ID{})
	sendAll(t, st, "a")
	st.End(make([]byte, 101))
	if _, _, err := s.history.resume("1-2", &again, nil); !errors.Is(err, errNotKept) {
		t.Errorf("Resume: %v", err)
	}
	again.want(t, "")
	if _, _, err := s.history.resume("1-3", &again, nil); err != nil {
		t.Errorf("Resume after all: %v", err)
	}
	open := s.OpenStream(&first, protocol.ID{})
	if err := open.Send(make([]byte, 101)); err != nil {
		t.Error(err)
	}
	if _, _, err := s.history.resume("2-1", &again, nil); !errors.Is(err, errNotKept) {
		t.Errorf("Resume of an open stream: %v", err)
	}
	if _, _, err := s.history.resume("2-2", &again, nil); err != nil {
		t.Errorf("Resume after what was too long: %v", err)
	}
	again.want(t, "")
	open.End([]byte("end"))
	again.want(t, "2-3=end")
}

// Sessions that use the budget at the same time neither wait for each other
// for ever nor count wrongly.
func TestMemoryConcurrent(t *testing.T) {
	m := NewManager(Config{Memory: 64 << 10, MaxEvent: 8 << 10})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	var wg sync.WaitGroup
	var all []*Session
	for i := range 8 {
		s := openSession(t, m)
		all = append(all, s)
		wg.Go(func() {
			for n := range 300 {
				st := s.OpenStream(&sink{}, protocol.ID{})
				if st == nil {
					return // it has ended, below
				}
				_ = st.Send(make([]byte, n*i))
				out, leave := listen(s, "")
				s.Send(fmt.Appendf(nil, "%d %0*d", n, n*8, 1))
				s.next(out)
				leave()
				st.End(make([]byte, n))
				if n == 250 && i%2 == 0 {
					_, _ = m.end(context.Background(), s.ID(), core.ErrSessionDeleted)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range all {
		_, _ = m.end(context.Background(), s.ID(), core.ErrSessionDeleted)
	}
	if m.budget.used != 0 {
		t.Errorf("%d bytes are left of nothing", m.budget.used)
	}
}

// The bytes of a principal count until they are given back, also when it has no session.
func TestAccountWithoutSessions(t *testing.T) {
	var b memoryBudget
	b.setLimit(10*leastShare, 0)
	a := b.open("p")
	if !a.reserve(leastShare) {
		t.Fatal("no room")
	}
	a.close()
	if again := b.open("p"); again != a || again.reserve(1) {
		t.Error("the principal has a second share")
	}
	a.close()
	a.release(leastShare)
	if len(b.accounts) > 0 {
		t.Errorf("%d accounts", len(b.accounts))
	}
}
