package skillhead

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What is read, as JSON, or why it is not.
func TestParse(t *testing.T) {
	tests := []struct{ name, head, want string }{
		{"plain", "a: b\nc: d e  # comment\n# comment\n\n'e f': 1\n", `{"a":"b","c":"d e","e f":1}`},
		{"words", "a: true\nb: false\nc: null\nd:\ne: # nothing\n", `{"a":true,"b":false,"c":null,"d":null,"e":null}`},
		{"numbers", "a: 0\nb: -12\nc: 1.50\nd: 123456789012345\ne: 1.2.3\n", `{"a":0,"b":-12,"c":1.50,"d":123456789012345,"e":"1.2.3"}`},
		{"text that is close", "a: not:\tx\n", "line 2: it has a tab"},
		{"links", "a: http://x.org/a:b#c\n", `{"a":"http://x.org/a:b#c"}`},
		{"lines", "a: b\n  c\n\n  d\ne:\n  f\n  g\n", `{"a":"b c\nd","e":"f g"}`},
		{"quotes", "a: 'it''s: x' # c\nb: \"q\\\"\\\\\\/\\n\\t\\u00e9\"\nc: \"a\n  b\n\n  c\"\n", `{"a":"it's: x","b":"q\"\\/\n\té","c":"a b\nc"}`},
		{"literal", "a: |\n  b: c\n   # d\n\n  e\nf: |-\n  g\n\n", `{"a":"b: c\n # d\n\ne\n","f":"g"}`},
		{"folded", "a: >\n  b\n  c\n\n  d\n   e\n  f\ng: >-\n  h\n", `{"a":"b c\nd\n e\nf\n","g":"h"}`},
		{"sequences", "a:\n- b\n- c: d\n  e: f\n-\n  - g\nh:\n  - 'i'\n", `{"a":["b",{"c":"d","e":"f"},["g"]],"h":["i"]}`},
		{"mappings", "a:\n  b:\n    c: d\n  e: f\n", `{"a":{"b":{"c":"d"},"e":"f"}}`},
		{"flow", "a: [b, 'c, d', 1, [], {e: f, \"g\": [h]},\n  i ]\nb: {}\n", `{"a":["b","c, d",1,[],{"e":"f","g":["h"]},"i"],"b":{}}`},
		{"tools", "allowed-tools: Read, Bash(git:*), mcp__x\n", `{"allowed-tools":"Read, Bash(git:*), mcp__x"}`},

		{"anchor", "a: &x b\n", "line 2: anchors, aliases and tags cannot be used"},
		{"alias", "a: b\nc: *a\n", "line 3: anchors, aliases and tags"},
		{"cycle", "a: &a [*a]\n", "line 2: anchors"},
		{"alias in flow", "a: [*a]\n", "line 2: anchors"},
		{"tag", "a: !!str b\n", "line 2: anchors, aliases and tags"},
		{"merge", "<<: {a: b}\n", `line 2: the key "<<" means different things`},
		{"directive", "%YAML 1.1\n", "line 2: "},
		{"boolean key", "on: b\n", `line 2: the key "on" means different things`},
		{"true key", "true: b\n", `line 2: the key "true" is no text`},
		{"number key", "1: b\n", `line 2: the key "1" is no text`},
		{"complex key", "? a\n: b\n", "line 2: "},
		{"twice", "a: b\n'a': c\n", `line 3: the field "a" is there twice`},
		{"twice in flow", "a: {b: 1, b: 2}\n", "is there twice"},
		{"yes", "a: Yes\n", `line 2: "Yes" means different things`},
		{"True", "a: True\n", `"True" means different things`},
		{"tilde", "a: ~\n", `"~" means different things`},
		{"nan", "a: .NaN\n", `".NaN" means different things`},
		{"minus inf", "a: -.inf\n", `"-.inf" means`},
		{"equals", "a: =\n", `"=" means`},
		{"octal", "a: 014\n", `"014" is a number or a date`},
		{"new octal", "a: 0o14\n", "is a number or a date"},
		{"binary", "a: 0b11\n", "is a number or a date"},
		{"hexadecimal", "a: 0xBEEF\n", "is a number or a date"},
		{"exponent", "a: 1e3\n", "is a number or a date"},
		{"underscore", "a: 1_000\n", "is a number or a date"},
		{"sixties", "a: 1:30\n", "is a number or a date"},
		{"long", "a: 1234567890123456\n", "is a number or a date"},
		{"plus", "a: +1\n", "is a number or a date"},
		{"minus nothing", "a: -0\n", "is a number or a date"},
		{"minus nothing, long", "a: -0.0\n", "is a number or a date"},
		{"bare fraction", "a: .5\n", "is a number or a date"},
		{"bare point", "a: 5.\n", "is a number or a date"},
		{"date", "a: 2026-01-02\n", "is a number or a date"},
		{"time", "a: 2026-01-02T03:04:05Z\n", "is a number or a date"},
		{"time with blanks", "a: 2026-01-02 03:04:05 +1\n", "is a number or a date"},
		{"number in lines", "a: 12\n  34\n", "is a number or a date"},
		{"nested colon", "a: b: c\n", "line 2: text cannot have a colon"},
		{"colon at the end", "a: b:\n", "line 2: text cannot have a colon"},
		{"colon in a further line", "a: b\n  c: d\n", "line 3: text cannot have a colon"},
		{"backtick", "a: `b`\n", "text cannot begin with"},
		{"escape", "a: \"\\x41\"\n", `\x41" cannot be used`},
		{"half a pair", "a: \"\\ud800\"\n", "cannot be used"},
		{"open quote", "a: \"b\n", "does not end"},
		{"open bracket", "a: [b,\nc: d\n", "line 3: what begins with a quote or a bracket does not end before this line"},
		{"behind quotes", "a: 'b' c\n", "stands behind the end"},
		{"empty item", "a: [b,,c]\n", "nothing between two commas"},
		{"pair in brackets", "a: [b: c]\n", "cannot have a colon"},
		{"no value", "a: {b, c}\n", "is no field"},
		{"indicator", "a: |2\n  b\n", "behind '|' there can be"},
		{"keep", "a: |+\n  b\n", "behind '|' there can be"},
		{"blank line", "a: |\n  b\n     \n  c\n", "line 4: the line has nothing but blanks"},
		{"indented", "  a: b\n", "line 2: the first field is indented"},
		{"not belonging", "a: 'b'\n  c: d\n", "line 3: it is indented further"},
		{"sequence", "- a\n", "is no field"},
		{"text", "hello\n", "is no field"},
		{"nothing", "# nothing\n", "the head is empty"},
		{"sequence in a line", "a:\n  - - b\n", "line 3: a sequence begins within"},
		{"line separator", "a: b\u2028c\n", "U+2028"},
		{"next line", "a: b\u0085c\n", "U+0085"},
		{"byte order mark", "a: b\ufeffc\n", "U+FEFF"},
		{"control", "a: b\x07\n", "U+0007"},
		{"carriage return", "a: b\rc\n", "U+000D"},
		{"not UTF-8", "a: \xff\n", "it is not UTF-8"},
		{"long key", strings.Repeat("k", 300) + ": a\n", "cannot be a key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fields, err := Parse(tt.head)
			if err != nil {
				if strings.HasPrefix(tt.want, "{") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got the error %v, want %s", err, tt.want)
				}
				return
			}
			text, err := json.Marshal(fields)
			if err != nil || string(text) != tt.want {
				t.Errorf("got %s %v, want %s", text, err, tt.want)
			}
		})
	}
}

// bombs are heads that take much of a reader that is not careful.
func bombs() map[string]string {
	many := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(line, "#", fmt.Sprintf("k%d", i)))
		}
		return b.String()
	}
	return map[string]string{
		"deep brackets":    "a: " + strings.Repeat("[", 60000) + "\n",
		"deep braces":      "a: " + strings.Repeat("{a: ", 15000) + "\n",
		"deep sequences":   many(300, "-\n"),
		"deep mappings":    deep(300),
		"laughs":           "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
		"many keys":        "a: {" + many(5000, "#: 1,") + "}\n",
		"many items":       "a: [" + strings.Repeat("1,", 30000) + "1]\n",
		"too long":         "a: " + strings.Repeat("x", maxBytes) + "\n",
		"open quote":       "a: \"" + strings.Repeat("x\n  ", 4000) + "\n",
		"no field":         strings.Repeat("x", maxBytes-10) + "\n",
		"many open ones":   "a: " + strings.Repeat("['", 30000) + "\n",
		"colons":           "a: " + strings.Repeat("b:", 30000) + "\n",
		"lines of nothing": "a: b" + strings.Repeat("\n", 60000) + "  : c\n",
		"lines":            "a: b" + strings.Repeat("\n", 4090) + "  : c\n",
	}
}

// deep returns a mapping in a mapping, and so on.
func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestBombs(t *testing.T) {
	for name, head := range bombs() {
		if _, err := Parse(head); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if _, err := Parse(deep(maxDepth - 1)); err != nil {
		t.Errorf("one that is not too deep: %v", err)
	}
}

func BenchmarkBombs(b *testing.B) {
	for name, head := range bombs() {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(head); err == nil {
					b.Fatal("it was read")
				}
			}
		})
	}
}

func TestSplit(t *testing.T) {
	tests := []struct {
		name, file string
		carriage   bool
		want       string // "" is an error
	}{
		{"plain", "---\na: b\n---\ntext\n---\n", false, "a: b\n"},
		{"no text", "---\na: b\n---\n", false, "a: b\n"},
		{"no line feed", "---\na: b\n---", false, ""},
		{"carriage returns", "---\r\na: b\r\n---\r\n", true, "a: b\n"},
		{"carriage returns at a server", "---\r\na: b\r\n---\r\n", false, ""},
		{"byte order mark", "\ufeff---\na: b\n---\n", true, ""},
		{"blank before", "\n---\na: b\n---\n", true, ""},
		{"blanks behind", "---  \na: b\n---\n", true, ""},
		{"blanks behind the end", "---\na: b\n--- \n---\n", true, ""},
		{"dots", "---\na: b\n...\n---\n", true, ""},
		{"dashes in a block", "---\na: |\n  b\n  ---\n  c\n---\n", true, ""},
		{"dots in a block", "---\na: |\n  ...\n---\n", true, ""},
		{"a second document", "---\na: b\n--- c\n---\n", true, ""},
		{"text that begins so", "---\na: b\n---c: d\n---\n", true, ""},
		{"four dashes", "----\na: b\n----\n", true, ""},
		{"no end", "---\na: b\n", true, ""},
		{"no head", "text\n", true, ""},
		{"too far", "---\n" + strings.Repeat("a\n", 40000) + "---\n", true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Split([]byte(tt.file), tt.carriage)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	long := strings.Repeat("é", 1024)
	tests := []struct {
		name   string
		fields map[string]any
		want   string // in the error; "" is none
	}{
		{"plain", map[string]any{"name": "a-1", "description": "b\nc"}, ""},
		{"long", map[string]any{"name": strings.Repeat("a", 64), "description": long}, ""},
		{"no name", map[string]any{"description": "b"}, "name must be"},
		{"name that is no text", map[string]any{"name": true, "description": "b"}, "name must be"},
		{"name with capitals", map[string]any{"name": "A", "description": "b"}, "name must be"},
		{"name with two hyphens", map[string]any{"name": "a--b", "description": "b"}, "name must be"},
		{"name that begins with one", map[string]any{"name": "-a", "description": "b"}, "name must be"},
		{"name that ends with one", map[string]any{"name": "a-", "description": "b"}, "name must be"},
		{"long name", map[string]any{"name": strings.Repeat("a", 65), "description": "b"}, "name must be"},
		{"no description", map[string]any{"name": "a"}, "description must be text"},
		{"empty description", map[string]any{"name": "a", "description": ""}, "description must be text"},
		{"long description", map[string]any{"name": "a", "description": long + "é"}, "description must be text"},
		{"escape", map[string]any{"name": "a", "description": "\x1b[31m"}, "control characters"},
		{"right to left", map[string]any{"name": "a", "description": "a\u202eb"}, "direction of text"},
		{"tags", map[string]any{"name": "a", "description": "a\U000E0041"}, "direction of text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Of(tt.fields)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	n := func(text string) any { return json.Number(text) }
	tests := []struct {
		name string
		a, b any
		want bool
	}{
		{"text", "a", "a", true},
		{"other text", "a", "b", false},
		{"null", nil, nil, true},
		{"null and no", nil, false, false},
		{"numbers", n("1.0"), n("1"), true},
		{"numbers with exponents", n("1000"), n("1e3"), true},
		{"other numbers", n("1.5"), n("1"), false},
		{"no number", n("1"), n("x"), false},
		{"number and text", n("1"), "1", false},
		{"text and number", "1", n("1"), false},
		{"lists", []any{"a", n("1.0")}, []any{"a", n("1")}, true},
		{"shorter", []any{"a"}, []any{"a", "b"}, false},
		{"list and text", "a", []any{"a"}, false},
		{"maps", map[string]any{"a": nil}, map[string]any{"a": nil}, true},
		{"another key", map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		{"more keys", map[string]any{"a": nil}, map[string]any{"a": nil, "b": nil}, false},
		{"map and null", nil, map[string]any{}, false},
	}
	for _, tt := range tests {
		if got := Equal(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, head := range bombs() {
		f.Add(head)
	}
	f.Add("a: [b, {c: \"d\\n\"}]\ne: >\n  f\n\n   g\nh:\n- i: j\n  k: 'l\n    m'\n")
	f.Fuzz(func(t *testing.T, head string) {
		fields, err := Parse(head)
		if err != nil {
			return
		}
		text, err := json.Marshal(fields)
		if err != nil || !json.Valid(text) {
			t.Errorf("%q was read as %v, which does not encode: %v", head, fields, err)
		}
	})
}

// What a server sends as a head is counted before anything is made of it, so that
// what is refused costs next to nothing, and what a SKILL.md can say is not refused.
func TestDecode(t *testing.T) {
	head := func(value string) []byte { return []byte(`{"name":"a","description":"b","x":` + value + `}`) }
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"fine":              {head(`[1,{"y":"z"},null]`), ""},
		"many":              {head("[" + strings.Repeat("0,", maxValues-4) + "0]"), ""},
		"too many":          {head("[" + strings.Repeat("0,", maxValues) + "0]"), "more than 4096 values"},
		"far too many":      {head("[" + strings.Repeat("0,", 120_000) + "0]"), "more than 4096 values"},
		"members":           {head(`{"a":` + strings.Repeat(`0,"a":`, 40_000) + "0}"), "more than 4096 values"},
		"deep":              {head(strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1)), ""},
		"too deep":          {head(strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)), "more than 32 levels deep"},
		"far too deep":      {head(strings.Repeat(`{"a":`, 40_000) + "0" + strings.Repeat("}", 40_000)), "more than 32 levels deep"},
		"long":              {head(`"` + strings.Repeat("a", maxJSON) + `"`), "at most 256 KiB"},
		"no object":         {[]byte(`["name"]`), "must be an object"},
		"null":              {[]byte(`null`), "must be an object"},
		"nothing":           {nil, "must be an object"},
		"without its end":   {[]byte(`{"name":`), "must be an object"},
		"with another name": {[]byte(`{"Name":"a","description":"b"}`), "name must be text"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, err := Decode(test.text)
		runtime.ReadMemStats(&after)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || err == nil && h.Name != "a" {
			t.Errorf("%s: got %v, %v, want %q", name, h, err, test.want)
		}
		if cost := after.TotalAlloc - before.TotalAlloc; cost > 4<<20 {
			t.Errorf("%s: %d bytes were taken", name, cost)
		}
	}
}
