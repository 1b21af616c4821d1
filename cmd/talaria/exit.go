package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// The exit codes.
const (
	exitOK          = 0
	exitTool        = 1 // the tool says that it failed (isError), or anything that has no other code
	exitUsage       = 2
	exitConnect     = 3
	exitProtocol    = 4
	exitTimeout     = 5
	exitAuth        = 6
	exitInterrupted = 130
)

const exitHelp = `0 fine, 1 the tool failed (isError) or anything else did, 2 wrong
usage, 3 cannot connect (in time), 4 the server answered with an error or broke
the protocol, 5 no answer in time, 6 the server requires a login (or the login
failed), 130 interrupted before it was done.`

// failure is an error with an exit code and, if there is one, a way out.
type failure struct {
	code int
	err  error // nil if everything was said already
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// with adds the way out.
func (f *failure) with(hint string) *failure {
	f.hint = hint
	return f
}

func usage(format string, args ...any) *failure {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// unused refuses flags that were given and have no effect; reason says why.
func unused(flags *pflag.FlagSet, reason string, names ...string) error {
	for _, name := range names {
		if flags.Changed(name) {
			return usage("--%s %s", name, reason)
		}
	}
	return nil
}

func failed(code int, err error) *failure { return &failure{code: code, err: err} }

// named checks the file that a flag names for what is written. "-" would be a file of
// that name.
func named(flag, file, what string) error {
	if file == "-" {
		return usage("--%s -: a %s is a file; name one", flag, what)
	}
	return nil
}

// explain returns the exit code of an error, what to say, and the way out.
func explain(err error) (code int, text, hint string) {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		if f = refused(err); f == nil {
			f = judged(err)
		}
		err = f
	}
	if f.err != nil {
		text = lines(reason(err).Error())
	}
	if long, ok := errors.AsType[*transport.TooLongError](err); ok && long.Option != "" {
		text = strings.ReplaceAll(text, long.Option, "--max-message")
	}
	return f.code, text, f.hint
}

// checked is the failure of an error without a code.
func judged(err error) *failure {
	f := failed(exitTool, err)
	_, theirs := errors.AsType[*protocol.Error](err)
	_, ours := errors.AsType[*client.Error](err)
	switch {
	case errors.Is(err, terminal.ErrInterrupted):
		f.code = exitInterrupted
	case errors.Is(err, client.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		f.code, f.hint = exitTimeout, "--timeout sets how long to wait; 0 waits for ever"
	case errors.Is(err, client.ErrUnsupported):
		f.code, f.hint = exitProtocol, "talaria inspect shows what the server offers"
	case theirs, ours, errors.Is(err, client.ErrClosed), errors.Is(err, client.ErrConnection), errors.Is(err, client.ErrSessionExpired):
		f.code = exitProtocol
	}
	return f
}

// lines leaves out lines that are empty, and indents all but the first.
func lines(text string) string {
	var list []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			list = append(list, strings.TrimRight(line, " \r"))
		}
	}
	return strings.ReplaceAll(strings.Join(list, "\n       "), "\n              ", "\n       ")
}

// reason leaves out what a person knows: the connection that every command
// begins with.
func reason(err error) error {
	var own *client.Error
	if !errors.As(err, &own) || own.Err == nil || !strings.HasPrefix(own.Op, "connect") || !strings.HasPrefix(err.Error(), own.Op) {
		return err
	}
	text := strings.TrimPrefix(err.Error(), own.Op)
	for _, prefix := range []string{": ", client.ErrConnection.Error() + ": ", "mcp: ", "transport: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return &shortError{text, err}
}

// shortError is an error in fewer words.
type shortError struct {
	text string
	err  error
}

func (e *shortError) Error() string { return e.text }
func (e *shortError) Unwrap() error { return e.err }
