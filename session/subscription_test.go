package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

func TestSubscriptions(t *testing.T) {
	s := New(t.Context(), "", core.ClientInfo{Revision: protocol.LatestLegacy})
	for i, step := range []struct {
		do   func() bool
		want bool
	}{
		{func() bool { return s.Subscribed("a") }, false},
		{func() bool { return s.Subscribe("a", 2) }, true},
		{func() bool { return s.Subscribe("b", 2) }, true},
		{func() bool { return s.Subscribe("c", 2) }, false},
		{func() bool { return s.Subscribe("a", 2) }, true},
		{func() bool { return s.Subscribed("a") }, true},
		{func() bool { return s.Subscribed("c") }, false},
		{func() bool { s.Unsubscribe("a"); s.Unsubscribe("c"); return s.Subscribed("a") }, false},
		{func() bool { return s.Subscribe("c", 2) }, true},
	} {
		if got := step.do(); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}

// A session takes URIs of a size in all, whatever their number.
func TestSubscribedBytes(t *testing.T) {
	s := New(t.Context(), "", core.ClientInfo{Revision: protocol.LatestLegacy})
	most := strings.Repeat("x", wire.MaxSubscribed-1)
	for i, step := range []struct {
		do   func() bool
		want bool
	}{
		{func() bool { return s.Subscribe(most, 9) }, true},
		{func() bool { return s.Subscribe("ab", 9) }, false},
		{func() bool { return s.Subscribe("a", 9) }, true},
		{func() bool { s.Unsubscribe(most); return s.Subscribe("ab", 9) }, true},
	} {
		if got := step.do(); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}

func TestAttach(t *testing.T) {
	m := NewManager(Config{MaxSessions: 1})
	defer m.Close(context.Background(), core.ErrSessionClosed)
	if _, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.LatestLegacy}); err != nil {
		t.Fatal(err)
	}
	attached := New(t.Context(), "", core.ClientInfo{Revision: protocol.LatestLegacy})
	detach := m.AttachConn(attached, func(error) {})
	seen := func() (all []string) {
		m.Each(func(s *Session) { all = append(all, fmt.Sprint(s == attached)) })
		slices.Sort(all)
		return all
	}
	if got := seen(); !slices.Equal(got, []string{"false", "true"}) {
		t.Errorf("while attached: got %q", got)
	}
	if got, _ := m.Find(context.Background(), ""); got != nil {
		t.Error("an attached session is found by id")
	}
	detach()
	if got := seen(); !slices.Equal(got, []string{"false"}) {
		t.Errorf("after detach: got %q", got)
	}
}
