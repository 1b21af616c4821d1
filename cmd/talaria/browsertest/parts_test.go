package browsertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestParts: what is added to a form of several parts is drawn, and has the focus.
func TestParts(t *testing.T) {
	t.Parallel()
	testdep.LookPath(t, "chromium")
	rows, _ := json.Marshal(slices.Repeat([]string{"x"}, 200)) // texts always encode
	members := make(map[string]string)
	for i := range 200 {
		members[fmt.Sprint("m", i)] = "x"
	}
	further, _ := json.Marshal(members)
	b := inspectPage(t, fixture(t, "raw", fmt.Sprintf(`{"name":"good","inputSchema":{"type":"object","properties":{"rows":{"type":"array","items":{"type":"string"},"default":%s},"further":{"type":"object","additionalProperties":{"type":"string"},"default":%s}}}}`, rows, further)))
	b.until(`document.querySelector('.ask')`)
	b.find("good")
	for _, c := range []struct{ field, add, name string }{
		{"rows", "+ add to rows", "rows 200"},
		{"further", "+ add a member", "name of a further member"},
	} {
		push := func(name string) {
			eval[bool](b, `(e => (e?.click(), !!e))([...document.querySelectorAll('.ask button')].find(e => [e.ariaLabel, e.innerText].includes(`+quote(name)+`)))`)
		}
		push(c.field + ": + set")
		b.until(`document.querySelector('.ask .pager')`)
		push(c.add)
		b.until(`document.activeElement.tagName === 'INPUT' && document.activeElement.value === '' && document.activeElement.ariaLabel === ` + quote(c.name))
		push(c.field + ": not set")
		b.until(`!document.querySelector('.ask .pager')`)
	}
}

// TestIDs: no two elements of a page have the same id, whatever members are called.
func TestIDs(t *testing.T) {
	t.Parallel()
	testdep.LookPath(t, "chromium")
	names := []string{"名前", "年齢", "a-b", "a_b", "a", "a-n", "a-g", "a-h", "a-z", "a:n", "a/b", "a~1b", "a-47-b", "😀", "😁", ""}
	var properties []string
	for _, name := range names {
		properties = append(properties, quote(name)+`:{"type":["string","null"],"description":"of it"}`)
	}
	all := strings.Join(properties, ",")
	text, _ := json.Marshal(names) // texts always encode
	b := inspectPage(t, fixture(t, "raw", fmt.Sprintf(`{"name":"good","inputSchema":{"type":"object","required":%s,"properties":{%s,"o":{"type":"object","required":%s,"properties":{%s}}}}}`, text, all, text, all)))
	b.until(`document.querySelector('.ask')`)
	b.find("good")
	eval[bool](b, `(document.querySelector('.ask [aria-label="o: + set"]').click(), true)`)
	b.until(fmt.Sprintf(`document.querySelectorAll('.ask input').length === %d`, 2*len(names)))
	if got := eval[string](b, `(ids => ids.filter((id, i) => ids.indexOf(id) !== i || /\s/.test(id)).join(' '))([...document.querySelectorAll('[id]')].map(e => e.id))`); got != "" {
		t.Errorf("these are the ids of several elements: %s", got)
	}
	if got := eval[int](b, `new Set([...document.querySelectorAll('.ask input')].map(e => e.ariaLabelledByElements[0])).size`); got != 2*len(names) {
		t.Errorf("%d elements are labels of %d fields", got, 2*len(names))
	}
}
