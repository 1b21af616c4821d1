package record

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 8<<20)
	for _, c := range []struct {
		dir   recording.Dir
		parts []string
		want  string
	}{
		{recording.In, []string{"a\nb", "c\n", "\n\r\n", "end"}, `in "a"|in "bc"|in "\r"|in "end"`},
		{recording.Err, []string{strings.Repeat("e", maxErrLine+2) + "\n"}, `err "` + strings.Repeat("e", maxErrLine) + `"|err "ee"`},
		{recording.Out, nil, ""},
		{recording.Out, []string{long, long, long, long, long, long, long, long, long, "\nshort\n"}, `note "a text of 75497472 bytes (out) is left out: it is too long"|out "short"`},
	} {
		var b bytes.Buffer
		w := recording.NewWriter(&b, 1<<20)
		l := newLines(w, c.dir, "1")
		for _, part := range c.parts {
			if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		l.flush()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for e, err := range recording.Read(&b) {
			got = append(got, fmt.Sprintf("%s %q", e.Dir, e.Text))
			if err != nil {
				t.Error(err)
			}
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("got %.200s, want %.200s", strings.Join(got, "|"), c.want)
		}
	}
}
