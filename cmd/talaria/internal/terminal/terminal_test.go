package terminal

import (
	"bytes"
	"context"
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
