package schema

import (
	"regexp"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/schema/internal/regex"
)

// lintCases are patterns with what they become, or with a part of the fix if
// they are refused.
var lintCases = []struct{ in, out, fix string }{
	{`^[a-z]+$`, `^[a-z]+$`, ""},
	{`\d{3}-\w+`, `[0-9]{3}-[0-9A-Za-z_]+`, ""},
	{`\s*.\S`, `[\t\n\f\r ]*[^\n][^\t\n\f\r ]`, ""},
	{`\D\W`, `[^0-9][^0-9A-Za-z_]`, ""},
	{`[\w.-]+`, `[0-9A-Za-z_.\-]+`, ""},
	{`[\s\S]*`, `[\s\S]*`, ""},
	{`[-a]`, `[\-a]`, ""},
	{`[(a)]`, `[\(a\)]`, ""},
	{`(?:a|b)?c*?`, `(?:a|b)?c*?`, ""},
	{`(?<year>[0-9]{4})`, `(?<year>[0-9]{4})`, ""},
	{`\p{Lu}\P{L}`, `\p{Lu}\P{L}`, ""},
	{`a\/b\.\x41\t`, `a\/b\.\x41\t`, ""},
	{`é👍{2,}`, `é👍{2,}`, ""},
	{`\bfoo\b`, `\bfoo\b`, ""},
	{``, ``, ""},
	{`[^\d]`, `[^0-9]`, ""},
	{`[\]\\^]`, `[\]\\\^]`, ""},

	{`(?i)a`, "", "spell the cases out"},
	{`(?s).`, "", "spell the cases out"},
	{`(?P<n>a)`, "", "(?<name>"},
	{`(?=a)`, "", "without"},
	{`(?<!a)b`, "", "without"},
	{`\Aa\z`, "", "write ^"},
	{`a\z`, "", "write $"},
	{`\Qa\E`, "", "escape each"},
	{`\pL`, "", `\p{L}`},
	{`\p{Greek}`, "", `\p{L}`},
	{`\p{Script=Greek}`, "", `\p{L}`},
	{`\x{212A}`, "", "two hexadecimal"},
	{`\u212A`, "", "character itself"},
	{`\cA`, "", "control character"},
	{`[[:alpha:]]`, "", "[a-zA-Z]"},
	{`[]a]`, "", `\]`},
	{`[^]a]`, "", `\]`},
	{`a{,3}`, "", "{0,n}"},
	{`\a`, "", `\x07`},
	{`\07`, "", `\x00`},
	{`a}`, "", `\}`},
	{`a]`, "", `\]`},
	{`{`, "", `\{`},
	{`a{x`, "", `\{`},
	{`\-`, "", "write -"},
	{`\_`, "", "write _"},
	{`\#\@`, "", "write #"},
	{`\"`, "", `write "`},
	{`(a)\1`, "", "without"},
	{`\k<a>`, "", "without"},
	{`a{1001}`, "", "correct"},
	{`a**`, "", "repeats nothing"},
	{`^*`, "", "after what it repeats"},
	{`*a`, "", "after what it repeats"},
	{`(a`, "", "missing )"},
	{`a)`, "", `\)`},
	{`[a`, "", "missing ]"},
	{`[a-`, "", "missing ]"},
	{`[a\`, "", `\\`},
	{`a\`, "", `\\`},
	{`[z-a]`, "", "correct"},
	{`[a-z-9]`, "", `\-`},
	{`[\d-z]`, "", `\-`},
	{`[+--]`, "", `\-`},
	{`[\S]`, "", "[^"},
	{`[\b]`, "", `\x08`},
	{"\xff", "", "UTF-8"},
}

func TestLintPattern(t *testing.T) {
	for _, c := range lintCases {
		re, out, p := regex.Lint(c.in)
		switch {
		case c.fix == "" && p != nil:
			t.Errorf("%q: refused: %s; %s", c.in, p.Msg, p.Fix)
		case c.fix == "" && (out != c.out || re == nil):
			t.Errorf("%q: got %q, want %q", c.in, out, c.out)
		case c.fix != "" && p == nil:
			t.Errorf("%q: accepted as %q", c.in, out)
		case c.fix != "" && !strings.Contains(p.Fix+p.Msg, c.fix):
			t.Errorf("%q: msg %q, fix %q, want %q in one of them", c.in, p.Msg, p.Fix, c.fix)
		}
	}
}

func FuzzLintPattern(f *testing.F) {
	for _, c := range lintCases {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		re, out, p := regex.Lint(pattern)
		if p != nil {
			if p.Msg == "" || p.Fix == "" {
				t.Fatalf("%q: problem without text: %+v", pattern, *p)
			}
			return
		}
		if _, err := regexp.Compile(pattern); err != nil {
			t.Fatalf("%q: RE2 refuses it: %v", pattern, err)
		}
		again, same, p := regex.Lint(out)
		if p != nil || same != out || again.String() != re.String() {
			t.Fatalf("%q became %q, which becomes %q (%v)", pattern, out, same, p)
		}
	})
}
