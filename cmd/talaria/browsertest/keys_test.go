package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestKeys: from the start on it takes the name of a tool, of two hundred, Enter, what it
// takes, and Ctrl-Enter to call it.
func TestKeys(t *testing.T) {
	t.Parallel()
	const name = "export_117"
	var tools []string
	for n := range 200 {
		tools = append(tools, fmt.Sprintf(`{"name":"%s_%03d","inputSchema":{"type":"object","required":["note","times"],"properties":{"note":{"type":"string"},"times":{"type":"integer"}}}}`,
			[]string{"import", "export", "list", "delete"}[n%4], n))
	}
	b := inspectPage(t, fixture(t, "raw", strings.Join(tools, ",")))
	b.until(`document.querySelectorAll('nav button[data-tool]').length === 120`)
	for _, keys := range []string{name, enter} {
		b.press(keys)
	}
	b.until(`document.querySelector('.ask h2').innerText === ` + quote(name))
	for _, keys := range []string{"milk", kb.Tab, "3"} {
		b.press(keys)
	}
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done]').innerText.includes('done')`)
	b.tabTo("Traffic")
	b.press(enter)
	b.tabTo("→ tools/call")
	b.press(enter)
	b.until(`document.querySelector('.message').innerText.includes('"name": ` + quote(name) + `')`)
	b.until(`/"note": "milk",\s+"times": 3/.test(document.querySelector('.message').innerText)`)
}
