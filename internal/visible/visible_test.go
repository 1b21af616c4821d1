package visible

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, test := range []struct{ name, in, text, line string }{
		{"plain", "a b", "a b", "a b"},
		{"lines", "a\n\tb\r\nc", "a\n\tb\nc", "a b c"},
		{"return", "safe\rbad", "safe␍bad", "safe bad"},
		{"escape", "\x1b]0;title\a", "␛]0;title␇", "␛]0;title␇"},
		{"NUL and DEL", "\x00\x7f", "␀␡", "␀␡"},
		{"C1", "\u009b31m\u0085", "\ufffd31m\ufffd", "\ufffd31m"},
		{"C1 as a byte", "\x9b31m", "\ufffd31m", "\ufffd31m"},
		{"direction", "a\u202eb\u2066c\u200fd\u061c", "a\ufffdb\ufffdc\ufffdd\ufffd", "a\ufffdb\ufffdc\ufffdd\ufffd"},
		{"invisible", "a\u200bb\ufeffc\u00add\u2060", "a\ufffdb\ufffdc\ufffdd\ufffd", "a\ufffdb\ufffdc\ufffdd\ufffd"},
		{"tags", "a\U000e0041\U000e0100", "a\ufffd\ufffd", "a\ufffd\ufffd"},
		{"fillers", "\u3164\u115f\u034f", "\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd"},
		{"separators", "a\u2028b", "a\ufffdb", "a b"},
		{"emoji", "👩\u200d💻 ❤\ufe0f", "👩\u200d💻 ❤\ufe0f", "👩\u200d💻 ❤\ufe0f"},
		{"emoji with a form before the joiner", "❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"},
		{"Persian", "می\u200cخواهم", "می\u200cخواهم", "می\u200cخواهم"},
		{"joiners that join nothing", "a\u200c\u200db\u200d", "a\ufffd\ufffdb\ufffd", "a\ufffd\ufffdb\ufffd"},
	} {
		if got := Text(test.in, 0); got != test.text {
			t.Errorf("%s: got %q, want %q", test.name, got, test.text)
		}
		if got := Line(test.in, 0); got != test.line {
			t.Errorf("%s, on a line: got %q, want %q", test.name, got, test.line)
		}
	}
}

func TestLength(t *testing.T) {
	for _, in := range []string{strings.Repeat("x", 1<<20), strings.Repeat("ä", 1<<19), strings.Repeat("\x1b", 1<<20), strings.Repeat("\u202e", 1<<18), strings.Repeat(" x", 1<<19)} {
		for _, got := range []string{Text(in, 100), Line(in, 100)} {
			if len(got) > 120 || !utf8.ValidString(got) || !strings.Contains(got, "… (") {
				t.Errorf("%.8q: got %d bytes: %q", in, len(got), got)
			}
		}
	}
	if got := Text(strings.Repeat("x", 100), 100); len(got) != 100 {
		t.Errorf("what fits is cut: %q", got)
	}
	if got, want := Text("abcdef", 3), "abc… (6 bytes)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestError(t *testing.T) {
	if Error(nil) != nil {
		t.Error("nil is an error")
	}
	cause := errors.Join(io.EOF, errors.New("\x1b[2J\u202e"))
	err := Error(cause)
	if err.Error() != "EOF ␛[2J\ufffd" || !errors.Is(err, io.EOF) {
		t.Errorf("got %q", err)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b\u202e\u200d👩\u200d💻\xff\U000e0041", 10)
	f.Fuzz(func(t *testing.T, s string, max int) {
		for _, got := range []string{Text(s, max), Line(s, max)} {
			before := rune(' ')
			for _, r := range got {
				if r != '\n' && r != '\t' && !joins(r) && (unicode.IsControl(r) || hidden(r)) {
					t.Fatalf("%q: %q has %U", s, got, r)
				}
				if joins(r) && (joins(before) || unicode.IsSpace(before)) {
					t.Fatalf("%q: %q joins nothing", s, got)
				}
				before = r
			}
			if max > 0 && len(got) > max+40 || !utf8.ValidString(got) {
				t.Fatalf("%q: got %d bytes, %q", s, len(got), got)
			}
		}
		if strings.ContainsAny(Line(s, max), "\n\t\r") {
			t.Fatalf("%q is not on a line", s)
		}
		text, err := json.Marshal(map[string]string{s: s})
		if err != nil {
			t.Skip()
		}
		var want, got map[string]string
		shown := JSON(text)
		if json.Unmarshal(text, &want) != nil || json.Unmarshal(shown, &got) != nil || len(got) != 1 {
			t.Fatalf("%q became %q", text, shown)
		}
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%q became %q", text, shown)
			}
		}
		for _, r := range string(shown) {
			if hidden(r) {
				t.Fatalf("%q has %U", shown, r)
			}
		}
	})
}
