package schema

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/rules"
)

// patternCase is a pattern with texts and what RE2 says about them.
type patternCase struct {
	Name    string   `json:"name"`
	Pattern string   `json:"pattern"`
	Texts   []string `json:"texts"`
	Matches []bool   `json:"matches"`
}

// nodeScript runs each pattern as ECMA-262 with the u and the v flag, and
// prints what differs.
const nodeScript = `
let input = "";
process.stdin.setEncoding("utf8").on("data", d => input += d).on("end", () => {
  const out = [];
  for (const c of JSON.parse(input)) {
    for (const flag of ["u", "v"]) {
      let re;
      try { re = new RegExp(c.pattern, flag); } catch (e) {
        if (flag == "u" || !/Invalid flags/.test(e.message)) out.push(c.name + " " + flag + ": " + e.message);
        continue;
      }
      c.texts.forEach((s, i) => {
        if (re.test(s) !== c.matches[i]) out.push(c.name + " " + flag + " " + JSON.stringify(s) + ": ECMA-262 " + !c.matches[i]);
      });
    }
  }
  console.log(JSON.stringify(out));
});`

// collectPatterns finds every pattern in a schema.
func collectPatterns(s *jsonschema.Schema) []string {
	if s == nil {
		return nil
	}
	var out []string
	if s.Pattern != "" {
		out = append(out, s.Pattern)
	}
	out = append(out, collectPatterns(s.Not)...)
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf} {
		for _, sub := range list {
			out = append(out, collectPatterns(sub)...)
		}
	}
	return out
}

// TestPatternsReadAlike compares RE2 with a JavaScript engine on every emitted
// addPattern.
func TestPatternsReadAlike(t *testing.T) {
	node := testdep.LookPath(t, "node")
	var cases []patternCase
	add := func(name, pattern string, samples []string) {
		re := regexp.MustCompile(pattern)
		c := patternCase{Name: name, Pattern: pattern}
		rng := rand.New(rand.NewPCG(5, uint64(len(name))))
		for i := range 100 {
			s := samples[i%len(samples)]
			if i >= len(samples) {
				s = mutate(rng, s)
			}
			c.Texts = append(c.Texts, s)
			c.Matches = append(c.Matches, re.MatchString(s))
		}
		cases = append(cases, c)
	}
	for tag, samples := range ruleSamples {
		for _, p := range collectPatterns(emitted(compileTag(t, tag, textTarget))) {
			add(tag, p, samples)
		}
	}
	for country, p := range rules.Postcodes() {
		if p != "" {
			add("post code "+country, p, []string{"12345", "K1A 0B1", "1234 AB", "123-4567"})
		}
	}
	for _, c := range lintCases {
		if c.fix == "" {
			add("lint "+c.in, c.out, []string{"aZ_09 -.", "\t\v\u00a0", "a\nb", "é👍", "ab[]{}^", ""})
		}
	}
	add("time of day", timeOfDayPattern, []string{"23:59", "00:00:00.123456789"})
	add("local date and time", naivePattern, []string{"2024-02-29T23:59", "1900-02-28T00:00:00.1", "1999-12-31T10:00"})
	add("ISO duration", lexical.IsoDurationPattern, []string{"P1DT1H1M1S", "PT1H", "P3W"})
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "-e", nodeScript)
	cmd.Stdin = bytes.NewReader(input)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var differences []string
	if err := json.Unmarshal(output, &differences); err != nil {
		t.Fatalf("node said %s", output)
	}
	for _, d := range differences {
		t.Error(d)
	}
	if len(cases) < 100 {
		t.Errorf("only %d patterns compared", len(cases))
	}
}
