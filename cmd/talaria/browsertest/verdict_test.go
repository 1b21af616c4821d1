package browsertest

import (
	"strings"
	"testing"
)

// refusedTools are tools that some hosts do not accept, one that is broken, and one that
// all accept.
const refusedTools = `{"name":"notes.find","description":"Finds notes by a part of their name, the newest first.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"q":{"type":["string","null"],"description":"a part of the name"},"limit":{"type":"integer","minimum":1,"maximum":50}}}},` +
	`{"name":"notes_find","inputSchema":{"type":"object","properties":{"when":{"type":"string","pattern":"^\\d+$"}}}},` +
	`{"name":"bad","description":5,"inputSchema":{"type":"object"}},` +
	`{"name":"typed","description":"Has a result.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object"}},` +
	`{"name":"good","description":"Takes a note.","annotations":{"readOnlyHint":false,"destructiveHint":false},"inputSchema":{"type":"object","properties":{"note":{"type":"string","description":"what it says"}}}}`

// openCheck opens the verdict of the server.
func openCheck(b *tab) {
	b.until(`[...document.querySelectorAll('header button')].some(e => e.innerText.startsWith('Check'))`)
	eval[bool](b, `([...document.querySelectorAll('header button')].find(e => e.innerText.startsWith('Check')).click(), true)`)
	b.until(`document.querySelector('.check .rule, .check p.num')`)
}

// TestVerdict: the head and the list count, the verdict names member, reason and fix, and
// leads to the member, where its place is marked.
func TestVerdict(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", refusedTools))
	b.until(`document.querySelector('nav [aria-label="2 findings"]')`)
	b.pick("typed")
	b.ctrl(enter)
	b.reads("has no structuredContent")
	openCheck(b)
	for _, want := range []string{"1 broken definition, 1 invalid result", "Check 7", "name-alike", "Claude Desktop and claude.ai drop all tools of the server", "Fix: write anyOf.", "notes.find /properties/q",
		"description is a number and must be a string", "has no structuredContent, which a tool with an outputSchema must return", "5 tools, about"} {
		b.reads(want)
	}
	eval[bool](b, `(document.querySelector(".check .as input").focus(), true)`)
	b.write(strings.Repeat("x", 60))
	b.reads("mcp__" + strings.Repeat("x", 60) + "__good has 71 characters")
	eval[bool](b, `([...document.querySelectorAll('.check .members button')].find(e => e.innerText.includes('/properties/q')).click(), true)`)
	b.until(`document.querySelector('[aria-label=Definition] .place')?.innerText.includes('"q": {')`)
	b.reads("type-list /properties/q")
	openCheck(b)
	eval[bool](b, `([...document.querySelectorAll('.check .members button')].find(e => e.innerText === 'bad').click(), true)`)
	b.until(`document.querySelector('.ask h2')?.innerText === 'bad'`)

	good := inspectPage(t, fixture(t, "raw", refusedTools[strings.LastIndex(refusedTools, `{"name":"good"`):]))
	openCheck(good)
	good.reads("Every host accepts the tool.")
}
