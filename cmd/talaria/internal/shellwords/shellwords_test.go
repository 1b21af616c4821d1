package shellwords

import (
	"errors"
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{" \t ", nil},
		{"ping", []string{"ping"}},
		{"  call  echo a=1 ", []string{"call", "echo", "a=1"}},
		{`call echo text='two words'`, []string{"call", "echo", "text=two words"}},
		{`a "b c" 'd"e' "f'g"`, []string{"a", "b c", `d"e`, "f'g"}},
		{`"say \"hi\" \\ \n"`, []string{`say "hi" \ \n`}},
		{`two\ words \' \" \\`, []string{"two words", "'", `"`, `\`}},
		{`C:\dir\file 'C:\a b'`, []string{`C:\dir\file`, `C:\a b`}},
		{`'' ""`, []string{"", ""}},
		{`x\`, []string{`x\`}},
		{`bars:=[{"label": "a b", "value": 1}] x:="it's" y:=[1, z`, []string{"bars:=[{\"label\": \"a b\", \"value\": 1}]", `x:="it's"`, "y:=[1,", "z"}},
		{`'q:='"a b"`, []string{`q:="a b"`}},
		{"größe=2 'ä ö'", []string{"größe=2", "ä ö"}},
	} {
		got, err := Split(test.line)
		if err != nil || !slices.Equal(Texts(got), test.want) {
			t.Errorf("%q: got %q, %v, want %q", test.line, Texts(got), err, test.want)
		}
	}
	for _, line := range []string{`'`, `a "b`, `a 'b" c`} {
		if got, err := Split(line); !errors.Is(err, ErrOpenQuote) {
			t.Errorf("%q: got %q, %v, want an open quote", line, Texts(got), err)
		}
	}
}

func TestPartial(t *testing.T) {
	for _, test := range []struct {
		line  string
		want  []string
		start int // of the last word
	}{
		{"", []string{""}, 0},
		{"ca", []string{"ca"}, 0},
		{"call ", []string{"call", ""}, 5},
		{"call ec", []string{"call", "ec"}, 5},
		{"call echo text='a b", []string{"call", "echo", "text=a b"}, 10},
		{`call 'x `, []string{"call", "x "}, 5},
		{`call x\ `, []string{"call", "x "}, 5},
		{`call x\\ `, []string{"call", `x\`, ""}, 9},
	} {
		got := Partial(test.line)
		if !slices.Equal(Texts(got), test.want) || got[len(got)-1].Start != test.start {
			t.Errorf("%q: got %v, want %q beginning at %d", test.line, got, test.want, test.start)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "a", "a b", `it's`, `"\`, `\ `, "\t", `C:\x y`} {
		f.Add(text, text)
		f.Add(":=["+text, text+"]")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		line := Quote(a) + " " + Quote(b)
		got, err := Split(line)
		if err != nil || !slices.Equal(Texts(got), []string{a, b}) {
			t.Errorf("%q: got %q, %v, want %q", line, Texts(got), err, []string{a, b})
		}
		Partial(a + b) // must not panic
	})
}
