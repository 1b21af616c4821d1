package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// weakViews is the command, which takes out of what the browser gets what its environment
// names: WITHOUT has the changes as JSON.
var weakViews = sync.OnceValues(func() (string, error) {
	dir := filepath.Dir(talaria)
	replaced := map[string]string{}
	for name, edits := range map[string][2]string{
		"views.go": {`_, _ = w.Write(frameDocument)`, `h := w.Header()
		h.Set("Content-Security-Policy", without("policy", h.Get("Content-Security-Policy")))
		_, _ = w.Write([]byte(without("frames", string(frameDocument))))`},
		"assets.go": {`return slim(name, text)`, `return []byte(without(name, string(slim(name, text))))`},
	} {
		from, err := filepath.Abs(filepath.Join("../internal/inspector", name))
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		changed := strings.Replace(string(text), edits[0], edits[1], 1)
		if name == "views.go" {
			changed = strings.Replace(changed, `	_ "embed"`, "\t_ \"embed\"\n\t\"os\"", 1) + `
func without(of, text string) string {
	var changes []struct{ Of, Old, New string }
	_ = json.Unmarshal([]byte(os.Getenv("WITHOUT")), &changes)
	for _, c := range changes {
		if c.Of == of {
			text = strings.ReplaceAll(text, c.Old, c.New)
		}
	}
	return text
}
`
		}
		to := filepath.Join(dir, "weak"+name)
		if err := os.WriteFile(to, []byte(changed), 0o600); err != nil {
			return "", err
		}
		replaced[from] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "views.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "weakviews")
	return program, build(program, "-overlay", overlay)
})

// withoutGuard opens the page of the command without a guard.
func withoutGuard(t *testing.T, changes []change, target string) *tab {
	t.Helper()
	program, err := weakViews()
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	for _, c := range changes {
		list = append(list, map[string]string{"Of": c.of, "Old": c.old, "New": c.new})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	b.open(inspectWith(t, program, t.TempDir(), []string{"WITHOUT=" + string(text)}, target).link)
	return b
}
