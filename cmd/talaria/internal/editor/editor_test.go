package editor

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
)

// Without a terminal lines are read as they come, and nothing is shown.
func TestPlain(t *testing.T) {
	var out, errs bytes.Buffer
	e := New(&console.Console{In: strings.NewReader("one\ntwo\r\nlast"), Out: &out, Err: &errs}, "")
	for _, want := range []string{"one", "two", "last"} {
		if got, err := e.Line("> ", nil, true); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for range 2 {
		if _, err := e.Line("> ", nil, true); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
	}
	if _, err := e.Ask("> ", nil); !errors.Is(err, form.ErrCancel) {
		t.Errorf("got %v, want nobody to answer", err)
	}
	e.Notice("news")
	e.Say("words")
	if out.Len() > 0 || errs.String() != "news\nwords\n" {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
	if e.History() != nil || e.Close() != nil {
		t.Error("it has a history, or does not close")
	}
}

// With a terminal for input alone, the prompt goes to standard error.
func TestPromptWithoutScreen(t *testing.T) {
	var out, errs bytes.Buffer
	e := New(&console.Console{In: strings.NewReader("x\n"), Out: &out, Err: &errs, InTerminal: true}, "")
	if got, err := e.Ask("name: ", nil); err != nil || got != "x" || errs.String() != "name: " || out.Len() > 0 {
		t.Errorf("got %q, %v, %q", got, err, errs.String())
	}
}

// Names come from servers; Tab must not send their control characters to the
// terminal.
func TestHarmless(t *testing.T) {
	got := harmless([]string{"good", "g\x1b[2J", "gr\u009bx", "g\u202ex", "g\nx", "other"})
	if !slices.Equal(got, []string{"good", "other"}) {
		t.Errorf("got %q", got)
	}
	if got := onePrompt("  na\nme\x1b [x]: "); got != "  na me␛ [x]: " {
		t.Errorf("got %q", got)
	}
}

// A Ctrl-C that is a signal ends a line, too.
func TestUntil(t *testing.T) {
	in, typing := io.Pipe()
	defer typing.Close()
	e := New(&console.Console{In: in, Err: io.Discard}, "")
	done := make(chan struct{})
	close(done)
	e.Until(done)
	if _, err := e.Line("", nil, false); !errors.Is(err, ErrAborted) {
		t.Errorf("got %v", err)
	}
}

func TestTooLong(t *testing.T) {
	e := New(&console.Console{In: strings.NewReader(strings.Repeat("x", maxLine+1)), Err: io.Discard}, "")
	if _, err := e.Line("", nil, false); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want an error", err)
	}
}

func TestHistoryFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	if got, err := HistoryFile(); err != nil || got != filepath.Join(dir, "talaria", "history") {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", dir)
	if got, err := HistoryFile(); err != nil || !strings.HasPrefix(got, dir) {
		t.Errorf("got %s, %v, want it in the home directory", got, err)
	}
}
