package session

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/protocol"
)

type cart struct{ Items []string }

var (
	cartKey    = frame.NewStoredKey[cart]("example.com/cart")
	privateKey = frame.NewKey[cart]("private")
)

func frameIn(s *Session) *frame.Frame {
	return frame.Internal(facts.Private{}).New(context.Background(), core.Config{Revision: s.Revision(), Session: s})
}

// Everything in a state comes back as it went, through JSON.
func TestState(t *testing.T) {
	s := New(t.Context(), "id", core.ClientInfo{
		Revision: protocol.V20250618, Info: &protocol.Implementation{Name: "c", Version: "1"},
		Capabilities: &protocol.ClientCapabilities{Roots: &protocol.ListCapability{ListChanged: true}}, Principal: "alice",
	})
	s.SetInitialized()
	s.SetLogLevel(protocol.LevelError)
	s.Subscribe("file:///b", 9)
	s.Subscribe("file:///a", 9)
	f := frameIn(s)
	values := map[string]any{
		"s": "x", "b": true, "i": 3, "i64": int64(1) << 60, "f": 1.0, "list": []string{"a"}, "map": map[string]string{"k": "v"},
		"any": map[string]any{"deep": []any{nil, 1.5}},
	}
	stays := map[string]any{"func": func() {}, "struct": cart{}, "deep": map[string]any{"n": 1}, "items": []any{int8(1)}}
	for _, all := range []map[string]any{values, stays} {
		for name, value := range all {
			f.Set(name, value)
		}
	}
	cartKey.Set(f, cart{[]string{"tea"}})
	privateKey.Set(f, cart{[]string{"coffee"}})

	text, err := s.encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := readState(text)
	if err != nil {
		t.Fatal(err)
	}
	back, err := restore(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.snapshot(), st) {
		t.Errorf("restored %+v\nof %+v", back.snapshot(), st)
	}
	if back.ID() != "id" || back.Principal() != "alice" || back.Revision() != protocol.V20250618 || back.ClientInfo().Name != "c" ||
		!back.Capabilities().Roots.ListChanged || !back.Initialized() || back.LogLevel() != protocol.LevelError ||
		!back.Subscribed("file:///a") || !back.Subscribed("file:///b") || back.Subscribed("file:///c") {
		t.Errorf("restored %+v", back.snapshot())
	}
	g := frameIn(back)
	for name, want := range values {
		if got, ok := g.Get(name); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("assign %s: %#v, want %#v", name, got, want)
		}
	}
	for name := range stays {
		if got, ok := g.Get(name); ok {
			t.Errorf("assign %s moved, as %#v", name, got)
		}
	}
	if got, ok := cartKey.Get(g); !ok || !reflect.DeepEqual(got, cart{[]string{"tea"}}) {
		t.Errorf("stored key: %+v, %v", got, ok)
	}
	if got, ok := privateKey.Get(g); ok {
		t.Errorf("a key that is not stored moved: %+v", got)
	}
	cartKey.Update(g, func(c cart) cart { return cart{append(c.Items, "milk")} })
	if again, _ := restore(t.Context(), back.snapshot()); len(cartKey.GetOrSet(frameIn(again), func() cart { return cart{} }).Items) != 2 {
		t.Error("an update after the move was lost")
	}
}

func TestRestoreRefuses(t *testing.T) {
	good := snapshot{ID: "x", Revision: "2025-06-18"}
	if _, err := restore(t.Context(), &good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*snapshot){
		"revision": func(s *snapshot) { s.Revision = "1999-01-01" },
		"modern":   func(s *snapshot) { s.Revision = "2026-07-28" },
		"id":       func(s *snapshot) { s.ID = "" },
		"assign":   func(s *snapshot) { s.Assigns = map[string]json.RawMessage{"name:a": []byte(`{"t":"chan","v":1}`)} },
		"value":    func(s *snapshot) { s.Assigns = map[string]json.RawMessage{"name:a": []byte(`{"t":"int","v":"x"}`)} },
	} {
		bad := good
		change(&bad)
		if _, err := restore(t.Context(), &bad); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}

// What two replicas have changed is merged, name by name.
func TestMerge(t *testing.T) {
	raw := func(pairs ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = json.RawMessage(pairs[i+1])
		}
		return m
	}
	base := snapshot{ID: "x", LogLevel: protocol.LevelInfo, Subscriptions: []string{"a", "b", "c"}, Assigns: raw("n", "1", "m", "1")}
	for name, tt := range map[string]struct {
		mine, theirs, want func(*snapshot)
	}{
		"nothing": {func(*snapshot) {}, func(*snapshot) {}, func(*snapshot) {}},
		"mine alone": {
			func(s *snapshot) {
				s.Initialized, s.LogLevel, s.Subscriptions, s.Assigns = true, protocol.LevelError, []string{"b", "c", "d"}, raw("n", "2", "m", "1", "new", "3")
			},
			func(*snapshot) {},
			func(s *snapshot) {
				s.Initialized, s.LogLevel, s.Subscriptions, s.Assigns = true, protocol.LevelError, []string{"b", "c", "d"}, raw("n", "2", "m", "1", "new", "3")
			},
		},
		"theirs alone": {
			func(*snapshot) {},
			func(s *snapshot) {
				s.Initialized, s.LogLevel, s.Subscriptions, s.Assigns = true, protocol.LevelError, nil, raw("n", "2", "m", "1")
			},
			func(s *snapshot) {
				s.Initialized, s.LogLevel, s.Subscriptions, s.Assigns = true, protocol.LevelError, nil, raw("n", "2", "m", "1")
			},
		},
		"both": {
			func(s *snapshot) {
				s.LogLevel, s.Subscriptions, s.Assigns = protocol.LevelError, []string{"a", "c", "x"}, raw("n", "2", "m", "1")
			},
			func(s *snapshot) {
				s.Initialized, s.Subscriptions, s.Assigns = true, []string{"a", "b", "y"}, raw("n", "1", "m", "5", "k", "6")
			},
			func(s *snapshot) {
				s.Initialized, s.LogLevel, s.Subscriptions, s.Assigns = true, protocol.LevelError, []string{"a", "x", "y"}, raw("n", "2", "m", "5", "k", "6")
			},
		},
		"the same value": {
			func(s *snapshot) { s.LogLevel, s.Assigns = protocol.LevelError, raw("n", "2", "m", "1") },
			func(s *snapshot) { s.LogLevel, s.Assigns = protocol.LevelDebug, raw("n", "3", "m", "1") },
			func(s *snapshot) { s.LogLevel, s.Assigns = protocol.LevelError, raw("n", "2", "m", "1") },
		},
	} {
		mine, theirs, want := base, base, base
		tt.mine(&mine)
		tt.theirs(&theirs)
		tt.want(&want)
		if got := merge(&base, &mine, &theirs); !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, &want)
		}
	}
}

// OnEnd runs once, after the last request, whatever comes first.
func TestOnEnd(t *testing.T) {
	s := New(t.Context(), "", core.ClientInfo{Revision: protocol.LatestLegacy})
	var reasons []error
	s.OnEnd(func(reason error) { reasons = append(reasons, reason) })
	one, two := s.Release, s.Release
	s.Use()
	s.Use()
	s.Close(core.ErrSessionDeleted)
	s.Close(core.ErrSessionIdle)
	one()
	if len(reasons) != 0 {
		t.Fatal("ran while a request was under way")
	}
	two()
	s.Close(core.ErrSessionClosed)
	if len(reasons) != 1 || reasons[0] != core.ErrSessionDeleted {
		t.Errorf("ran for %v, want once, for core.ErrSessionDeleted", reasons)
	}
	late := New(t.Context(), "", core.ClientInfo{})
	late.Close(core.ErrSessionIdle)
	ran := false
	late.OnEnd(func(reason error) { ran = reason == core.ErrSessionIdle })
	if !ran {
		t.Error("a session that has ended before OnEnd did not run it")
	}
}
