package attend_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/clients/attend"
)

// The clock of a request stops while a person is asked, and goes on afterwards.
func TestWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		outer, stopOuter := attend.WithTimeout(t.Context(), time.Minute, late)
		defer stopOuter()
		ctx, stop := attend.WithTimeout(outer, 10*time.Second, late)
		defer stop()
		time.Sleep(4 * time.Second)
		var answered []func(error)
		for range 2 {
			done, err := attend.Ask(context.WithValue(ctx, otherKey{}, 1))
			if err != nil {
				t.Fatal(err)
			}
			answered = append(answered, done)
			time.Sleep(time.Hour)
		}
		for _, done := range answered {
			done(nil)
			time.Sleep(5 * time.Second)
		}
		if ctx.Err() != nil {
			t.Fatalf("it ended while a person was asked: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		if context.Cause(ctx) != late || outer.Err() != nil {
			t.Errorf("after its time: %v; the outer one: %v", context.Cause(ctx), outer.Err())
		}
		if done, err := attend.Ask(ctx); err != nil {
			t.Error(err)
		} else {
			done(nil) // after the end it starts nothing
		}
	})
}

// A person who refuses is not asked again on the same occasion.
func TestOccasion(t *testing.T) {
	var one, two attend.Occasion
	refusal := fmt.Errorf("access_denied: %w", attend.ErrUnauthorized)
	tests := []struct {
		name    string
		ctx     context.Context
		outcome error
		want    error
	}{
		{"consents", one.With(t.Context()), nil, nil},
		{"the network fails", one.With(t.Context()), errors.New("reset"), nil},
		{"refuses", one.With(t.Context()), refusal, nil},
		{"the same occasion", one.With(t.Context()), nil, refusal},
		{"another occasion", two.With(t.Context()), nil, nil},
		{"another occasion within that of the refusal", two.With(one.With(t.Context())), nil, refusal},
		{"no occasion", t.Context(), refusal, nil},
		{"never", attend.Never(two.With(t.Context())), nil, attend.ErrNever},
	}
	for _, tt := range tests {
		done, err := attend.Ask(tt.ctx)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err == nil {
			done(tt.outcome)
		}
	}
}

// otherKey is the key of a value that has nothing to do with the package.
type otherKey struct{}
