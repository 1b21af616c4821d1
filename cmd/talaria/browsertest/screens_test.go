package browsertest

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

var screens = flag.String("screens", "", "write every screen, 1440 and 320 pixels wide, into this `directory`")

var pictures = flag.String("pictures", "", "write pictures of some screens into this `directory`")

// screen is a state of the page that people come to, from the one before it.
type screen struct {
	name      string
	reach     func(b *tab)
	landmarks string // roles, in order
	picture   string // the name of its file, if one is taken
}

const (
	whole = "banner navigation main region"
	one   = "banner main region" // on a narrow screen
)

// journeys are pages that are opened, each with its screens.
var journeys = []struct {
	name    string
	open    func(t *testing.T) *tab
	screens []screen
}{
	{"without the link", func(t *testing.T) *tab {
		at, _, _ := strings.Cut(inspect(t, fixture(t, "good")).link, "#")
		b := newTab(t)
		b.open(at)
		return b
	}, []screen{
		{"no link", func(b *tab) { b.reads("Open the link that the terminal shows") }, "banner main", ""},
	}},
	{"broken", func(t *testing.T) *tab { return billsPage(t, 1280, "broken").tab }, []screen{
		{"not connected", func(b *tab) { b.reads("no such table: bills") }, whole, "not-connected"},
	}},
	{"noise", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "noisy")) }, []screen{
		{"noise", func(b *tab) { b.reads("Bills is starting up") }, whole, ""},
	}},
	{"fields", func(t *testing.T) *tab {
		var many []string
		for n := range 250 {
			many = append(many, fmt.Sprintf("%q", fmt.Sprint("option ", n)))
		}
		return inspectPage(t, fixture(t, "raw", fmt.Sprintf(everyKind, strings.Join(many, ","))))
	}, []screen{
		{"every kind", func(b *tab) { b.until(`document.querySelectorAll('.ask .field').length >= 12`) }, whole, ""},
	}},
	{"form", works(1280), []screen{
		{"empty", func(b *tab) { b.choose("split_bill") }, whole, ""},
		{"with errors", func(b *tab) {
			b.fill("-1", "0")
			b.ctrl(enter)
			b.reads("2 problems")
		}, whole, "form-with-errors"},
		{"JSON", func(b *tab) {
			b.tabTo("JSON")
			b.press(enter)
			b.until(`document.querySelector('.ask textarea').value.includes('-1')`)
		}, whole, ""},
		{"what the model sees", modelSees, whole, ""},
		{"palette", func(b *tab) {
			b.ctrl("k")
			b.until(`document.querySelector('dialog [role=option]')`)
		}, whole, ""},
	}},
	{"result", works(1280), []screen{
		{"table", split, whole, "result-table"},
		{"tree", func(b *tab) { b.view("Tree") }, whole, ""},
		{"content", func(b *tab) { b.view("Content") }, whole, ""},
		{"raw", func(b *tab) { b.view("Raw") }, whole, ""},
		{"traffic", func(b *tab) {
			b.view("Table")
			overTheWire(b)
		}, whole, "traffic"},
		{"diff", func(b *tab) {
			b.begin("split_bill")
			b.fill("90", "3")
			b.ctrl(enter)
			b.until(`document.querySelector('.result[data-state=done]').ariaLabel === 'Call 2'`)
			b.view("Diff")
			b.until(`document.querySelector('.diff ins')`)
		}, whole, "diff"},
	}},
	{"others", works(1280), []screen{
		{"tool that fails", fails, whole, ""},
		{"resource", func(b *tab) {
			b.until(`document.querySelector('section[aria-label=Resources]')`)
			b.find("rules")
			b.ctrl(enter)
			b.reads("Everybody pays.")
		}, whole, ""},
		{"server", func(b *tab) {
			b.tabTo("Server")
			b.press(enter)
			b.reads("Ask before you delete.")
		}, whole, ""},
	}},
	{"too much", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "hostile")) }, []screen{
		{"lists", func(b *tab) { b.until(`document.querySelectorAll('nav .pager').length === 4`) }, whole, ""},
		{"form", func(b *tab) {
			b.pick("kinds")
			b.reads("parts of the form")
		}, whole, ""},
		{"tree", func(b *tab) {
			b.pick("nested")
			b.ctrl(enter)
			b.until(`document.querySelector('[role=tree]')`)
		}, whole, ""},
		{"table", func(b *tab) {
			b.pick("breaks")
			b.ctrl(enter)
			b.until(`document.querySelector('.view table')`)
		}, whole, ""},
		{"questions", func(b *tab) {
			b.pick("asks")
			b.ctrl(enter)
			b.reads("1 of 20 questions")
		}, whole, ""},
	}},
	{"results", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "shows")) }, []screen{
		{"broken item", func(b *tab) { b.call("broken"); b.reads("unknown type of content") }, whole, ""},
		{"JSON in texts", func(b *tab) { b.pick("mixed"); b.ctrl(enter); b.reads("as sent") }, whole, ""},
		{"Markdown", func(b *tab) { b.pick("markdown"); b.ctrl(enter); b.reads("Bills of May") }, whole, ""},
		{"links", func(b *tab) {
			b.pick("links")
			b.ctrl(enter)
			b.until(`document.querySelector('.linked button')`)
			eval[bool](b, `(document.querySelector('.linked button').click(), true)`)
			b.reads("Everybody pays.")
		}, whole, ""},
		{"text in a tree", func(b *tab) { b.pick("escaped"); b.ctrl(enter); b.until(`document.querySelector('.leaf pre')`) }, whole, ""},
		{"nothing found", func(b *tab) { b.press("/"); b.write("none of these"); b.reads("Nothing found.") }, whole, ""},
	}},
	{"definitions", func(t *testing.T) *tab {
		return inspectPage(t, fixture(t, "raw", `{"name":"a","inputSchema":{"type":"object","required":"a"}},{"name":"b","inputSchema":{"type":"object","properties":{"n":{"type":"integer","default":7,"minimum":1},"s":{"type":"string","default":"x"},"t":{"type":"string"},"on":{"type":"boolean","default":true}}}}`))
	}, []screen{
		{"marked", func(b *tab) { b.reads("must be an array of different names") }, whole, ""},
		{"optional fields", func(b *tab) { b.choose("b") }, whole, ""},
	}},
	{"verdict", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "raw", refusedTools)) }, []screen{
		{"check", func(b *tab) {
			openCheck(b)
			eval[bool](b, `document.querySelectorAll('.check details').forEach(e => { e.open = true }), true`)
		}, whole, "verdict"},
		{"member", func(b *tab) {
			eval[bool](b, `([...document.querySelectorAll('.check .members button')].find(e => e.innerText.includes('/properties/q')).click(), true)`)
			b.until(`document.querySelector('.place')`)
		}, whole, ""},
		{"narrow check", func(b *tab) {
			b.do(chromedp.EmulateViewport(320, 700))
			openCheck(b)
			b.reads("name-alike")
		}, one, ""},
	}},
	{"view before a call", chartPage, []screen{
		{"typing", func(b *tab) {
			b.until(`document.querySelector('.ask h2')?.innerText === 'Bar chart'`)
			eval[bool](b, `([...document.querySelectorAll('.side button')].find(e => e.innerText === 'Open the view').click(), true)`)
			b.until(`document.querySelector('.viewer')?.dataset.state === 'open'`)
		}, whole, ""},
	}},
	{"view", chartPage, []screen{
		{"with a result", drawChart, whole, "view"},
		{"narrow view", func(b *tab) {
			b.do(chromedp.EmulateViewport(320, 700))
			b.until(`document.querySelector('.stage').clientWidth < 300`)
		}, one, ""},
	}},
	{"long", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "much")) }, []screen{
		{"a long text", func(b *tab) { b.call("text"); b.until(`document.querySelector('.lines')`) }, whole, ""},
	}},
	{"tasks", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "tasks")) }, []screen{
		{"a task", func(b *tab) { b.call("endless"); b.until(`document.querySelector('section[aria-label=Running]')`) }, whole, ""},
		{"tasks of the server", func(b *tab) { b.tabTo("Server"); b.press(enter); b.reads("task-1") }, whole, ""},
	}},
	{"events", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "events")) }, []screen{
		{"watching", watchComments, whole, "events"},
	}},
	{"model", func(t *testing.T) *tab { return inspectPage(t, fixture(t, "asks")) }, []screen{
		{"sample", func(b *tab) { b.call("sample"); b.reads("asks a model") }, whole, ""},
	}},
	{"older server", func(t *testing.T) *tab {
		web := httptest.NewServer(http.HandlerFunc(legacyWeb))
		t.Cleanup(web.Close)
		return inspectPage(t, web.URL+"/mcp")
	}, []screen{
		{"version negotiation", func(b *tab) {
			b.tabTo("Traffic")
			b.press(enter)
			b.reads("version negotiation")
		}, whole, ""},
	}},
	{"question", works(1280), []screen{
		{"question", asked, whole, "question"},
	}},
	{"narrow", works(320), []screen{
		{"list", func(b *tab) { b.until(`document.querySelector('nav button[data-tool]')`) }, whole, ""},
		{"result", split, one, "narrow"},
		{"traffic", overTheWire, one, ""},
	}},
	{"recording", func(t *testing.T) *tab {
		file := filepath.Join(t.TempDir(), "calls.jsonl")
		if err := os.WriteFile(file, []byte(recorded), 0o600); err != nil {
			t.Fatal(err)
		}
		return inspectPage(t, "--file", file)
	}, []screen{
		{"recording", func(b *tab) { b.reads("tools/list") }, "banner main", ""},
	}},
}

// works opens the page of the server that works.
func works(width int64) func(t *testing.T) *tab {
	return func(t *testing.T) *tab { return billsPage(t, width).tab }
}

const recorded = `{"at":"2026-07-28T10:00:00Z","dir":"out","conn":"1","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"}
{"at":"2026-07-28T10:00:01Z","dir":"in","conn":"1","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}"}
`

const everyKind = `{"name":"all","inputSchema":{"type":"object","required":["text","long","number","bool","choice","date","time","when","file","object","list","pair","union","many","json"],"properties":{` +
	`"text":{"type":"string","description":"one line"},"long":{"type":"string","maxLength":1000},"number":{"type":["number","null"]},"bool":{"type":"boolean"},"choice":{"enum":["a","b"]},` +
	`"date":{"type":"string","format":"date"},"time":{"type":"string","format":"time"},"when":{"type":"string","format":"date-time"},"file":{"type":"string","contentEncoding":"base64"},` +
	`"object":{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":{"type":"string"}},"list":{"type":"array","items":{"oneOf":[{"type":"string"},{"type":"integer"}]},"default":["a"]},"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"boolean"}]},` +
	`"union":{"oneOf":[{"title":"A","type":"object","properties":{"a":{"type":"string"}}},{"title":"B","type":"string"}]},"many":{"enum":[%s]},"json":{},"wrong":{"type":"integer","default":"x"}}}}`

// minRules is how many of axe's rules must have passed: a page on which there is nothing
// has no faults.
const minRules = 25

// finding is what axe has to say.
type finding struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// TestScreens: axe finds nothing in any screen, in light and in dark, and the landmarks
// are those that people jump to.
func TestScreens(t *testing.T) {
	t.Parallel()
	modules := testdep.Env(t, "E2E_MODULES", "e2e/run inspector sets it")
	axe, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range journeys {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			page := j.open(t)
			for _, s := range j.screens {
				if !t.Run(s.name, func(t *testing.T) {
					b := page.in(t)
					s.reach(b)
					s.judge(b, string(axe))
				}) {
					break // the next one begins at this
				}
			}
		})
	}
}

// judge checks a screen with axe.
func (s *screen) judge(b *tab, axe string) {
	b.t.Helper()
	b.judge(axe, minRules, func(scheme string) {
		if s.picture != "" && *pictures != "" {
			b.picture(filepath.Join(*pictures, s.picture+"-"+scheme+".png"))
		}
	})
	if *screens != "" {
		s.shoot(b)
	}
	roles := eval[string](b, `[...document.querySelectorAll('header, nav, main, body > section')].filter(e => e.checkVisibility()).map(e => ({ HEADER: 'banner', NAV: 'navigation', MAIN: 'main', SECTION: 'region' })[e.tagName]).join(' ')`)
	if roles != s.landmarks {
		b.t.Errorf("the landmarks are %q, and not %q", roles, s.landmarks)
	}
	b.wide()
}

// judge checks the page with axe in both color schemes, and calls shown in each. At least
// as many rules as rules must pass.
func (b *tab) judge(axe string, rules int, shown func(scheme string)) {
	b.t.Helper()
	if !eval[bool](b, "'axe' in window") {
		eval[bool](b, axe+"; true")
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.until(`matchMedia('(prefers-color-scheme: ` + scheme + `)').matches`)
		report := eval[struct {
			Passed []string
			Found  []finding
		}](b, `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'] })
			.then(r => ({ passed: r.passes.map(p => p.id), found: r.violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) })) }))`)
		for _, f := range report.Found {
			b.t.Errorf("%s: %s: %s", scheme, f.ID, f.Help)
			for _, n := range f.Nodes {
				b.t.Logf("%.200s: %s", n.HTML, n.FailureSummary)
			}
		}
		if len(report.Passed) < rules {
			b.t.Errorf("%s: only %d rules passed: %q", scheme, len(report.Passed), report.Passed)
		}
		shown(scheme)
	}
}

// shoot writes a screen to files, in both themes and widths.
func (s *screen) shoot(b *tab) {
	b.t.Helper()
	before := eval[[]int64](b, "[innerWidth, innerHeight]")
	for _, width := range []int64{1440, 320} {
		b.do(chromedp.EmulateViewport(width, 800))
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			b.until(fmt.Sprintf("innerWidth === %d && new Promise(done => requestAnimationFrame(() => done(true)))", width))
			text, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err == nil {
				err = os.WriteFile(filepath.Join(*screens, fmt.Sprintf("%s-%s-%d.png", strings.NewReplacer(" ", "-", "/", "-").Replace(b.t.Name()), scheme, width)), text, 0o644)
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}
		b.wide()
	}
	b.do(chromedp.EmulateViewport(before[0], before[1]))
	b.until(fmt.Sprintf("innerWidth === %d", before[0]))
}

// maxPicture is how large a picture may be, in bytes.
const maxPicture = 60_000

// picture writes what is to be seen to a file, with 256 colours, so that it stays small.
func (b *tab) picture(name string) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, fewColours(full, 256)); err != nil {
		b.t.Fatal(err)
	}
	if out.Len() > maxPicture {
		b.t.Errorf("%s has %d bytes", name, out.Len())
	}
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
	fmt.Printf("%s: %d bytes\n", name, out.Len())
}

// fewColours takes the most frequent colours of a picture and those that are furthest
// from them, and the nearest of these for the others.
func fewColours(full image.Image, most int) image.Image {
	count := map[color.RGBA]int{}
	bounds := full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range all[:min(most*3/4, len(all))] {
		palette = append(palette, c)
	}
	away := func(c color.RGBA) int { // from what is there
		near := color.RGBAModel.Convert(palette.Convert(c)).(color.RGBA)
		r, g, b := int(c.R)-int(near.R), int(c.G)-int(near.G), int(c.B)-int(near.B)
		return r*r + g*g + b*b
	}
	for len(palette) < min(most, len(all)) { // signs are small, and have colours of their own
		palette = append(palette, slices.MaxFunc(all, func(a, b color.RGBA) int { return away(a) - away(b) }))
	}
	nearest := map[color.RGBA]uint8{}
	few := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			n, ok := nearest[c]
			if !ok {
				n = uint8(palette.Index(c))
				nearest[c] = n
			}
			few.SetColorIndex(x, y, n)
		}
	}
	return few
}
