package browsertest

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var published = flag.String("published", "", "a `file` with the target of a server on each line, whose Check TestPublished compares with lint")

// TestPublished: Check has the findings of lint for servers that others have published, counts them at their tools,
// and leads to the place of each tool's first one.
func TestPublished(t *testing.T) {
	if *published == "" {
		t.Skip("-published is not set; CONTRIBUTING.md has the command")
	}
	text, err := os.ReadFile(*published)
	if err != nil {
		t.Fatal(err)
	}
	for target := range strings.Lines(string(text)) {
		target = strings.TrimSpace(target)
		name := filepath.Base(strings.TrimSuffix(target, "/dist/index.js"))
		t.Run(name, func(t *testing.T) {
			lint := exec.Command(talaria, "lint", "--notes", "--json", target)
			lint.Env = append(os.Environ(), "HOME="+t.TempDir(), "DO_NOT_TRACK=1")
			out, _ := lint.Output() // findings are an error
			type row struct {
				Rule, Path, Tool, Text string
				Fails                  bool
			}
			var reported []row
			if err := json.Unmarshal(out, &reported); err != nil {
				t.Fatalf("lint: %v: %.500s", err, out)
			}
			b := inspectPage(t, target)
			b.until(`document.querySelector('section[aria-label=Tools] button[data-tool]')`)
			shown := eval[struct{ Findings []row }](b, `(async () => {
				const key = sessionStorage.getItem('key'), all = await fetch('/api/verdict?as=', { headers: { Authorization: 'Bearer ' + key } }).then(r => r.json())
				return { Findings: all.findings }
			})()`)
			if !slices.Equal(shown.Findings, reported) {
				t.Errorf("Check has\n%+v\nand lint\n%+v", shown.Findings, reported)
			}
			openCheck(b)
			fails, places := map[string]int{}, 0
			for _, f := range reported {
				if f.Fails {
					fails[f.Tool]++
				}
			}
			for tool, n := range fails {
				if tool == "" {
					continue
				}
				if got := eval[string](b, `[...document.querySelectorAll('nav button[data-tool]')].find(e => e.querySelector('.one').innerText === `+quote(tool)+`)?.querySelector('.warn')?.innerText ?? ''`); got != jsonNumber(n) {
					t.Errorf("%s is marked with %q, and has %d findings", tool, got, n)
				}
				if places++; places < 4 {
					if places > 1 {
						openCheck(b)
					}
					if !eval[bool](b, `!!(window.member = [...document.querySelectorAll('.check .members button')].find(e => e.innerText.split(' ')[0] === `+quote(tool)+`))`) {
						eval[bool](b, `(document.querySelector('.check .quiet').click(), true)`) // it is on another page of its rule
						continue
					}
					eval[bool](b, `(member.click(), true)`)
					b.until(`document.querySelector('[aria-label=Definition] .members') && document.querySelector('.ask h2')`)
				}
			}
			t.Logf("%d findings, as lint has; %d tools are marked", len(shown.Findings), len(fails))
		})
	}
}

func jsonNumber(n int) string { text, _ := json.Marshal(n); return string(text) }
