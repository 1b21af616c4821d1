package browsertest

import (
	"fmt"
	"strings"
	"testing"
)

// TestDeep: the page reads, indents and writes JSON however deep it is nested, and the
// indented text is no longer than a few times that.
func TestDeep(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "good"))
	b.until(`document.querySelector('nav button[data-tool]')`)
	per := map[int]int{}
	for _, depth := range []int{1000, 10_000, 20_000} {
		got := eval[struct {
			Length int
			Same   []bool
		}](b, fmt.Sprintf(`import(document.querySelector('script').src).then(m => {
			const text = %s.repeat(%d) + '1' + ']}'.repeat(%[2]d), lines = m.indent(text)
			return { length: lines.length, same: [lines.replace(/\s/g, '') === text, lines.split('\n').length === 4 * %[2]d + 1, m.write(m.parse(text)) === text] }
		})`, quote(`{"a":[`), depth))
		if fmt.Sprint(got.Same) != "[true true true]" {
			t.Errorf("%d: %v", depth, got.Same)
		}
		per[depth] = got.Length / depth
	}
	if per[20_000] > per[1000]*11/10 {
		t.Errorf("the length of a level is %v", per)
	}
	for _, text := range []string{`1`, `"}\"{"`, ` { } `, `{"a":1,"a":[ ],"b":{"c":[1,"\\",{}]}}`, `[1.0,-0,1e400,12345678901234567890]`} {
		lines := eval[string](b, `import(document.querySelector('script').src).then(m => m.indent(`+quote(text)+`))`)
		if plain := strings.NewReplacer(" ", "", "\n", ""); plain.Replace(lines) != plain.Replace(text) {
			t.Errorf("%s becomes %s", text, lines)
		}
	}
}
