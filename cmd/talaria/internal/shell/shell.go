// Package shell is the interactive shell: commands of a person, one by one, to
// one server.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	naming "github.com/talaria-go/mcp/internal/tooling/names"
)

// Prompt is what the shell waits with.
const Prompt = "mcp> "

// Options shape a Shell.
type Options struct {
	Console  *console.Console
	Editor   *editor.Editor
	Terminal *terminal.Terminal
	Render   *render.Renderer
	// Connect connects, or says why it cannot.
	Connect func(ctx context.Context) (*client.Client, error)
	// Explain says what to show of an error, and the way out, if there is one.
	Explain func(err error) (text, hint string)
	// Authorized says that requests have a token, which may decide about what the
	// server lists: tools that it does not list are called nevertheless.
	Authorized bool
	// Facts are shown by show_state: names and values.
	Facts [][2]string
}

// Shell takes commands for one server.
type Shell struct {
	*link
	commands table
	failed   error // the last command that failed
}

// New returns a Shell that is not connected yet.
func New(o Options) *Shell {
	s := &Shell{link: &link{Options: o}}
	s.commands = commands(s)
	return s
}

// errLeave ends the shell.
var errLeave = errors.New("leave")

// usageError is the error of a command that was typed wrongly.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return e.text }

func wrong(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// Wrong reports whether err is that of a command that was typed wrongly.
func Wrong(err error) bool {
	_, ok := errors.AsType[*usageError](err)
	return ok
}

// seenError is the error of a command, which was reported.
type seenError struct{ error }

func (e *seenError) Unwrap() error { return e.error }

// Seen reports whether the user has seen an error of Run already.
func Seen(err error) bool {
	_, ok := errors.AsType[*seenError](err)
	return ok
}

// Run connects and takes commands until exit, Ctrl-D or the end of input. Its
// error is that of the last command that failed, if the commands came from a
// script; a person has seen it. Ctrl-C before the first prompt ends it, too.
func (s *Shell) Run(ctx context.Context) error {
	defer s.disconnect()
	if err := s.connect(ctx); err != nil {
		if !s.Console.Interactive() || errors.Is(err, terminal.ErrInterrupted) {
			return err
		}
		s.report(err)
		s.Console.Notef("not connected; initialize tries again, exit leaves")
	}
	for s.Console.Broken() == nil { // otherwise the results are not visible
		line, err := s.Editor.Line(Prompt, s.commands.complete, true)
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		c, known := s.commands.find(name)
		if err == nil && c.name != "exit" { // who wants to leave is asked nothing
			s.Terminal.Serve()
		}
		switch {
		case errors.Is(err, editor.ErrAborted):
			s.Console.Notef("(exit or Ctrl-D leaves)")
			continue
		case errors.Is(err, io.EOF):
			if s.Console.Interactive() {
				s.Console.Print()
			}
			return s.left()
		case err != nil:
			return err
		case name == "" || strings.HasPrefix(name, "#"):
			continue
		case known:
			err = s.execute(ctx, c, strings.TrimSpace(rest))
		default:
			err = s.unknown(name)
		}
		if errors.Is(err, errLeave) {
			return s.left()
		}
		if errors.Is(err, terminal.ErrInterrupted) && !s.Console.InTerminal {
			return err // of a script nothing else is wanted, either
		}
		if err != nil {
			s.failed = err
			s.report(err)
		}
	}
	return s.left()
}

// left is the error of a shell that was left.
func (s *Shell) left() error {
	if s.failed == nil || s.Console.Interactive() {
		return nil
	}
	return &seenError{s.failed}
}

func (s *Shell) report(err error) {
	if errors.Is(err, form.ErrCancel) || errors.Is(err, form.ErrDecline) {
		s.Console.Notef("cancelled")
		return
	}
	text, hint := s.Explain(err)
	if wrong, ok := errors.AsType[*usageError](err); ok {
		text, hint = wrong.text, wrong.hint
	}
	s.Console.Failf("%s", text)
	if hint != "" {
		s.Console.Notef("%s", hint)
	}
}

// execute runs a command; rest is what follows its name.
func (s *Shell) execute(ctx context.Context, c command, rest string) error {
	if c.online && s.client == nil {
		return &usageError{"not connected", "initialize connects"}
	}
	err := wrong("unexpected argument %q", rest)
	if rest == "" || c.usage != c.name {
		err = c.run(ctx, rest)
	}
	if wrong, ok := errors.AsType[*usageError](err); ok && wrong.hint == "" {
		wrong.hint = "usage: " + c.usage
	}
	return err
}

// unknown is the error for a name that is not a command's.
func (s *Shell) unknown(name string) error {
	text := fmt.Sprintf("unknown command %q", name)
	if slices.Contains(s.lists.toolNames(), name) {
		return &usageError{text + "; it is a tool", "usage: call_tool " + name + " [NAME=value…]"}
	}
	if near := naming.Nearest(name, s.commands.names()); near != "" {
		text += "; did you mean " + near + "?"
	}
	return &usageError{text, "help lists the commands"}
}

func (s *Shell) help(_ context.Context, rest string) error {
	if rest == "" {
		var rows [][]string
		for _, c := range s.commands {
			rows = append(rows, []string{c.name, c.short})
		}
		s.Console.Table([]string{"command", "what it does"}, rows)
		s.Console.Notef("help COMMAND says more. Tab completes, Ctrl-C cancels a call, Ctrl-D leaves.")
		return nil
	}
	c, ok := s.commands.find(rest)
	if !ok {
		return wrong("unknown command %q", rest)
	}
	s.Console.Print(s.Console.Paint(console.Bold, c.usage))
	s.Console.Print("  " + c.short)
	if len(c.aliases) > 0 {
		s.Console.Print("  also: " + strings.Join(c.aliases, ", "))
	}
	if c.name == "call_tool" {
		s.Console.Print(callHelp)
	}
	return nil
}

func (s *Shell) timeout(_ context.Context, rest string) error {
	if rest != "" {
		limit, err := time.ParseDuration(rest)
		if err != nil || limit < 0 {
			return wrong("%q is no duration; write 10s, 2m or 0", rest)
		}
		s.Terminal.SetLimit(limit)
	}
	if limit := s.Terminal.Limit(); limit > 0 {
		s.Console.Printf("an answer, or progress, must come within %v", limit)
	} else {
		s.Console.Print("no limit")
	}
	return nil
}

func (s *Shell) history(context.Context, string) error {
	for i, line := range s.Editor.History() {
		s.Console.Printf("%4d  %s", i+1, line)
	}
	return nil
}

func (s *Shell) clear(context.Context, string) error {
	if s.Console.OutTerminal {
		fmt.Fprint(s.Console.Out, "\x1b[H\x1b[2J")
	}
	return nil
}
