package terminal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
)

// An operation that panics, or ends its goroutine, is an error, and the next one
// runs.
func TestRunPanics(t *testing.T) {
	c := &console.Console{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, In: strings.NewReader("")}
	term := New(Options{Console: c, Editor: editor.New(c, "")})
	for name, op := range map[string]Operation{
		"panic":  func(context.Context, ...client.CallOption) error { panic("a mistake of this program") },
		"Goexit": func(context.Context, ...client.CallOption) error { runtime.Goexit(); return nil },
	} {
		if err := term.Run(t.Context(), op); err == nil || !strings.Contains(err.Error(), "panic: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := term.Run(t.Context(), func(context.Context, ...client.CallOption) error { return nil }); err != nil {
		t.Error(err)
	}
}

// A signal that comes between two operations, such as connecting and the call, ends the
// next one.
func TestCatch(t *testing.T) {
	c := &console.Console{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, In: strings.NewReader("")}
	term := New(Options{Console: c, Editor: editor.New(c, "")})
	defer term.Catch()()
	term.caught <- os.Interrupt
	wait := func(ctx context.Context, _ ...client.CallOption) error { <-ctx.Done(); return ctx.Err() }
	if err := term.Run(t.Context(), wait); !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %v", err)
	}
	if err := term.Run(t.Context(), func(ctx context.Context, _ ...client.CallOption) error { return ctx.Err() }); err != nil {
		t.Errorf("the one after that: %v", err)
	}
}
