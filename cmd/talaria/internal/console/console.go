// Package console writes for people: tables, colours and progress where there
// is a terminal, and plain text where there is none.
package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/talaria-go/mcp/internal/visible"
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

// Write writes to Out. Broken returns the error of an earlier write.
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

// Interactive reports whether a person can be asked.
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

// Painted is text that goes to a terminal as it is. Paint, Sprintf and JSONText
// make it, of text that they have cleaned: everything else that is written is cleaned here.
type Painted string

// Secret reads a line from the terminal without showing it. The error is io.EOF
// after Ctrl-C and Ctrl-D.
func (c *Console) Secret(prompt string) (string, error) {
	file, ok := c.In.(*os.File)
	if !ok || !c.Interactive() {
		return "", errors.New("there is no terminal to type it in unseen")
	}
	// Raw before there is a prompt to type at: what is typed at once is not shown either.
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(file.Fd()), before) //nolint:errcheck // it was possible a moment ago
	return term.NewTerminal(unseen{file, c.Err}, "").ReadPassword(prompt)
}

// unseen is a terminal of which one key is read at a time, so that the text
// after a line stays for the next read.
type unseen struct {
	in  *os.File
	out io.Writer
}

func (u unseen) Read(p []byte) (int, error)  { return u.in.Read(p[:min(1, len(p))]) }
func (u unseen) Write(p []byte) (int, error) { return u.out.Write(p) }

// Paint returns s for Out in a style, or as it is where there is no colour. It
// cleans s.
func (c *Console) Paint(style Style, s string) Painted {
	return paint(style, s, c.OutTerminal && !c.NoColor)
}

func (c *Console) paintErr(style Style, s string) string {
	return string(paint(style, s, c.ErrTerminal && !c.NoColor))
}

func paint(style Style, s string, colour bool) Painted {
	s = Text(s)
	if !colour || s == "" {
		return Painted(s)
	}
	return Painted(colors[style].Sprint(s))
}

// Text returns a text, which may be a peer's, so that it cannot move the cursor,
// change colours or hide what it says, and is not longer than a person reads.
// All that this package writes is cleaned with it, but Painted and Data.
func Text(s string) string { return visible.Text(s, mostText) }

// Line is Text on one line, for tables and prompts.
func Line(s string) string { return visible.Line(s, mostLine) }

const (
	mostText = 64 << 10 // bytes of one text among others
	mostLine = 4 << 10  // bytes of a line of a table
)

// clean makes texts of arguments for fmt. Numbers stay what they are.
func clean(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case Painted:
			out[i] = string(v)
		case string:
			out[i] = Text(v)
		case []byte:
			out[i] = Text(string(v))
		case error, fmt.Stringer:
			out[i] = Text(fmt.Sprint(v))
		default:
			out[i] = v
			if v != nil && reflect.TypeOf(v).Kind() > reflect.Complex128 { // beyond numbers
				out[i] = Text(fmt.Sprint(v))
			}
		}
	}
	return out
}

// Sprintf returns a text for Print of which the arguments are cleaned.
func Sprintf(format string, args ...any) Painted {
	if false {
		_ = fmt.Sprintf(format, args...) // lets go vet check the formats
	}
	return Painted(fmt.Sprintf(format, clean(args)...))
}

// JSONText returns JSON for Print, with what a terminal must not see escaped,
// which is the same value.
func JSONText(text []byte) Painted { return Painted(visible.JSON(text)) }

// Print writes to Out; Broken tells whether it could.
func (c *Console) Print(args ...any) {
	c.hideBar()
	fmt.Fprintln(c, clean(args)...)
}

// Printf writes a line to Out; Broken tells whether it could.
func (c *Console) Printf(format string, args ...any) {
	c.hideBar()
	fmt.Fprintln(c, Sprintf(format, args...))
}

// Data writes a line to Out that is requested data, such as the text of a
// resource: to a terminal cleaned, and to a file or a pipe as it is, because it
// is the reader's.
func (c *Console) Data(s string) {
	c.hideBar()
	if c.OutTerminal {
		s = visible.Text(s, 0)
	}
	fmt.Fprintln(c, s)
}

// Warnf writes a line to Err that something is odd.
func (c *Console) Warnf(format string, args ...any) {
	c.hideBar()
	fmt.Fprintln(c.Err, c.paintErr(Warn, "warning: ")+string(Sprintf(format, args...)))
}

// Failf writes a line to Err that something failed.
func (c *Console) Failf(format string, args ...any) {
	c.hideBar()
	fmt.Fprintln(c.Err, c.paintErr(Bad, "error: ")+string(Sprintf(format, args...)))
}

// Notef writes a line to Err that is neither.
func (c *Console) Notef(format string, args ...any) {
	c.hideBar()
	fmt.Fprintln(c.Err, c.paintErr(Faint, string(Sprintf(format, args...))))
}

// Lines is a writer that gives what is written to it to show, line by line:
// standard error of a server, or a log. show cleans it. Each write must end a
// line, or is taken as if it did.
type Lines func(line string)

// Write implements io.Writer; there is no error.
func (show Lines) Write(p []byte) (int, error) {
	for line := range strings.SplitSeq(strings.TrimRight(string(p), "\r\n"), "\n") {
		show(strings.TrimSuffix(line, "\r"))
	}
	return len(p), nil
}

// ErrLines is a writer to Err that cleans what is written to it.
func (c *Console) ErrLines() io.Writer {
	var mu sync.Mutex
	return Lines(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(c.Err, Text(line))
	})
}

// JSON writes a value as JSON, indented, with what a terminal must not see
// escaped, which is the same value. The error is that of a value that does
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
	_, _ = io.WriteString(c, string(JSONText(b.Bytes())))
	return nil
}
