package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
)

// inputs asks in the terminal for what configuration files want to know, once for
// each, and not any more after closed. All methods are safe for concurrent use.
type inputs struct {
	console *console.Console
	mu      sync.Mutex
	known   map[string]string
	closed  bool
	left    bool // Ctrl-C at a question
}

// mostTries is how often a person may choose what there is not.
const mostTries = 3

// ask is for config.Options. Without a person, an input has its default.
func (i *inputs) ask(in config.Input) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if text, ok := i.known[in.ID]; ok {
		return text, nil
	}
	switch {
	case i.closed && in.Default == "":
		return "", errors.New("it was not asked for at the start: start talaria again")
	case !i.console.Interactive() && in.Default == "":
		return "", errors.New("it has no default, and there is no user to ask for it")
	case i.closed, !i.console.Interactive():
		return in.Default, nil
	}
	if i.left {
		return "", terminal.ErrInterrupted
	}
	text, err := i.answer(in)
	if err != nil {
		i.left = errors.Is(err, terminal.ErrInterrupted)
		return "", err
	}
	if i.known == nil {
		i.known = map[string]string{}
	}
	i.known[in.ID] = text
	return text, nil
}

// close ends the asking. It tells whether Ctrl-C was pressed at a question.
func (i *inputs) close() (left bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	return i.left
}

func (i *inputs) answer(in config.Input) (string, error) {
	prompt := console.Line(cmp.Or(in.Description, in.ID))
	if len(in.Options) > 0 {
		prompt += " (" + console.Line(strings.Join(in.Options, ", ")) + ")"
	}
	if in.Default != "" && !in.Password {
		prompt += " [" + console.Line(in.Default) + "]"
	}
	for range mostTries {
		text, err := i.line(prompt+": ", in)
		if err != nil {
			return "", err
		}
		if text = cmp.Or(text, in.Default); len(in.Options) == 0 || slices.Contains(in.Options, text) {
			return text, nil
		}
		i.console.Notef("choose one of: %s", strings.Join(in.Options, ", "))
	}
	return "", fmt.Errorf("%d times it was not one of its options", mostTries)
}

// line reads a line, which is not shown if it is a password.
func (i *inputs) line(prompt string, in config.Input) (string, error) {
	if in.Password {
		text, err := i.console.Secret(prompt)
		if errors.Is(err, io.EOF) {
			err = terminal.ErrInterrupted
		}
		return text, err
	}
	ed := editor.New(i.console, "")
	defer ed.Close()
	text, err := ed.Ask(prompt, func(string) []string { return in.Options })
	if errors.Is(err, form.ErrCancel) {
		err = terminal.ErrInterrupted
	}
	return text, err
}
