package frame

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/protocol"
)

func inSession(ctx context.Context, s *session) *Frame {
	return newFrame(ctx, core.Config{Revision: protocol.V20251125, Session: s})
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
	inSession(t.Context(), mine).Set("k", 1)
	want(t, inSession(t.Context(), mine), "k", 1)
	want(t, inSession(t.Context(), other), "k", nil)

	modern := newFrame(t.Context(), core.Config{})
	modern.Set("a", 1)
	modern.Set("b", 2)
	want(t, modern, "a", 1)
	want(t, modern, "b", 2)
	want(t, newFrame(t.Context(), core.Config{}), "a", nil)
	modern.Set("a", 3)
	want(t, modern, "a", 3)
}

// A nil that was kept is there.
func TestAssignNil(t *testing.T) {
	f := newFrame(t.Context(), core.Config{})
	f.Set("k", nil)
	if v, ok := f.Get("k"); v != nil || !ok {
		t.Errorf("Get = %v, %v; want nil, true", v, ok)
	}
	if got := f.GetOrSet("k", func() any { return 1 }); got != nil {
		t.Errorf("GetOrSet = %v, want the nil that is there", got)
	}
}

// Values of HTTP middleware lie over those of the session, for the one
// request, and never go into it.
func TestKeyWith(t *testing.T) {
	s := &session{}
	user, theme, tenant := NewKey[string]("user"), NewStoredKey[string]("theme"), NewKey[int]("user")
	user.Set(inSession(t.Context(), s), "session")
	theme.Set(inSession(t.Context(), s), "dark")
	outer := tenant.With(user.With(t.Context(), "outer"), 1)
	inner := user.With(outer, "inner")
	check := func(f *Frame, wantUser string, wantTenant int) {
		t.Helper()
		gotUser, _ := user.Get(f)
		gotTheme, _ := theme.Get(f)
		gotTenant, ok := tenant.Get(f)
		if gotUser != wantUser || gotTheme != "dark" || gotTenant != wantTenant || ok != (wantTenant != 0) {
			t.Errorf("got %q, %q, %d; want %q, dark, %d", gotUser, gotTheme, gotTenant, wantUser, wantTenant)
		}
	}
	f := inSession(inner, s)
	check(f, "inner", 1)
	check(inSession(outer, s), "outer", 1)
	if got := user.GetOrSet(f, func() string { t.Error("fn ran"); return "" }); got != "inner" {
		t.Errorf("GetOrSet = %v, want the middleware's value", got)
	}
	user.Set(f, "kept")
	check(f, "inner", 1) // for this request the middleware decides
	check(inSession(t.Context(), s), "kept", 0)
	check(f.WithContext(t.Context()), "kept", 0)
}

func TestGetOrSetOnce(t *testing.T) {
	s := &session{}
	var made, wrong int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			got := inSession(t.Context(), s).GetOrSet("k", func() any { made++; return made })
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
func TestGetOrSetPanic(t *testing.T) {
	f := newFrame(t.Context(), core.Config{})
	func() {
		defer func() { _ = recover() }()
		f.GetOrSet("k", func() any { panic("no") })
	}()
	want(t, f, "k", nil)
	if got := f.GetOrSet("k", func() any { return 2 }); got != 2 {
		t.Errorf("GetOrSet = %v, want 2", got)
	}
}

func TestKey(t *testing.T) {
	f := newFrame(t.Context(), core.Config{})
	one, two := NewKey[int]("n"), NewKey[int]("n")
	if v, ok := one.Get(f); v != 0 || ok {
		t.Errorf("Get of nothing = %v, %v", v, ok)
	}
	one.Set(f, 5)
	f.Set("n", "a name is another place")
	if v, ok := one.Get(f); v != 5 || !ok {
		t.Errorf("Get = %v, %v; want 5, true", v, ok)
	}
	if v, ok := two.Get(f); ok {
		t.Errorf("a key of the same name found %v", v)
	}
	if got := two.GetOrSet(f, func() int { return 7 }); got != 7 {
		t.Errorf("GetOrSet = %d, want 7", got)
	}
	if got := two.GetOrSet(f, func() int { return 8 }); got != 7 {
		t.Errorf("second GetOrSet = %d, want 7", got)
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
	f := newFrame(t.Context(), core.Config{})
	key := NewKey[error]("last error")
	key.Set(f, nil)
	if v, ok := key.Get(f); v != nil || !ok {
		t.Errorf("Get = %v, %v; want nil, true", v, ok)
	}
	if v := key.GetOrSet(f, func() error { return errors.New("new") }); v != nil {
		t.Errorf("GetOrSet = %v, want the nil that is there", v)
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
	key := NewKey[int]("k")
	f := newFrame(NewKey[int]("c").With(t.Context(), 1), core.Config{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			name := fmt.Sprint(i % 3)
			f.Set(name, i)
			f.Set("x", i)
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

// A value that is not kept for all is told once, and costs no further try.
func TestUpdateThatIsNotShared(t *testing.T) {
	s := &session{}
	tries := 0
	failure := errors.New("the store is away")
	s.assigns.OnUpdate(func(_ any, fn func(old any, ok bool) any) (any, error) {
		tries++
		return fn(s.assigns.Get("nothing")), failure
	})
	f := inSession(t.Context(), s)
	stored := NewStoredKey[int]("example.com/n")
	add := func(n int) int { return n + 1 }
	if Internal(facts.Private{}).Unkept(f) != nil {
		t.Error("something is not kept at the beginning")
	}
	for range 3 {
		if n := stored.Update(f, add); n != 1 {
			t.Errorf("Update: %d", n)
		}
	}
	if n := stored.GetOrSet(f, func() int { return 7 }); n != 7 {
		t.Errorf("GetOrSet: %d", n)
	}
	if n := NewKey[int]("here").Update(f, add); n != 1 {
		t.Errorf("of a key that is not shared: %d", n)
	}
	if err := Internal(facts.Private{}).Unkept(f.WithContext(t.Context())); !errors.Is(err, failure) || tries != 1 {
		t.Errorf("Unkept: %v, %d tries", err, tries)
	}
}
