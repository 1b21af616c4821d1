package session

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/internal/opaque"
	"github.com/talaria-go/mcp/internal/upcall"
	"github.com/talaria-go/mcp/protocol"
)

type cart struct{ Items []string }

var (
	cartKey    = frame.NewKey[cart](call.Private{}, "example.com/cart", true)
	privateKey = frame.NewKey[cart](call.Private{}, "private", false)
)

func frameIn(s *Session) *frame.Frame {
	return frame.Internal(call.Private{}).New(context.Background(), upcall.Config{Revision: s.Revision(), Session: s})
}

// Everything in a snapshot comes back as it went, through JSON.
func TestSnapshot(t *testing.T) {
	s := New(t.Context(), "id", Client{
		Revision: protocol.V20250618, Info: &protocol.Implementation{Name: "c", Version: "1"},
		Capabilities: &protocol.ClientCapabilities{Roots: &protocol.RootsCapability{ListChanged: true}}, Principal: "alice",
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
			f.Assign(name, value)
		}
	}
	cartKey.Set(f, cart{[]string{"tea"}})
	privateKey.Set(f, cart{[]string{"coffee"}})

	text, err := json.Marshal(s.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var snapshot Snapshot
	if err := json.Unmarshal(text, &snapshot); err != nil {
		t.Fatal(err)
	}
	back, err := restore(t.Context(), &snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.snapshot(), &snapshot) {
		t.Errorf("restored %+v\nof %+v", back.snapshot(), &snapshot)
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
	good := Snapshot{Version: snapshotVersion, ID: "x", Revision: "2025-06-18"}
	if _, err := restore(t.Context(), &good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Snapshot){
		"version":  func(s *Snapshot) { s.Version = 2 },
		"revision": func(s *Snapshot) { s.Revision = "1999-01-01" },
		"modern":   func(s *Snapshot) { s.Revision = "2026-07-28" },
		"id":       func(s *Snapshot) { s.ID = "" },
		"assign":   func(s *Snapshot) { s.Assigns = map[string]json.RawMessage{"name:a": []byte(`{"t":"chan","v":1}`)} },
		"value":    func(s *Snapshot) { s.Assigns = map[string]json.RawMessage{"name:a": []byte(`{"t":"int","v":"x"}`)} },
	} {
		bad := good
		change(&bad)
		if _, err := restore(t.Context(), &bad); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}

// What one Manager leaves in the Store, another goes on with; what ends is
// deleted.
func TestStoreMoves(t *testing.T) {
	var store Memory
	first := NewManager(Config{Store: &store})
	s, other := mustOpen(t, first), mustOpen(t, first)
	for _, x := range []*Session{s, other} {
		x.OnEnd(func(error) { t.Error("a session that lives on was terminated") })
		x.Use()
		release := x.Release
		frameIn(x).Assign("n", 1)
		release()
	}
	first.Close(ErrClosed)
	if s.Context().Err() == nil {
		t.Error("the session lives on in the first process, too")
	}

	second := NewManager(Config{Store: &store})
	var ended []string
	second.OnRestore(func(x *Session, reason error) {
		if !errors.Is(reason, ErrDeleted) {
			t.Errorf("ended for %v", reason)
		}
		ended = append(ended, x.ID())
	})
	back, err := second.Get(s.ID())
	if again, _ := second.Get(s.ID()); back == nil || err != nil || again != back {
		t.Fatalf("Get = %v, then another", err)
	}
	if n, _ := frameIn(back).Get("n"); n != 1 {
		t.Errorf("assign %v", n)
	}
	if got, err := second.Get(opaque.NewID()); got != nil || err != nil {
		t.Error("an unknown id was found")
	}
	second.End(back.ID(), ErrDeleted)
	if got, _ := second.Get(back.ID()); got != nil || len(ended) != 1 || ended[0] != s.ID() {
		t.Errorf("found %v after its end, terminated %q", err, ended)
	}
	second.Close(ErrClosed)
	if len(ended) != 1 {
		t.Errorf("terminated %q", ended)
	}
}

// counted is a Store that counts what is saved, or fails.
type counted struct {
	Memory
	saves atomic.Int64
	fail  atomic.Bool
}

func (c *counted) Save(ctx context.Context, s *Snapshot, ttl time.Duration) error {
	c.saves.Add(1)
	if c.fail.Load() {
		return errors.New("disk full")
	}
	return c.Memory.Save(ctx, s, ttl)
}

// A request saves the session if it has changed it, or if the Store might
// forget it.
func TestStoreSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store counted
		var failures int
		m := NewManager(Config{Store: &store, Idle: time.Hour, StoreFailed: func(error) { failures++ }})
		defer m.Close(ErrClosed)
		s := mustOpen(t, m)
		step := func(what string, want int64, change func()) {
			t.Helper()
			s.Use()
			release := s.Release
			change()
			release()
			if got := store.saves.Swap(0); got != want {
				t.Errorf("%s: saved %d times, want %d", what, got, want)
			}
		}
		nothing := func() {}
		step("the first request", 1, nothing)
		step("nothing new", 0, nothing)
		step("initialized", 1, func() { s.SetInitialized() })
		step("level", 1, func() { s.SetLogLevel(protocol.LevelDebug) })
		step("the same level", 0, func() { s.SetLogLevel(protocol.LevelDebug) })
		step("subscription", 1, func() { s.Subscribe("u", 1) })
		step("the end of none", 0, func() { s.Unsubscribe("v") })
		step("assign", 1, func() { frameIn(s).Assign("a", 1) })
		step("reading", 0, func() { frameIn(s).Get("a") })
		time.Sleep(16 * time.Minute)
		step("a quarter of the idle time later", 1, nothing)
		store.fail.Store(true)
		step("a failure", 1, func() { frameIn(s).Assign("a", 2) })
		step("the next time", 1, nothing)
		if failures != 2 {
			t.Errorf("told of %d failures, want 2", failures)
		}
		store.fail.Store(false)
		id := s.ID()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if snapshot, err := store.Load(t.Context(), id); snapshot != nil || err != nil {
			t.Errorf("an expired session is still there: %v, %v", snapshot, err)
		}
	})
}

// OnEnd runs once, after the last request, whatever comes first.
func TestOnEnd(t *testing.T) {
	s := New(t.Context(), "", Client{Revision: protocol.LatestLegacy})
	var reasons []error
	s.OnEnd(func(reason error) { reasons = append(reasons, reason) })
	one, two := s.Release, s.Release
	s.Use()
	s.Use()
	s.Close(ErrDeleted)
	s.Close(ErrIdle)
	one()
	if len(reasons) != 0 {
		t.Fatal("ran while a request was under way")
	}
	two()
	s.Close(ErrClosed)
	if len(reasons) != 1 || reasons[0] != ErrDeleted {
		t.Errorf("ran for %v, want once, for ErrDeleted", reasons)
	}
	late := New(t.Context(), "", Client{})
	late.Close(ErrIdle)
	ran := false
	late.OnEnd(func(reason error) { ran = reason == ErrIdle })
	if !ran {
		t.Error("a session that has ended before OnEnd did not run it")
	}
}

// held is a Store whose Save and Delete wait until they are let go.
type held struct {
	Memory
	hold      atomic.Bool
	come, let chan struct{}
}

func (h *held) wait() {
	if h.hold.Load() {
		h.come <- struct{}{}
		<-h.let
	}
}

func (h *held) Save(ctx context.Context, s *Snapshot, ttl time.Duration) error {
	h.wait()
	return h.Memory.Save(ctx, s, ttl)
}

func (h *held) Delete(ctx context.Context, id string) error {
	h.wait()
	return h.Memory.Delete(ctx, id)
}

// A session that its client has ended stays ended, whatever else the Store is
// doing with it at that time.
func TestEndedStaysEnded(t *testing.T) {
	open := func(t *testing.T) (*Manager, *held, *Session) {
		store := &held{come: make(chan struct{}), let: make(chan struct{})}
		m := NewManager(Config{Store: store})
		t.Cleanup(func() { m.Close(ErrClosed) })
		s, err := m.Open(Client{Revision: protocol.V20251125})
		if err != nil {
			t.Fatal(err)
		}
		s.Use()
		s.SetInitialized()
		s.Release()
		return m, store, s
	}
	over := func(t *testing.T, m *Manager, store *held, id string) {
		t.Helper()
		if s, err := m.Get(id); s != nil || err != nil {
			t.Errorf("Get: %v, %v; the session has ended", s, err)
		}
		if kept, err := store.Load(t.Context(), id); kept != nil || err != nil {
			t.Errorf("the Store has %v, %v", kept, err)
		}
	}
	t.Run("while it is deleted", func(t *testing.T) {
		m, store, s := open(t)
		store.hold.Store(true)
		ended := make(chan struct{})
		go func() {
			m.End(s.ID(), ErrDeleted)
			close(ended)
		}()
		<-store.come
		if other, err := m.Get(s.ID()); other != nil || err != nil {
			t.Errorf("Get while it is deleted: %v, %v", other, err)
		}
		store.let <- struct{}{}
		<-ended
		over(t, m, store, s.ID())
	})
	t.Run("while it is saved", func(t *testing.T) {
		m, store, s := open(t)
		store.hold.Store(true)
		saved, ended := make(chan struct{}), make(chan struct{})
		go func() {
			s.Use()
			s.SetLogLevel(protocol.LevelError)
			s.Release()
			close(saved)
		}()
		<-store.come
		store.hold.Store(false)
		go func() {
			m.End(s.ID(), ErrDeleted)
			close(ended)
		}()
		<-s.Context().Done() // End has come as far as it can
		store.let <- struct{}{}
		<-saved
		<-ended
		over(t, m, store, s.ID())
	})
}
