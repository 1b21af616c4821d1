package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// pixel is a picture.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// shows are results, by the names of their tools, with what is seen of each at once.
var shows = []struct{ name, result, views, seen string }{
	{"picture", `"content":[{"type":"text","text":"a picture"},{"type":"image","mimeType":"image/png","data":"` + pixel + `"}],"structuredContent":{"a":1}`, "Content Tree Raw", "a picture"},
	{"lines", `"content":[{"type":"text","text":"first\n  second"}],"structuredContent":{"result":"first\n  second"}`, "Content Tree Raw", "first\n  second"},
	{"long", `"content":[{"type":"text","text":"` + strings.Repeat("and on, ", 50) + `"}],"structuredContent":{"a":1,"b":2}`, "Content Tree Raw", "and on, and on"},
	{"lone", `"content":[{"type":"text","text":"only \"this\""}],"structuredContent":{"result":"only \"this\""}`, "Content Tree Raw", `only "this"`},
	{"json", `"content":[{"type":"text","text":"[{\"name\":\"Ann\",\"owes\":3}]"}]`, "Table Tree Content Raw", "Ann"},
	{"tree", `"content":[{"type":"text","text":"{\"name\":{\"first\":\"Ann\"}}"}]`, "Tree Content Raw", "first: \"Ann\""},
	{"mixed", `"content":[{"type":"text","text":"two parts"},{"type":"text","text":"{\"name\":{\"first\":\"Ann\"}}"},{"type":"text","text":"[{\"bill\":7}]"}]`, "Content Raw", "first: \"Ann\""},
	{"markdown", `"content":[{"type":"text","text":` + quote(markdown) + `}]`, "Content Raw", "Bills of May"},
	{"script", `"content":[{"type":"text","text":"# not a heading\nset -e\nls *.go"}]`, "Content Raw", "# not a heading\nset -e\nls *.go"},
	{"typed", `"content":[{"type":"resource","resource":{"uri":"x://a/notes.md","mimeType":"text/markdown","text":"# Notes\n*one*"}}]`, "Content Raw", "Notes\n\none"},
	{"plain", `"content":[{"type":"resource","resource":{"uri":"x://a/notes.txt","mimeType":"text/plain","text":"# Notes\n\n**one**"}}]`, "Content Raw", "# Notes\n\n**one**"},
	{"links", `"content":[{"type":"text","text":"see"},{"type":"resource_link","uri":"x://rules","name":"rules","title":"The rules","mimeType":"text/plain","size":7},{"type":"resource_link","uri":"x://gone","name":"gone"}]`, "Content Raw", "The rules"},
	{"broken", `"content":[` + strings.Repeat(`{"type":"text","text":"good"},`, 9) + `{"type":"video"}]`, "Content Raw", `unknown type of content: "video"`},
	{"nothing", `"content":[]`, "Raw", `"content": []`},
	{"others", `"content":[],"structuredContent":{"rows":[{"a":1}],"total":47,"more":{"cursor":"next"}}`, "Table Tree Raw", "total: 47"},
	{"both", `"content":[{"type":"text","text":"{\"rows\":[{\"a\":1}]}"}],"structuredContent":{"rows":[{"a":1}]}`, "Table Tree Content Raw", "a"},
	{"missing", `"content":[{"type":"text","text":"one line"}]`, "Content Raw", "one line"},
	{"escaped", `"content":[],"structuredContent":{"log":"first\n  second"}`, "Tree Raw", "first\n  second"},
	{"doubtful", `"content":[{"type":"text","text":"Error: no such table"}]`, "Content Raw", "no such table"},
	{"refused", `"isError":true,"content":[{"type":"text","text":"Error: no such table"}]`, "Content Raw", "no such table"},
	{"refers", `"content":[{"type":"resource","resource":{"uri":"x://docs/a%20b.json","mimeType":"application/json","text":"{\"k\":{\"v\":[]}}"}}]`, "Tree Content Raw", "v"},
}

// showing answers with them.
func showing() (tools string, answers map[string]string) {
	answers = map[string]string{}
	for n, s := range shows {
		if n > 0 {
			tools += ","
		}
		tools += `{"name":"` + s.name + `","inputSchema":{"type":"object"}`
		if s.name == "missing" {
			tools += `,"outputSchema":{"type":"object"}`
		}
		tools += "}"
		answers["tools/call "+s.name] = `{"jsonrpc":"2.0","id":$id,"result":{` + s.result + `}}`
	}
	answers["resources/read"] = `{"jsonrpc":"2.0","id":$id,"result":{"contents":[{"uri":"x://rules","mimeType":"text/plain","text":"Everybody pays."}]}}`
	for name, item := range saves {
		tools += `,{"name":"` + name + `","inputSchema":{"type":"object"}}`
		answers["tools/call "+name] = `{"jsonrpc":"2.0","id":$id,"result":{"content":[` + item[0] + `]}}`
	}
	return tools, answers
}

// markdown has what is drawn, and what is not: links, pictures and HTML.
const markdown = "# Bills of May\n\nAll are **paid**, _nearly_, `x * y` and ~~late~~. See [the rules](https://example.com/rules) and ![logo](https://example.com/logo.png).\n<img src=https://example.com/x.png onerror=alert(1)>\n\n" +
	"### Shares\n\n| who | owes |\n|---|--:|\n| Ann | 3 |\n| Bob \\| Co | 4 |\n\n1. first\n2. second\n   - [x] inner **one\n   - [ ] inner two\n\n> said\n> twice\n\n```json\n{\"a\":1}\n```\n\n---\nlast snake_case_name"

// readsMarkdown looks at what is drawn of it.
func readsMarkdown(b *tab) {
	b.t.Helper()
	for selector, want := range map[string]string{
		"[role=heading]": "Bills of May|Shares", "strong": "paid", "em": "nearly", "s": "late", ":not(pre) > code": "x * y|https://example.com/rules|https://example.com/logo.png",
		"th": "who|owes", "td": "Ann|3|Bob | Co|4", "ol > li > p": "second", "ul > li": "☑ inner **one|☐ inner two", "blockquote": "said\ntwice", "pre .jk": `"a"`, "hr": "", "hr + p": "last snake_case_name",
		"a": "", "img": "",
	} {
		if got := eval[string](b, `[...document.querySelectorAll('.md :is(`+selector+`)')].map(e => e.innerText.trim()).join('|')`); got != want {
			b.t.Errorf("%s: %q, and not %q", selector, got, want)
		}
	}
	b.reads("<img src=https://example.com/x.png onerror=alert(1)>")
	eval[bool](b, `(document.querySelector('.view .part button').click(), true)`)
	b.reads("# Bills of May")
	if got := eval[string](b, `document.querySelector('.view .text pre').innerText`); got != markdown {
		b.t.Errorf("what was sent is shown as %q", got)
	}
}

// saves are items that are files, by the names of their tools, with what they are called.
var saves = map[string][2]string{
	"make_png":  {`{"type":"image","mimeType":"image/png","data":"AAAA"}`, "make_png.png"},
	"make_jpg":  {`{"type":"image","mimeType":"image/jpeg; x=1","data":"AAAA"}`, "make_jpg.jpg"},
	"make_svg":  {`{"type":"image","mimeType":"image/svg+xml","data":"AAAA"}`, "make_svg.svg"},
	"make_wav":  {`{"type":"audio","mimeType":"audio/x-wav","data":"AAAA"}`, "make_wav.wav"},
	"make_pdf":  {`{"type":"resource","resource":{"uri":"x://reports/2026.pdf?page=1","mimeType":"application/pdf","blob":"AAAA"}}`, "2026.pdf"},
	"make_any":  {`{"type":"resource","resource":{"uri":"x://a/b","blob":"AAAA"}}`, "b.bin"},
	"make_zip":  {`{"type":"resource","resource":{"uri":"x://a/../%2e%2e%2fb","mimeType":"application/zip","blob":"AAAA"}}`, "_b.zip"},
	"make_evil": {`{"type":"resource","resource":{"uri":"x://run.exe","mimeType":"image/png","blob":"AAAA"}}`, "run.exe.png"},
	"make_gif":  {`{"type":"image","mimeType":"IMAGE/GIF","data":"AAAA"}`, "make_gif.gif"},
	"make_webp": {`{"type":"image","mimeType":"image/webp","data":"AAAA"}`, "make_webp.webp"},
	"make_mp3":  {`{"type":"audio","mimeType":"audio/mpeg","data":"AAAA"}`, "make_mp3.mp3"},
	"make_ogg":  {`{"type":"audio","mimeType":"audio/ogg; codecs=opus","data":"AAAA"}`, "make_ogg.ogg"},
	"make_same": {`{"type":"resource","resource":{"uri":"file:///home/a/photo.JPG","mimeType":"image/jpeg","blob":"AAAA"}}`, "photo.JPG"},
	"make_gz":   {`{"type":"resource","resource":{"uri":"x://logs/all.tar.gz","mimeType":"application/gzip","blob":"AAAA"}}`, "all.tar.gz"},
	"make_root": {`{"type":"resource","resource":{"uri":"x://","mimeType":"application/octet-stream","blob":"AAAA"}}`, "make_root.bin"},
	"make_dots": {`{"type":"resource","resource":{"uri":"x://a/..","mimeType":"application/pdf","blob":"AAAA"}}`, "content.pdf"},
	"make_long": {`{"type":"resource","resource":{"uri":"x://` + strings.Repeat("long", 40) + `.pdf","mimeType":"application/pdf","blob":"AAAA"}}`, strings.Repeat("long", 40)[84:] + ".pdf"},
	"make_word": {`{"type":"resource","resource":{"uri":"x://b","mimeType":"application/vnd.openxmlformats-officedocument.wordprocessingml.document","blob":"AAAA"}}`, "b.docx"},
	"make_odd":  {`{"type":"resource","resource":{"uri":"x://\u202efdp","mimeType":"\u202e/..","blob":"AAAA"}}`, "_fdp.bin"},
}

// TestResults: what is read is shown first, JSON as JSON, a broken item beside the good
// ones, and Raw always; and what is saved has a name and a type.
func TestResults(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "shows"))
	for _, s := range shows {
		t.Run(s.name, func(t *testing.T) {
			b := b.in(t)
			b.pick(s.name)
			b.ctrl(enter)
			b.until(`document.querySelector('.result')?.ariaLabel && document.querySelector('.result').dataset.state !== 'running'`)
			if got := eval[string](b, `[...document.querySelectorAll('.acts > [role=group] button')].map(e => e.innerText).join(' ')`); got != s.views {
				t.Errorf("the views are %q, and not %q", got, s.views)
			}
			seen := eval[string](b, `document.querySelector('.view').innerText`)
			if !strings.Contains(seen, s.seen) {
				t.Errorf("%q is not in %q", s.seen, seen)
			}
			if doubted := eval[bool](b, `document.querySelector('.result').innerText.includes('does not set isError')`); doubted != (s.name == "doubtful") {
				t.Errorf("that isError is missing is said: %v", doubted)
			}
			switch state := eval[string](b, `document.querySelector('.result').dataset.state`); s.name {
			case "picture":
				b.until(`document.querySelector('.view img').naturalWidth === 1`)
			case "broken":
				if strings.Count(seen, "good") != 9 || state != "invalid" {
					t.Errorf("%s: %q", state, seen)
				}
			case "missing":
				b.reads("does not match its output schema")
				b.reads("has no structuredContent")
				if state != "invalid" {
					t.Error(state)
				}
			case "mixed":
				b.until(`document.querySelector('.view [role=tree]') && document.querySelector('.view td').innerText === '7'`)
				eval[bool](b, `([...document.querySelectorAll('.view .part button')].forEach(e => e.click()), true)`)
				b.reads(`{"name":{"first":"Ann"}}`)
				b.reads(`[{"bill":7}]`)
			case "markdown":
				readsMarkdown(b)
			case "links":
				eval[bool](b, `([...document.querySelectorAll('.linked button')].forEach(e => e.click()), true)`)
				b.reads("Everybody pays.")
				b.reads("there is no x://gone")
			}
		})
	}
	for name, s := range saves {
		b.pick(name)
		b.ctrl(enter)
		b.until(`document.querySelector('.view a[download]')`)
		if got := eval[string](b, `document.querySelector('.view a[download]').download`); got != s[1] {
			t.Errorf("%s is saved as %q, and not as %q", name, got, s[1])
		}
	}
	eval[bool](b, `(document.querySelector('.menu').open = true)`)
	if got := eval[string](b, `[...document.querySelectorAll('.menu [data-as]')].map(e => e.dataset.as).join(' ')`); got != "report command go" {
		t.Errorf("a server over stdio is offered %s", got)
	}
}

// TestFromAnywhere: Ctrl-Enter calls what is shown wherever the focus is, and the page says
// so where nothing is shown.
func TestFromAnywhere(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", `{"name":"first","inputSchema":{"type":"object"}},{"name":"second","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`))
	b.choose("second")
	for n, focus := range []string{`document.getElementById('filter')`, `document.querySelector('nav button[data-tool]')`, `document.querySelector('header select')`,
		`document.querySelector('.traffic button')`, `document.querySelector('.side button')`, `document.querySelector('.ask input')`, `document.body`} {
		eval[bool](b, `(document.activeElement.blur(), `+focus+`.focus(), true)`)
		b.ctrl(enter)
		b.until(fmt.Sprintf(`document.querySelector('.result[data-state=done]').ariaLabel === 'Call %d'`, n+1))
	}
	if got := eval[string](b, `[...new Set([...document.querySelectorAll('section[aria-label=Recent] .one')].map(e => e.innerText))].join()`); got != "second" {
		t.Errorf("called %s", got)
	}
	b.ctrl("k")
	b.until(`document.querySelector('dialog [role=combobox]') === document.activeElement`)
	b.press("create nothing at all")
	b.until(`document.querySelector('dialog').innerText.includes('Nothing found.')`)
	b.press(escape)
	b.tabTo("Server")
	b.press(enter)
	b.until(`!document.querySelector('.try')`)
	b.ctrl(enter)
	b.reads("No form is open. Choose a tool first.")
}

// TestFilter: the filter finds words in any order, in names, titles and descriptions.
func TestFilter(t *testing.T) {
	t.Parallel()
	var tools []string
	for n := range 330 {
		tools = append(tools, fmt.Sprintf(`{"name":"%s_%s_%d","title":"%s","description":"It is number %d. %s","inputSchema":{"type":"object"}}`,
			[]string{"users", "bills", "notes"}[n%3], []string{"create", "delete"}[n%2], n, []string{"Ledger", "Register"}[n%2], n, strings.Repeat("And so on. ", 20)+[]string{"zebra", "yak"}[n%2]))
	}
	b := inspectPage(t, fixture(t, "raw", strings.Join(tools, ",")))
	b.until(`document.querySelectorAll('nav button[data-tool]').length > 100`)
	for _, c := range []struct {
		words string
		found int
	}{
		{"create users", 55}, {"users create", 55}, {"  CREATE   user ", 55}, {"creates user", 55}, {"ledger bills", 55}, {"zebra", 165}, {"users zebra delete", 0}, {"nothing of it", 0},
		{"USERS_CREATE_0", 1}, {"number 329", 1}, {"register delete notes", 55}, {"yak zebra", 0}, {"legder", 0}, {"notes_create_2", 20}, {".", 330}, {"_", 330}, {"creates users zebras", 55},
	} {
		b.press("/")
		b.write(c.words)
		b.until(fmt.Sprintf(`document.querySelector('section[aria-label=Tools] h2').innerText === 'Tools %d of 330'`, c.found))
		if got := eval[bool](b, `document.querySelector('nav').innerText.includes('Nothing found.')`); got != (c.found == 0) {
			t.Errorf("%q: nothing found: %t", c.words, got)
		}
		b.press(escape)
		eval[bool](b, `(document.activeElement.blur(), true)`)
	}
}

// TestOptional: simple fields that are optional are there without a click, with what they
// are by default and their bounds, and are sent when something is entered.
func TestOptional(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", `{"name":"good","inputSchema":{"type":"object","required":["who"],"properties":{"who":{"type":"string"},"limit":{"type":"integer","default":25,"minimum":1,"maximum":100},"name":{"type":"string","default":"pay\u202enoisrev"},`+
		`"loud":{"type":"boolean","default":true},"plain":{"type":"boolean"},"size":{"enum":["S","M"],"default":"M"},"on":{"type":"string","format":"date","default":"2026-07-28"},"none":{"type":["integer","null"]},"deep":{"type":"object","properties":{"a":{"type":"string"}}}}}}`))
	b.choose("good")
	got := eval[string](b, `[...document.querySelectorAll('.ask .field')].map(e => [e.querySelector('.label').innerText, e.querySelector('input')?.placeholder ?? e.querySelector('select')?.selectedOptions[0].text ?? e.querySelector('button').innerText, [...e.querySelectorAll('.head > .dim')].map(d => d.innerText).join()].join(':')).join('|')`)
	if want := "who *::|limit:25:1..100|name:pay�noisrev:|loud:default: true:|plain:not set:|size:default: M:|on:2026-07-28:format date,default 2026-07-28|none::|deep:+ set:"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.write("Ann")
	b.press(kb.Tab)
	b.press("7")
	b.tabTo("JSON")
	b.press(enter)
	b.until(`document.querySelector('.ask textarea').value.replace(/\s/g, '') === '{"who":"Ann","limit":7}'`)
}

// TestLines: a text of several lines that is pasted, or begun with Shift-Enter, keeps its lines, and its box when it has one again.
func TestLines(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", `{"name":"good","inputSchema":{"type":"object","required":["query","note"],"properties":{"query":{"type":"string"},"note":{"type":"string"}}}}`))
	b.choose("good")
	b.write("SELECT *;")
	eval[bool](b, `(e => { e.setSelectionRange(8, 8); const data = new DataTransfer(); data.setData('text', '\r\nFROM bills'); return e.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })) || true })(document.activeElement)`)
	b.until(`document.activeElement.matches('.ask textarea') && document.activeElement.value === 'SELECT *\nFROM bills;'`)
	b.write("one line")
	b.until(`document.activeElement.matches('.ask textarea') && document.activeElement.value === 'one line'`)
	b.tabTo("note")
	b.write("first")
	eval[bool](b, `document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', shiftKey: true, bubbles: true, cancelable: true })) || true`)
	b.until(`document.activeElement.matches('.ask textarea') && document.activeElement.value === 'first\n'`)
}

// TestVariantFields: what is missing in the chosen variant of a union is marked at its fields.
func TestVariantFields(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", `{"name":"good","inputSchema":{"type":"object","required":["note","who"],"properties":{"note":{"type":"string"},"who":{"oneOf":[{"title":"Person","type":"object","required":["age","height"],"properties":{"age":{"type":"integer"},"height":{"type":"integer"}}},{"title":"Firm","type":"object","required":["staff"],"properties":{"staff":{"type":"integer"}}}]}}}}`))
	b.choose("good")
	b.ctrl(enter)
	b.until(`[...document.querySelectorAll('.ask [aria-invalid=true]')].map(e => e.ariaLabelledByElements[0].innerText).join() === 'age *,height *'`)
	b.reads("2 problems")
	eval[bool](b, `(e => { e.value = '1'; e.dispatchEvent(new Event('change', { bubbles: true })); return true })(document.querySelector('.ask select'))`)
	b.until(`[...document.querySelectorAll('.ask [aria-invalid=true]')].map(e => e.ariaLabelledByElements[0].innerText).join() === 'staff *'`)
}

// TestMarked: a broken definition is marked in the list, and its form says what is wrong.
func TestMarked(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", `{"name":"fine","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object","required":"a"}},{"name":"b","inputSchema":{"type":"object","properties":{"x":{"type":"strin"}}}},{"name":"c","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/none"}}}},{"name":"d"}`))
	b.until(`[...document.querySelectorAll('nav li')].map(e => e.innerText.replace(/\s/g, '')).join() === 'fine2,a!,b!,c!,d!'`)
	for name, want := range map[string]string{"a": "/inputSchema/required: must be an array", "b": "/inputSchema/properties/x/type: must be one of", "c": "there is nothing at #/$defs/none", "d": "/inputSchema: is missing"} {
		eval[bool](b, `([...document.querySelectorAll('nav button[data-tool]')].find(e => e.querySelector('.one').innerText === `+quote(name)+`).click(), true)`)
		b.until(`document.querySelector('.ask h2').innerText === ` + quote(name) + ` && document.querySelector('.ask p.bad').innerText.includes(` + quote(want) + `)`)
	}
}

// TestAsks: a question names the call that asks, and a model is answered with a text, or
// with JSON a click away.
func TestAsks(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "asks"))
	b.choose("sample")
	b.ctrl(enter)
	b.until(`document.querySelector('.question strong')?.innerText === 'sample (call 1) asks a model'`)
	b.until(`document.activeElement === document.querySelector('.question textarea') && document.activeElement.value === ''`)
	b.press("It is \"sunny\".")
	toggle := `(document.querySelector('.question .quiet').click(), true)`
	eval[bool](b, toggle)
	b.until(`JSON.parse(document.querySelector('.question textarea').value).content.text === 'It is "sunny".'`)
	eval[bool](b, toggle) // back
	b.until(`document.querySelector('.question textarea').value === 'It is "sunny".'`)
	b.tabTo("Answer")
	b.press(enter)
	b.until(`document.querySelector('.result[data-state=done]')`)
	for _, want := range []string{`type: "text"`, `text: "It is \"sunny\"."`, `role: "assistant"`} {
		b.reads(want)
	}
}
