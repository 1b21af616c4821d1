package bus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// panicking is a Store that panics, on the goroutine of who calls it.
type panicking struct{ scale.Store }

func (panicking) HasTimeout() {}

func (panicking) Get(context.Context, ...scale.GetOp) ([]scale.Entry, error) { panic("out of ideas") }

func (panicking) Append(context.Context, scale.AppendOp) (scale.Rev, string, error) { panic(nil) }

// A store that stays on the goroutine of who calls it is guarded there.
func TestGuardWithoutGoroutine(t *testing.T) {
	s := Guard(panicking{scale.NewLocal()})
	_, err := s.Get(t.Context(), scale.GetOp{Key: registrationKey("x")})
	if failure, ok := errors.AsType[*safely.Failure](err); !ok || failure.Value != "out of ideas" {
		t.Errorf("Get: %v", err)
	}
	if _, _, err := s.Append(t.Context(), scale.AppendOp{Box: "x"}); err == nil {
		t.Error("Append: no error")
	}
	if _, err := s.Put(t.Context(), scale.Write{Key: registrationKey("x"), Value: []byte{}, TTL: replica.DeadAfter}); err != nil {
		t.Errorf("Put: %v", err)
	}
}

// hanging is a Store whose calls return when their context ends.
type hanging struct{ scale.Store }

func (hanging) wait(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (h hanging) Get(ctx context.Context, _ ...scale.GetOp) ([]scale.Entry, error) {
	return nil, h.wait(ctx)
}

func (h hanging) Put(ctx context.Context, _ ...scale.Write) ([]scale.Entry, error) {
	return nil, h.wait(ctx)
}

func (h hanging) ClaimDue(ctx context.Context, _, _, _ string, _ int, _ time.Duration) ([]scale.Entry, error) {
	return nil, h.wait(ctx)
}

func (h hanging) Append(ctx context.Context, _ scale.AppendOp) (scale.Rev, string, error) {
	return 0, "", h.wait(ctx)
}

func (h hanging) Read(ctx context.Context, _ string, _ scale.Rev, _ string) ([]scale.Message, string, error) {
	return nil, "", h.wait(ctx)
}

func (h hanging) Take(ctx context.Context, _ scale.Take) (scale.Box, error) {
	return scale.Box{}, h.wait(ctx)
}

func (h hanging) Watch(func(string, scale.Message), func()) scale.Watcher { return h }

func (h hanging) Add(ctx context.Context, _ ...string) error { return h.wait(ctx) }

func (hanging) Remove(...string) {}

func (hanging) Close() {}

// Each use of a store ends after a time, with an error that says that it may have happened.
func TestGuardTimeout(t *testing.T) {
	key := registrationKey("x")
	sealer, err := seal.New("post", []byte("a secret of 16 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func(ctx context.Context, s scale.Store) error{
		"Get": func(ctx context.Context, s scale.Store) error {
			_, err := s.Get(ctx, scale.GetOp{Key: key})
			return err
		},
		"Put": func(ctx context.Context, s scale.Store) error {
			_, err := s.Put(ctx, scale.Write{Key: key, Value: []byte{}, TTL: time.Minute})
			return err
		},
		"ClaimDue": func(ctx context.Context, s scale.Store) error {
			_, err := s.ClaimDue(ctx, "part", "index", "owner", 1, time.Minute)
			return err
		},
		"Append": func(ctx context.Context, s scale.Store) error {
			_, _, err := s.Append(ctx, scale.AppendOp{Box: "x"})
			return err
		},
		"Read": func(ctx context.Context, s scale.Store) error { _, _, err := s.Read(ctx, "x", 0, ""); return err },
		"Take": func(ctx context.Context, s scale.Store) error {
			_, err := s.Take(ctx, scale.Take{Box: "x", Reader: "r", TTL: time.Minute})
			return err
		},
		"Bus.SendUnchecked": func(ctx context.Context, s scale.Store) error {
			err := New(Config{Store: s, Seal: sealer}).SendUnchecked(ctx, "x", "kind", nil)
			if !errors.Is(err, ErrMaybeDelivered) {
				t.Errorf("%v", err)
			}
			return err
		},
		"Watcher.Add": func(ctx context.Context, s scale.Store) error {
			return s.Watch(func(string, scale.Message) {}, func() {}).Add(ctx, "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := use(t.Context(), Guard(hanging{scale.NewLocal()}))
				if took := time.Since(begun); !errors.Is(err, scale.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || took != replica.StoreTimeout {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// partial is a Store that leaves out entries where it fails.
type partial struct{ scale.Store }

func (partial) Get(context.Context, ...scale.GetOp) ([]scale.Entry, error) {
	return make([]scale.Entry, 1), scale.ErrUnavailable
}

func (partial) Put(context.Context, ...scale.Write) ([]scale.Entry, error) { return nil, nil }

func (partial) Watch(func(string, scale.Message), func()) scale.Watcher { return nil }

// Whoever asks a guarded store gets as many answers as questions, or none and an error.
func TestGuardAnswers(t *testing.T) {
	s := Guard(partial{scale.NewLocal()})
	if es, err := s.Get(t.Context(), scale.GetOp{Key: registrationKey("x")}, scale.GetOp{Key: registrationKey("y")}); len(es) != 0 || !errors.Is(err, scale.ErrUnavailable) {
		t.Errorf("Get: %v, %v", es, err)
	}
	if es, err := s.Put(t.Context(), scale.Write{Key: registrationKey("x"), Value: []byte{}, TTL: replica.DeadAfter}); len(es) != 0 || err == nil {
		t.Errorf("Put: %v, %v", es, err)
	}
	w := s.Watch(func(string, scale.Message) {}, func() {})
	if err := w.Add(t.Context(), "x"); err == nil {
		t.Error("Add: no error")
	}
	w.Remove("x")
	w.Close()
}
