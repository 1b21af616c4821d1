package frame

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

func inSession(ctx context.Context, s *session) *Frame {
	return New(ctx, Config{Revision: protocol.V20251125, Session: s})
}

// want fails unless f.Get(name) gives value; nil stands for nothing there.
func want(t *testing.T, f *Frame, name string, value any) {
	t.Helper()
	if got, ok := f.Get(name); got != value || ok != (value != nil) {
		t.Errorf("Get(%q) = %v, %v; want %v", name, got, ok, value)
	}
}

// In legacy revisions values last from call to call, and belong to one
// session; in modern ones they end with the request.
func TestAssignLasts(t *testing.T) {
	mine, other := &session{}, &session{}
	inSession(t.Context(), mine).Assign("k", 1)
	want(t, inSession(t.Context(), mine), "k", 1)
	want(t, inSession(t.Context(), other), "k", nil)

	modern := New(t.Context(), Config{})
	modern.AssignAll(map[string]any{"a": 1, "b": 2})
	want(t, modern, "a", 1)
	want(t, modern, "b", 2)
	want(t, New(t.Context(), Config{}), "a", nil)
	modern.Assign("a", 3)
	want(t, modern, "a", 3)
}

// A nil that was kept is there.
func TestAssignNil(t *testing.T) {
	f := New(t.Context(), Config{})
	f.Assign("k", nil)
	if v, ok := f.Get("k"); v != nil || !ok {
		t.Errorf("Get = %v, %v; want nil, true", v, ok)
	}
	if got := f.AssignNew("k", func() any { return 1 }); got != nil {
		t.Errorf("AssignNew = %v, want the nil that is there", got)
	}
}

// Values of HTTP middleware lie over those of the session, for the one
// request, and never go into it.
func TestWithAssigns(t *testing.T) {
	s := &session{}
	inSession(t.Context(), s).AssignAll(map[string]any{"user": "session", "theme": "dark"})
	given := map[string]any{"user": "outer", "tenant": 1}
	outer := WithAssigns(t.Context(), given)
	inner := WithAssigns(outer, map[string]any{"user": "inner"})
	given["user"] = "changed later"

	f := inSession(inner, s)
	want(t, f, "user", "inner")
	want(t, f, "tenant", 1)
	want(t, f, "theme", "dark")
	want(t, inSession(outer, s), "user", "outer")
	if got := f.AssignNew("user", func() any { t.Error("fn ran"); return nil }); got != "inner" {
		t.Errorf("AssignNew = %v, want the middleware's value", got)
	}
	f.Assign("user", "kept")
	want(t, f, "user", "inner") // for this request the middleware decides
	next := inSession(t.Context(), s)
	want(t, next, "user", "kept")
	want(t, next, "tenant", nil)
	want(t, f.WithContext(t.Context()), "tenant", nil)
	want(t, New(WithAssigns(t.Context(), nil), Config{}), "user", nil)
}

func TestAssignNewOnce(t *testing.T) {
	s := &session{}
	var made, wrong int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			got := inSession(t.Context(), s).AssignNew("k", func() any { made++; return made })
			if got != 1 {
				mu.Lock()
				wrong++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if made != 1 || wrong != 0 {
		t.Errorf("fn ran %d times, %d callers got another value", made, wrong)
	}
}

// A fn that panics leaves nothing behind, and no lock held.
func TestAssignNewPanic(t *testing.T) {
	f := New(t.Context(), Config{})
	func() {
		defer func() { _ = recover() }()
		f.AssignNew("k", func() any { panic("no") })
	}()
	want(t, f, "k", nil)
	if got := f.AssignNew("k", func() any { return 2 }); got != 2 {
		t.Errorf("AssignNew = %v, want 2", got)
	}
}

func TestKey(t *testing.T) {
	f := New(t.Context(), Config{})
	one, two := NewKey[int]("n"), NewKey[int]("n")
	if v, ok := one.Get(f); v != 0 || ok {
		t.Errorf("Get of nothing = %v, %v", v, ok)
	}
	one.Set(f, 5)
	f.Assign("n", "a name is another place")
	if v, ok := one.Get(f); v != 5 || !ok {
		t.Errorf("Get = %v, %v; want 5, true", v, ok)
	}
	if v, ok := two.Get(f); ok {
		t.Errorf("a key of the same name found %v", v)
	}
	if got := two.New(f, func() int { return 7 }); got != 7 {
		t.Errorf("New = %d, want 7", got)
	}
	if got := two.New(f, func() int { return 8 }); got != 7 {
		t.Errorf("second New = %d, want 7", got)
	}
	if got := one.Update(f, func(old int) int { return old * 2 }); got != 10 {
		t.Errorf("Update = %d, want 10", got)
	}
	if got := NewKey[string]("s").Update(f, func(old string) string { return old + "!" }); got != "!" {
		t.Errorf("Update of nothing = %q, want !", got)
	}
	if one.String() != "n" || (Key[int]{}).String() != "" {
		t.Errorf("String() = %q and %q", one.String(), Key[int]{}.String())
	}
}

// Interface types keep their nil.
func TestKeyOfInterface(t *testing.T) {
	f := New(t.Context(), Config{})
	key := NewKey[error]("last error")
	key.Set(f, nil)
	if v, ok := key.Get(f); v != nil || !ok {
		t.Errorf("Get = %v, %v; want nil, true", v, ok)
	}
	if v := key.New(f, func() error { return errors.New("new") }); v != nil {
		t.Errorf("New = %v, want the nil that is there", v)
	}
	if v := key.Update(f, func(error) error { return nil }); v != nil {
		t.Errorf("Update = %v, want nil", v)
	}
}

func TestKeyUpdateIsAtomic(t *testing.T) {
	s := &session{}
	key := NewKey[int]("count")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { key.Update(inSession(t.Context(), s), func(n int) int { return n + 1 }) })
	}
	wg.Wait()
	if n, _ := key.Get(inSession(t.Context(), s)); n != 50 {
		t.Errorf("50 increments made %d", n)
	}
}

// Everything at once, for the race detector.
func TestAssignsConcurrent(t *testing.T) {
	f := New(WithAssigns(t.Context(), map[string]any{"c": 1}), Config{})
	key := NewKey[int]("k")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			name := fmt.Sprint(i % 3)
			f.Assign(name, i)
			f.AssignAll(map[string]any{name: i, "x": i})
			f.Get(name)
			key.Set(f, i)
			key.Get(f)
			f.WithContext(f).ClientCapabilities()
		})
	}
	wg.Wait()
	if _, ok := key.Get(f); !ok {
		t.Error("the value is gone")
	}
}
