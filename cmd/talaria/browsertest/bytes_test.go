package browsertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// find goes to a tool by the palette, and waits for its form.
func (b *tab) find(name string) {
	b.t.Helper()
	b.ctrl("k")
	b.until(`document.querySelector('dialog [role=combobox]') === document.activeElement`)
	b.press(name + enter)
	b.until(`document.querySelector('.ask').contains(document.activeElement) && document.querySelector('.ask h2').innerText === ` + quote(name))
}

// TestBytes: what arrives at the server is what was entered, to the byte.
func TestBytes(t *testing.T) {
	t.Parallel()
	testdep.LookPath(t, "chromium")
	text := func(b *tab, keys string) { b.write(keys) }
	asJSON := func(b *tab, keys string) {
		b.tabTo("JSON")
		b.press(enter)
		b.tabTo("arguments as JSON")
		b.write(keys)
	}
	loaded := func(b *tab, keys string) { // into the form, of what is typed as JSON, and again
		asJSON(b, keys)
		for _, to := range []string{"Form", "JSON", "Form"} {
			b.tabTo(to)
			b.press(enter)
			b.until(`document.querySelector('.ask [aria-pressed=true]').innerText === ` + quote(to))
		}
	}
	set := func(b *tab, _ string) { // an optional field, with its default
		b.tabTo(eval[string](b, `document.querySelector('[aria-label="p: + set"], [aria-label="p: use default"]').ariaLabel`))
		b.press(enter)
		b.until(`document.activeElement.closest('.field')?.contains(document.querySelector('[aria-label="p: not set"]')) && document.activeElement.tagName !== 'BUTTON'`)
	}
	optionally := func(b *tab, keys string) { b.press(keys) } // without a click, as a select takes no text
	cleared := func(b *tab, keys string) {
		optionally(b, keys)
		b.ctrl("a")
		b.press(kb.Backspace)
	}
	empty := func(b *tab, _ string) {
		b.tabTo("p: empty text")
		b.press(enter)
		b.until(`document.querySelector('[aria-label="p: not set"]')`)
	}
	nothing := func(*tab, string) {}
	const optional, required = `"properties":{"p":%s}`, `"required":["p"],"properties":{"p":%s}`
	cases := []struct {
		schema, of string
		enter      func(b *tab, keys string)
		keys, want string
	}{
		{required, `{"type":"integer"}`, text, "9007199254740993", `{"p":9007199254740993}`},
		{required, `{"type":"number"}`, text, "1e400", `{"p":1e400}`},
		{required, `{"type":"number"}`, text, "-0", `{"p":-0}`},
		{required, `{"type":"number"}`, text, "1.10", `{"p":1.10}`},
		{required, `{"type":"integer"}`, text, "seven", `{"p":"seven"}`},
		{required, `{"type":"string"}`, text, `"\u0000" </script>&`, `{"p":"\"\\u0000\" </script>&"}`},
		{required, `{"type":"string"}`, text, "ä😀", `{"p":"ä😀"}`},
		{required, `{"type":"string"}`, nothing, "", `{"p":""}`},
		{`"required":["__proto__"],"properties":{"__proto__":%s}`, `{"type":"string"}`, text, "x", `{"__proto__":"x"}`},
		{`"required":["constructor"],"properties":{"constructor":%s}`, `{"type":"string"}`, text, "x", `{"constructor":"x"}`},
		{optional, `{"type":"integer","default":9007199254740993}`, nothing, "", `{}`},
		{optional, `{"type":"string"}`, optionally, "milk", `{"p":"milk"}`},
		{optional, `{"type":"string","maxLength":900}`, text, "milk", `{"p":"milk"}`},
		{optional, `{"type":"boolean"}`, optionally, "t", `{"p":true}`},
		{optional, `{"enum":["one","two"]}`, optionally, "tw", `{"p":"two"}`},
		{optional, `{"type":"string"}`, cleared, "milk", `{}`},
		{optional, `{"type":"string"}`, empty, "", `{"p":""}`},
		{optional, `{"type":"integer","default":9007199254740993}`, text, "9007199254740993", `{"p":9007199254740993}`},
		{optional, `{"type":"number","default":7}`, text, "-0", `{"p":-0}`},
		{optional, `{"type":"string","default":"a\u0000b"}`, set, "", `{"p":"a\u0000b"}`},
		{optional, `{"type":"object","default":{"__proto__":1e400},"additionalProperties":{"type":"number"}}`, set, "", `{"p":{"__proto__":1e400}}`},
		{optional, `{"type":"array","items":{"type":"integer"},"default":[1,9007199254740993]}`, set, "", `{"p":[1,9007199254740993]}`},
		{optional, `{"type":"integer","default":"x"}`, nothing, "", `{}`},
		{optional, `{"type":"boolean","default":{"a":1}}`, nothing, "", `{}`},
		{optional, `{"type":["boolean","string"]}`, loaded, `{"p":5}`, `{"p":5}`},
		{optional, `{"type":["string","null"]}`, loaded, `{"p":{"a":1e400}}`, `{"p":{"a":1e400}}`},
		{optional, `{"anyOf":[{"type":"string"},{"const":false}]}`, loaded, `{"p":false}`, `{"p":false}`},
		{optional, `{"anyOf":[{"type":"string"},{"const":false}]}`, loaded, `{"p":1}`, `{"p":1}`},
		{optional, `{"type":"number"}`, loaded, `{"p":"5"}`, `{"p":"5"}`},
		{optional, `{"type":"integer"}`, asJSON, `{"p":9007199254740993,"q":1e400,"r":-0}`, `{"p":9007199254740993,"q":1e400,"r":-0}`},
		{optional, `{"type":"integer"}`, asJSON, `{"__proto__":{"p":3},"\u0070":4}`, `{"__proto__":{"p":3},"\u0070":4}`},
		{optional, `{"type":"integer"}`, asJSON, `{"p":1,"p":2}`, ""}, // which the client sends to nobody
		{optional, `{"type":"string"}`, asJSON, `{"p":"\u0000\ud83d\ude00<>&"}`, `{"p":"\u0000\ud83d\ude00<>&"}`},
	}
	var tools []string
	for n, c := range cases {
		tools = append(tools, fmt.Sprintf(`{"name":"take%02d","inputSchema":{"type":"object",%s}}`, n, fmt.Sprintf(c.schema, c.of)))
	}
	const pages = 3
	for first := range pages {
		t.Run(fmt.Sprint("page ", first), func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "calls.jsonl")
			page := inspectPage(t, "'"+talaria+"' tap -o '"+record+"' -- "+fixture(t, "raw", strings.Join(tools, ",")))
			page.until(`document.querySelector('.ask')`)
			for n := first; n < len(cases); n += pages {
				c := cases[n]
				t.Run(fmt.Sprintf("%d %s", n, c.want), func(t *testing.T) {
					b, tool := page.in(t), fmt.Sprintf("take%02d", n)
					b.find(tool)
					c.enter(b, c.keys)
					b.ctrl(enter)
					b.until(`document.querySelector('[data-state=done]') || document.querySelector('.ask .primary').innerText.startsWith('Call anyway')`)
					if !eval[bool](b, `!!document.querySelector('[data-state=done]')`) {
						b.ctrl(enter)
						b.until(`document.querySelector('[data-state=done], [data-state=error]')`)
					}
					if got := arguments(t, record, tool); got != c.want {
						t.Errorf("the server got %s, and not %s", got, c.want)
					}
				})
			}
		})
	}
}

// arguments are those of the call of a tool in a recording, as they are; "" if there is none.
func arguments(t *testing.T, name, tool string) string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for e, err := range recording.Read(file) {
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if e.Dir == recording.Out && json.Unmarshal(e.Text, &m) == nil && m.Method == "tools/call" && m.Params.Name == tool {
			return string(m.Params.Arguments)
		}
	}
	return ""
}
