package browsertest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSave: the traffic is saved as a recording, whose call is made again at a server, with a
// comparison of the results.
func TestSave(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "says"))
	b.call("good")
	b.until(`document.querySelector('.result[data-state=done]')`)
	b.tabTo("Traffic")
	b.press(enter)
	for chip, want := range map[string]string{"Logs": "warning db: slow query", "stderr": "Traceback:"} {
		b.tabTo(chip)
		b.press(enter)
		b.until(`document.querySelector('.rows tbody').innerText.includes(` + quote(want) + `) && !document.querySelector('.rows tbody').innerText.includes('tools/call')`)
		if chip == "Logs" {
			b.tabTo("least level")
			b.press("e")
			b.until(`document.querySelector('.rows').innerText.includes('Nothing found.')`)
		}
	}
	eval[bool](b, `(window.saved = '', URL.createObjectURL = (make => blob => (blob.text().then(t => { saved = t }), make(blob)))(URL.createObjectURL.bind(URL)), true)`)
	b.tabTo("Save")
	b.press(enter)
	b.reads("Saved talaria-")
	name := filepath.Join(t.TempDir(), "calls.jsonl")
	b.until(`saved`)
	if err := os.WriteFile(name, []byte(eval[string](b, `saved`)), 0o600); err != nil {
		t.Fatal(err)
	}
	b = inspectPage(t, "--file", name, fixture(t, "good"))
	b.until(`document.querySelector('.rows')`)
	b.tabTo("→ tools/call")
	b.press(enter)
	b.tabTo("Replay")
	b.press(enter)
	b.until(`document.querySelector('.replay').innerText.includes('The same result, compared with the recorded one.')`)
}
