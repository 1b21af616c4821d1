package browsertest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

var much = flag.Bool("much", false, "tell how long the page takes for much, in TestMuch")

// muchText is an object or a text of about 6 MB, as JSON.
func muchText(name string) string {
	switch name {
	case "rows":
		var rows []string
		for n := range 40_000 {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"person %d","street":"%s","paid":%t,"none":null}`, n, n, strings.Repeat("long way ", 9), n%2 == 0))
		}
		return `{"rows":[` + strings.Join(rows, ",") + `]}`
	case "tree":
		var rows []string
		for n := range 30_000 {
			rows = append(rows, fmt.Sprintf(`"key %d":{"of":{"name":"person %d","list":[%d,2,{"street":"%s"}]}}`, n, n, n, strings.Repeat("long way ", 14)))
		}
		return `{` + strings.Join(rows, ",") + `}`
	}
	return strings.Repeat("2026-07-28 INFO a line of a log that is of no use, \\\"quoted\\\" ä 日本\\n", 90_000)
}

// serveMuch answers with that, and logs.
func serveMuch(s *server) {
	s.also, s.answers = `,"logging":{}`, map[string]string{}
	for _, name := range []string{"rows", "tree", "text"} {
		s.tools += `{"name":"` + name + `","inputSchema":{"type":"object"}},`
		text := muchText(name)
		if name == "text" {
			s.answers["tools/call text"] = `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`
		} else {
			s.answers["tools/call "+name] = `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":` + quote(text) + `}]}}`
		}
	}
	var logs strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&logs, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"import","data":"row %d of an import"}}`+"\n", n)
	}
	s.answers["tools/call logs"] = logs.String() + `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"done"}]}}`
	s.tools += `{"name":"logs","inputSchema":{"type":"object"}}`
}

// TestLong: 6 MB are drawn in few elements, and scroll to their end.
func TestLong(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "much"))
	few := func(what string) {
		t.Helper()
		if n := eval[int](b, `document.querySelectorAll('*').length`); n > 5000 {
			t.Errorf("%s: %d elements", what, n)
		}
	}
	for name, view := range map[string]string{"rows": ".view table", "tree": ".view [role=tree]", "text": ".view .lines"} {
		b.call(name)
		b.until(`document.querySelector('[data-state=done] ` + view + `')`)
		few(name)
		if name != "text" {
			eval[bool](b, `([...document.querySelectorAll('.acts [role=group] button')].find(e => e.innerText === 'Content').click(), true)`)
		}
		b.until(`document.querySelector('.view .lines')`)
		few(name + " in lines")
		last := map[string]string{"rows": "]\n}", "tree": "}\n}", "text": "日本"}[name]
		eval[bool](b, `(e => (e.scrollTop = e.scrollHeight, true))(document.querySelector('.lines'))`)
		b.until(`document.querySelector('.lines').innerText.trim().endsWith(` + quote(last) + `)`)
		few(name + " at their end")
		b.wide()
	}
}

// TestMuch prints how long the page takes for much: in milliseconds, the median of nine. The time of the processor
// that the page's thread takes does not depend on what else the machine does.
func TestMuch(t *testing.T) {
	if !*much {
		t.Skip("-much is not set; CONTRIBUTING.md has the command")
	}
	measure := func(b *tab, what, expression string) {
		t.Helper()
		if _, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
			t.Fatal(err)
		}
		var all, busy []float64
		for range 9 {
			before := b.busy()
			all = append(all, eval[float64](b, expression))
			busy = append(busy, 1000*(b.busy()-before))
		}
		slices.Sort(all)
		slices.Sort(busy)
		fmt.Fprintf(os.Stderr, "%-30s %6.0f ms, %6.0f ms of the processor for the page\n", what, all[len(all)/2], busy[len(busy)/2])
	}
	const filter = `new Promise(done => {
		const box = document.getElementById('filter'), at = performance.now(), before = document.querySelector('nav').textContent
		box.value = box.value === 'tool_11' ? '' : 'tool_11'
		box.dispatchEvent(new Event('input', { bubbles: true }))
		const look = () => document.querySelector('nav').textContent === before ? setTimeout(look) : requestAnimationFrame(() => setTimeout(() => done(performance.now() - at)))
		look()
	})`
	var tools []string
	for n := range 330 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"%s","inputSchema":{"type":"object"}}`, n, strings.Repeat("It does this and that. ", 10)))
	}
	b := inspectPage(t, fixture(t, "raw", strings.Join(tools, ",")))
	b.until(`document.querySelectorAll('nav button[data-tool]').length > 100`)
	measure(b, "filter of 330 tools", filter)

	b = inspectPage(t, fixture(t, "much"))
	for name, view := range map[string]string{"rows": "table", "tree": "[role=tree]", "text": ".lines"} {
		b.choose(name)
		measure(b, "6 MB as "+view, `new Promise(done => {
			const at = performance.now(), before = document.querySelector('.result')?.ariaLabel
			document.querySelector('.primary').click()
			const look = () => document.querySelector('.result')?.ariaLabel !== before && document.querySelector('[data-state=done] .view `+view+`') ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - at))) : setTimeout(look)
			look()
		})`)
	}
	measure(b, "6 MB scrolls", `new Promise(done => {
		const e = document.querySelector('.lines'), at = performance.now()
		e.scrollTop = e.scrollTop > 1e4 ? 0 : e.scrollHeight / 2
		requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(performance.now() - at))))
	})`)
	b.choose("logs")
	eval[bool](b, `(window.longest = 0, new PerformanceObserver(l => { for (const e of l.getEntries()) longest = Math.max(longest, e.duration) }).observe({ entryTypes: ['longtask'] }), document.activeElement.blur(), true)`)
	b.press("t")
	b.until(`document.querySelector('.rows')`)
	measure(b, "longest pause of 2,000 logs", `new Promise(done => {
		longest = 0
		const count = () => +/(\d+) messages/.exec(document.querySelector('.traffic .bar').innerText)[1], before = count()
		document.querySelector('.primary').click()
		const look = () => count() >= before + 2000 ? setTimeout(() => done(longest), 300) : setTimeout(look, 20)
		look()
	})`)
}
