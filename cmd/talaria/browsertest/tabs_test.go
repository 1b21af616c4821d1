package browsertest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTabs: any number of tabs of one browser show the page, with the link or without it,
// and none locks out another. Whoever uses the link in another browser does.
func TestTabs(t *testing.T) {
	t.Parallel()
	i := inspect(t, fixture(t, "good"))
	at, _, _ := strings.Cut(i.link, "#")
	first := newTab(t)
	first.open(i.link)
	first.until(`document.querySelector('.dot.ready')`)
	for name, address := range map[string]string{"the link again": i.link, "without the code": at, "a tool": at + "#tool=good"} {
		other := first.another()
		other.open(address)
		other.until(`document.querySelector('.dot.ready')`)
		if seen := eval[string](other, `location.href`); strings.Contains(seen, "k=") {
			t.Errorf("%s: the address is %s", name, seen)
		}
		other.until(`document.querySelector('.ask h2').innerText === 'good'`)
		other.ctrl(enter)
		other.until(`document.querySelector('.result[data-state=done]')`)
	}
	first.until(`document.querySelectorAll('section[aria-label=Recent] li').length === 3`) // of all tabs
	first.open("about:blank")
	first.open(i.link) // in the tab that had it
	first.until(`document.querySelector('.dot.ready')`)
	if said := i.stderr.String(); strings.Contains(said, "second time") {
		t.Errorf("the terminal says %s", said)
	}

	thief := newTab(t)
	thief.open(i.link)
	thief.reads("this link was used before, or is not whole")
	first.reads("The key of this page is not valid any more")
	fresh := links.FindAllString(i.stderr.String(), -1)
	if len(fresh) != 2 {
		t.Fatalf("the terminal says %s", i.stderr)
	}
	second := first.another() // of which the first tab gets the new key
	second.open(strings.TrimSpace(fresh[1]))
	second.until(`document.querySelector('.dot.ready')`)
	first.until(`!document.body.innerText.includes('not valid any more')`)
	first.until(`document.querySelector('.dot.ready')`)
}

// TestTabsWithWorker: no tab gives the key away where a worker of another program could
// receive it, even one that does not control the page.
func TestTabsWithWorker(t *testing.T) {
	t.Parallel()
	i := inspect(t, fixture(t, "good"))
	at, _, _ := strings.Cut(i.link, "#")
	b := newTab(t)
	b.open(i.link)
	b.until(`document.querySelector('.dot.ready')`)
	// As far as the tab can tell there is such a worker; a real one would have to be there first.
	eval[bool](b, `(navigator.serviceWorker.getRegistrations = async () => [{}], true)`)
	other := b.another()
	other.open(at)
	other.reads("Open the link that the terminal shows")
}

// TestRows: the traffic shows what an older server's refusal of the probe is, what
// notifications say, and the indentation of standard error.
func TestRows(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "says"))
	b.call("good")
	b.until(`document.querySelector('.result[data-state=done]')`)
	eval[bool](b, `(document.querySelector('.traffic button').click(), true)`)
	b.reads("slow query")
	for _, want := range []string{"warning", "db: slow query", "version negotiation", "    at run()"} {
		b.until(`[...document.querySelectorAll('.rows tr')].some(e => e.innerText.includes(` + quote(want) + `))`)
	}
	if n := eval[int](b, `document.querySelectorAll('.rows tr .bad').length`); n > 0 {
		t.Errorf("%d rows are marked as failures", n)
	}

	web := httptest.NewServer(http.HandlerFunc(legacyWeb))
	t.Cleanup(web.Close)
	b = inspectPage(t, web.URL+"/mcp")
	b.until(`document.querySelector('.dot.ready')`)
	b.do(chromedp.EmulateViewport(1440, 900))
	eval[bool](b, `(document.querySelector('.traffic button').click(), true)`)
	b.until(`[...document.querySelectorAll('.rows tr')].some(e => e.innerText.includes('version negotiation') && e.innerText.includes('400'))`)
	b.until(`[...document.querySelectorAll('.rows tr')].some(e => e.innerText.includes('tools/list') && e.innerText.includes('ok'))`)
	if n := eval[string](b, `[...document.querySelectorAll('.rows tr:has(.bad)')].map(e => e.innerText).join()`); n != "" {
		t.Errorf("these rows are marked as failures: %s", n)
	}
}
