package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/app"
)

type bar struct {
	Label string  `json:"label"`
	Value float64 `json:"value"`
}

type barChart struct {
	Title string `json:"title,omitempty"`
	Bars  []bar  `json:"bars"`
}

// chart is a server with the view of the example, which is in a file.
func chart(file string) {
	page, err := os.ReadFile(file)
	if err == nil {
		s := mcp.NewServer(mcp.Info{Name: "charts", Version: "1.0.0"}, nil)
		s.MustAdd(
			app.View("ui://charts/bars", string(page), &app.ViewOptions{Title: "Bar chart"}),
			mcp.Tool("draw_bar_chart", func(_ *mcp.Frame, in barChart) (barChart, error) { return in, nil }, app.Show("ui://charts/bars"), mcp.Title("Bar chart"),
				mcp.Doc("Draws a bar chart"), mcp.ReadOnly(), mcp.Text(func(barChart) string { return "drawn" })),
		)
		err = s.ServeStdio(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// chartPage opens the page of that server.
func chartPage(t *testing.T) *tab {
	t.Helper()
	return inspectPage(t, chartTarget(t))
}

// chartTarget is that server.
func chartTarget(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	page, err := filepath.Abs("../../example/chart.html")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("'%s' chart '%s'", self, page)
}

const someBars = `{"title":"Rain in a week","bars":[{"label":"Mon","value":3},{"label":"Tue","value":9},{"label":"Wed","value":5}]}`

// drawChart calls the tool with three bars, and waits for its view.
func drawChart(b *tab) {
	b.until(`document.querySelector('nav [aria-label="has a view"]')`)
	b.open(eval[string](b, `location.href.split('#')[0]`) + "#tool=draw_bar_chart&arguments=" + someBars)
	b.until(`document.querySelector('.ask h2')?.innerText === 'Bar chart'`)
	b.ctrl(enter)
	b.until(`document.querySelector('.viewer')?.dataset.state === 'fed' && document.querySelector('.stage').clientHeight > 130 && document.querySelector('.stage').clientHeight < 200`)
}

// viewing is a server whose tools have views: the documents of a file, by the names of their tools.
func viewing(args []string) (tools string, answers map[string]string) {
	var list map[string]struct{ HTML, Meta, Tool string }
	text, err := os.ReadFile(args[0])
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers = map[string]string{}
	var all []string
	for name, v := range list {
		meta := `"ui":{"resourceUri":"ui://views/` + name + `"`
		if v.HTML == "" {
			meta = `"ui":{"visibility":["model","app"]`
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"_meta":{%s}}%s}`, name, meta, v.Tool))
		page, _ := json.Marshal(v.HTML) // a text always encodes
		answers["resources/read ui://views/"+name] = fmt.Sprintf(`{"jsonrpc":"2.0","id":$id,"result":{"contents":[{"uri":"ui://views/%s","mimeType":"text/html;profile=mcp-app","text":%s%s}]}}`, name, page, v.Meta)
	}
	return strings.Join(all, ","), answers
}

// TestChart: the view of the example shows the result, has the theme and the width that the
// page gives it, calls its tool, and is told of its end; all of that is in the traffic.
func TestChart(t *testing.T) {
	t.Parallel()
	b := chartPage(t)
	drawChart(b)
	for range 50 { // the view has its height a moment after its result
		at := eval[[]float64](b, `(r => [r.left + 50, r.bottom - 24])(document.querySelector('.stage').getBoundingClientRect())`)
		b.do(chromedp.MouseClickXY(at[0], at[1])) // largest first
		if eval[bool](b, `new Promise(done => setTimeout(() => done(!!document.querySelector('.viewer .members')), 200))`) {
			break
		}
	}
	b.until(`document.querySelector('.viewer .members .done')`)
	b.reads("Calls of the view")
	eval[bool](b, `([...document.querySelectorAll('[aria-label=Width] button')][0].click(), true)`)
	b.until(`document.querySelector('.stage').clientWidth === 373`)
	eval[bool](b, `([...document.querySelectorAll('.viewer button')].find(e => e.innerText === 'Reload').click(), true)`)
	b.until(`document.querySelector('.viewer').dataset.state === 'fed' && !document.querySelector('.viewer .members')`)
	b.tabTo("Traffic")
	b.press(enter)
	for _, want := range []string{"view ui/initialize", "view ui/notifications/initialized", "view ui/notifications/tool-input", "view ui/notifications/tool-result", "view ui/notifications/size-changed",
		"view tools/call", "view ui/notifications/host-context-changed", "view ui/resource-teardown"} {
		b.reads(want)
	}
	b.until(`[...document.querySelectorAll('.rows tr')].filter(e => e.innerText.includes('ui/resource-teardown')).every(e => e.innerText.includes('ok'))`)
	eval[bool](b, `([...document.querySelectorAll('.viewer button')].find(e => e.innerText === 'Without views').click(), true)`)
	b.reads("Connected as a host without views")
	b.until(`document.querySelector('.dot.ready') && document.querySelector('nav [data-tool]') && !document.querySelector('nav [aria-label="has a view"]')`)
	eval[bool](b, `([...document.querySelectorAll('.banner button')].find(e => e.innerText === 'With views').click(), true)`)
	b.until(`document.querySelector('nav [aria-label="has a view"]')`)
}

// TestViewCrowd: however much a view says at once, the traffic has what it calls.
func TestViewCrowd(t *testing.T) {
	t.Parallel()
	page := strings.Replace(hostileView, "$attack", `const data = '日'.repeat(9e5)
	for (let i = 0; i < 13; i++) parent.postMessage({ jsonrpc: '2.0', id: i ? undefined : data, method: i ? 'notifications/message' : data, params: { level: 'info', data } }, '*')
	await ask('tools/call', { name: 'harm', arguments: {} })`, 1)
	text, err := json.Marshal(map[string]any{"harm": map[string]string{"Tool": `,"annotations":{"readOnlyHint":true}`}, "crowd": map[string]string{"HTML": page}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "views.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b := inspectPage(t, fixture(t, "views", file))
	b.call("crowd")
	b.until(`document.querySelector('.viewer .members .done')`)
	b.tabTo("Traffic")
	b.press(enter)
	b.until(`[...document.querySelectorAll('.rows tr')].some(e => e.innerText.includes('view tools/call'))`)
	if n := eval[int](b, `+/(\d+) messages/.exec(document.querySelector('.traffic').innerText)[1]`); n < 20 {
		t.Errorf("%d messages", n)
	}
}
