package visible

import (
	"strings"
	"testing"
)

// TestOutput: a line of a program keeps its white space, and nothing else that Text would
// replace; it is one line.
func TestOutput(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", ""}, {"\r\n", ""}, {"  at run()\n", "  at run()"}, {"\t\tx  y", "\t\tx  y"}, {"10 %\r20 %", "10 % 20 %"}, {"a\nb", "a b"},
		{"  \x1b[31mred", "  ␛[31mred"}, {"a\u202eb", "a\ufffdb"}, {" \xff", " \ufffd"},
	} {
		if got := Output(c.line, Sentence); got != c.want {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
	if got := Output(strings.Repeat(" x", 9000), 100); len(got) > 200 || !strings.HasPrefix(got, " x x") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
