package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

var firefox = flag.Bool("firefox", false, "run TestFirefox")

// TestFirefox: the page does in Firefox what it does in Chromium, in twelve steps.
func TestFirefox(t *testing.T) {
	if !*firefox {
		t.Skip("-firefox is not set; CONTRIBUTING.md has the command")
	}
	link, _ := billsLink(t)
	page := firefoxTab(t)
	views, events := inspect(t, chartTarget(t)).link, inspect(t, fixture(t, "events")).link
	refused, long := inspect(t, fixture(t, "raw", refusedTools)).link, inspect(t, fixture(t, "much")).link
	for _, step := range []struct {
		name string
		do   func(b *tab)
	}{
		{"the link opens it", func(b *tab) {
			b.open(link)
			b.until(`document.querySelector('.dot.ready') && !location.hash.includes('k=')`)
		}},
		{"it is dark", func(b *tab) {
			const ground = `getComputedStyle(document.documentElement).backgroundColor + getComputedStyle(document.body).backgroundColor`
			before := eval[string](b, ground)
			// Not by Tab: beyond the last element that leads into the window of Firefox, and does not come back.
			eval[bool](b, `(document.querySelector('[aria-label="light or dark"]').focus(), true)`)
			b.press(enter)
			b.until(ground + ` !== ` + quote(before))
		}},
		{"a tool is found", func(b *tab) { b.choose("split_bill") }},
		{"what is wrong is said", func(b *tab) {
			b.fill("-1", "0")
			b.ctrl(enter)
			b.reads("2 problems")
		}},
		{"a call has a result", split},
		{"and its messages", overTheWire},
		{"a question is answered", func(b *tab) { answersQuestion(&billsTab{tab: b}) }},
		{"the key and the calls survive", func(b *tab) {
			b.open("about:blank")
			at, _, _ := strings.Cut(link, "#")
			b.open(at)
			b.until(`document.querySelectorAll('section[aria-label=Recent] li').length === 2`)
		}},
		{"a view shows a result", func(b *tab) { b.open(views); drawChart(b) }},
		{"events are watched", func(b *tab) { b.open(events); watchComments(b) }},
		{"Check leads to the member", func(b *tab) {
			b.open(refused)
			b.until(`document.querySelector('nav [aria-label="2 findings"]')`)
			openCheck(b)
			eval[bool](b, `([...document.querySelectorAll('.check .members button')].find(e => e.innerText.includes('/properties/q')).click(), true)`)
			b.until(`document.querySelector('[aria-label=Definition] .place')?.innerText.includes('"q": {')`)
		}},
		{"6 MB scroll", func(b *tab) {
			b.open(long)
			b.call("text")
			b.until(`document.querySelector('[data-state=done] .view .lines')`)
			eval[bool](b, `(e => (e.scrollTop = e.scrollHeight, true))(document.querySelector('.lines'))`)
			b.until(`document.querySelector('.lines').innerText.trim().endsWith('日本')`)
		}},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(page.in(t)) }) {
			break // the next one begins at this
		}
	}
}

// inFirefox drives a tab by WebDriver BiDi. Its methods are for one goroutine.
type inFirefox struct {
	conn *websocket.Conn
	tab  string
	n    int
}

// firefoxTab starts Firefox, which ends with the test.
func firefoxTab(t *testing.T) *tab {
	t.Helper()
	testdep.LookPath(t, "firefox-esr")
	dir := t.TempDir()
	cmd := exec.Command("firefox-esr", "--headless", "--no-remote", "--profile", dir, "--remote-debugging-port=0")
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // what it leaves is in the test's directory
		_ = cmd.Wait()
	})
	const sign = "WebDriver BiDi listening on "
	var said strings.Builder
	address, part := "", make([]byte, 4096)
	for address == "" {
		n, err := out.Read(part)
		said.Write(part[:n])
		if _, after, ok := strings.Cut(said.String(), sign); ok && strings.Contains(after, "\n") {
			address, _, _ = strings.Cut(after, "\n")
		} else if err != nil {
			t.Fatalf("Firefox: %v\n%s", err, &said)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	conn, _, err := websocket.Dial(t.Context(), strings.TrimSpace(address)+"/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	f := &inFirefox{conn: conn}
	b := &tab{t, t.Context(), f}
	t.Cleanup(func() { _ = conn.CloseNow() })
	b.within(func(ctx context.Context) error {
		_, err := f.call(ctx, "session.new", map[string]any{"capabilities": struct{}{}})
		if err != nil {
			return err
		}
		made, err := f.call(ctx, "browsingContext.create", map[string]any{"type": "tab"})
		if err != nil {
			return err
		}
		var got struct{ Context string }
		if err := json.Unmarshal(made, &got); err != nil {
			return err
		}
		f.tab = got.Context
		_, err = f.call(ctx, "browsingContext.setViewport", map[string]any{"context": f.tab, "viewport": map[string]int{"width": 1280, "height": 900}})
		return err
	})
	return b
}

// call makes a request and waits for its answer; events are left out.
func (f *inFirefox) call(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	f.n++
	if err := wsjson.Write(ctx, f.conn, map[string]any{"id": f.n, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		var m struct {
			ID             int
			Result         json.RawMessage
			Error, Message string
		}
		if err := wsjson.Read(ctx, f.conn, &m); err != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		if m.Error != "" {
			return nil, fmt.Errorf("%s: %s: %s", method, m.Error, m.Message)
		}
		if m.ID == f.n {
			return m.Result, nil
		}
	}
}

func (f *inFirefox) evaluate(ctx context.Context, expression string) ([]byte, error) {
	text, err := f.call(ctx, "script.evaluate", map[string]any{"target": map[string]string{"context": f.tab}, "awaitPromise": true, "userActivation": true,
		"expression": "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()"})
	if err != nil {
		return nil, err
	}
	var got struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Text string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return nil, err
	}
	if got.ExceptionDetails != nil {
		return nil, errors.New(got.ExceptionDetails.Text)
	}
	return []byte(got.Result.Value), nil
}

// keysOf are the keys of WebDriver that chromedp calls otherwise.
var keysOf = map[string]string{kb.Tab: "\ue004", kb.Enter: "\ue007", kb.Escape: "\ue00c", kb.ArrowDown: "\ue015"}

func (f *inFirefox) press(ctx context.Context, keys string, ctrl bool) error {
	var steps []map[string]string
	step := func(kind, key string) { steps = append(steps, map[string]string{"type": kind, "value": key}) }
	const control = "\ue009"
	if ctrl {
		step("keyDown", control)
	}
	for _, r := range keys {
		key := string(r)
		if other, ok := keysOf[key]; ok {
			key = other
		}
		step("keyDown", key)
		step("keyUp", key)
	}
	if ctrl {
		step("keyUp", control)
	}
	_, err := f.call(ctx, "input.performActions", map[string]any{"context": f.tab, "actions": []any{map[string]any{"type": "key", "id": "keyboard", "actions": steps}}})
	return err
}

func (f *inFirefox) navigate(ctx context.Context, address string) error {
	_, err := f.call(ctx, "browsingContext.navigate", map[string]any{"context": f.tab, "url": address, "wait": "complete"})
	return err
}
