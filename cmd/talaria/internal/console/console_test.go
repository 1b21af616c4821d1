package console

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	rows := [][]string{{"one", "a description that goes on for longer than the terminal is wide"}, {"zwölf", "kurz"}, {"in\tlines", ""}}
	for _, test := range []struct {
		console *Console
		want    string
	}{
		{&Console{}, "NAME\tTEXT\none\ta description that goes on for longer than the terminal is wide\nzwölf\tkurz\nin lines\n"},
		{&Console{Width: 40}, "NAME\tTEXT\none\ta description that goes on for longer than the terminal is wide\nzwölf\tkurz\nin lines\n"},
		{&Console{OutTerminal: true, NoColor: true}, "NAME      TEXT\none       a description that goes on for longer than the terminal is wide\nzwölf     kurz\nin lines\n"},
		{&Console{OutTerminal: true, NoColor: true, Width: 40}, "NAME      TEXT\none       a description that goes on\n          for longer than the terminal\n          is wide\nzwölf     kurz\nin lines\n"},
		{&Console{OutTerminal: true, NoColor: true, Width: 5}, "NAME      TEXT\none       a description that goes\n          on for longer than the\n          terminal is wide\nzwölf     kurz\nin lines\n"},
	} {
		var out bytes.Buffer
		c := test.console
		c.Out = &out
		c.Table([]string{"name", "text"}, rows)
		if out.String() != test.want {
			t.Errorf("width %d: got\n%s\nwant\n%s", c.Width, out.String(), test.want)
		}
	}
}

// Without a terminal there is neither colour nor a bar.
func TestPlain(t *testing.T) {
	var out, errs bytes.Buffer
	c := &Console{Out: &out, Err: &errs}
	c.Print(c.Paint(Good, "fine"))
	c.Warnf("%d", 1)
	c.Failf("%d", 2)
	c.Notef("%d", 3)
	p := NewProgress(c)
	p.Tell(1, 2, "half")
	p.Tell(1, 0, "some")
	p.End()
	if out.String() != "fine\n" || errs.String() != "warning: 1\nerror: 2\n3\n" {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
}

// On a terminal a bar shows, goes away for other output, and is gone at the end.
func TestProgress(t *testing.T) {
	var out, errs bytes.Buffer
	c := &Console{Out: &out, Err: &errs, ErrTerminal: true, OutTerminal: true, NoColor: true}
	p := NewProgress(c)
	p.Tell(1, 4, "a\x1bb\nc")
	if got := errs.String(); !strings.Contains(got, "1/4 a␛b c") || !strings.Contains(got, "25%") {
		t.Errorf("got %q", got)
	}
	errs.Reset()
	c.Print("line")
	if got := errs.String(); !strings.Contains(got, "\r") || c.shown.Load() != nil {
		t.Errorf("the bar stays before a line: %q", got)
	}
	p.Tell(7, 4, "too much")
	p.Tell(8, 0, "no total")
	p.End()
	errs.Reset()
	p.Tell(9, 10, "late")
	if errs.Len() > 0 {
		t.Errorf("a bar after the end: %q", errs.String())
	}
}

func TestNew(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if c := New(r, w, w); c.Interactive() || c.OutTerminal || c.Width != 0 {
		t.Errorf("a pipe is taken for a terminal: %+v", c)
	}
}

func TestLine(t *testing.T) {
	if got := Line(" a\n\tb\x07 \x7f\u009b\u2066 "); got != "a b␇ ␡\ufffd\ufffd" {
		t.Errorf("got %q", got)
	}
}
