package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/visible"
)

// maxRequests is how many requests the page makes from its start to the first result: the page, a style sheet, a script, the
// key, the state, the form, the call, and what it has come to. The official inspector 2.12.0 makes 22.
const maxRequests = 8

// TestRequests: the page asks for little, and its files are few enough to need no build.
func TestRequests(t *testing.T) {
	t.Parallel()
	i := inspect(t, fixture(t, "good"))
	b := newTab(t)
	var mu sync.Mutex
	var asked []string
	err := chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, e.Request.Method+" "+e.Request.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	b.open(i.link)
	b.choose("good")
	b.ctrl(enter)
	b.reads("done")
	mu.Lock()
	defer mu.Unlock()
	if len(asked) > maxRequests || len(asked) < 6 {
		t.Errorf("%d requests: %q", len(asked), asked)
	}
}

// TestListChanged: a list that has changed is shown, and so is the form that is open,
// with what was typed into it.
func TestListChanged(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "grows"))
	b.choose("good")
	b.write("milk")
	b.ctrl(enter)
	b.until(`document.querySelector('section[aria-label=Tools] h2').textContent.startsWith('Tools 1 of 2')`)
	b.until(`[...document.querySelectorAll('.field .label')].some(e => e.innerText === 'more')`)
	if got := eval[string](b, `document.activeElement.value + ' ' + document.querySelector('.result').dataset.state`); got != "milk done" {
		t.Errorf("the form has %q", got)
	}
}

// TestRestless: a list that changes all the time says so, and its tools can be called.
func TestRestless(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "restless"))
	b.until(`document.querySelector('section[aria-label=Tools]').innerText.includes('changes constantly')`)
	b.call("good")
	b.until(`document.querySelector('[data-state=done]')`)
}

// TestUnkept: why calls are not kept is said where they would be.
func TestUnkept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "talaria"), nil, 0o600); err != nil { // where a folder has to be
		t.Fatal(err)
	}
	testdep.LookPath(t, "chromium")
	i := inspectWith(t, talaria, dir, nil, fixture(t, "good"))
	b := newTab(t)
	b.open(i.link)
	b.until(`document.querySelector('section[aria-label=Recent]').innerText.includes('calls are not kept')`)
}

// TestDropped: how many messages were not kept is said where they would be.
func TestDropped(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "good"))
	b.until(`document.querySelector('nav button[data-tool]')`)
	eval[bool](b, `(() => {
		const plain = fetch
		window.fetch = async (at, how) => {
			const r = await plain(at, how)
			return at.startsWith('/api/traffic?') ? Response.json({ ...await r.json(), dropped: 4321 }) : r
		}
		return true
	})()`)
	b.tabTo("Traffic")
	b.press(enter)
	b.reads("4321 messages dropped")
}

// TestSeen: what a server says is shown as the program shows it, wherever it is.
func TestSeen(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "odd"))
	b.call("good")
	b.until(`document.querySelector('[data-state=done]')`)
	for _, view := range []string{"Table", "Tree", "Content", "Raw"} {
		b.tabTo(view)
		b.press(enter)
		b.until(`document.querySelector('.view[aria-label=` + view + `]')`)
		text := eval[string](b, `document.body.innerText`)
		if strings.ContainsAny(text, "\u202e\u200b\u0007\u00ad") || !strings.Contains(text, "pay") {
			t.Errorf("%s: %q", view, text)
		}
	}
	for _, text := range []string{"plain", "a\tb\r\nc\rd", "pay\u202enoisrev\u2066x", "\u200dx\u200d", "👩\u200d👧 می\u200cخواهم", "\u200c\u200c", "x \ufe0f ❤\ufe0f", "\u0000\u001b[31m\u007f\u0085",
		"\u2028\u2029\u00ad\u3164\U000e0041\U000e0100", "a\u200d\ufe0f", "ü\u034f😀"} {
		got := eval[string](b, `import(document.querySelector('script').src).then(m => m.seen(`+quote(text)+`))`)
		if want := visible.Text(text, 0); got != want {
			t.Errorf("%+q is seen as %+q, and by the program as %+q", text, got, want)
		}
		var same string
		shown := eval[string](b, `import(document.querySelector('script').src).then(m => m.seenJSON(`+quote(quote(text))+`))`)
		if err := json.Unmarshal([]byte(shown), &same); err != nil || same != text {
			t.Errorf("%+q is seen as %s in JSON: %v", text, shown, err)
		}
	}
}

// TestFirstType: of a value that has one of several types, the first one of the schema is chosen.
func TestFirstType(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", `{"name":"good","inputSchema":{"type":"object","required":["a","b"],"properties":{"a":{"type":["boolean","string"]},"b":{"type":["integer","string"]}}}}`))
	b.until(`[...document.querySelectorAll('.ask select')].map(e => e.selectedOptions[0].innerText).join().startsWith('boolean') && document.querySelectorAll('.ask select').length > 1`)
	if got := eval[string](b, `[...document.querySelectorAll('.ask select')].map(e => e.selectedOptions[0].innerText).join()`); !strings.Contains(got, "number") || strings.Contains(got, "string") {
		t.Errorf("chosen are %s", got)
	}
}
