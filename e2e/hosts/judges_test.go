package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/zoo"
	"github.com/talaria-go/mcp/schema"
)

// installed is who sets the variables.
const installed = "e2e/run hosts installs the judges"

// judge runs a program that judges the lines, and returns the lines that it writes.
func judge(t *testing.T, lines [][]byte, program string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = bytes.NewReader(append(bytes.Join(lines, []byte("\n")), '\n'))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %.2000s", program, err, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// judgeEach is judge for a program that writes one line for each.
func judgeEach(t *testing.T, lines [][]byte, program string, args ...string) []string {
	t.Helper()
	verdicts := judge(t, lines, program, args...)
	if len(verdicts) != len(lines) {
		t.Fatalf("%s: %d verdicts on %d schemas", program, len(verdicts), len(lines))
	}
	return verdicts
}

// llama says of each schema why llama.cpp refuses it, or "ok".
func llama(t *testing.T, schemas [][]byte) []string {
	t.Helper()
	return judgeEach(t, schemas, testdep.Env(t, "E2E_LLAMA", installed))
}

// control is a schema that a judge refuses, so that a judge who refuses nothing is
// found out.
func control(member string) []byte {
	return fmt.Appendf(nil, `{"type":"object","properties":{"bad":%s}}`, member)
}

// cases are those of the zoo.
var cases = sync.OnceValue(zoo.Cases)

// arguments returns the schemas of arguments of the zoo, and the names of its types.
func arguments() (names []string, schemas [][]byte) {
	for _, c := range cases() {
		names = append(names, c.Group+" "+c.Name)
		schemas = append(schemas, c.Plan.Internal(facts.Private{}).Narrow)
	}
	return names, schemas
}

// llama.cpp makes a grammar of every schema.
func TestLlama(t *testing.T) {
	names, schemas := arguments()
	bad := [][]byte{
		control(`{"type":"string","pattern":"^[\\-]$"}`), control(`{"type":"string","pattern":"^(?:a)$"}`), control(`{"type":"string","pattern":"a"}`),
		control(`{"type":"string","maxLength":5000}`), control(`{"not":{"const":"a"}}`),
	}
	verdicts := llama(t, append(schemas, bad...))
	for i, verdict := range verdicts {
		switch {
		case i < len(names) && verdict != "ok":
			t.Errorf("%s: %s: %s", names[i], verdict, schemas[i])
		case i >= len(names) && verdict == "ok":
			t.Errorf("it takes %s", bad[i-len(names)])
		}
	}
}

// Of what the judges in Python refuse, refused.txt has all.
func TestPython(t *testing.T) {
	names, schemas := arguments()
	bad := map[string][]byte{
		"re": control(`{"type":"string","pattern":"^\\p{L}$"}`), "llguidance": control(`{"type":"string","not":{"const":"a"}}`),
		"anthropic": control(`{"type":["string","null"]}`), "google-genai": control(`{"type":"integer","exclusiveMinimum":0}`),
	}
	order := slices.Sorted(maps.Keys(bad))
	for _, judge := range order {
		schemas = append(schemas, bad[judge])
	}
	script, err := filepath.Abs("judges/python.py")
	if err != nil {
		t.Fatal(err)
	}
	refused, keywords := map[string][]string{}, map[string]int{}
	for i, line := range judgeEach(t, schemas, testdep.Env(t, "E2E_JUDGES", installed), script) {
		var verdicts map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &verdicts); err != nil || len(verdicts) != len(order) {
			t.Fatalf("%s: %v", line, err)
		}
		if i >= len(names) {
			judge := order[i-len(names)]
			if v := string(verdicts[judge]); v == `""` || v == `[]` {
				t.Errorf("%s takes %s", judge, schemas[i])
			}
			continue
		}
		for _, judge := range order {
			var why string
			var unknown []string
			if json.Unmarshal(verdicts[judge], &why) == nil && why != "" {
				refused[judge] = append(refused[judge], names[i]+": "+why)
			}
			if json.Unmarshal(verdicts[judge], &unknown) == nil {
				for _, k := range unknown {
					keywords[k]++
				}
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keywords)) {
		refused["google-genai"] = append(refused["google-genai"], fmt.Sprintf("%s: %d types", k, keywords[k]))
	}
	golden, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for line := range strings.Lines(string(golden)) {
		if judge, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok && !strings.HasPrefix(line, "#") {
			want[judge] = append(want[judge], text)
		}
	}
	for _, judge := range order {
		t.Run(judge, func(t *testing.T) {
			for _, line := range refused[judge] {
				if !slices.Contains(want[judge], line) {
					t.Errorf("it refuses %s", line)
				}
			}
			for _, line := range want[judge] {
				if !slices.Contains(refused[judge], line) {
					t.Errorf("it no longer refuses %s", line)
				}
			}
		})
	}
}

// The client of the TypeScript SDK lists and calls tools of all schemas, and Ajv has
// nothing to say.
func TestTypeScript(t *testing.T) {
	node, modules := testdep.Env(t, "E2E_NODE", installed), testdep.Env(t, "E2E_MODULES", installed)
	names, schemas := arguments()
	type tool struct {
		Name         string          `json:"name"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	lines := func(tools []tool) (lines [][]byte) {
		for _, one := range tools {
			line, err := json.Marshal(one)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		return lines
	}
	var tools []tool
	for i, c := range cases() {
		opts := zoo.Options()
		opts.Output = true
		result := json.RawMessage(`{"type":"object"}`)
		switch plan, err := schema.Compile(c.Type, opts); {
		case c.Group == zoo.Corner: // of narrowing, which results are without
		case err == nil:
			result = plan.JSON()
		case !strings.Contains(names[i], "pet"): // which is not a result
			t.Fatalf("%s: %v", names[i], err)
		}
		tools = append(tools, tool{names[i], schemas[i], result})
	}
	dir := t.TempDir() // imports look for packages beside the program
	source, err := os.ReadFile("judges/typescript.mjs")
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	program := filepath.Join(dir, "judge.mjs")
	if err == nil {
		err = os.WriteFile(program, source, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// What it has to say is of the controls.
	format, good := control(`{"type":"integer","format":"uint64"}`), json.RawMessage(`{"type":"object"}`)
	tools = append(tools, tool{"bad arguments", format, good}, tool{"bad results", good, format}, tool{"bad pattern", control(`{"type":"string","pattern":"("}`), good})
	said := judge(t, lines(tools), node, program)
	want := []string{
		`the list: unknown format "uint64" ignored in schema at path "#/properties/bad"`,
		`bad arguments: unknown format "uint64" ignored in schema at path "#/properties/bad"`,
		`bad pattern: arguments: Invalid regular expression: /(/u: Unterminated group`,
	}
	if slices.Sort(said); !slices.Equal(slices.Compact(said), slices.Sorted(slices.Values(want))) {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}
