package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// maxElements is how many elements the page has at most, whatever a server sends.
const maxElements = 5000

// many joins what is made of the numbers below n, each in the place of a sign.
func many(n int, sign, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(format, sign, fmt.Sprint(i)))
	}
	return b.String()
}

// hostileForms are too much for a page.
var hostileForms = []struct {
	name, properties, more string
}{
	{"refs", many(1900, "@", `"p@":{"$ref":"#/$defs/d@"}`), `,"$defs":{` + many(1900, "@", `"d@":{"type":"string","description":"`+strings.Repeat("x", 1000)+`"}`) + `}`},
	{"fields", many(1900, "@", `"p@":{"type":"integer","minimum":@,"description":"what it is"}`), `,"required":[` + many(1900, "@", `"p@"`) + `]`},
	{"enum", `"a":{"enum":[` + many(100_000, "@", `"value @"`) + `]}`, `,"required":["a"]`},
	{"enums", many(300, "@", `"p@":{"$ref":"#/$defs/e"}`), `,"$defs":{"e":{"enum":[` + many(200, "@", `"value @"`) + `]}},"required":[` + many(300, "@", `"p@"`) + `]`},
	{"items", `"a":{"type":"array","items":{"type":"string","description":"one"},"default":[` + many(300, "@", `"item @"`) + `]}`, `,"required":["a"]`},
	{"kinds", many(15, "@", `"p@":{"oneOf":[`+many(60, "~", `{"title":"Kind ~","type":"object","properties":{"k":{"const":"k~"}}}`)+`]}`), `,"required":[` + many(15, "@", `"p@"`) + `]`},
}

// hostileResults are, too, by the names of their tools.
var hostileResults = map[string]string{
	"wide":    `"structuredContent":{"numbers":[` + many(100_000, "@", `@`) + `],"names":{` + many(30_000, "@", `"name @":"@"`) + `}},"content":[]`,
	"deep":    `"content":[{"type":"resource","resource":{"uri":"x://deep","text":"` + strings.Repeat("[0,", 9800) + `{}` + strings.Repeat("]", 9800) + `"}}]`,
	"nested":  `"structuredContent":{` + many(300, "@", `"branch @":{`+many(60, "~", `"leaf ~":[@]`)+`}`) + `},"content":[]`,
	"table":   `"structuredContent":[` + many(2000, "@", `{`+many(30, "~", `"column ~":@`)+`}`) + `],"content":[]`,
	"content": `"content":[` + many(20_000, "@", `{"type":"text","text":"@"}`) + `]`,
	"breaks":  `"structuredContent":[` + many(2000, "@", `{"a":@,"b":{}}`) + `],"content":[]`,
}

// hostile answers with too much of everything.
func hostile() map[string]string {
	var tools []string
	for _, f := range hostileForms {
		tools = append(tools, `{"name":"`+f.name+`","inputSchema":{"type":"object","properties":{`+f.properties+`}`+f.more+`}}`)
	}
	answers := map[string]string{}
	for name, result := range hostileResults {
		tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"},"outputSchema":{"type":"array","maxItems":1,"items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}`)
		answers["tools/call "+name] = `"result":{` + result + `}`
	}
	answers["tools/list"] = `"result":{"tools":[` + strings.Join(tools, ",") + `,{"name":"asks","inputSchema":{"type":"object"}},` + many(2000, "@", `{"name":"tool @","description":5,"inputSchema":{}}`) + `]}`
	answers["prompts/list"] = `"result":{"prompts":[` + many(2000, "@", `{"name":"prompt @","description":5}`) + `]}`
	answers["resources/list"] = `"result":{"resources":[` + many(2000, "@", `{"name":"resource @","uri":"x://@","description":5}`) + `]}`
	answers["resources/templates/list"] = `"result":{"resourceTemplates":[` + many(2000, "@", `{"name":"template @","uriTemplate":"x://@/{a}","description":5}`) + `]}`
	for key, answer := range answers {
		answers[key] = `{"jsonrpc":"2.0","id":$id,` + answer + `}`
	}
	for n := range 20 {
		answers["tools/call asks"] += fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"Question %d","requestedSchema":{"type":"object","properties":{%s}}}}`+"\n", n, n,
			many(300, "@", `"p@":{"type":"boolean","description":"what it is"}`))
	}
	return answers
}

// elements are how many the page has had at most since this was called last.
func (b *tab) elements() int {
	b.t.Helper()
	return eval[int](b, `(() => {
		const all = () => document.querySelectorAll('*').length
		if (!window.watched) (window.watched = new MutationObserver(() => { window.most = Math.max(window.most, all()) })).observe(document, { childList: true, subtree: true })
		const had = Math.max(window.most ?? 0, all())
		window.most = all()
		return had
	})()`)
}

// few fails where they were too many.
func (b *tab) few() {
	b.t.Helper()
	n := b.elements()
	b.t.Logf("%d elements", n)
	if n > maxElements {
		b.t.Errorf("the page had %d elements", n)
	}
}

// pick chooses a tool although there may be a field that has the focus.
func (b *tab) pick(tool string) {
	b.t.Helper()
	eval[bool](b, `document.activeElement.blur(), true`)
	b.choose(tool)
}

// through goes to the last part of what is drawn in parts, and returns how many there are.
func (b *tab) through(what string) int {
	b.t.Helper()
	return eval[int](b, `(async () => {
		const further = () => document.querySelector('button[aria-label='+`+quote(quote("further "+what))+`+']')
		for (let n = 1; ; n++) {
			if (!further() || further().ariaDisabled === 'true') return n
			further().click()
			await new Promise(done => setTimeout(done))
		}
	})()`)
}

// long is what is said of how much there is, at last.
var long = map[string]string{"wide Tree": "of 130003 rows", "table Table": "of 2000 rows", "content Content": "of 20000 parts"}

// TestElements: the page has few elements, whatever a server sends and whatever of it
// is opened, and what it draws in parts is there to the last.
func TestElements(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "hostile"))
	b.until(`document.querySelectorAll('nav section').length >= 4`) // of the lists
	b.elements()
	find := func(text string) {
		eval[bool](b, `(e => { e.value = `+quote(text)+`; return e.dispatchEvent(new Event('input', { bubbles: true })) })(document.getElementById('filter'))`)
	}
	find("e") // some tools, all resources and all templates
	b.until(`document.querySelector('section[aria-label=Resources] .list').childElementCount > 40 && document.querySelectorAll('nav .list button').length <= 120`)
	find("")
	b.until(`document.querySelector('section[aria-label=Resources] .list').childElementCount === 30`)
	for _, what := range []string{"tools", "prompts", "resources", "templates"} {
		if n := b.through(what); n < 2000/30 {
			t.Errorf("%d parts of %s", n, what)
		}
	}
	find("e")
	b.until(`document.querySelector('section[aria-label=Resources] .pager').innerText.startsWith('1–')`) // and not the last part
	find("")
	b.few()
	for _, f := range hostileForms {
		t.Run(f.name, func(t *testing.T) {
			b := b.in(t)
			b.pick(f.name)
			parts := b.through("parts of the form")
			if long := f.name != "enum"; long != (parts > 1) {
				t.Errorf("%d parts", parts)
			}
			b.few()
		})
	}
	for name := range hostileResults {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.pick(name)
			b.ctrl(enter)
			b.until(`document.querySelector('.result').dataset.state !== 'running'`)
			if state := eval[string](b, `document.querySelector('.result').dataset.state`); state != "invalid" { // they break their output schema
				t.Errorf("%s: %s", state, eval[string](b, `document.querySelector('.result .failure').innerText`))
			}
			for view := range strings.SplitSeq(eval[string](b, `[...document.querySelectorAll('.acts > [role=group] button')].map(e => e.innerText).join()`), ",") {
				if view != "" {
					b.view(view)
				}
				rows := b.through("rows")
				opened := 0
				if view == "Tree" { // branches, one after the other, and what is further behind them
					opened = eval[int](b, `(async () => {
						for (let n = 0, to; n < 200; n++) {
							to = [...document.querySelectorAll('[role=treeitem][aria-expanded=false]')].at(-1)
							if (!to) to = document.querySelector('button[aria-label="further rows"]')
							if (!to || to.ariaDisabled === 'true') return n
							to.click()
							await new Promise(done => setTimeout(done))
						}
						return 200
					})()`)
				}
				shown := eval[string](b, `document.querySelector('.view .pager')?.innerText ?? ''`)
				t.Logf("%s: %d parts, %d opened, %q", view, rows, opened, shown)
				if want := long[name+" "+view]; !strings.Contains(shown, want) {
					t.Errorf("%s shows %q, and not %q", view, shown, want)
				}
				b.through("parts")
			}
			b.few()
		})
	}
	b.pick("table")
	b.ctrl(enter)
	b.until(`document.querySelector('.result[data-state=invalid]')`)
	b.view("Table") // what was seen last of the same tool is seen again
	b.until(`document.querySelector('.result[data-state=invalid] table')`)
	b.pick("asks")
	b.ctrl(enter)
	b.reads("1 of 20 questions")
	b.few()
	b.pick("fields")
	b.press(enter)
	eval[bool](b, `document.querySelector('.traffic button').click(), document.querySelector('#filter').value = '', document.querySelector('#filter').dispatchEvent(new Event('input', { bubbles: true }))`)
	b.until(`document.querySelectorAll('.rows tr').length > 9 && document.querySelectorAll('nav li').length > 100`)
	b.few()
}

// TestTree: a result as a tree is read, opened and closed without a mouse, to its end.
func TestTree(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "hostile"))
	b.call("nested")
	b.until(`document.querySelector('[role=tree]')`)
	b.tabTo("{300}")
	for n, step := range []struct{ key, at, of string }{
		{kb.ArrowDown, "branch 0 {60} level 2 expanded false", "301"}, {kb.ArrowRight, "branch 0 {60} level 2 expanded true", "361"},
		{kb.ArrowRight, "leaf 0 [1] level 3 expanded false", "361"}, {enter, "leaf 0 [1] level 3 expanded true", "362"}, {kb.ArrowRight, "0: 0 level 4 expanded null", "362"},
		{kb.ArrowRight, "0: 0 level 4 expanded null", "362"}, {kb.ArrowLeft, "leaf 0 [1] level 3 expanded true", "362"}, {kb.ArrowLeft, "leaf 0 [1] level 3 expanded false", "361"},
		{kb.ArrowLeft, "branch 0 {60} level 2 expanded true", "361"}, {kb.End, "branch 299 {60} level 2 expanded false", "361"}, {kb.ArrowDown, "branch 299 {60} level 2 expanded false", "361"},
		{" ", "branch 299 {60} level 2 expanded true", "421"}, {kb.End, "leaf 59 [1] level 3 expanded false", "421"}, {kb.Home, "{300} level 1 expanded true", "421"}, {kb.ArrowUp, "{300} level 1 expanded true", "421"},
		{kb.ArrowLeft, "{300} level 1 expanded false", ""},
	} {
		b.press(step.key)
		at := eval[string](b, `(e => e.innerText.trim() + ' level ' + e.ariaLevel + ' expanded ' + e.ariaExpanded + (document.querySelectorAll('[role=treeitem][tabindex="0"]').length === 1 ? '' : ', and not alone'))(document.activeElement)`)
		of := eval[string](b, `/of (\d+)/.exec(document.querySelector('.view .pager')?.innerText)?.[1] ?? ''`)
		if at != step.at || of != step.of {
			t.Errorf("step %d leads to %q of %q, and not to %q of %q", n, at, of, step.at, step.of)
		}
	}
}
