package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestKilled: the last calls, what was typed and the tab come back at the same address,
// although neither the command nor its server had time to end.
func TestKilled(t *testing.T) {
	t.Parallel()
	testdep.LookPath(t, "chromium")
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bills")); err != nil {
		t.Fatal(err)
	}
	begin := func() *inspected { return inspectWith(t, talaria, dir, nil, "./bills -stdio") }
	first := begin()
	b := newTab(t)
	b.open(first.link)
	split(b)
	b.write("77")
	b.kept(dir, `\"people\":77`)
	first.kill()
	b.reads("talaria has ended")

	again := begin()
	at := func(link string) string { before, _, _ := strings.Cut(link, "#"); return before }
	if at(again.link) != at(first.link) {
		t.Fatalf("the page was at %s, and is at %s", first.link, again.link)
	}
	b.open(again.link) // in the tab, which has the key of the one before
	b.until(`document.querySelector('.dot.ready')`)
	b.until(`document.querySelector('.ask h2').innerText === 'split_bill'`)
	b.until(`[...document.querySelectorAll('.ask input')].map(e => e.value).join() === '100,77,'`)
	b.until(`document.querySelector('section[aria-label=Recent]').innerText.includes('split_bill')`)
	b.until(`document.querySelector('[data-state=done] table').innerText.includes('36.66')`)
	bar := `document.querySelector('.traffic .bar .num').innerText`
	if text := eval[string](b, bar); strings.Contains(text, "call") {
		t.Errorf("before the first call of this start, the bar says %q", text)
	}
	b.tabTo("people")
	b.ctrl(enter)
	b.until(`document.querySelectorAll('section[aria-label=Recent] li').length === 2`)
	b.until(bar + `.startsWith('1 call, ')`)
}

// kept waits until the history below a directory has a text.
func (b *tab) kept(dir, text string) {
	b.t.Helper()
	for range 2000 {
		files, _ := filepath.Glob(filepath.Join(dir, "talaria", "inspector", "*.json")) // of a good pattern
		for _, name := range files {
			if all, err := os.ReadFile(name); err == nil && strings.Contains(string(all), text) {
				return
			}
		}
		eval[bool](b, `new Promise(done => setTimeout(done, 15, true))`)
	}
	b.t.Fatalf("it is not kept: %s", text)
}
