package skillhead

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

var (
	heads     = flag.Int("heads", 0, "how many heads TestAgreement makes, and asks npm's yaml and PyYAML about")
	seed      = flag.Uint64("seed", 1, "where TestAgreement begins")
	collected = flag.String("collected", "", "a directory with files named SKILL.md for TestCollected")
)

// Programs that read a JSON array of heads, and write one of what they read: an
// array with the value, or an empty one.
const (
	withNode = `
const yaml = require("yaml"), all = JSON.parse(require("fs").readFileSync(0, "utf8"));
const read = text => { try { return [yaml.parse(text, {logLevel: "silent"})] } catch (e) { return [] } };
console.log(JSON.stringify(all.map(read)));`
	withPython = `
import json, sys, yaml
def read(text):
    try:
        value = yaml.safe_load(text)
        json.dumps(value)
        def odd(v):
            if isinstance(v, dict):
                return any(not isinstance(k, str) or odd(x) for k, x in v.items())
            return isinstance(v, list) and any(map(odd, v))
        return [] if odd(value) else [value]
    except Exception:
        return []
json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)`
)

// TestAgreement: what is accepted means the same to npm's yaml and to PyYAML.
// -heads says how many of them, which .ci/long does.
func TestAgreement(t *testing.T) {
	if *heads == 0 {
		t.Skip("-heads is 0; .ci/long has more")
	}
	node, python := testdep.LookPath(t, "node"), testdep.LookPath(t, "python3")
	modules := testdep.Env(t, "TALARIA_MODULES", ".ci/long sets it: a directory with npm's yaml")
	rnd := rand.New(rand.NewPCG(*seed, 2))
	var texts []string
	var read []any
	for range *heads {
		head := mutated(rnd, made(rnd))
		if fields, err := Parse(head); err == nil {
			texts, read = append(texts, head), append(read, fields)
		}
	}
	t.Logf("%d of %d heads were accepted", len(texts), *heads)
	if len(texts) < *heads/10 {
		t.Error("too few heads were accepted for the test to say much")
	}
	agree(t, texts, read, modules, node, "-e", withNode)
	agree(t, texts, read, modules, python, "-c", withPython)
}

// agree compares what a program reads with what was read.
func agree(t *testing.T, texts []string, read []any, modules, program string, args ...string) {
	t.Helper()
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	var theirs [][]any
	if err := dec.Decode(&theirs); err != nil || len(theirs) != len(texts) {
		t.Fatalf("%s: %d answers, %v", program, len(theirs), err)
	}
	differ := 0
	for i, value := range theirs {
		if len(value) == 1 && Equal(read[i], value[0]) {
			continue
		}
		if differ++; differ <= 10 {
			ours, _ := json.Marshal(read[i])
			other, _ := json.Marshal(value)
			t.Errorf("%s reads %q\nas      %s\nand not %s", filepath.Base(program), texts[i], other, ours)
		}
	}
	if differ > 10 {
		t.Errorf("%s: %d heads differ", filepath.Base(program), differ)
	}
}

// TestCollected: heads that people have written are accepted, as far as they are
// what the format says.
func TestCollected(t *testing.T) {
	if *collected == "" {
		t.Skip("-collected names no directory")
	}
	files, accepted := 0, 0
	err := filepath.WalkDir(*collected, func(name string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "SKILL.md") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("---")) {
			t.Logf("%s has no head", name)
			return nil
		}
		files++
		head, err := Split(text, true)
		if err == nil {
			_, err = Parse(head)
		}
		if err != nil {
			t.Logf("%s: %v", name, err)
			return nil
		}
		accepted++
		return nil
	})
	t.Logf("%d of %d are accepted", accepted, files)
	if err != nil || files == 0 || accepted*100 < files*95 {
		t.Errorf("too few: %v", err)
	}
}

// scalars are what a value may be, in the forms that libraries differ about and
// those that they do not.
var scalars = []string{
	"text", "some text", "Read, Grep, Bash(git:*)", "a: b", "a #b", "a # b", "true", "false", "null", "~", "yes", "No", "on", "OFF", "True", "y",
	"1", "-1", "0", "-0", "+1", "014", "0o14", "0x1f", "0b11", "1_000", "1:30", "190:20:30", "1.5", "1.0", "-0.5", ".5", "5.", "1e3", "1.5e3", "1.5e+3", "1e-3", ".inf", "-.inf", ".NaN", "nan", "inf",
	"12345678901234567890", "123456789012345", "1234567890123456", "0.123456789012345", "2026-01-02", "2026-1-2", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05", "1.2.3", "1.2.3-rc1", "v1.2", "10.0.0.1",
	"=", "<<", "-", "--", "-a", "- a", "?", "? a", "?a", ":", ":a", "a:", "a:b", "http://x.org/?a=b#c", "*a", "&a b", "!a b", "!!str a", "|", ">", "%a", "@a", "`a`", "[", "]", "{", "}", "[a]", "[a, b]", "{a: b}", "[a: b]", "{a}", "[[a], {b: [c]}]",
	"'a'", "'a''b'", "'a", "\"a\"", "\"a\\nb\"", "\"a\\tb\\\\ \\\" \\/ \\u00e9\"", "\"\\x41\"", "\"\\e\"", "'a' b", "\"a\"b", "\"a\" # b", "'a: b'", "\"1\"", "'yes'", "é ü 😀", "a\u00a0b", "a\u2028b", "a\u0085b", "a\tb", "#a", "", "",
	"'2026-01-02'", "[1, 'x', true, null]", "{a: 1, \"b\": [x]}", "[a, b,]", "[]", "{}", "[a,b]", "{a:b}", "[\"a\",'b']", "[a b, c-d]", "[?a]", "[a?]", "[-a]", "[- a]", "[a#b]", "[a #b]", "[http://x.y]", "[a:b]", "{\"a\":b}", "{? a: b}",
	"e", "E5", "x", "1a", "1 a", "1, 2", "1 2", "12e", "0xg", "0o8", "00", "-01", "1-2", "+a", ".a", "..", "...a", "Infinity", "NULL", "Null", "_1", "1__0", "0.", "-.5", "1:2:3.5", "1,000", "1,000.5",
}

var keys = []string{"name", "description", "license", "metadata", "allowed-tools", "a", "b", "a b", "'a'", "\"b c\"", "on", "1", "null", "x-y_z", "é", "a.b", "<<", "-a", "a:b", "a#b", "~", "2026-01-02", "[a]", "?", "__proto__"}

// made makes a head.
func made(rnd *rand.Rand) string {
	var b strings.Builder
	makeMapping(rnd, &b, 0, 0)
	return b.String()
}

func pick(rnd *rand.Rand, from []string) string { return from[rnd.IntN(len(from))] }

func makeMapping(rnd *rand.Rand, b *strings.Builder, indent, depth int) {
	for i := range 1 + rnd.IntN(4) {
		key := pick(rnd, keys[:8])
		if rnd.IntN(4) == 0 {
			key = pick(rnd, keys)
		}
		if rnd.IntN(4) > 0 {
			key = strings.Trim(key, `"'`) + string(rune('A'+i))
		}
		b.WriteString(strings.Repeat(" ", indent) + key + ":")
		makeValue(rnd, b, indent, depth)
		if rnd.IntN(12) == 0 {
			b.WriteString(pick(rnd, []string{"\n", "# c\n", "   # c\n"}))
		}
	}
}

func makeValue(rnd *rand.Rand, b *strings.Builder, indent, depth int) {
	deeper := indent + 1 + rnd.IntN(4)
	pad := strings.Repeat(" ", deeper)
	text := func() string {
		if rnd.IntN(3) > 0 {
			return pick(rnd, []string{"text", "some text", "and more.", "é!", "a, b"})
		}
		return pick(rnd, scalars)
	}
	switch n := rnd.IntN(14); {
	case n < 6 || depth > 3:
		b.WriteString(" " + text() + "\n")
	case n < 8:
		b.WriteString(pick(rnd, []string{" |", " >", " |-", " >-", " |+", " >+", " |2", " > # c"}) + "\n")
		if rnd.IntN(4) == 0 {
			b.WriteString("\n")
		}
		for range rnd.IntN(5) {
			switch rnd.IntN(6) {
			case 0:
				b.WriteString("\n")
			case 1:
				b.WriteString(pad + "  " + text() + "\n")
			default:
				b.WriteString(pad + text() + pick(rnd, []string{"", "", "", " ", "  "}) + "\n")
			}
		}
	case n < 9:
		b.WriteString(" " + text() + "\n")
		for range 1 + rnd.IntN(3) {
			b.WriteString(pick(rnd, []string{"", "", "\n"}) + pad + text() + "\n")
		}
	case n < 10:
		quote := pick(rnd, []string{"'", "\""})
		b.WriteString(" " + quote + "first ")
		for range 1 + rnd.IntN(3) {
			b.WriteString(pick(rnd, []string{"\n", "\n\n", " \n  \n"}) + pad + pick(rnd, []string{"a", "b  ", "# c", "- d", "e: f", ""}))
		}
		b.WriteString(quote + "\n")
	case n < 12:
		b.WriteString("\n")
		if rnd.IntN(3) == 0 {
			pad, deeper = strings.Repeat(" ", indent), indent
		}
		for range 1 + rnd.IntN(3) {
			b.WriteString(pad + "-")
			switch rnd.IntN(4) {
			case 0:
				b.WriteString(" " + pick(rnd, keys) + ": " + text() + "\n" + pad + "  z: " + text() + "\n")
			case 1:
				makeValue(rnd, b, deeper, depth+1)
			default:
				b.WriteString(" " + text() + "\n")
			}
		}
	case n < 13:
		b.WriteString("\n" + pad + text() + "\n")
	default:
		b.WriteString("\n")
		makeMapping(rnd, b, deeper, depth+1)
	}
}

// mutated changes some heads in a place or two.
func mutated(rnd *rand.Rand, head string) string {
	for range rnd.IntN(3) {
		at := rnd.IntN(len(head) + 1)
		switch rnd.IntN(5) {
		case 0:
			head = head[:at] + pick(rnd, []string{" ", "\n", "  ", "#", ":", ": ", "-", "- ", "'", "\"", "[", "]", "{", "}", ",", "|", ">", "&", "*", "!", "?", "\\", "%", "\t", "\n\n", "é", "~", "0", "1", "."}) + head[at:]
		case 1:
			if at < len(head) && head[at] < 0x80 {
				head = head[:at] + head[at+1:]
			}
		}
	}
	return strings.TrimRight(head, "\n") + "\n"
}

// TestMade: the generator makes heads of many kinds, the same from the same seed.
func TestMade(t *testing.T) {
	one, two := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	kinds := map[string]int{}
	for range 200 {
		head := made(one)
		if other := made(two); other != head {
			t.Fatalf("%q and %q", head, other)
		}
		for _, mark := range []string{": |", ": >", "- ", ": '", ": [", "\n\n"} {
			if strings.Contains(head, mark) {
				kinds[mark]++
			}
		}
	}
	if len(kinds) < 6 {
		t.Error(fmt.Sprint(kinds))
	}
}
