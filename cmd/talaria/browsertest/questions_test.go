package browsertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// inquiry is a request of a server during a call: what it asks, what the page shows of it, what a user does, and what the
// server gets then. A request that the page does not show has an error that begins so.
type inquiry struct{ method, params, shows, does, gets string }

// asksFor is a form with one member, p.
func asksFor(schema, required, shows, does, gets string) inquiry {
	return inquiry{"elicitation/create", `{"mode":"form","message":"Say what.","requestedSchema":{"type":"object","properties":{"p":` + schema + `}` + required + `}}`, shows, does, gets}
}

// must is a form whose member is required.
func must(schema, shows, does, value string) inquiry {
	return asksFor(schema, `,"required":["p"]`, shows, does, `{"action":"accept","content":{"p":`+value+`}}`)
}

// enters and takes are the expressions of what is entered and chosen in the question, and accepted.
func enters(text string) string {
	return `set(q.querySelector('.field :is(input, textarea)'), ` + quote(text) + `); await press('Accept')`
}
func takes(label string) string {
	return `const s = q.querySelector('.field select'); set(s, [...s.options].find(o => o.text === ` + quote(label) + `).value); await press('Accept')`
}

// adds takes each of some values of a list.
func adds(labels ...string) string {
	text, _ := json.Marshal(labels) // texts always encode
	return `for (const label of ` + string(text) + `) { await is(() => { const b = [...q.querySelectorAll('.field label')].find(e => e.innerText.trim() === label)?.querySelector('input'); return b && (b.checked || b.click(), b.checked) }) } await press('Accept')`
}

const (
	labelled = `q.querySelector('.field .label').innerText`
	hinted   = `q.querySelector('.field .head .dim')?.innerText`
	message  = `{"maxTokens":100,"messages":[{"role":"user","content":`
)

// questions are those, by the names of their tools. Each schema of elicitation is there (2025-11-25, client/elicitation).
var questions = map[string]inquiry{
	"text":           must(`{"type":"string"}`, labelled+` === 'p *'`, enters("one"), `"one"`),
	"empty text":     must(`{"type":"string"}`, "", `await press('Accept')`, `""`),
	"titled":         must(`{"type":"string","title":"Your name","description":"As on the bill"}`, labelled+` === 'Your name *' && q.innerText.includes('As on the bill')`, enters("Ann"), `"Ann"`),
	"length":         must(`{"type":"string","minLength":2,"maxLength":4}`, "", `set(q.querySelector('.field input'), 'a'); await press('Accept'); await is(() => q.querySelector('[aria-invalid=true]')); `+enters("abc"), `"abc"`),
	"pattern":        must(`{"type":"string","pattern":"^[A-Z]+$"}`, "", `set(q.querySelector('.field input'), 'a'); await press('Accept'); await is(() => q.querySelector('.bad')); `+enters("A"), `"A"`),
	"long":           must(`{"type":"string","maxLength":1000}`, `q.querySelector('.field textarea')`, enters("a\nb"), `"a\nb"`),
	"email":          must(`{"type":"string","format":"email"}`, hinted+`.includes('email')`, `set(q.querySelector('.field input'), 'nobody'); await press('Accept'); await is(() => q.querySelector('.bad')); `+enters("a@example.com"), `"a@example.com"`),
	"uri":            must(`{"type":"string","format":"uri"}`, hinted+`.includes('uri')`, enters("https://example.com/a"), `"https://example.com/a"`),
	"date":           must(`{"type":"string","format":"date"}`, `q.querySelector('input[type=date]')`, enters("2026-07-28"), `"2026-07-28"`),
	"date-time":      must(`{"type":"string","format":"date-time"}`, `q.querySelector('.field input').placeholder.includes('T')`, enters("2026-07-28T12:00:00Z"), `"2026-07-28T12:00:00Z"`),
	"default":        asksFor(`{"type":"string","default":"Ann"}`, "", `q.querySelector('.field input').value === 'Ann'`, `await press('Accept')`, `{"action":"accept","content":{"p":"Ann"}}`),
	"optional":       asksFor(`{"type":"string"}`, "", "", `await press('Accept')`, `{"action":"accept","content":{}}`),
	"integer":        must(`{"type":"integer","minimum":1,"maximum":9}`, hinted+` === '1..9'`, `set(q.querySelector('.field input'), '10'); await press('Accept'); await is(() => q.querySelector('.bad')); `+enters("9"), `9`),
	"number":         must(`{"type":"number"}`, "", enters("1.50"), `1.50`),
	"large":          must(`{"type":"integer"}`, "", enters("9007199254740993"), `9007199254740993`),
	"number default": asksFor(`{"type":"number","default":2.5}`, "", `q.querySelector('.field input').value === '2.5'`, `await press('Accept')`, `{"action":"accept","content":{"p":2.5}}`),
	"boolean":        must(`{"type":"boolean"}`, `q.querySelector('.field select').value === 'false'`, takes("true"), `true`),
	"true":           asksFor(`{"type":"boolean","default":true}`, "", `q.querySelector('.field select').value === 'true'`, `await press('Accept')`, `{"action":"accept","content":{"p":true}}`),
	"one of":         must(`{"type":"string","enum":["small","large"]}`, "", takes("large"), `"large"`),
	"one, titled":    must(`{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#00f","title":"Blue"}]}`, "", takes("Blue (#00f)"), `"#00f"`),
	"one, named":     must(`{"type":"string","enum":["a","b"],"enumNames":["First","Second"]}`, "", takes("Second (b)"), `"b"`),
	"one, default":   asksFor(`{"type":"string","enum":["a","b"],"default":"b"}`, "", `q.querySelector('.field select').value === '"b"'`, `await press('Accept')`, `{"action":"accept","content":{"p":"b"}}`),
	"some of":        must(`{"type":"array","items":{"type":"string","enum":["a","b","c"]}}`, "", adds("a", "c"), `["a","c"]`),
	"some, titled":   must(`{"type":"array","items":{"anyOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]}}`, "", adds("Green (#0f0)"), `["#0f0"]`),
	"some, bounds":   must(`{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]}}`, "", `await press('Accept'); await is(() => q.querySelector('.bad')); `+adds("b"), `["b"]`),
	"some, default":  asksFor(`{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["b"]}`, "", "", `await press('Accept')`, `{"action":"accept","content":{"p":["b"]}}`),
	"nothing":        {"elicitation/create", `{"message":"Go on?","requestedSchema":{"type":"object","properties":{}}}`, `q.innerText.includes('Go on?')`, `await press('Accept')`, `{"action":"accept","content":{}}`},
	"declined":       asksFor(`{"type":"string"}`, "", "", `await press('Decline')`, `{"action":"decline"}`),
	"cancelled":      asksFor(`{"type":"string"}`, "", "", `await press('Cancel')`, `{"action":"cancel"}`),
	"visit":          {"elicitation/create", `{"mode":"url","elicitationId":"1","message":"Sign in","url":"https://example.com/in"}`, `q.querySelector('a').href === 'https://example.com/in' && q.innerText.includes('example.com')`, `await press('Accept')`, `{"action":"accept"}`},
	"script":         {"elicitation/create", `{"mode":"url","elicitationId":"1","message":"Sign in","url":"javascript:alert(1)"}`, "", "", `{"code":-32602,"message":"params.url is not a page to visit: `},
	"password":       {"elicitation/create", `{"mode":"url","elicitationId":"1","message":"Sign in","url":"https://bank.example@evil.example/"}`, "", "", `{"code":-32602,"message":"params.url is not a page to visit: `},

	"sample":          {"sampling/createMessage", message + `{"type":"text","text":"How is the weather?"}}]}`, "", answers("Sunny."), `{"role":"assistant","content":{"type":"text","text":"Sunny."},"model":"a person","stopReason":"endTurn"}`},
	"system":          {"sampling/createMessage", message + `{"type":"text","text":"x"}}],"systemPrompt":"be brief"}`, `q.innerText.includes('System be brief')`, `await press('Refuse')`, `{"code":-1,"message":"the user refused"}`},
	"sample picture":  {"sampling/createMessage", message + `{"type":"image","mimeType":"image/png","data":"` + pixel + `"}}]}`, `q.querySelector('img').naturalWidth === 1`, `await press('Refuse')`, `{"code":-1,"message":"the user refused"}`},
	"sample sound":    {"sampling/createMessage", message + `{"type":"audio","mimeType":"audio/wav","data":"` + wav + `"}}]}`, `q.querySelector('audio')`, `await press('Refuse')`, `{"code":-1,"message":"the user refused"}`},
	"preferences":     {"sampling/createMessage", message + `{"type":"text","text":"x"}}],"modelPreferences":{"hints":[{"name":"small"}],"costPriority":0.3},"temperature":0.1,"stopSequences":["END"]}`, `['hints', 'small', 'costPriority', '0.3', 'END'].every(t => q.innerText.includes(t))`, `await press('Refuse')`, `{"code":-1,"message":"the user refused"}`},
	"sample tools":    {"sampling/createMessage", message + `{"type":"text","text":"x"}}],"tools":[{"name":"find_it","description":"Finds it","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}`, `q.innerText.includes('find_it') && q.innerText.includes('required')`, uses(), `{"role":"assistant","content":{"type":"tool_use","id":"call_1","name":"find_it","input":{"n":1}},"model":"a person","stopReason":"toolUse"}`},
	"sample results":  {"sampling/createMessage", `{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"find"}},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"find_it","input":{"n":1}}]},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"found it"}]}]}],"tools":[{"name":"find_it","inputSchema":{"type":"object"}}]}`, `q.innerText.includes('find_it') && q.innerText.includes('found it')`, answers("Done."), `{"role":"assistant","content":{"type":"text","text":"Done."},"model":"a person","stopReason":"endTurn"}`},
	"wrong answer":    {"sampling/createMessage", message + `{"type":"text","text":"x"}}]}`, "", `const json = [...q.querySelectorAll('button')].find(e => e.innerText === 'JSON'); json.click(); await is(() => q.querySelector('textarea').value.startsWith('{')); set(q.querySelector('textarea'), '{"role":"boss"}'); await press('Answer'); await is(() => q.querySelector('[role=alert]')); await press('Refuse')`, `{"code":-1,"message":"the user refused"}`},
	"several answers": {"sampling/createMessage", `{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"one"}},{"role":"assistant","content":{"type":"text","text":"two"}},{"role":"user","content":{"type":"text","text":"three"}}]}`, `[...q.querySelectorAll('.role')].map(e => e.innerText).join() === 'user,assistant,user'`, answers("4"), `{"role":"assistant","content":{"type":"text","text":"4"},"model":"a person","stopReason":"endTurn"}`},
}

// answers and uses are what a user says in the place of a model: a text, and a call of a tool.
func answers(text string) string {
	return `set(q.querySelector('textarea'), ` + quote(text) + `); await press('Answer')`
}
func uses() string {
	return `[...q.querySelectorAll('button')].find(e => e.innerText === 'JSON').click(); await is(() => q.querySelector('textarea').value.startsWith('{'));
		set(q.querySelector('textarea'), '{"role":"assistant","content":{"type":"tool_use","id":"call_1","name":"find_it","input":{"n":1}},"model":"a person","stopReason":"toolUse"}'); await press('Answer')`
}

// serveQuestions asks those whose method has a text.
func serveQuestions(s *server, method string) {
	s.asks = map[string]string{}
	var tools []string
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		q := questions[name]
		if strings.HasPrefix(q.method, method) {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
			s.asks[name] = fmt.Sprintf(`"method":%q,"params":%s`, q.method, q.params)
		}
	}
	s.tools = strings.Join(tools, ",")
}

// TestQuestions: what a server may ask is shown with a control for it, and the server gets what was entered.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"elicitation", "sampling"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			page := inspectPage(t, fixture(t, "asks", method))
			for _, name := range slices.Sorted(maps.Keys(questions)) {
				q := questions[name]
				if !strings.HasPrefix(q.method, method) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					b := page.in(t)
					b.until(`[...document.querySelectorAll('nav button[data-tool]')].some(e => e.querySelector('.one').textContent === ` + quote(name) + ` && (e.click(), true))`)
					b.until(`document.querySelector('.ask h2')?.innerText === ` + quote(name) + ` && !document.querySelector('.result') && (document.querySelector('.ask .primary').click(), true)`)
					const begin = `const q = document.querySelector('.question'), later = ms => new Promise(done => setTimeout(done, ms)),
						is = async f => { for (let n = 0; n < 300; n++) { try { if (f()) return } catch {} await later(20) } throw new Error(f + ' does not come true: ' + q.innerText) },
						set = (e, v) => { e.focus(); e.value = v; for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, { bubbles: true })) },
						press = async name => { await later(40); [...q.querySelectorAll('button')].find(e => e.innerText === name).click() }`
					if q.does != "" {
						b.until(`document.querySelector('.question')`)
						if q.shows != "" {
							b.soon(`(q => ` + q.shows + `)(document.querySelector('.question'))`)
						}
						if failed := eval[string](b, `(async () => { `+begin+`; try { `+q.does+` } catch (e) { return e.message + ': ' + q.innerText } return '' })()`); failed != "" {
							t.Fatal(failed)
						}
					}
					b.until(`document.querySelector('.result') && document.querySelector('.result').dataset.state !== 'running'`)
					got := eval[string](b, `[...document.querySelectorAll('.acts button')].find(e => e.innerText === 'Raw').click(), new Promise(done => setTimeout(() => done(JSON.parse(document.querySelector('.view').innerText).content[0].text), 50))`)
					if got != q.gets && (q.does != "" || !strings.HasPrefix(got, q.gets)) {
						t.Errorf("the server got %s, and not %s", got, q.gets)
					}
				})
			}
		})
	}
}
