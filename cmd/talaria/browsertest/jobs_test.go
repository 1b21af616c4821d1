package browsertest

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// billsTab is the page of the server that works.
type billsTab struct {
	*tab
	dir string // of the server
}

// billsLink starts the command with that server, and returns the link of the page.
func billsLink(t *testing.T, files ...string) (link, dir string) {
	t.Helper()
	testdep.LookPath(t, "chromium")
	dir = t.TempDir()
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
	return inspectWith(t, talaria, dir, nil, "./bills -stdio").link, dir
}

// billsPage opens it, in a window of that width.
func billsPage(t *testing.T, width int64, files ...string) *billsTab {
	t.Helper()
	link, dir := billsLink(t, files...)
	b := newTab(t)
	b.do(chromedp.EmulateViewport(width, 800))
	b.open(link)
	return &billsTab{b, dir}
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// begin finds a tool, once the tools are there.
func (b *tab) begin(tool string) {
	b.t.Helper()
	b.until(`document.querySelector('nav button[data-tool]')`)
	b.find(tool)
}

// fill fills the form of split_bill in.
func (b *tab) fill(total, people string) {
	b.t.Helper()
	b.write(total)
	b.tabTo("people")
	b.write(people)
}

// split calls split_bill, of which there is a table.
func split(b *tab) {
	b.t.Helper()
	b.begin("split_bill")
	b.fill("100", "3")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done] table')?.checkVisibility()`)
}

// view shows the result in another way.
func (b *tab) view(name string) {
	b.t.Helper()
	b.tabTo(name)
	b.press(enter)
	b.until(`document.querySelector('.view[aria-label=` + name + `]')`)
}

// overTheWire opens the traffic after split, and the call in it.
func overTheWire(b *tab) {
	b.t.Helper()
	b.tabTo("Traffic")
	b.press(enter)
	b.reads("rounding 36.667")
	b.tabTo("→ tools/call")
	b.press(enter)
	b.until(`document.querySelector('.message').innerText.includes('"total": 100')`)
	b.reads("Cleo")
}

// modelSees shows what a model gets of a tool.
func modelSees(b *tab) {
	b.t.Helper()
	b.tabTo("What the model sees")
	b.press(enter)
	b.reads("tokens")
	b.reads(`"the bill, in any currency. Must be greater than 0."`)
}

// asked calls a tool that asks.
func asked(b *tab) {
	b.t.Helper()
	b.begin("delete_note")
	b.write("shopping")
	b.ctrl(enter)
	b.until(`document.querySelector('.question') === document.activeElement`)
	b.reads(`Delete "shopping" for good?`)
}

// fails calls a tool that fails.
func fails(b *tab) {
	b.t.Helper()
	b.begin("find_notes")
	b.write("milk")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=failed]')`)
}

// TestJobs: what people do with an inspector, without a mouse, on a wide screen and
// on a narrow one.
func TestJobs(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 320} {
		for _, job := range []struct {
			name  string
			files []string
			do    func(b *billsTab)
		}{
			{"it does not start, why", []string{"broken"}, doesNotStart},
			{"what does the model see", nil, func(b *billsTab) {
				b.begin("split_bill")
				modelSees(b.tab)
			}},
			{"again with one thing changed", nil, oneThingChanged},
			{"what went over the wire, and what did it log then", nil, func(b *billsTab) {
				split(b.tab)
				overTheWire(b.tab)
			}},
			{"I saved the file, reload", nil, savedTheFile},
			{"a question is answered", nil, answersQuestion},
		} {
			t.Run(fmt.Sprintf("%s at %d", job.name, width), func(t *testing.T) {
				t.Parallel()
				b := billsPage(t, width, job.files...)
				job.do(b)
				b.wide()
			})
		}
		t.Run(fmt.Sprintf("a colleague gets the failing case at %d", width), func(t *testing.T) {
			t.Parallel()
			sendsCase(t, width)
		})
	}
}

// TestOneClick: the last call is named above its traffic, and a click shows its messages; another click copies a report
// that has no secrets.
func TestOneClick(t *testing.T) {
	t.Parallel()
	b := billsPage(t, 1280)
	b.allow("clipboard-read")
	b.allow("clipboard-write")
	split(b.tab)
	click := func(name string) {
		eval[bool](b.tab, `([...document.querySelectorAll('button')].find(e => e.innerText.startsWith(`+quote(name)+`)).click(), true)`)
	}
	b.until(`document.querySelector('.traffic .bar').innerText.includes('→ tools/call split_bill done')`)
	click("→ tools/call split_bill")
	b.until(`document.querySelector('.message').innerText.includes('"total": 100')`)
	b.reads("Cleo")
	clipboard.Lock()
	defer clipboard.Unlock()
	eval[bool](b.tab, `navigator.clipboard.writeText('nothing').then(() => true)`)
	click("Report")
	b.until(`[...document.querySelectorAll('.acts button')].some(e => e.innerText === 'Copied')`)
	if got := eval[string](b.tab, `navigator.clipboard.readText()`); !strings.HasPrefix(got, "# split_bill: done") || !strings.Contains(got, "Cleo") || eval[bool](b.tab, `document.querySelector('.menu').open`) {
		t.Errorf("copied %s", got)
	}
}

func doesNotStart(b *billsTab) {
	b.reads("exit status 1")
	b.reads("no such table: bills")
	if err := os.Remove(filepath.Join(b.dir, "broken")); err != nil {
		b.t.Fatal(err)
	}
	b.tabTo("Try again")
	b.press(enter)
	b.until(`document.querySelector('.dot.ready')`)
}

func oneThingChanged(b *billsTab) {
	b.begin("split_bill")
	b.fill("90", "3")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done] table').innerText.includes('33')`)
	b.write("2")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done] table').innerText.includes('49.5')`)
}

func savedTheFile(b *billsTab) {
	b.begin("split_bill")
	b.fill("77", "2")
	write(b.t, b.dir, "more")
	b.ctrl("k")
	b.until(`document.querySelector('dialog [role=combobox]') === document.activeElement`)
	b.press("restart" + enter)
	b.until(`document.querySelector('section[aria-label=Tools] h2').textContent.startsWith('Tools 4')`) // which were 3
	b.until(`[...document.querySelectorAll('.ask input')].map(e => e.value).join() === '77,2,'`)
}

func answersQuestion(b *billsTab) {
	asked(b.tab)
	b.tabTo("sure")
	b.press("t") // true
	b.tabTo("Accept")
	b.press(enter)
	b.until(`document.querySelector('[data-state=done]').innerText.includes('deleted shopping')`)
}

// clipboard is what all tabs of the browser have in common.
var clipboard sync.Mutex

// copied opens the menu of a result, copies it in one of the ways, and returns what is
// in the clipboard then.
func (b *tab) copied(as string) string {
	b.t.Helper()
	clipboard.Lock()
	defer clipboard.Unlock()
	eval[bool](b, `navigator.clipboard.writeText('nothing').then(() => true)`)
	if b.focused() != "Copied" { // where the focus is after the first
		b.tabTo("Copy")
	}
	b.press(enter)
	b.until(`document.querySelector('details.menu').open`)
	b.tabTo(as)
	b.press(enter)
	b.until(`!document.querySelector('details.menu').open && document.activeElement.innerText === 'Copied'`)
	return eval[string](b, `navigator.clipboard.readText()`)
}

// sendsCase: a call that fails goes to somebody else in four ways, of which none has the
// key, and two are run as they are and fail the same way.
func sendsCase(t *testing.T, width int64) {
	const key, failure = "sesame-0451", `there is no note "milk" of `
	testdep.LookPath(t, "curl")
	web := httptest.NewServer(billsServer().Handler())
	t.Cleanup(web.Close)
	i := inspect(t, "--header", "X-Key="+key, web.URL)
	b := newTab(t)
	b.do(chromedp.EmulateViewport(width, 800))
	b.allow("clipboard-read")
	b.allow("clipboard-write")
	b.open(i.link)
	fails(b)
	b.reads(failure + key)

	run := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(talaria)+":"+os.Getenv("PATH"), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return fmt.Sprintf("%s\n%v", out, err)
	}
	for _, c := range []struct {
		as   string
		want []string
		run  []string // what running it says, if it is
	}{
		{"Report", []string{"# find_notes: the tool failed", "- server: bills 1.0.0", `"note": "milk"`, `there is no note \"milk\" of ***`, "tools/call find_notes, from the client"}, nil},
		{"Command", []string{"talaria call --header 'X-Key=***' -- " + web.URL + ` find_notes '{"note":"milk"}'`}, []string{failure + "***", "exit status 1"}},
		{"curl", []string{"curl -sS " + web.URL, "X-Key: ***", `"name":"find_notes"`}, []string{`there is no note \"milk\" of ***`, `"isError":true`}},
		{"Go test", []string{"func TestFindNotes(t *testing.T)", `c.Call("find_notes", json.RawMessage(`, "if !result.IsError"}, nil},
	} {
		text := b.copied(c.as)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %q:\n%s", c.as, want, text)
			}
		}
		if strings.Contains(text, key) {
			t.Errorf("%s has the key:\n%s", c.as, text)
		}
		if c.run == nil {
			continue
		}
		said := run(text)
		for _, want := range c.run {
			if !strings.Contains(said, want) {
				t.Errorf("%s, run, does not say %q:\n%s", c.as, want, said)
			}
		}
	}
	b.wide()
}

// allow gives the pages of the tab's context a permission.
func (b *tab) allow(permission string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: permission},
		Setting: browser.PermissionSettingGranted, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID})
	if err != nil {
		b.t.Fatal(err)
	}
}

// wide fails where the page is wider than the window.
func (b *tab) wide() {
	b.t.Helper()
	if by := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); by > 0 {
		b.t.Errorf("the page is %d pixels wider than the window", by)
	}
}
