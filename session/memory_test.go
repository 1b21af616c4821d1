package session

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

// bytesPerSession opens sessions, uses them as a client does that has called a
// tool, and returns what each of them keeps.
func bytesPerSession(tb testing.TB, n int, use func(*Session)) int {
	tb.Helper()
	measure := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	m := NewManager(Config{MaxSessions: n})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	before := measure()
	for range n {
		s, err := m.Open(context.Background(), core.ClientInfo{
			Revision:     protocol.V20251125,
			Info:         &protocol.Implementation{Name: "client", Version: "1.0.0"},
			Capabilities: &protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{}},
		})
		if err != nil {
			tb.Fatal(err)
		}
		s.SetInitialized()
		use(s)
	}
	after := measure()
	runtime.KeepAlive(m)
	return int(after-before) / n
}

// callOnce is a request with an answer, as the server does it.
func callOnce(s *Session) {
	s.Use()
	release := s.Release
	_, done, _ := s.Inflight.Start(s.parent, protocol.NewID(1))
	done()
	release()
}

// goroutines returns how many goroutines there are. It stops the world: without that,
// runtime.NumGoroutine also counts up to 33 that have ended and are on their way from the
// list of one thread to that of all, or counts as many twice as ended.
func goroutines() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	return n
}

// An idle session costs at most 2 KiB and no goroutine.
func TestIdleSessionIsSmall(t *testing.T) {
	const n = 10_000
	before := goroutines()
	for name, use := range map[string]func(*Session){
		"opened": func(*Session) {},
		"after a call, an assign and a stream": func(s *Session) {
			callOnce(s)
			s.Assigns().Set("n", 1)
			_, leave := listen(s, "")
			leave()
			st := s.OpenStream(&sink{}, protocol.ID{})
			_ = st.Send([]byte("message"))
			st.End([]byte("answer"))
			s.history.dropFinished()
		},
	} {
		got := bytesPerSession(t, n, use)
		t.Logf("%s: %d bytes", name, got)
		if got > 2048 {
			t.Errorf("%s: a session keeps %d bytes, want at most 2048", name, got)
		}
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; runtime.Gosched() { // one that has ended may still count
		if goroutines() <= before {
			return
		}
	}
	stacks := make([]byte, 64<<10)
	t.Errorf("%d goroutines more than before:\n%s", goroutines()-before, stacks[:runtime.Stack(stacks, true)])
}
