package regex

import (
	"regexp"
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{`^(?:a|b)+$`, `^(a|b)+$`},
		{`^(?<year>[0-9]{4})$`, `^([0-9]{4})$`},
		{`^(?P<year>[0-9]{4})$`, ""},
		{`^\d+\w\s$`, `^[0-9]+[0-9A-Za-z_][\t\n\x0c\r ]$`},
		{`^\D\W\S$`, `^[^0-9][^0-9A-Za-z_][^\t\n\x0c\r ]$`},
		{`^a.c$`, `^a[^\n]c$`},
		{`^https?:\/\/x$`, `^https?://x$`},
		{`^[+\-]?[a-z\-\.]$`, `^[+-]?[a-z.-]$`},
		{`^[\--a]$`, `^[\x2d-a]$`},
		{`^[+-\-]$`, `^[+-\x2d]$`},
		{`^[\^a]$`, `^[\x5ea]$`},
		{`^[^\^\-]$`, `^[^\x5e-]$`},
		{`^[\[\]\\]$`, `^[\[\]\\]$`},
		{`^[]a]$`, `^[\]a]$`},
		{`^[\d_]$`, `^[0-9_]$`},
		{`^[\s\S]$`, ""},
		{`^[[:alpha:]]$`, ""},
		{`^a\.?$`, `^a[.]?$`},
		{`^a\.b\$$`, `^a\.b\$$`},
		{`^a\$`, ""},
		{`^a\\$`, `^a\\$`},
		{`^(ns|µs|μ)$`, `^(ns|µs|[μ])$`},
		{`^µ+$`, `^[µ]+$`},
		{`^[Kk\x{212a}]$`, ""},
		{"^[K\u212a]$", "^[K\u212a]$"},
		{`^😀$`, ""},
		{`^a+?b{2,3}?$`, `^a+b{2,3}$`},
		{`^a??$`, `^a?$`},
		{`^\x00\x7F[\x00-\x1F\f]$`, `^\x00\x7f[\x00-\x1f\x0c]$`},
		{`^a|b$`, ""},
		{`^(a|^b)$`, ""},
		{`(?:^a$)|(?:^b$)`, ""},
		{`a+`, ""},
		{`^a`, ""},
		{`a$`, ""},
		{`^$`, `^$`},
		{`^\p{L}+$`, ""},
		{`^a\b$`, ""},
		{`^(?i)a$`, ""},
		{`^(?:a$`, ""},
		{`^a)$`, ""},
		{`^[a$`, ""},
		{`^` + strings.Repeat("a", maxPlain-2) + `$`, `^` + strings.Repeat("a", maxPlain-2) + `$`},
		{`^` + strings.Repeat("a", maxPlain-1) + `$`, ""},
	} {
		got, ok := Plain(tt.pattern)
		if !ok {
			got = ""
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.pattern, got, tt.want)
		}
	}
}

// FuzzPlain compares a pattern with its plain spelling.
func FuzzPlain(f *testing.F) {
	for _, seed := range [][2]string{
		{`^[\--a]+$`, "-./0AZ[\\]^_`a"}, {`^(?:a|b\.)*?$`, "ab."}, {`^[^\-\^]$`, "^"}, {`^\x2d?[\x00-\x1f]$`, "\x1f"},
		{`^[+\-]?(?:0|µs+)$`, "-µss"}, {`^.\s\S$`, "a b"}, {`^[a-\x7A\-]$`, "-"}, {`^a\|*$`, "a||"}, {`^()(|a)$`, ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		before, err := regexp.Compile(pattern)
		if err != nil {
			return
		}
		plain, ok := Plain(pattern)
		if !ok {
			return
		}
		after, err := regexp.Compile(plain)
		if err != nil {
			t.Fatalf("%q became %q: %v", pattern, plain, err)
		}
		if before.MatchString(text) != after.MatchString(text) {
			t.Fatalf("%q became %q, and %q matches one of them", pattern, plain, text)
		}
		if again, ok := Plain(plain); !ok || again != plain {
			t.Fatalf("%q became %q and then %q", pattern, plain, again)
		}
	})
}
