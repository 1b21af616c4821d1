// Package editor reads lines from a person: with editing, history and
// completion on a terminal, and plainly from anything else.
package editor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/peterh/liner"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
)

// ErrAborted is the error of a line that Ctrl-C ended; the end of input, Ctrl-D
// too, is io.EOF.
var ErrAborted = errors.New("aborted")

// Completer completes a line up to the cursor: head stays, and each of the
// candidates may follow it.
type Completer func(line string) (head string, candidates []string)

// Editor reads lines. Close gives the terminal back as it was.
type Editor struct {
	console *console.Console
	history string // the file, "" for none

	mu      sync.Mutex // guards what follows, for Close and Notice during Line
	state   *liner.State
	prompt  string // that is shown now, "" for none
	lines   chan string
	readErr error
	until   <-chan struct{}
}

// New returns an Editor that keeps its history in a file; "" keeps none.
func New(c *console.Console, history string) *Editor {
	return &Editor{console: c, history: history}
}

// maxLine bounds a line that does not come from a terminal.
const maxLine = 16 << 20

// editing tells whether lines can be edited: a person types, and sees it.
func (e *Editor) editing() bool { return e.console.InTerminal && e.console.OutTerminal }

// Line reads a line. What it returns goes into the history if keep is set and
// it is not empty.
func (e *Editor) Line(prompt string, complete Completer, keep bool) (string, error) {
	if !e.editing() {
		return e.plain(prompt)
	}
	s := e.open(prompt)
	defer e.prompted("")
	s.SetWordCompleter(func(line string, pos int) (string, []string, string) {
		runes := []rune(line)
		before, after := string(runes[:pos]), string(runes[pos:])
		if complete == nil {
			return before, nil, after
		}
		head, candidates := complete(before)
		return head, candidates, after
	})
	line, err := s.Prompt(prompt)
	switch {
	case errors.Is(err, liner.ErrPromptAborted):
		return "", ErrAborted
	case err != nil:
		return "", err
	}
	if keep && strings.TrimSpace(line) != "" {
		s.AppendHistory(line)
	}
	return line, nil
}

// open takes the terminal, if that was not done before.
func (e *Editor) open(prompt string) *liner.State {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		e.state = liner.NewLiner()
		e.state.SetCtrlCAborts(true)
		e.state.SetTabCompletionStyle(liner.TabPrints)
		e.state.SetBeep(false)
		if e.history != "" {
			if text, err := os.ReadFile(e.history); err == nil {
				_, _ = e.state.ReadHistory(bytes.NewReader(text)) // a damaged history is none
			}
		}
	}
	e.prompt = prompt
	return e.state
}

func (e *Editor) prompted(prompt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prompt = prompt
}

// plain reads a line as it comes. The goroutine that reads stays until its
// input ends, because such a read cannot be interrupted.
func (e *Editor) plain(prompt string) (string, error) {
	e.mu.Lock()
	if e.lines == nil {
		e.lines = make(chan string)
		go e.read(e.lines)
	}
	until := e.until
	e.mu.Unlock()
	if e.console.InTerminal {
		fmt.Fprint(e.console.Err, prompt)
	}
	select {
	case line, ok := <-e.lines:
		if !ok {
			return "", e.readErr
		}
		return line, nil
	case <-until:
		return "", ErrAborted
	}
}

// Until makes Line end with ErrAborted when done is closed, where it reads
// plainly and a Ctrl-C is a signal. nil is never.
func (e *Editor) Until(done <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = done
}

func (e *Editor) read(lines chan<- string) {
	defer close(lines)
	scanner := bufio.NewScanner(e.console.In)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		lines <- scanner.Text()
	}
	if e.readErr = scanner.Err(); e.readErr == nil {
		e.readErr = io.EOF
	}
}

// Notice writes lines while a line may be read: above the prompt, which comes
// back below them. It may be called from any goroutine.
func (e *Editor) Notice(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.prompt == "" || !e.editing() {
		fmt.Fprintln(e.console.Err, text)
		return
	}
	// What was typed so far comes back with the next key.
	fmt.Fprintf(e.console.Out, "\r\x1b[K%s\n%s", text, e.prompt)
}

// History returns the lines that were kept, oldest first.
func (e *Editor) History() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return nil
	}
	var b bytes.Buffer
	if _, err := e.state.WriteHistory(&b); err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// Close writes the history and gives the terminal back. It may be called while
// a line is read, by whoever ends the process, and more than once.
func (e *Editor) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return nil
	}
	err := e.save()
	err = errors.Join(err, e.state.Close())
	e.state = nil
	return err
}

// save writes the history for its owner alone: commands may have secrets.
func (e *Editor) save() error {
	if e.history == "" {
		return nil
	}
	var b bytes.Buffer
	if _, err := e.state.WriteHistory(&b); err != nil {
		return err
	}
	return os.WriteFile(e.history, b.Bytes(), 0o600)
}

// Ask implements form.Asker.
func (e *Editor) Ask(prompt string, complete func(typed string) []string) (string, error) {
	var completer Completer
	if complete != nil {
		completer = func(line string) (string, []string) { return "", complete(line) }
	}
	line, err := e.Line(prompt, completer, false)
	switch {
	case errors.Is(err, ErrAborted):
		return "", form.ErrCancel
	case errors.Is(err, io.EOF) && e.editing():
		fmt.Fprintln(e.console.Out)
		return "", form.ErrDecline
	case errors.Is(err, io.EOF): // nobody is there any more
		return "", form.ErrCancel
	}
	return line, err
}

// Say implements form.Asker.
func (e *Editor) Say(line string) {
	if e.editing() {
		fmt.Fprintln(e.console.Out, line)
		return
	}
	fmt.Fprintln(e.console.Err, line)
}
