package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSkipErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{``, `unexpected end of JSON, want a value at byte 0`},
		{`  `, `unexpected end of JSON, want a value at byte 2`},
		{`x`, `unexpected 'x', want a value at byte 0`},
		{"\x00", `unexpected '\x00', want a value at byte 0`},
		{`1 1`, `unexpected '1' after the value at byte 2`},
		{`{}{}`, `unexpected '{' after the value at byte 2`},
		{`01`, `unexpected '1' after the value at byte 1`},
		{`-`, `unexpected end of JSON, want a digit at byte 1`},
		{`-x`, `unexpected 'x', want a digit at byte 1`},
		{`+1`, `unexpected '+', want a value at byte 0`},
		{`1.`, `unexpected end of JSON, want a digit after '.' at byte 2`},
		{`1.e1`, `unexpected 'e', want a digit after '.' at byte 2`},
		{`1e+`, `unexpected end of JSON, want a digit in the exponent at byte 3`},
		{`1e,`, `unexpected ',', want a digit in the exponent at byte 2`},
		{`tru`, `unexpected 't', want true at byte 0`},
		{`falsy`, `unexpected 'f', want false at byte 0`},
		{` nulL`, `unexpected 'n', want null at byte 1`},
		{`truex`, `unexpected 'x' after the value at byte 4`},
		{`[1`, `unexpected end of JSON, want ',' or ']' at byte 2`},
		{`[1 2]`, `unexpected '2', want ',' or ']' at byte 3`},
		{`[1,]`, `unexpected ']', want a value at byte 3`},
		{`[,1]`, `unexpected ',', want a value at byte 1`},
		{`[1}`, `unexpected '}', want ',' or ']' at byte 2`},
		{`{`, `unexpected end of JSON, want a member name at byte 1`},
		{`{a:1}`, `unexpected 'a', want a member name at byte 1`},
		{`{"a"}`, `unexpected '}', want ':' at byte 4`},
		{`{"a":}`, `unexpected '}', want a value at byte 5`},
		{`{"a":1`, `unexpected end of JSON, want ',' or '}' at byte 6`},
		{`{"a":1]`, `unexpected ']', want ',' or '}' at byte 6`},
		{`{"a":1,}`, `unexpected '}', want a member name at byte 7`},
		{`{"a":1,"b"`, `unexpected end of JSON, want ':' at byte 10`},
		{`"abc`, `unexpected end of JSON, want '"' at byte 4`},
		{`"a\n`, `unexpected end of JSON, want '"' at byte 4`},
		{`"a\`, `unexpected end of JSON, want an escape at byte 3`},
		{"\"a\nb\"", `control character '\n' in a string must be escaped at byte 2`},
		{"\"a\\t\x1f\"", `control character '\x1f' in a string must be escaped at byte 4`},
		{`"a\x41"`, `unknown escape "\\x" at byte 2`},
		{`"\u12g4"`, `\u needs four hexadecimal digits at byte 1`},
		{`"\u12`, `\u needs four hexadecimal digits at byte 1`},
		{`"ab\ud800"`, `lone surrogate in a string at byte 3`},
		{`"\ud800\n"`, `lone surrogate in a string at byte 1`},
		{`"\ud800\ud800"`, `lone surrogate in a string at byte 1`},
		{`"\udc00"`, `lone surrogate in a string at byte 1`},
		{"\"ok\xff\"", `string is not valid UTF-8 at byte 3`},
		{"\"\\n\xc3\"", `string is not valid UTF-8 at byte 3`},
		{"\"\xed\xa0\x80\"", `string is not valid UTF-8 at byte 1`}, // a surrogate in UTF-8
		{"\"\xc0\x80\"", `string is not valid UTF-8 at byte 1`},     // overlong
		{`{"a":1, "a":2}`, `duplicate member "a" at byte 8`},
		{`{"a":1,"\u0061":2}`, `duplicate member "a" at byte 7`},
		{`{"\u0061":1,"a":2}`, `duplicate member "a" at byte 12`},
		{`{"":1,"":2}`, `duplicate member "" at byte 6`},
		{`[{"b":{"a":1,"c":{"a":1,"a":2}}}]`, `duplicate member "a" at byte 24`},
		{"\ufeff{}", `unexpected 'ï', want a value at byte 0`},
	}
	for _, tt := range tests {
		s := Scanner{Buf: []byte(tt.in), Strict: true}
		_, err := s.Skip()
		if err == nil {
			err = s.End()
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %v, want %s", tt.in, err, tt.want)
		}
	}
}

// Names with escapes are decoded into memory that the next string overwrites,
// so those that are kept for the duplicate check must be copies.
func TestSkipKeepsEscapedNames(t *testing.T) {
	good := []string{
		`{"\u0061":{"\u0062":{"\u0063":"\u0064"},"\u0063":1},"b":2,"c":3,"d":4}`,
		`{"\"a":1,"\"b":2,"\"c":{"\"a":1,"\"b":2},"\"d":4}`,
		`{"x\n":"\u0079\n","y\n":["z\n"],"z\n":{"x\n":1}}`,
	}
	bad := []struct{ in, name string }{
		{`{"\u0061":{"\u0062":{"\u0063":"\u0064"}},"b":2,"a":3}`, "a"},
		{`{"\"a":1,"\"b":{"\"c":{"\"d":1}},"\"a":2}`, `"a`},
		{`{"k":[{"x\n":"\u0079\n","y\n":["z\n"],"x\u000a":{"x\n":1}}]}`, "x\n"},
		{`{"long \n name":{"other \n name":"some \n text"},"long \u000a name":1}`, "long \n name"},
	}
	var s Scanner // used again and again, as a pooled one is
	for range 2 {
		for _, in := range good {
			s.Reset([]byte(in))
			if _, err := s.Skip(); err != nil {
				t.Errorf("%s: %v", in, err)
			}
		}
		for _, tt := range bad {
			s.Reset([]byte(tt.in))
			_, err := s.Skip()
			var dup *DuplicateError
			if !errors.As(err, &dup) || dup.Name != tt.name {
				t.Errorf("%s: error %v, want a duplicate %q", tt.in, err, tt.name)
			}
		}
	}
}

// manyNames is an object of n members, every third name with an escape.
func manyNames(n int, last string) []byte {
	b := []byte{'{'}
	for i := range n {
		if i%3 == 0 {
			b = fmt.Appendf(b, `"\u006eame%d":{"name0":%d},`, i, i)
		} else {
			b = fmt.Appendf(b, `"name%d":"\u0041",`, i)
		}
	}
	return append(b, `"`+last+`":0}`...)
}

func TestSkipManyMembers(t *testing.T) {
	for _, n := range []int{1, 22, 23, 24, 25, 100, 5000} {
		s := Scanner{Buf: manyNames(n, "last")}
		if _, err := s.Skip(); err != nil {
			t.Errorf("%d members: %v", n, err)
		}
		for _, again := range []int{0, n / 2, n - 1} {
			s.Reset(manyNames(n, fmt.Sprint("name", again)))
			_, err := s.Skip()
			var dup *DuplicateError
			if !errors.As(err, &dup) || dup.Name != fmt.Sprint("name", again) {
				t.Errorf("%d members, name%d twice: error %v", n, again, err)
			}
		}
	}
}

func TestSkipDepth(t *testing.T) {
	nested := func(n int, open, middle, shut string) []byte {
		return []byte(strings.Repeat(open, n) + middle + strings.Repeat(shut, n))
	}
	for _, tt := range []struct {
		in       []byte
		maxDepth int
		offset   int // of the error, or -1
	}{
		{nested(64, "[", "", "]"), 0, -1},
		{nested(65, "[", "", "]"), 0, 64},
		{nested(64, `{"a":`, "1", "}"), 0, -1},
		{nested(65, `{"a":`, "1", "}"), 0, 64 * 5},
		{nested(100000, "[", "", "]"), 0, 64},
		{nested(100000, "[", "", ""), 0, 64},
		{nested(100000, `{"\u0061":`, "", ""), 0, 64 * 10},
		{nested(3, "[", "", "]"), 2, 2},
		{[]byte(`[[],[],[[]],{"a":[]}]`), 3, -1},
	} {
		s := Scanner{Buf: tt.in, MaxDepth: tt.maxDepth}
		_, err := s.Skip()
		var deep *DepthError
		switch {
		case tt.offset < 0 && err != nil:
			t.Errorf("%.20s: %v", tt.in, err)
		case tt.offset >= 0 && (!errors.As(err, &deep) || deep.Offset != tt.offset):
			t.Errorf("%.20s: error %v, want too deep at %d", tt.in, err, tt.offset)
		}
	}
	s := Scanner{Buf: []byte("[[]]"), MaxDepth: 3}
	if s.SetDepth(2); s.Depth() != 2 {
		t.Errorf("depth %d after SetDepth", s.Depth())
	}
	if _, err := s.Skip(); err == nil {
		t.Error("SetDepth is not counted")
	}
}

// The walk that callers write by hand.
func TestScannerWalk(t *testing.T) {
	s := Scanner{Buf: []byte(` { "s" : "a\u00e9" , "n" : -1.5 , "i":12, "b" : [ true , false ], "z" : null, "e":{}, "x":[] } `)}
	var got []string
	if s.Peek() != Object {
		t.Fatalf("kind %v", s.Peek())
	}
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		key := string(name)
		switch s.Peek() {
		case String:
			var v []byte
			v, err = s.Str()
			got = append(got, key+"="+string(v))
		case Number:
			var v []byte
			var integer bool
			v, integer, err = s.Number()
			got = append(got, fmt.Sprintf("%s=%s %v", key, v, integer))
		case Array:
			var inner bool
			for inner, err = s.ArrayStart(); inner && err == nil; inner, err = s.ArrayNext() {
				var v bool
				if v, err = s.Bool(); err != nil {
					break
				}
				got = append(got, fmt.Sprintf("%s=%v at %d", key, v, s.Depth()))
			}
		case Null:
			err = s.Null()
			got = append(got, key+"=null")
		default:
			var text []byte
			text, err = s.Skip()
			got = append(got, key+"="+string(text))
		}
		if err == nil {
			more, err = s.ObjectNext()
		}
	}
	if err == nil {
		err = s.End()
	}
	want := "s=aé|n=-1.5 false|i=12 true|b=true at 2|b=false at 2|z=null|e={}"
	if err != nil || strings.Join(got, "|") != want {
		t.Errorf("got %s, %v\nwant %s", strings.Join(got, "|"), err, want)
	}
}

func TestScannerWantsOtherKind(t *testing.T) {
	tests := []struct {
		call func(*Scanner) error
		want string
	}{
		{func(s *Scanner) error { _, err := s.ObjectStart(); return err }, "want an object at byte 1"},
		{func(s *Scanner) error { _, err := s.ArrayStart(); return err }, "want an array at byte 1"},
		{func(s *Scanner) error { _, err := s.Str(); return err }, "want a string at byte 1"},
		{func(s *Scanner) error { _, err := s.Name(); return err }, "want a member name at byte 1"},
		{func(s *Scanner) error { _, _, err := s.Number(); return err }, "want a digit at byte 1"},
		{func(s *Scanner) error { _, err := s.Bool(); return err }, "want false at byte 1"},
		{func(s *Scanner) error { return s.Null() }, "want null at byte 1"},
	}
	for _, in := range []string{" x", " "} {
		for _, tt := range tests {
			err := tt.call(&Scanner{Buf: []byte(in)})
			if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("%q: error %v, want %s", in, err, tt.want)
			}
		}
	}
}

func TestResetLetsGo(t *testing.T) {
	var s Scanner
	s.Reset([]byte(`{"a":{"b":1`))
	if _, err := s.Skip(); err == nil {
		t.Fatal("accepted half an object")
	}
	s.Reset(nil)
	for _, name := range s.names[:cap(s.names)] {
		if name != "" {
			t.Errorf("still holds %q of the text before", name)
		}
	}
	if s.Depth() != 0 || s.Pos != 0 {
		t.Errorf("depth %d, position %d", s.Depth(), s.Pos)
	}
}

func TestKind(t *testing.T) {
	for text, want := range map[string]string{"{": "object", "[": "array", `"`: "string", "-": "number", "7": "number",
		"t": "boolean", "f": "boolean", "n": "null", "+": "invalid", " ": "invalid"} {
		if got := KindOf(text[0]).String(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestCompactLeavesBufferOnError(t *testing.T) {
	if out, err := Compact([]byte("kept"), []byte("[1,\n2")); err == nil || !bytes.Equal(out, []byte("kept")) {
		t.Errorf("%q, %v", out, err)
	}
}

// Half a surrogate pair is read as encoding/json reads it, in values and in names.
func TestHalfOfAPair(t *testing.T) {
	for _, text := range []string{`"\ud83d"`, `"cut \ud83d"`, `"\ude00 first"`, `"\ud83d\ud83d\ude00"`, `"\ud83dA"`, `"\ud83d\n"`, `"\ude00\ud83d"`, `"\uD83D\u0041"`} {
		var want string
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		s := Scanner{Buf: []byte(text)}
		if got, err := s.Str(); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
		var in struct{ A map[string]string }
		if err := Unmarshal([]byte(`{"A":{`+text+`:`+text+`}}`), &in); err != nil || in.A[want] != want {
			t.Errorf("%s: %q, %v", text, in.A, err)
		}
		compact, err := Compact(nil, []byte(` [ `+text+` , 1 ] `))
		if wanted, _ := json.Marshal([]any{want, 1}); err != nil || string(compact) != string(wanted) {
			t.Errorf("%s: Compact gives %s, %v, want %s", text, compact, err, wanted)
		}
	}
}
