package browsertest

import (
	"fmt"
	"strings"
	"testing"
)

// Pictures and a sound of the smallest size.
const (
	gif  = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
	webp = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
	svg  = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSIzIiBoZWlnaHQ9IjMiLz4="
	wav  = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="
)

// ended is an answer to a call: a result, or an error.
type ended struct{ name, answer, output, state, so string }

// content is a result of one item.
func content(item string) string { return `"result":{"content":[` + item + `]}` }

func media(kind, mime, data string) string {
	return content(`{"type":"` + kind + `",` + mime + `"data":"` + data + `"}`)
}

func embedded(of string) string { return content(`{"type":"resource","resource":{` + of + `}}`) }

// The expressions of what is seen: a picture that is drawn, a text of the view, and a fault.
func drawn(pixels int) string {
	return fmt.Sprintf(`document.querySelector('.view img').naturalWidth === %d`, pixels)
}
func seen(text string) string {
	return `document.querySelector('.view').innerText.includes(` + quote(text) + `)`
}
func wrong(text string) string {
	return `[...document.querySelectorAll('.result .bad')].some(e => e.innerText.includes(` + quote(text) + `))`
}

const object = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"of":{"type":"array","items":{"enum":["a","b"]}}},"additionalProperties":false}`

// endings are what calls come to, by kind.
var endings = map[string][]ended{
	"image": {
		{"png", media("image", `"mimeType":"image/png",`, pixel), "", "done", drawn(1)},
		{"gif", media("image", `"mimeType":"image/gif",`, gif), "", "done", drawn(1)},
		{"webp", media("image", `"mimeType":"image/webp",`, webp), "", "done", drawn(1)},
		{"svg", media("image", `"mimeType":"image/svg+xml",`, svg), "", "done", drawn(3)},
		{"upper", media("image", `"mimeType":"IMAGE/SVG+XML",`, svg), "", "done", drawn(3)},
		{"parameter", media("image", `"mimeType":"image/svg+xml; charset=utf-8",`, svg), "", "done", drawn(3)},
		{"lines", media("image", `"mimeType":"image/png",`, pixel[:20]+`\n`+pixel[20:]), "", "done", drawn(1)},
		{"truncated", media("image", `"mimeType":"image/png",`, pixel[:40]), "", "done", wrong("The browser cannot show this image (image/png, 30 bytes).")},
		{"empty", media("image", `"mimeType":"image/png",`, ""), "", "done", wrong("cannot show this image (image/png, 0 bytes)")},
		{"no picture", media("image", `"mimeType":"text/html",`, "PGI+eDwvYj4="), "", "done", wrong("cannot show this image (text/html, 8 bytes)")},
		{"no type", media("image", ``, pixel), "", "invalid", wrong("mimeType")},
		{"url alphabet", media("image", `"mimeType":"image/png",`, "_-_-"), "", "invalid", wrong("base64")},
		{"many", `"result":{"content":[` + strings.Repeat(`{"type":"image","mimeType":"image/png","data":"`+pixel+`"},`, 11) + `{"type":"text","text":"twelve"}]}`, "", "done", `document.querySelectorAll('.view img').length === 11`},
	},
	"audio": {
		{"wav", media("audio", `"mimeType":"audio/wav",`, wav), "", "done", `document.querySelector('.view audio').src.startsWith('blob:') && !document.querySelector('.view .bad')`},
		{"x-wav", media("audio", `"mimeType":"audio/x-wav",`, wav), "", "done", `document.querySelector('.view a').download === 'x-wav.wav'`},
		{"noise", media("audio", `"mimeType":"audio/mpeg",`, "AAAA"), "", "done", wrong("cannot show this audio (audio/mpeg, 3 bytes)")},
		{"silent", media("audio", `"mimeType":"audio/wav",`, ""), "", "done", wrong("cannot show this audio")},
		{"untyped", media("audio", ``, wav), "", "invalid", wrong("mimeType")},
		{"not base64", media("audio", `"mimeType":"audio/wav",`, "%%"), "", "invalid", wrong("base64")},
		{"a film", media("audio", `"mimeType":"video/mp4",`, "AAAA"), "", "done", wrong("cannot show this audio (video/mp4, 3 bytes)")},
		{"blob", embedded(`"uri":"x://a.wav","mimeType":"audio/wav","blob":"` + wav + `"`), "", "done", `document.querySelector('.view audio')`},
		{"named", embedded(`"uri":"x://songs/one%20two.wav","mimeType":"audio/wav","blob":"` + wav + `"`), "", "done", `document.querySelector('.view a').download === 'one_two.wav'`},
		{"beside a text", `"result":{"content":[{"type":"text","text":"listen"},{"type":"audio","mimeType":"audio/wav","data":"` + wav + `"}]}`, "", "done", `document.querySelector('.view audio') && ` + seen("listen")},
	},
	"embedded": {
		{"json", embedded(`"uri":"x://a","mimeType":"application/json","text":"[{\"who\":\"Ann\"}]"`), "", "done", `document.querySelector('.view td').innerText === 'Ann'`},
		{"vendor json", embedded(`"uri":"x://a","mimeType":"application/vnd.api+json","text":"{\"k\":{\"deep\":1}}"`), "", "done", `document.querySelector('.view [role=tree]')`},
		{"broken json", embedded(`"uri":"x://a","mimeType":"application/json","text":"{\"k\":"`), "", "done", seen(`{"k":`)},
		{"markdown", embedded(`"uri":"x://a.md","mimeType":"text/markdown; charset=utf-8","text":"# Title\n**bold**"`), "", "done", `document.querySelector('.view [role=heading]').innerText === 'Title' && document.querySelector('.view strong')`},
		{"html", embedded(`"uri":"x://a.html","mimeType":"text/html","text":"<b id=evil>x</b>"`), "", "done", seen("<b id=evil>x</b>") + ` && !document.getElementById('evil')`},
		{"csv", embedded(`"uri":"x://a.csv","mimeType":"text/csv","text":"a,b\n1,2"`), "", "done", seen("a,b\n1,2")},
		{"untyped", embedded(`"uri":"x://a/readme","text":"plain"`), "", "done", seen("plain") + ` && document.querySelector('.view [data-name="readme.txt"]')`},
		{"no text", embedded(`"uri":"x://a.txt","text":""`), "", "done", `document.querySelector('.view [data-name="a.txt"]')`},
		{"picture", embedded(`"uri":"x://a.png","mimeType":"image/png","blob":"` + pixel + `"`), "", "done", drawn(1)},
		{"pdf", embedded(`"uri":"x://a.pdf","mimeType":"application/pdf","blob":"AAAA"`), "", "done", `document.querySelector('.view a').download === 'a.pdf'`},
		{"neither", embedded(`"uri":"x://a"`), "", "invalid", wrong("text or")},
		{"nowhere", embedded(`"text":"x"`), "", "invalid", wrong("uri")},
		{"annotated", content(`{"type":"resource","annotations":{"audience":["user"],"priority":0.5},"resource":{"uri":"x://a","text":"for you","_meta":{"a":1}}}`), "", "done", seen("for you")},
	},
	"link": {
		{"plain", content(`{"type":"resource_link","uri":"x://rules","name":"rules"}`), "", "done", seen("rules")},
		{"titled", content(`{"type":"resource_link","uri":"x://rules","name":"rules","title":"The rules","description":"Who pays\nwhat."}`), "", "done", seen("The rules") + " && " + seen("Who pays\nwhat.")},
		{"of no size", content(`{"type":"resource_link","uri":"x://rules","name":"rules","size":0}`), "", "done", seen("0 bytes")},
		{"of one byte", content(`{"type":"resource_link","uri":"x://rules","name":"rules","size":1}`), "", "done", seen("1 byte") + ` && !` + seen("1 bytes")},
		{"of a size", content(`{"type":"resource_link","uri":"x://rules","name":"rules","mimeType":"text/csv","size":9007199254740993}`), "", "done", seen("text/csv, 9007199254740993 bytes")},
		{"with icons", content(`{"type":"resource_link","uri":"x://rules","name":"rules","icons":[{"src":"https://example.com/x.png"}]}`), "", "done", seen("rules") + ` && !document.querySelector('.view img')`},
		{"nameless", content(`{"type":"resource_link","uri":"x://rules"}`), "", "invalid", wrong("name")},
		{"nowhere", content(`{"type":"resource_link","name":"rules"}`), "", "invalid", wrong("uri")},
		{"of the web", content(`{"type":"resource_link","uri":"https://example.com/a","name":"page"}`), "", "done", seen("https://example.com/a") + ` && !document.querySelector('.view a')`},
		{"a script", content(`{"type":"resource_link","uri":"javascript:alert(1)","name":"run"}`), "", "done", seen("javascript:alert(1)") + ` && !document.querySelector('.view a')`},
		{"a hundred", content(strings.TrimSuffix(strings.Repeat(`{"type":"resource_link","uri":"x://rules","name":"rules"},`, 100), ",")), "", "done", `document.querySelectorAll('.view .linked').length === 50 && ` + seen("of 100 parts")},
		{"read", content(`{"type":"resource_link","uri":"x://picture","name":"picture"}`), "", "done", `(document.querySelector('.linked button').disabled || document.querySelector('.linked img') || document.querySelector('.linked button').click(), ` + drawn(1) + `)`},
	},
	"structured": {
		{"fits", `"result":{"content":[],"structuredContent":{"n":1,"of":["a"]}}`, object, "done", `document.querySelector('.result').innerText.includes('matches its output schema')`},
		{"lacks", `"result":{"content":[],"structuredContent":{"of":[]}}`, object, "invalid", wrong("/n: is required")},
		{"text", `"result":{"content":[],"structuredContent":{"n":"1"}}`, object, "invalid", wrong("/n: ")},
		{"half", `"result":{"content":[],"structuredContent":{"n":1.5}}`, object, "invalid", wrong("/n: ")},
		{"other value", `"result":{"content":[],"structuredContent":{"n":1,"of":["a","c"]}}`, object, "invalid", wrong("/of/1: ")},
		{"more", `"result":{"content":[],"structuredContent":{"n":1,"m":2}}`, object, "invalid", wrong("m")},
		{"null", `"result":{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, object, "invalid", wrong("structuredContent")},
		{"absent", `"result":{"content":[{"type":"text","text":"{\"n\":1}"}]}`, object, "invalid", wrong("structuredContent")},
		{"many faults", `"result":{"content":[],"structuredContent":{"n":"x","of":["c","d","e"]}}`, object, "invalid", `document.querySelectorAll('.result ul.bad li').length === 4`},
		{"failed", `"result":{"isError":true,"content":[{"type":"text","text":"no luck"}]}`, object, "failed", seen("no luck") + ` && !document.querySelector('.result').innerText.includes('output schema')`},
		{"failed and wrong", `"result":{"isError":true,"content":[{"type":"text","text":"no luck"}],"structuredContent":{"n":"x"}}`, object, "failed", wrong("/n: ")},
		{"unasked", `"result":{"content":[],"structuredContent":{"free":[1,2]}}`, "", "done", `document.querySelector('.view [role=tree]')`},
		{"differs", `"result":{"content":[{"type":"text","text":"{\"n\":2}"}],"structuredContent":{"n":1}}`, object, "done", `document.querySelector('.view').innerText.includes('n: 1')`},
	},
	"error": {
		{"tool", `"result":{"isError":true,"content":[{"type":"text","text":"disk\n  full"}]}`, "", "failed", seen("disk\n  full")},
		{"mute", `"result":{"isError":true,"content":[]}`, "", "failed", `document.querySelector('.view').ariaLabel === 'Raw'`},
		{"json", `"result":{"isError":true,"content":[{"type":"text","text":"{\"code\":7,\"why\":{\"at\":\"x\"}}"}]}`, "", "failed", `document.querySelector('.view [role=tree]')`},
		{"picture", `"result":{"isError":true,"content":[{"type":"image","mimeType":"image/png","data":"` + pixel + `"}]}`, "", "failed", drawn(1)},
		{"params", `"error":{"code":-32602,"message":"n must be a number"}`, "", "error", `document.querySelector('.result .failure').innerText.includes('n must be a number') && document.querySelector('.result .failure').innerText.includes('-32602')`},
		{"internal", `"error":{"code":-32603,"message":"Internal error","data":{"trace":["a","b"]}}`, "", "error", `document.querySelector('.result .failure pre').innerText.includes('"trace": [')`},
		{"own code", `"error":{"code":4711,"message":"sold out","data":"try tomorrow"}`, "", "error", `document.querySelector('.result .failure').innerText.includes('"try tomorrow"')`},
		{"lines", `"error":{"code":-32000,"message":"first\n  second"}`, "", "error", `document.querySelector('.result .failure p').innerText.includes('first\n  second')`},
		{"controls", `"error":{"code":-32000,"message":"a\u001b[31mred\u202e"}`, "", "error", `!/[\x1b\u202e]/.test(document.body.innerText) && document.querySelector('.result .failure').innerText.includes('[31mred')`},
		{"without a text", `"error":{"code":-32000}`, "", "error", `document.querySelector('.result .failure p').innerText.trim() !== ''`},
		{"long", `"error":{"code":-32000,"message":"` + strings.Repeat("too long ", 2000) + `"}`, "", "error", `document.querySelector('.result .failure').innerText.length < 6000`},
		{"unknown", `"error":{"code":-32601,"message":"Method not found"}`, "", "error", `document.querySelector('.result .failure').innerText.includes('Method not found')`},
	},
}

// serveEndings answers with those of a kind.
func serveEndings(s *server, kind string) {
	s.also, s.answers = `,"resources":{}`, map[string]string{"resources/read x://picture": `{"jsonrpc":"2.0","id":$id,"result":{"contents":[{"uri":"x://picture","mimeType":"image/png","blob":"` + pixel + `"}]}}`}
	var tools []string
	for _, e := range endings[kind] {
		output := ""
		if e.output != "" {
			output = `,"outputSchema":` + e.output
		}
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}%s}`, e.name, output))
		s.answers["tools/call "+e.name] = `{"jsonrpc":"2.0","id":$id,` + e.answer + `}`
	}
	s.tools = strings.Join(tools, ",")
}

// calls chooses a tool and calls it, and returns how the call ended.
func (b *tab) calls(name string) (state string) {
	b.t.Helper()
	b.until(`[...document.querySelectorAll('nav button[data-tool]')].some(e => e.querySelector('.one').textContent === ` + quote(name) + ` && (e.click(), true))`)
	b.until(`document.querySelector('.ask h2')?.innerText === ` + quote(name) + ` && !document.querySelector('.result') && (document.querySelector('.ask .primary').click(), true)`)
	b.until(`document.querySelector('.result') && document.querySelector('.result').dataset.state !== 'running'`)
	return eval[string](b, `document.querySelector('.result').dataset.state`)
}

// TestEndings: each kind of result is shown as what it is, and what is wrong with it is said.
func TestEndings(t *testing.T) {
	t.Parallel()
	for kind, list := range endings {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			page := inspectPage(t, fixture(t, "endings", kind))
			for _, e := range list {
				t.Run(e.name, func(t *testing.T) {
					b := page.in(t)
					if state := b.calls(e.name); state != e.state {
						t.Errorf("it is %s, and not %s: %s", state, e.state, eval[string](b, `document.querySelector('.result').innerText`))
					}
					b.soon(e.so)
				})
			}
		})
	}
}

// soon waits a while for an expression, and says what is seen where it does not come true.
func (b *tab) soon(so string) {
	b.t.Helper()
	if !eval[bool](b, `(async () => { for (let n = 0; n < 300; n++) { try { if (`+so+`) return true } catch {} await new Promise(done => setTimeout(done, 20)) } return false })()`) {
		b.t.Errorf("%s: not in %s", so, eval[string](b, `document.querySelector('.side')?.innerText ?? document.body.innerText`))
	}
}
