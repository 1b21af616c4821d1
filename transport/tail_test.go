package transport

import (
	"slices"
	"strings"
	"testing"
)

// writes keeps each write apart.
type writes []string

// Write implements io.Writer.
func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// A copy of standard error has whole lines, however they were written.
func TestTailLines(t *testing.T) {
	var got writes
	long := strings.Repeat("x", maxLine+1)
	c := &tail{to: &got}
	for _, part := range []string{"one ", "line\ntwo", " parts\n  in", "dented\nmore\n", long, "\n", "no end"} {
		if n, err := c.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
	c.flush()
	c.flush()
	if want := []string{"one line\n", "two parts\n", "  indented\nmore\n", long, "\n", "no end"}; !slices.Equal(got, want) {
		t.Errorf("got %.200q, want %.200q", got, want)
	}
	none := &tail{}
	_, _ = none.Write([]byte("kept")) // never fails
	none.flush()
	if none.String() != "kept" {
		t.Errorf("got %q", none.String())
	}
}
