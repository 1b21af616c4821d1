package inspector

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEstimate: definitions of which a tokenizer (o200k_base) has said how many tokens
// they are.
func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{`{"name":"split_bill","description":"Splits a bill among people","inputSchema":{"type":"object","required":["total","people"],"properties":{"total":{"type":"number","description":"the bill, in any currency","exclusiveMinimum":0},"people":{"type":"integer","description":"how many share it","minimum":1,"maximum":100}}}}`, 73},
		{`{"name":"find_notes","description":"Finds notes by a part of their name, the newest first. Use it before you delete a note, so that you know how it is called.","inputSchema":{"type":"object","required":["note"],"properties":{"note":{"type":"string","description":"its name"},"limit":{"type":"integer","default":25}}}}`, 76},
		{`{"name":"ping","inputSchema":{"type":"object"}}`, 12},
	} {
		var spaced strings.Builder
		enc := json.NewEncoder(&spaced)
		enc.SetIndent("", "    ")
		if err := enc.Encode(json.RawMessage(c.text)); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{c.text, spaced.String()} {
			if got := tokens([]byte(text)); math.Abs(float64(got)/float64(c.want)-1) > 0.1 {
				t.Errorf("%d tokens, and not about %d: %s", got, c.want, text)
			}
		}
	}
}

// TestTokens: the estimate was made to fit four servers; of the tools of four others half
// are within four percent of what each tokenizer says.
func TestTokens(t *testing.T) {
	dir := os.Getenv("TALARIA_TOKENS")
	if dir == "" {
		t.Skip("TALARIA_TOKENS is not set; CONTRIBUTING.md has the command")
	}
	script, err := filepath.Abs("testdata/tokens.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var counted []struct {
		Held   bool // it had no part in the fit
		Text   string
		Counts map[string]int
	}
	if err := json.Unmarshal(out, &counted); err != nil {
		t.Fatal(err)
	}
	off := map[string][]float64{}
	for _, c := range counted {
		for name, n := range c.Counts {
			if !c.Held {
				name += ", fitted"
			}
			off[name] = append(off[name], math.Abs(float64(tokens([]byte(c.Text)))/float64(n)-1))
		}
	}
	if len(off) != 6 {
		t.Fatalf("%d sets", len(off))
	}
	for name, list := range off {
		slices.Sort(list)
		median, most := list[len(list)/2], list[len(list)-1]
		t.Logf("%-20s %d tools, median %.1f %%, at most %.1f %%", name, len(list), 100*median, 100*most)
		if median > 0.04 || most > 0.15 {
			t.Errorf("%s: median %.1f %%, at most %.1f %%", name, 100*median, 100*most)
		}
	}
}
