package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The bounds of the traffic: the rows that are drawn, and for how long the page works
// at one key, in seconds.
const (
	maxRows = 60
	maxWork = 0.1
)

// TestJumps: whoever jumps through 50,000 messages waits for no task of more than 100
// ms, and never has more than 60 rows. What is measured is the time of the processor that
// the page's thread takes for all tasks of a key together, with the driver's own: others
// on the machine add nothing to it, as they do to the length of a task.
func TestJumps(t *testing.T) {
	t.Parallel()
	const messages = 50_000
	file := filepath.Join(t.TempDir(), "many.jsonl")
	var text []byte
	for n := range messages {
		text = fmt.Appendf(text, `{"at":"2026-07-28T10:00:00Z","dir":"in","conn":"1","text":"{\"jsonrpc\":\"2.0\",\"method\":\"row/%d\",\"params\":{\"of\":\"an import\"}}"}`+"\n", n+1)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b := inspectPage(t, "--file", file)
	b.reads(fmt.Sprintf("%d messages", messages))
	if _, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
	eval[bool](b, `(() => {
		window.rows = 0
		const count = () => { window.rows = Math.max(window.rows, document.querySelectorAll('.rows tbody tr').length) }
		new MutationObserver(count).observe(document, { childList: true, subtree: true })
		count()
		return true
	})()`)
	b.tabTo("Messages")
	for n, jump := range []struct {
		key string
		row int // the newest that is drawn then
	}{
		{kb.End, maxRows}, {kb.PageUp, 2 * maxRows}, {kb.PageDown, maxRows}, {kb.Home, messages}, {kb.PageDown, messages - maxRows}, {kb.PageDown, messages - 2*maxRows},
		{kb.PageUp, messages - maxRows}, {kb.PageUp, messages}, {kb.End, maxRows}, {kb.PageUp, 2 * maxRows}, {kb.Home, messages},
	} {
		eval[bool](b, fmt.Sprintf(`document.querySelector('.rows').scrollTop = %t ? 1e9 : 0, true`, jump.key == kb.PageDown)) // until there it scrolls
		before := b.busy()
		b.press(jump.key)
		b.until(fmt.Sprintf(`document.querySelector('.rows button').innerText === '← row/%d'`, jump.row))
		took := b.busy() - before
		t.Logf("jump %d, to row %d: %.0f ms", n, jump.row, 1000*took)
		if took > maxWork {
			t.Errorf("jump %d, to row %d: the page works for %.0f ms", n, jump.row, 1000*took)
		}
	}
	if n := eval[int](b, `window.rows`); n > maxRows || n < maxRows/2 {
		t.Errorf("%d rows were drawn", n)
	}
}
