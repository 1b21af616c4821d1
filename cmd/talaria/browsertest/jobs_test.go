package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp/internal/needs"
)

// billsPage opens the page of the server that works, in a window of that width, and
// returns the server's directory.
func billsPage(t *testing.T, width int64, files ...string) (*tab, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		write(t, dir, name)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bills")); err != nil {
		t.Fatal(err)
	}
	needs.Program(t, "chromium")
	i := inspectWith(t, talaria, dir, nil, "./bills -stdio")
	b := newTab(t)
	b.open(i.link)
	b.do(chromedp.EmulateViewport(width, 800))
	return b, dir
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// split fills the form of split_bill in.
func (b *tab) split(total, people string) {
	b.t.Helper()
	b.until(`document.querySelector('nav button[data-tool]')`)
	b.find("split_bill")
	b.write(total)
	b.tabTo("people")
	b.write(people)
}

// TestJobs: what people do with an inspector, without a mouse, on a wide screen and
// on a narrow one.
func TestJobs(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 320} {
		for _, job := range []struct {
			name string
			do   func(t *testing.T, width int64)
		}{
			{"it does not start, why", doesNotStart},
			{"what does the model see", modelSees},
			{"again with one thing changed", oneThingChanged},
			{"what went over the wire, and what did it log then", overTheWire},
			{"I saved the file, reload", savedTheFile},
			{"a question is answered", answersQuestion},
		} {
			t.Run(fmt.Sprintf("%s at %d", job.name, width), func(t *testing.T) {
				t.Parallel()
				job.do(t, width)
			})
		}
	}
}

func doesNotStart(t *testing.T, width int64) {
	b, dir := billsPage(t, width, "broken")
	b.reads("exit status 1")
	b.reads("no such table: bills")
	if err := os.Remove(filepath.Join(dir, "broken")); err != nil {
		t.Fatal(err)
	}
	b.tabTo("Try again")
	b.press(enter)
	b.until(`document.querySelector('.dot.ready')`)
}

func modelSees(t *testing.T, width int64) {
	b, _ := billsPage(t, width)
	b.choose("split_bill")
	b.tabTo("What the model sees")
	b.press(enter)
	b.reads("tokens")
	b.reads(`"the bill, in any currency"`)
	b.wide()
}

func oneThingChanged(t *testing.T, width int64) {
	b, _ := billsPage(t, width)
	b.split("90", "3")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done] table').innerText.includes('33')`)
	b.write("2")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done] table').innerText.includes('49.5')`)
	b.wide()
}

func overTheWire(t *testing.T, width int64) {
	b, _ := billsPage(t, width)
	b.split("100", "3")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done]')`)
	b.tabTo("Traffic")
	b.press(enter)
	b.reads("rounding 36.667")
	b.tabTo("→ tools/call")
	b.press(enter)
	b.until(`document.querySelector('.message').innerText.includes('"total": 100')`)
	b.reads("Cleo")
	b.wide()
}

func savedTheFile(t *testing.T, width int64) {
	b, dir := billsPage(t, width)
	b.split("77", "2")
	write(t, dir, "more")
	b.ctrl("k")
	b.until(`document.querySelector('dialog [role=combobox]') === document.activeElement`)
	b.press("restart" + enter)
	b.until(`document.querySelector('section[aria-label=Tools] h2').textContent.startsWith('Tools 4')`) // which were 3
	b.until(`[...document.querySelectorAll('.ask input')].map(e => e.value).join() === '77,2'`)
}

func answersQuestion(t *testing.T, width int64) {
	b, _ := billsPage(t, width)
	b.choose("delete_note")
	b.write("shopping")
	b.ctrl(enter)
	b.until(`document.querySelector('.question') === document.activeElement`)
	b.reads(`Delete "shopping" for good?`)
	b.tabTo("sure")
	b.press("t") // true
	b.tabTo("Accept")
	b.press(enter)
	b.until(`document.querySelector('[data-state=done]').innerText.includes('deleted shopping')`)
	b.wide()
}

// wide fails where the page is wider than the window.
func (b *tab) wide() {
	b.t.Helper()
	if by := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); by > 0 {
		b.t.Errorf("the page is %d pixels wider than the window", by)
	}
}
