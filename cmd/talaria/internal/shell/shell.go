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
	"sync/atomic"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/subscriptions"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
)

// Prompt is what the shell waits with.
const Prompt = "mcp> "

// Shell works with one server.
type Shell struct {
	Console  *console.Console
	Editor   *editor.Editor
	Terminal *terminal.Terminal
	Render   *render.Renderer
	// Connect connects, or says why it cannot.
	Connect func(ctx context.Context) (*client.Client, error)
	// Explain says what to show of an error, and the way out, if there is one.
	Explain func(err error) (text, hint string)
	// Authorized says that requests have a token, which may decide about what
	// the server lists: tools that it does not list are called all the same.
	Authorized bool
	// Facts are shown by show_state: names and values.
	Facts [][2]string

	client *client.Client
	subs   subscriptions.Set
	lists  lists
	told   protocol.Level // what set_level chose
	failed error          // the last command that failed

	ready   atomic.Bool // the connection was there
	lost    atomic.Bool // and is not any more
	closing atomic.Bool // it is closed from here
}

// errLeave ends the shell.
var errLeave = errors.New("leave")

// usageError is the error of a command that was typed wrongly.
type usageError struct{ text, usage string }

func (e *usageError) Error() string { return e.text }

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
	for {
		line, err := s.Editor.Line(Prompt, s.complete, true)
		if err == nil && !leaving(line) { // who wants to leave is asked nothing
			s.Terminal.Serve()
		}
		switch {
		case errors.Is(err, editor.ErrAborted):
			s.Console.Notef("(exit or Ctrl-D leaves)")
			continue
		case errors.Is(err, io.EOF):
			if s.Console.Interactive() {
				s.Console.Print()
				return nil
			}
			return seen(s.failed)
		case err != nil:
			return err
		}
		switch err := s.execute(ctx, line); {
		case errors.Is(err, errLeave) && s.Console.Interactive():
			return nil
		case errors.Is(err, errLeave):
			return seen(s.failed)
		case err != nil:
			s.failed = err
			s.report(err)
		}
	}
}

func leaving(line string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	c, _ := find(name)
	return c.name == "exit"
}

// connect makes a connection in the place of the one before.
func (s *Shell) connect(ctx context.Context) error {
	s.disconnect()
	s.ready.Store(false)
	s.lost.Store(false)
	c, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	s.client = c
	s.lists.drop()
	s.Console.Printf("connected to %s, revision %s", s.Console.Paint(console.Bold, render.Server(c.Server().Info)), c.Revision())
	if s.Console.Interactive() {
		s.Console.Notef("help lists the commands; Tab completes them")
	}
	filter := render.Changes(c.Server().Capabilities)
	if c.Revision().Modern() && (filter.ToolsListChanged || filter.PromptsListChanged || filter.ResourcesListChanged) {
		err := s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error {
			_, err := c.Listen(ctx, filter, nil)
			return err
		})
		if errors.Is(err, terminal.ErrInterrupted) {
			s.disconnect()
			return err
		}
		if err != nil {
			s.Console.Warnf("the server does not tell of changes: %v", err)
		}
	}
	return nil
}

func (s *Shell) disconnect() {
	if s.client == nil {
		return
	}
	s.closing.Store(true)
	defer s.closing.Store(false)
	s.subs.Clear()
	if err := s.client.Close(); err != nil {
		s.Console.Warnf("%v", err)
	}
	s.client = nil
}

// Told takes the notifications of the server.
func (s *Shell) Told(e client.Notification) {
	switch e.Method {
	case protocol.MethodLog: // has a handler of its own
	case protocol.MethodCancelled:
	default:
		s.lists.changed(e.Method)
		s.Terminal.Notice("[%s]", render.Event(e))
	}
}

// State takes the changes of the connection's state. Only what happens to a
// connection that was there is news.
func (s *Shell) State(state client.State, err error) {
	switch state {
	case client.StateReady:
		s.ready.Store(true)
		if s.lost.Swap(false) {
			s.Terminal.Notice("[connected again]")
		}
	case client.StateDisconnected:
		if s.ready.Swap(false) && !s.closing.Load() && err != nil {
			s.lost.Store(true)
			text, _ := s.Explain(err)
			s.Terminal.Notice("[disconnected: %s]", brief(text))
		}
	}
}

// lastLines is how much of what a server wrote at its end a notice shows.
const lastLines = 3

// brief leaves out the middle of a long text.
func brief(text string) string {
	list := strings.Split(text, "\n")
	if len(list) <= 1+lastLines {
		return text
	}
	return strings.Join(append([]string{list[0], "       …"}, list[len(list)-lastLines:]...), "\n")
}

func (s *Shell) report(err error) {
	var wrong *usageError
	switch {
	case errors.Is(err, form.ErrCancel), errors.Is(err, form.ErrDecline):
		s.Console.Notef("cancelled")
	case errors.As(err, &wrong):
		s.Console.Failf("%s", wrong.text)
		if wrong.usage != "" {
			s.Console.Notef("usage: %s", wrong.usage)
		}
	default:
		text, hint := s.Explain(err)
		s.Console.Failf("%s", text)
		if hint != "" {
			s.Console.Notef("%s", hint)
		}
	}
}

// execute runs one line.
func (s *Shell) execute(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if name == "" || strings.HasPrefix(name, "#") {
		return nil
	}
	c, ok := find(name)
	if !ok {
		text := fmt.Sprintf("unknown command %q", name)
		if slices.Contains(s.toolNames(), name) {
			return &usageError{text: text + "; it is a tool", usage: "call_tool " + name + " [NAME=value…]"}
		}
		if near := arguments.Nearest(name, names()); near != "" {
			text += "; did you mean " + near + "?"
		}
		return &usageError{text: text, usage: "help lists the commands"}
	}
	if c.online && s.client == nil {
		return &usageError{text: "not connected", usage: "initialize connects"}
	}
	err := c.run(s, ctx, strings.TrimSpace(rest))
	var wrong *usageError
	if errors.As(err, &wrong) && wrong.usage == "" {
		wrong.usage = c.usage
	}
	return err
}

func wrong(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// Wrong tells whether err is that of a command that was typed wrongly.
func Wrong(err error) bool {
	var wrong *usageError
	return errors.As(err, &wrong)
}

// Seen tells whether the user has seen an error of Run already.
func Seen(err error) bool {
	_, ok := errors.AsType[*seenError](err)
	return ok
}

// seenError is the error of a command, which was reported.
type seenError struct{ error }

func (e *seenError) Unwrap() error { return e.error }

func seen(err error) error {
	if err == nil {
		return nil
	}
	return &seenError{err}
}
