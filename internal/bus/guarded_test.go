package bus

import (
	"context"
	"errors"
	"testing"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
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
