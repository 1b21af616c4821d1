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
	"slices"
	"strings"
	"sync"
	"unicode"

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

	mu      sync.Mutex   // guards what follows, for Close and Notice during Line
	state   *liner.State // nil before the first line, and after Close
	keys    *keys        // that state reads
	kept    []byte       // the history, while state is nil
	prompt  string       // that is shown now, "" for none
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

// editing reports whether lines can be edited: a person types, and sees it.
func (e *Editor) editing() bool { return e.console.InTerminal && e.console.OutTerminal }

// Line reads a line. The line goes into the history if keep is set and it is
// not empty.
func (e *Editor) Line(prompt string, complete Completer, keep bool) (string, error) {
	if !e.editing() {
		return e.plain(prompt)
	}
	prompt = onePrompt(prompt)
	for {
		line, err := e.edit(prompt, complete)
		switch {
		case errors.Is(err, liner.ErrInternal):
			fmt.Fprintln(e.console.Out) // there are no columns any more: the next line is read without editing
			continue
		case errors.Is(err, liner.ErrPromptAborted):
			return "", ErrAborted
		case errors.Is(err, os.ErrClosed):
			fmt.Fprintln(e.console.Out)
			return "", ErrAborted
		case err == nil && keep && strings.TrimSpace(line) != "":
			e.remember(line)
		}
		return line, err
	}
}

// edit reads a line on the terminal. It ends with os.ErrClosed when Until says
// so, because a Ctrl-C is a signal where the terminal has seen it before edit
// was ready.
func (e *Editor) edit(prompt string, complete Completer) (line string, err error) {
	s, keys, until := e.open()
	defer ctrlCIsKey()() // before there is a prompt to press it at
	select {
	case <-until:
		return "", os.ErrClosed
	default:
	}
	e.prompted(prompt)
	defer e.prompted("")
	s.SetWordCompleter(func(line string, pos int) (string, []string, string) {
		runes := []rune(line)
		before, after := string(runes[:pos]), string(runes[pos:])
		if complete == nil {
			return before, nil, after
		}
		head, candidates := complete(before)
		return head, harmless(candidates), after
	})
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-done:
		case <-until:
			if keys.tty == nil { // standard input cannot be interrupted
				e.Notice("interrupted; press Enter")
				return
			}
			_ = keys.in.Close() // ends the reading, which is all that is wanted
		}
	})
	stop := keys.forward()
	line, err = s.Prompt(prompt)
	close(done)
	watching.Wait()
	stop()
	select {
	case <-until:
		e.drop()
	default:
		if errors.Is(err, liner.ErrInternal) || keys.ended {
			e.drop()
		}
	}
	return line, err
}

// open takes the terminal, if that was not done before. keys are what is typed;
// until is what Until was given.
func (e *Editor) open() (s *liner.State, keys *keys, until <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		e.keys = newKeys()
		stdin := os.Stdin
		os.Stdin = e.keys.in // liner takes no other file
		e.state = liner.NewLiner()
		os.Stdin = stdin
		e.state.SetCtrlCAborts(true)
		e.state.SetTabCompletionStyle(liner.TabPrints)
		e.state.SetBeep(false)
		if e.kept == nil && e.history != "" {
			e.kept, _ = os.ReadFile(e.history) // a missing or damaged one is empty
		}
		_, _ = e.state.ReadHistory(bytes.NewReader(e.kept)) // what was read until an error is there
	}
	return e.state, e.keys, e.until
}

// drop gives the terminal back, and ends whatever still reads from it.
func (e *Editor) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != nil {
		_ = e.leave() // the next line takes it again
	}
}

// leave is drop. e.mu is held, and e.state is there.
func (e *Editor) leave() error {
	var b bytes.Buffer
	if _, err := e.state.WriteHistory(&b); err == nil {
		e.kept = b.Bytes()
	}
	e.keys.close()
	err := e.state.Close()
	e.state = nil
	return err
}

func (e *Editor) remember(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != nil {
		e.state.AppendHistory(line)
		return
	}
	e.kept = append(e.kept, line+"\n"...)
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
		fmt.Fprint(e.console.Err, onePrompt(prompt))
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

// Until makes Line end with ErrAborted when done is closed: a Ctrl-C that was a
// signal. nil is never.
func (e *Editor) Until(done <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = done
}

// Interrupted reports whether a Ctrl-C was typed behind the line that was
// read last, and takes it. It must not be called while a line is read.
func (e *Editor) Interrupted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state != nil && e.keys.interrupted()
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
		fmt.Fprintln(e.console.Err, console.Text(text))
		return
	}
	fmt.Fprintf(e.console.Out, "\r\x1b[K%s\n%s", console.Text(text), e.prompt)
	redraw() // what was typed so far, and the prompt once, should it have been on its way
}

// History returns the lines that were kept, oldest first.
func (e *Editor) History() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := e.kept
	if e.state != nil {
		var b bytes.Buffer
		if _, err := e.state.WriteHistory(&b); err != nil {
			return nil
		}
		text = b.Bytes()
	}
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// Close writes the history, readable only by its owner since commands may have
// secrets, and restores the terminal. It may be called while a line is read, by
// the code that ends the process, and more than once.
func (e *Editor) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return nil
	}
	err := e.leave()
	if e.history != "" {
		err = errors.Join(err, os.WriteFile(e.history, e.kept, 0o600))
	}
	return err
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
	case errors.Is(err, io.EOF): // the input has ended
		return "", form.ErrCancel
	}
	return line, err
}

// Say implements form.Asker.
func (e *Editor) Say(line string) {
	if e.editing() {
		fmt.Fprintln(e.console.Out, console.Text(line))
		return
	}
	fmt.Fprintln(e.console.Err, console.Text(line))
}

// onePrompt returns a prompt, possibly with a name from a server, cleaned and on
// one line. The library that edits lines refuses a prompt with characters of the
// category C, of which joiners and those for private use are harmless elsewhere.
func onePrompt(prompt string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.Is(unicode.C, r):
			return unicode.ReplacementChar
		}
		return r
	}, console.Text(prompt))
}

// harmless returns the candidates that say what they are: the others would be
// something else when they are typed.
func harmless(candidates []string) []string {
	return slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return c != console.Text(c) || strings.Contains(c, "\n") })
}
