package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

func openFor(m *Manager, principal string) (*Session, error) {
	s, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125, Principal: principal})
	if err == nil {
		s.Use() // initialize
		s.Release()
	}
	return s, err
}

// Anonymous clients that open sessions and never use them do not close the
// door: the oldest of these ends for each new one.
func TestUnusedSessionsMakeRoom(t *testing.T) {
	m := NewManager(Config{MaxSessions: 10})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	var all []*Session
	for range 1000 {
		s, err := openFor(m, "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if m.Len() != 10 || m.fresh.Len() > 40 || m.places.Of("") != 10 {
		t.Errorf("%d sessions, %d remembered as new, %d counted", m.Len(), m.fresh.Len(), m.places.Of(""))
	}
	if got, _ := m.Find(context.Background(), all[989].ID()); got != nil || !all[989].Ended() {
		t.Error("the oldest did not end")
	}
	last := all[990:]
	for _, s := range last {
		s.Use() // more than initialize
		s.Release()
	}
	if _, err := openFor(m, ""); !errors.Is(err, core.ErrTooManySessions) {
		t.Errorf("one more than are used: %v", err)
	}
}

// One principal has a share; anonymous clients make room for somebody with a
// name while they have more than half.
func TestShareOfPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{MaxSessions: 10, MaxPerPrincipal: 3, IdleTimeout: -1})
		defer m.Close(context.Background(), core.ErrSessionClosed)
		var anonymous []*Session
		for range 10 {
			s, err := openFor(m, "")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			s.Use()
			s.Release()
			anonymous = append(anonymous, s)
		}
		for i := range 4 {
			s, err := openFor(m, "alice")
			if err == nil {
				s.Use() // more than initialize
				s.Release()
			}
			if refused := errors.Is(err, core.ErrTooManySessions); refused != (i == 3) {
				t.Errorf("session %d of alice: %v", i, err)
			}
		}
		for i, s := range anonymous {
			if s.Ended() != (i < 3) {
				t.Errorf("anonymous session %d ended: %v", i, s.Ended())
			}
		}
		for range 2 {
			s, err := openFor(m, "bob")
			if err != nil {
				t.Fatalf("bob: %v", err)
			}
			s.Use()
			s.Release()
		}
		if m.Len() != 10 || m.places.Of("alice") != 3 || m.places.Of("bob") != 2 {
			t.Errorf("%d sessions, %d of alice", m.Len(), m.places.Of("alice"))
		}
	})
}

// The questions of two processes to the client of one session have different ids.
func TestQuestionsOfTwoProcesses(t *testing.T) {
	keys, err := seal.New("session", []byte("a secret of 16 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Store: scale.NewLocal(), Seal: keys, ReplicaID: "n1"}
	seen := map[string]bool{}
	first := NewManager(config)
	defer first.Close(context.Background(), core.ErrSessionClosed)
	s, err := openFor(first, "")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(p *inflight.Pending) {
		ctx, cancel := context.WithCancel(t.Context())
		_, _ = p.Call(ctx, func(m []byte) error {
			if id, rest, _ := strings.Cut(string(m), `,"method":"ping"`); rest != "" {
				if seen[id] {
					t.Errorf("%s is asked twice", id)
				}
				seen[id] = true
				cancel()
			}
			return nil
		}, "ping", nil)
	}
	ask(&s.Pending)
	for _, config.ReplicaID = range []string{"n2", "n3", "n4"} {
		other := NewManager(config)
		defer other.Close(context.Background(), core.ErrSessionClosed)
		moved, err := other.Find(context.Background(), s.ID())
		if moved == nil || err != nil {
			t.Fatalf("not found: %v", err)
		}
		ask(&moved.Pending)
		ask(&moved.Pending)
	}
	if len(seen) != 7 {
		t.Errorf("%d ids of 7 questions", len(seen))
	}
}

// What clients say of themselves has a limit in all, of which one principal has
// a tenth: sessions that were never used make room for it, those that are used
// do not.
func TestShareOfWhatClientsSay(t *testing.T) {
	const cost = 100 << 10
	m := NewManager(Config{ClientMemory: 100 * cost, IdleTimeout: -1})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	open := func(principal string, cost int) (*Session, error) {
		s, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125, Principal: principal, Cost: cost})
		if err == nil {
			s.Use() // initialize
			s.Release()
		}
		return s, err
	}
	small, err := open("alice", freeClientBytes)
	if err != nil {
		t.Fatal(err)
	}
	var all []*Session
	for range 1000 {
		s, err := open("alice", cost+freeClientBytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if m.Len() != 11 || small.Ended() || !all[989].Ended() || all[990].Ended() {
		t.Errorf("%d sessions; the small one ended: %v", m.Len(), small.Ended())
	}
	for _, s := range all[990:] {
		s.Use() // more than initialize
		s.Release()
	}
	if _, err := open("alice", cost+freeClientBytes); !errors.Is(err, core.ErrTooManySessions) || !strings.Contains(err.Error(), "this user has") {
		t.Errorf("more than a tenth: %v", err)
	}
	if _, err := open("bob", cost+freeClientBytes); err != nil {
		t.Errorf("bob: %v", err)
	}
	_, _ = m.end(context.Background(), all[999].ID(), core.ErrSessionDeleted)
	if _, err := open("alice", cost+freeClientBytes); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
