package session

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

func mustOpen(t testing.TB, m *Manager) *Session {
	t.Helper()
	s, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestManagerOpen(t *testing.T) {
	m := NewManager(Config{})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	ids := make(map[string]bool)
	for range 100 {
		s := mustOpen(t, m)
		id := s.ID()
		if len(id) < 22 || ids[id] {
			t.Fatalf("id %q: want 128 random bits, each time others", id)
		}
		for _, c := range []byte(id) {
			if c < 0x21 || c > 0x7e {
				t.Fatalf("id %q has the byte %#x; the specification allows 0x21 to 0x7E", id, c)
			}
		}
		ids[id] = true
		if got, err := m.Find(context.Background(), id); err != nil || got != s {
			t.Fatalf("Find(%q) = %v, %v", id, got, err)
		}
	}
	if got := m.Len(); got != 100 {
		t.Errorf("Len() = %d, want 100", got)
	}
	seen := 0
	m.Each(func(s *Session) {
		seen++
		m.Find(context.Background(), s.ID()) // it may use the manager
	})
	if seen != 100 {
		t.Errorf("Each met %d sessions, want 100", seen)
	}
}

func TestManagerMax(t *testing.T) {
	m := NewManager(Config{MaxSessions: 2})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	first := mustOpen(t, m)
	mustOpen(t, m)
	if _, err := m.Open(context.Background(), core.ClientInfo{}); !errors.Is(err, core.ErrTooManySessions) {
		t.Fatalf("third session: error %v, want core.ErrTooManySessions", err)
	}
	_, _ = m.end(context.Background(), first.ID(), core.ErrSessionDeleted)
	mustOpen(t, m)
}

func TestManagerEnd(t *testing.T) {
	m := NewManager(Config{})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	s, other := mustOpen(t, m), mustOpen(t, m)
	request, done, _ := s.Inflight.Start(t.Context(), protocol.NewID(1))
	defer done()
	if ok, err := m.end(context.Background(), s.ID(), core.ErrSessionDeleted); !ok || err != nil {
		t.Error("End found no session")
	}
	if ok, err := m.end(context.Background(), s.ID(), core.ErrSessionDeleted); ok || err != nil {
		t.Error("End found it twice")
	}
	if got, _ := m.Find(context.Background(), s.ID()); got != nil {
		t.Error("Get finds it still")
	}
	if got := context.Cause(s.Context()); !errors.Is(got, core.ErrSessionClosed) {
		t.Errorf("its context ended with %v, want core.ErrSessionClosed", got)
	}
	if got := context.Cause(request); !errors.Is(got, core.ErrSessionClosed) {
		t.Errorf("its request ended with %v, want core.ErrSessionClosed", got)
	}
	if other.Context().Err() != nil {
		t.Error("the other session ended, too")
	}
}

func TestManagerClose(t *testing.T) {
	m := NewManager(Config{})
	s := mustOpen(t, m)
	request, done, _ := s.Inflight.Start(t.Context(), protocol.NewID(1))
	defer done()
	m.Close(context.Background(), core.ErrSessionClosed)
	m.Close(context.Background(), core.ErrSessionClosed)
	if s.Context().Err() == nil || request.Err() == nil || m.Len() != 0 {
		t.Errorf("after Close: session %v, request %v, %d sessions", s.Context().Err(), request.Err(), m.Len())
	}
	if _, err := m.Open(context.Background(), core.ClientInfo{}); !errors.Is(err, core.ErrSessionClosed) {
		t.Errorf("Open after Close: %v, want core.ErrSessionClosed", err)
	}
	late, doneLate, _ := s.Inflight.Start(t.Context(), protocol.NewID(2))
	defer doneLate()
	if late.Err() == nil {
		t.Error("a request that found the session before Close is not cancelled")
	}
}

func TestManagerEndStreams(t *testing.T) {
	m := NewManager(Config{})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	one, two := mustOpen(t, m), mustOpen(t, m)
	first, leave := listen(one, "")
	defer leave()
	m.EndStreams(t.Context())
	if !over(one, first) {
		t.Error("the stream is still open")
	}
	if one.Context().Err() != nil || two.Context().Err() != nil {
		t.Error("EndStreams ended a session")
	}
}

// One transcript of time: who lives when, with an idle time of 10 minutes.
func TestIdleExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{IdleTimeout: 10 * time.Minute})
		defer m.Close(context.Background(), core.ErrSessionClosed)
		unused, called, busy, listening := mustOpen(t, m), mustOpen(t, m), mustOpen(t, m), mustOpen(t, m)
		busy.Use()
		release := busy.Release
		busy.Use()
		releaseTwo := busy.Release
		listening.Use()
		leave := listening.Release // as a stream does
		expect := func(when string, want ...bool) {
			t.Helper()
			synctest.Wait()
			for i, s := range []*Session{unused, called, busy, listening} {
				got, _ := m.Find(context.Background(), s.ID())
				ok := got != nil
				if ok != want[i] || ok != (s.Context().Err() == nil) {
					t.Errorf("%s: session %d there %v, context %v; want there %v", when, i, ok, s.Context().Err(), want[i])
				}
			}
		}
		time.Sleep(8 * time.Minute)
		called.Use()
		called.Release()
		time.Sleep(time.Minute)
		expect("after 9 minutes", true, true, true, true)
		time.Sleep(7 * time.Minute)
		expect("after 16", false, true, true, true)
		time.Sleep(8 * time.Minute)
		expect("after 24", false, false, true, true)
		time.Sleep(24 * time.Hour)
		expect("after a day", false, false, true, true)
		release()
		time.Sleep(time.Hour)
		expect("one of two requests done", false, false, true, true)
		releaseTwo()
		time.Sleep(9 * time.Minute)
		expect("9 minutes after its last", false, false, true, true)
		time.Sleep(7 * time.Minute)
		expect("16 minutes after its last", false, false, false, true)
		leave()
		time.Sleep(time.Hour)
		expect("at the end", false, false, false, false)
		if m.sweep != nil {
			t.Error("the timer runs without sessions")
		}
		last := mustOpen(t, m)
		time.Sleep(time.Hour)
		if got, _ := m.Find(context.Background(), last.ID()); got != nil {
			t.Error("the timer did not start again")
		}
	})
}

func TestIdleNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{IdleTimeout: -1})
		defer m.Close(context.Background(), core.ErrSessionClosed)
		s := mustOpen(t, m)
		time.Sleep(1000 * time.Hour)
		if got, _ := m.Find(context.Background(), s.ID()); got == nil {
			t.Error("a session expired though the idle time is negative")
		}
	})
}

func TestIdleDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{})
		defer m.Close(context.Background(), core.ErrSessionClosed)
		s := mustOpen(t, m)
		time.Sleep(defaultIdle - time.Minute)
		if got, _ := m.Find(context.Background(), s.ID()); got == nil {
			t.Error("a session expired before the default idle time")
		}
		time.Sleep(defaultIdle/2 + time.Minute)
		if got, _ := m.Find(context.Background(), s.ID()); got != nil {
			t.Error("a session lives past one and a half of the default idle time")
		}
	})
}

// A session costs no goroutine, and all of them one timer.
func TestSessionsCostNoGoroutine(t *testing.T) {
	m := NewManager(Config{})
	before := runtime.NumGoroutine()
	for range 500 {
		s := mustOpen(t, m)
		_, leave := listen(s, "")
		leave()
	}
	timer := m.sweep
	if got := runtime.NumGoroutine(); got > before {
		t.Errorf("%d goroutines for 500 sessions", got-before)
	}
	mustOpen(t, m)
	if timer == nil || m.sweep != timer {
		t.Error("want one timer for all sessions")
	}
	m.Close(context.Background(), core.ErrSessionClosed)
	if m.sweep != nil {
		t.Error("Close left the timer")
	}
}

func TestManagerConcurrent(t *testing.T) {
	m := NewManager(Config{MaxSessions: 50})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				s, err := m.Open(context.Background(), core.ClientInfo{})
				if err != nil {
					m.EndStreams(t.Context())
					continue
				}
				s.Use()
				release := s.Release
				_, leave := listen(s, "")
				m.Each(func(s *Session) { s.Send([]byte("news")) })
				leave()
				release()
				_, _ = m.end(context.Background(), s.ID(), core.ErrSessionDeleted)
			}
		})
	}
	wg.Wait()
	m.Close(context.Background(), core.ErrSessionClosed)
	if got := m.Len(); got != 0 {
		t.Errorf("%d sessions at the end", got)
	}
}
