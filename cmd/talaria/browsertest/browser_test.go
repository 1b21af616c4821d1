package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// The one browser of all tests, and the command; empty where there is no Chromium.
var (
	chromium context.Context
	talaria  string
)

// timeLimit is the longest wait for a condition of a page.
const timeLimit = time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3:])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "chart" {
		chart(os.Args[2])
		return
	}
	if filepath.Base(os.Args[0]) == "bills" {
		bills(".")
		return
	}
	os.Exit(inBrowser(m))
}

func inBrowser(m *testing.M) int {
	if _, err := exec.LookPath("chromium"); err != nil {
		return m.Run() // in which tests say so
	}
	dir, err := os.MkdirTemp("", "inspector-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	talaria = filepath.Join(dir, "talaria")
	if err := build(talaria); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	started, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.IgnoreCertErrors, chromedp.Flag("enable-blink-features", "ComputedAccessibilityInfo"), chromedp.Flag("host-resolver-rules", "MAP *.example.com 127.0.0.1"), chromedp.WindowSize(1280, 900), chromedp.UserDataDir(filepath.Join(dir, "profile")))...)
	defer stop()
	browser, end := chromedp.NewContext(started)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "starting Chromium:", err)
		return 1
	}
	chromium = browser
	return m.Run()
}

// build builds the command.
func build(to string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-ldflags=-w", "-o", to}, flags...), "./cmd/talaria")...)
	cmd.Dir, cmd.Env = "../../..", append(os.Environ(), "GOWORK=auto")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the command: %w\n%s", err, out)
	}
	return nil
}

// tab is a tab of a browser. Its methods end the test where they fail.
type tab struct {
	t      *testing.T
	ctx    context.Context // of Chromium's
	driver driver
}

// driver is what a browser is asked to do: Chromium, or another one.
type driver interface {
	// evaluate returns the value of an expression, or of the promise that it is, as JSON.
	evaluate(ctx context.Context, expression string) ([]byte, error)
	press(ctx context.Context, keys string, ctrl bool) error
	navigate(ctx context.Context, address string) error
}

// inChromium drives the tab of a context.
type inChromium struct{}

func (inChromium) evaluate(ctx context.Context, expression string) ([]byte, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[json.RawMessage](expression, chromedp.EvalAwaitPromise))
}

func (inChromium) press(ctx context.Context, keys string, ctrl bool) error {
	if ctrl {
		return chromedp.Do(ctx, chromedp.KeyEvent(keys, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	}
	return chromedp.Do(ctx, chromedp.KeyEvent(keys))
}

func (inChromium) navigate(ctx context.Context, address string) error {
	return chromedp.Do(ctx, chromedp.Navigate(address))
}

// in is the tab in a test that is a part of its own.
func (b *tab) in(t *testing.T) *tab { return &tab{t, b.ctx, b.driver} }

// newTab opens a tab in a context of its own: storage, workers and all.
func newTab(t *testing.T) *tab {
	t.Helper()
	testdep.LookPath(t, "chromium")
	ctx, end := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	b := &tab{t, ctx, inChromium{}}
	t.Cleanup(func() {
		b.tell()
		end()
	})
	b.do(chromedp.EmulateViewport(1280, 900))
	b.scheme("light")
	if _, err := chromedp.Call(b.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err) // a window has the focus, whatever others do
	}
	return b
}

// tell says what is in the tab, if the test has failed.
func (b *tab) tell() {
	if !b.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, timeLimit)
	defer cancel()
	if text, err := b.driver.evaluate(ctx, "location.href + '\\n' + document.title + '\\n' + document.body?.innerText"); err == nil {
		b.t.Logf("the page: %s", strings.ReplaceAll(string(text), `\n`, "\n"))
	}
}

// another opens one more tab beside it, with the same storage.
func (b *tab) another() *tab {
	b.t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	b.t.Cleanup(end)
	other := &tab{b.t, ctx, b.driver}
	other.do()
	return other
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeLimit)
	defer cancel()
	if chromedp.FromContext(b.ctx).Target == nil { // the first step opens it, and it lives as long as that context
		if err := chromedp.Do(b.ctx); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// within does something that takes a while at most.
func (b *tab) within(do func(ctx context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeLimit)
	defer cancel()
	if err := do(ctx); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(address string) {
	b.t.Helper()
	b.within(func(ctx context.Context) error { return b.driver.navigate(ctx, address) })
}

// eval returns the value of an expression, or of the promise that it is.
func eval[T any](b *tab, expression string) (value T) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeLimit)
	defer cancel()
	text, err := b.driver.evaluate(ctx, expression)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		b.t.Fatalf("%.200v: %.2000s", err, expression)
	}
	return value
}

// until waits for an expression to be true: of the page, which changes whenever it likes.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeLimit)
	defer cancel()
	var err error
	for asked := false; !asked; { // a page that is loaded anew forgets what it was asked
		_, err = b.driver.evaluate(ctx, `new Promise(done => {
			const look = () => { let is = false; try { is = !!(`+expression+`) } catch {} ; if (is) done(true); else setTimeout(look, 15) }
			look()
		})`)
		asked = err == nil || !strings.Contains(err.Error(), "navigated")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		b.t.Fatalf("it does not come true: %s", expression)
	} else if err != nil {
		b.t.Fatalf("%v: %s", err, expression)
	}
}

// reads waits for a text in the page.
func (b *tab) reads(text string) {
	b.t.Helper()
	b.until("document.body.innerText.includes(" + quote(text) + ")")
}

// quote writes a text as JavaScript.
func quote(text string) string {
	out, _ := json.Marshal(text) // a text always encodes
	return string(out)
}

// firstScreen returns what a person sees without scrolling.
func (b *tab) firstScreen() string {
	b.t.Helper()
	return eval[string](b, `(() => {
		const seen = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange()
		for (let n; n = walker.nextNode();) {
			if (!n.data.trim() || !n.parentElement.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue
			range.selectNodeContents(n)
			const lines = [...range.getClientRects()]
			if (!lines.length || lines.some(r => r.top < 0 || r.bottom > innerHeight || r.left < 0)) continue
			const shown = lines.every(r => { const at = document.elementFromPoint(Math.min(r.left + 1, innerWidth - 1), (r.top + r.bottom) / 2); return at && (at.contains(n) || n.parentElement.contains(at)) })
			if (shown) seen.push(n.data)
		}
		return seen.join('\n')
	})()`)
}

// Keys that have no sign.
const (
	enter  = kb.Enter
	escape = kb.Escape
	down   = kb.ArrowDown
)

// press presses keys, one after the other, as a person without a mouse does.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.within(func(ctx context.Context) error { return b.driver.press(ctx, keys, false) })
}

func (b *tab) ctrl(key string) {
	b.t.Helper()
	b.within(func(ctx context.Context) error { return b.driver.press(ctx, key, true) })
}

// focused is the role and the name of what has the focus, as assistive technology
// gets them.
func (b *tab) focused() string {
	b.t.Helper()
	return eval[string](b, `(() => {
		const e = document.activeElement
		if (!e || e === document.body) return ''
		return e.getAttribute('aria-label') || [...(e.labels ?? [])].map(l => l.querySelector('.label')?.innerText ?? l.innerText).join(' ') || e.innerText || e.tagName
	})()`)
}

// tabTo presses Tab until what has the focus is called so, at most once around.
func (b *tab) tabTo(name string) {
	b.t.Helper()
	var passed []string
	for range 80 {
		b.press(kb.Tab)
		at := b.focused()
		if strings.HasPrefix(strings.TrimSpace(at), name) {
			return
		}
		passed = append(passed, at)
	}
	b.t.Fatalf("Tab does not lead to %q; it passed %q", name, passed)
}

// write selects what is in the field that has the focus, and types over it.
func (b *tab) write(text string) {
	b.t.Helper()
	b.ctrl("a")
	b.press(text)
}

// scheme sets what the system prefers. Nothing moves, so that nothing is judged on its way.
func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		b.t.Fatal(err)
	}
}
