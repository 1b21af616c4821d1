package browsertest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp/internal/needs"
)

var pictures = flag.String("pictures", "", "write pictures of some screens into this `directory`")

// screen is a state of the page that people come to.
type screen struct {
	name      string
	width     int64
	show      func(t *testing.T, width int64) *tab
	rules     int    // of axe's that must have passed: 25, but where there is little to judge
	landmarks string // roles, in order
	picture   string // the name of its file, if one is taken
}

const whole = "banner navigation main region"

var screens = []screen{
	{"without the link", 1280, withoutLink, 15, "main", ""},
	{"not connected", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width, "broken")
		b.reads("no such table: bills")
		return b
	}, 25, whole, "not-connected"},
	{"noise", 1280, func(t *testing.T, _ int64) *tab {
		b := inspectPage(t, fixture(t, "noisy"))
		b.reads("Bills is starting up")
		return b
	}, 25, whole, ""},
	{"form", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.choose("split_bill")
		return b
	}, 25, whole, ""},
	{"form with errors", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.split("-1", "0")
		b.ctrl(enter)
		b.reads("2 problems")
		return b
	}, 25, whole, "form-with-errors"},
	{"every kind of field", 1280, func(t *testing.T, _ int64) *tab {
		var many []string
		for n := range 250 {
			many = append(many, fmt.Sprintf("%q", fmt.Sprint("option ", n)))
		}
		b := inspectPage(t, fixture(t, "raw", fmt.Sprintf(everyKind, strings.Join(many, ","))))
		b.until(`document.querySelectorAll('.ask .field').length >= 12`)
		return b
	}, 25, whole, ""},
	{"JSON", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.split("90", "3")
		b.tabTo("JSON")
		b.press(enter)
		b.until(`document.querySelector('.ask textarea').value.includes('90')`)
		return b
	}, 25, whole, ""},
	{"table", 1280, func(t *testing.T, width int64) *tab { return split(t, width, "Table") }, 25, whole, "result-table"},
	{"tree", 1280, func(t *testing.T, width int64) *tab { return split(t, width, "Tree") }, 25, whole, ""},
	{"content", 1280, func(t *testing.T, width int64) *tab { return split(t, width, "Content") }, 25, whole, ""},
	{"raw", 1280, func(t *testing.T, width int64) *tab { return split(t, width, "Raw") }, 25, whole, ""},
	{"tool that fails", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.choose("find_notes")
		b.write("milk")
		b.ctrl(enter)
		b.until(`document.querySelector('[data-state=failed]')`)
		return b
	}, 25, whole, ""},
	{"what the model sees", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.choose("split_bill")
		b.tabTo("What the model sees")
		b.press(enter)
		b.reads("tokens")
		return b
	}, 25, whole, ""},
	{"question", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.until(`document.querySelector('nav button[data-tool]')`)
		b.find("delete_note")
		b.write("shopping")
		b.ctrl(enter)
		b.until(`document.querySelector('.question') === document.activeElement`)
		return b
	}, 25, whole, "question"},
	{"resource", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.choose("rules")
		b.ctrl(enter)
		b.reads("Everybody pays.")
		return b
	}, 25, whole, ""},
	{"traffic", 1280, traffic, 25, whole, "traffic"},
	{"server", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.until(`document.querySelector('.dot.ready')`)
		b.tabTo("Server")
		b.press(enter)
		b.reads("Ask before you delete.")
		return b
	}, 25, whole, ""},
	{"palette", 1280, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.choose("split_bill")
		b.ctrl("k")
		b.until(`document.querySelector('dialog [role=option]')`)
		return b
	}, 20, whole, ""},
	{"list on a narrow screen", 320, func(t *testing.T, width int64) *tab {
		b, _ := billsPage(t, width)
		b.until(`document.querySelector('nav button[data-tool]')`)
		return b
	}, 25, whole, ""},
	{"result on a narrow screen", 320, func(t *testing.T, width int64) *tab { return split(t, width, "Table") }, 25, "banner main region", "narrow"},
	{"traffic on a narrow screen", 320, traffic, 25, "banner main region", ""},
	{"recording", 1280, func(t *testing.T, _ int64) *tab {
		file := filepath.Join(t.TempDir(), "calls.jsonl")
		if err := os.WriteFile(file, []byte(recorded), 0o600); err != nil {
			t.Fatal(err)
		}
		b := inspectPage(t, "--file", file)
		b.reads("tools/list")
		return b
	}, 25, "banner main", ""},
}

const recorded = `{"at":"2026-07-28T10:00:00Z","dir":"out","conn":"1","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"}
{"at":"2026-07-28T10:00:01Z","dir":"in","conn":"1","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}"}
`

const everyKind = `{"name":"all","inputSchema":{"type":"object","required":["text","long","number","bool","choice","date","time","when","file","object","list","pair","union","many","json"],"properties":{` +
	`"text":{"type":"string","description":"one line"},"long":{"type":"string","maxLength":1000},"number":{"type":["number","null"]},"bool":{"type":"boolean"},"choice":{"enum":["a","b"]},` +
	`"date":{"type":"string","format":"date"},"time":{"type":"string","format":"time"},"when":{"type":"string","format":"date-time"},"file":{"type":"string","contentEncoding":"base64"},` +
	`"object":{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":{"type":"string"}},"list":{"type":"array","items":{"oneOf":[{"type":"string"},{"type":"integer"}]},"default":["a"]},"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"boolean"}]},` +
	`"union":{"oneOf":[{"title":"A","type":"object","properties":{"a":{"type":"string"}}},{"title":"B","type":"string"}]},"many":{"enum":[%s]},"json":{},"wrong":{"type":"integer","default":"x"}}}}`

func withoutLink(t *testing.T, _ int64) *tab {
	i := inspect(t, fixture(t, "good"))
	at, _, _ := strings.Cut(i.link, "#")
	b := newTab(t)
	b.open(at)
	b.reads("Open the link that the terminal shows")
	return b
}

func split(t *testing.T, width int64, view string) *tab {
	b, _ := billsPage(t, width)
	b.split("100", "3")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done] table')`)
	b.tabTo(view)
	b.press(enter)
	b.until(`document.querySelector('.view[aria-label=` + view + `]')`)
	return b
}

func traffic(t *testing.T, width int64) *tab {
	b := split(t, width, "Table")
	b.tabTo("Traffic")
	b.press(enter)
	b.tabTo("→ tools/call")
	b.press(enter)
	b.until(`document.querySelector('.message pre')`)
	return b
}

// finding is what axe has to say.
type finding struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// TestScreens: axe finds nothing in any screen, in light and in dark, and the landmarks
// are those that people jump to.
func TestScreens(t *testing.T) {
	t.Parallel()
	modules := needs.Variable(t, "E2E_MODULES", "e2e/run inspector sets it")
	axe, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := s.show(t, s.width)
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				b.until(`matchMedia('(prefers-color-scheme: ` + scheme + `)').matches`)
				eval[bool](b, string(axe)+"; true")
				text := eval[string](b, `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'] })
					.then(r => JSON.stringify({ passed: r.passes.length, found: r.violations }))`)
				var report struct {
					Passed int
					Found  []finding
				}
				if err := json.Unmarshal([]byte(text), &report); err != nil {
					t.Fatal(err)
				}
				for _, f := range report.Found {
					t.Errorf("%s: %s: %s", scheme, f.ID, f.Help)
					for _, n := range f.Nodes {
						t.Logf("%.200s: %s", n.HTML, n.FailureSummary)
					}
				}
				if report.Passed < s.rules {
					t.Errorf("%s: only %d rules passed", scheme, report.Passed)
				}
				if s.picture != "" && *pictures != "" {
					b.picture(filepath.Join(*pictures, s.picture+"-"+scheme+".png"))
				}
			}
			roles := eval[string](b, `[...document.querySelectorAll('header, nav, main, body > section')].filter(e => e.checkVisibility()).map(e => ({ HEADER: 'banner', NAV: 'navigation', MAIN: 'main', SECTION: 'region' })[e.tagName]).join(' ')`)
			if roles != s.landmarks {
				t.Errorf("the landmarks are %q, and not %q", roles, s.landmarks)
			}
			b.wide()
		})
	}
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

// fewColours takes the most frequent colours of a picture, and the nearest of them
// for the others.
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
	for _, c := range all[:min(most, len(all))] {
		palette = append(palette, c)
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
