package inspector

import (
	"slices"
	"strings"
	"testing"
)

// TestCompared: texts are compared by their lines, also those of JSON in a text.
func TestCompared(t *testing.T) {
	t.Parallel()
	result := func(text string) string {
		return indented([]byte(`{"content":[{"type":"text","text":` + text + `}],"n":1}`))
	}
	for _, c := range []struct {
		name, before, after string
		want                []string // the lines that went or came
	}{
		{"the same", `"a\nb"`, `"a\nb"`, nil},
		{"one line", `"a"`, `"b"`, []string{`-      "text": "a"`, `+      "text": "b"`}},
		{"lines", `"a\nb\nc"`, `"a\nx\nc"`, []string{`-        b`, `+        x`}},
		{"JSON in a text", `"{\"a\":1,\"b\":[2]}"`, `"{\"a\":1,\"b\":[3]}"`, []string{`-            2`, `+            3`}},
		{"line ends of Windows", `"a\r\nb"`, `"a\r\nc"`, []string{`-        b`, `+        c`}},
		{"quotes", `"a\n\"b\\"`, `"a\n\"c\\"`, []string{`-        "b\`, `+        "c\`}},
		{"no JSON", `"{\nb"`, `"{\nc"`, []string{`-        b`, `+        c`}},
		{"a long line", `"a"`, `"` + strings.Repeat("ä", maxCompareLine) + `"`, []string{`-      "text": "a"`, `+      "text": "` + strings.Repeat("ä", (maxCompareLine-16)/2) + `…`}},
	} {
		lines, err := compared(result(c.before), result(c.after))
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l[0] == ' ' || l[0] == '@' })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if _, err := compared("1", strings.Repeat("1", maxCompared+1)); err == nil {
		t.Error("a result of any length is compared")
	}
}
