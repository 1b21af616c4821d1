// Package console writes for people: tables, colours and progress where there
// is a terminal, and plain text where there is none.
package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Console is where a command reads and writes.
type Console struct {
	In  io.Reader
	Out io.Writer // results
	Err io.Writer // everything else

	InTerminal  bool // a person types
	OutTerminal bool // a person reads what is written to Out
	ErrTerminal bool
	NoColor     bool
	Width       int // columns of Out; 0 means no limit

	shown  atomic.Pointer[Progress] // the bar on the screen
	broken atomic.Pointer[error]    // the first of Out
}

// Write writes to Out. Who does not look at the error finds it in Broken.
func (c *Console) Write(p []byte) (int, error) {
	n, err := c.Out.Write(p)
	if err != nil {
		c.broken.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Broken returns why something could not be written to Out, the first time; nil
// if all was.
func (c *Console) Broken() error {
	if err := c.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// hideBar takes the bar off the screen before something else is written.
func (c *Console) hideBar() {
	if p := c.shown.Load(); p != nil {
		p.Hide()
	}
}

// New returns the console of a process. There is no colour if the environment
// has NO_COLOR (https://no-color.org) or a TERM that is dumb.
func New(in, out, errs *os.File) *Console {
	c := &Console{In: in, Out: out, Err: errs,
		InTerminal:  term.IsTerminal(int(in.Fd())),
		OutTerminal: term.IsTerminal(int(out.Fd())),
		ErrTerminal: term.IsTerminal(int(errs.Fd())),
		NoColor:     os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
	}
	if c.OutTerminal {
		if width, _, err := term.GetSize(int(out.Fd())); err == nil {
			c.Width = width
		}
	}
	return c
}

// Interactive tells whether a person can be asked.
func (c *Console) Interactive() bool { return c.InTerminal && c.ErrTerminal }

// Style is how text is painted.
type Style int

// The styles.
const (
	Bold Style = iota
	Faint
	Good
	Warn
	Bad
	Name
)

var colors = map[Style]text.Colors{
	Bold: {text.Bold}, Faint: {text.Faint}, Good: {text.FgGreen}, Warn: {text.FgYellow}, Bad: {text.FgRed}, Name: {text.FgCyan},
}

// Paint returns s for Out in a style, or as it is where there is no colour.
func (c *Console) Paint(style Style, s string) string {
	if !c.OutTerminal || c.NoColor || s == "" {
		return s
	}
	return colors[style].Sprint(s)
}

func (c *Console) paintErr(style Style, s string) string {
	if !c.ErrTerminal || c.NoColor || s == "" {
		return s
	}
	return colors[style].Sprint(s)
}

// Print writes to Out; Broken tells whether it could.
func (c *Console) Print(args ...any) {
	c.hideBar()
	fmt.Fprintln(c, args...)
}

// Printf writes a line to Out; Broken tells whether it could.
func (c *Console) Printf(format string, args ...any) {
	c.hideBar()
	fmt.Fprintf(c, format+"\n", args...)
}

// Warnf writes a line to Err that something is odd.
func (c *Console) Warnf(format string, args ...any) {
	c.hideBar()
	fmt.Fprintf(c.Err, c.paintErr(Warn, "warning: ")+format+"\n", args...)
}

// Failf writes a line to Err that something failed.
func (c *Console) Failf(format string, args ...any) {
	c.hideBar()
	fmt.Fprintf(c.Err, c.paintErr(Bad, "error: ")+format+"\n", args...)
}

// Notef writes a line to Err that is neither.
func (c *Console) Notef(format string, args ...any) {
	c.hideBar()
	fmt.Fprintln(c.Err, c.paintErr(Faint, fmt.Sprintf(format, args...)))
}

// JSON writes a value as JSON, indented. The error is that of a value that does
// not encode; Broken tells whether it could be written.
func (c *Console) JSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	c.hideBar()
	_, _ = c.Write(b.Bytes())
	return nil
}

// Clean returns text that came from a server so that it cannot move the cursor,
// change colours or hide what it says: control characters and those that turn
// the direction of writing become visible. Text for a file or a pipe stays as it
// is; it is the reader's.
func (c *Console) Clean(s string) string {
	if !c.OutTerminal {
		return s
	}
	return Visible(s)
}

// Visible is Clean whatever Out is.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r // its picture
		case r == 0x7f:
			return '␡'
		case r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return '\ufffd'
		}
		return r
	}, s)
}

// Line returns text on one line, for tables and prompts, cleaned.
func Line(s string) string { return Visible(strings.Join(strings.Fields(s), " ")) }
