package hostrules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// The bounds of Check, for servers that are not trusted.
const (
	MaxTools  = 20_000
	MaxBytes  = 32 << 20 // of schemas and descriptions
	MaxDepth  = 64       // of a schema
	maxPlaces = 20       // reported of one rule in one tool
	maxShown  = 80       // bytes of a peer's text in a finding
)

const (
	maxName        = 64
	maxMember      = 64
	maxDescription = 2048 // of Claude Code
	maxLong        = 1024 // of OpenAI's chat completions
	maxListed      = 100
	maxTokens      = 10_000
)

// Check returns what hosts do not accept of the tools of one server, by rule in the
// order of Rules, then in the order of tools. server is its name in the
// configuration of a host, which precedes names there; "" is unknown.
func Check(server string, tools []protocol.Tool) []Finding {
	c := newChecker()
	c.notes = (*checker).note
	alike := map[string]string{} // names by what remains of them without case and separators
	bytes, tokens := 0, 0
	for i := range tools {
		t := &tools[i]
		if bytes += len(t.InputSchema) + len(t.OutputSchema) + len(t.Description); i == MaxTools || bytes > MaxBytes {
			c.tool = ""
			c.report("unchecked", fmt.Sprintf("%d of %d tools are not checked, since there are more than %d, or 32 MiB", len(tools)-i, len(tools), MaxTools), "")
			break
		}
		c.begin(t.Name)
		c.name(server, t.Name)
		c.alike(alike, t.Name)
		c.description(t.Description)
		if n := utf8.RuneCountInString(t.Description); maxLong < n && n <= maxDescription {
			c.report("text-long", "the description has % characters, and OpenAI's chat completions accept 1,024", strconv.Itoa(n))
		}
		c.hidden("description", t.Description)
		c.hidden("title", t.Title)
		if a := t.Annotations; a == nil || a.ReadOnlyHint == nil && a.DestructiveHint == nil {
			c.report("hints", "VS Code asks before each call, and directories want a hint", "")
		}
		c.arguments(t.InputSchema)
		c.results(t.OutputSchema)
		tokens += (len(t.Name) + len(t.Description) + len(t.InputSchema)) / 4
	}
	c.begin("")
	if n := len(tools); n > maxListed {
		c.report("tools", "% tools; OpenAI and Copilot accept 128 of all servers, Cursor 80", strconv.Itoa(n))
	}
	if tokens > maxTokens {
		c.report("tokens", "the list has about % tokens", strconv.Itoa(tokens))
	}
	return c.all()
}

// Server returns what hosts do not accept of the tools and the instructions of a server:
// the result of Check, then that of Instructions and of hidden characters in them.
func Server(server string, tools []protocol.Tool, instructions string) []Finding {
	c := newChecker()
	c.instructions(instructions)
	c.hidden("instructions", instructions)
	return append(Check(server, tools), c.all()...)
}

// Tool returns what a server may log of one of its tools: the rules with Warns, and those
// with Fails of its schema of arguments. The others are found by Check only, so that
// a server does not link them. nil instead of a schema is one that every host accepts.
func Tool(name, description string, schema json.RawMessage) []Finding {
	c := newChecker()
	c.begin(name)
	c.name("", name)
	c.description(description)
	if schema != nil {
		c.arguments(schema)
	}
	return c.all()
}

// Name returns what hosts do not accept of the name of a tool.
func Name(name string) []Finding {
	c := newChecker()
	c.begin(name)
	c.name("", name)
	return c.all()
}

// Instructions returns what a server logs of its instructions.
func Instructions(text string) []Finding {
	c := newChecker()
	c.instructions(text)
	return c.all()
}

// checker gathers findings, by the index of the rule.
type checker struct {
	found  [][]Finding
	tool   string                // that is being checked, fit to be shown
	places map[string]int        // by rule, how many this tool has
	notes  func(*checker, *node) // finds what servers do not log, in a schema; nil finds nothing
	walker
}

// newChecker returns a checker without findings.
func newChecker() *checker { return &checker{found: make([][]Finding, len(Rules))} }

// all returns the findings in the order of Rules.
func (c *checker) all() []Finding { return slices.Concat(c.found...) }

// index returns where a rule is in the table; it panics if it is not there.
func index(id string) int {
	for i := range Rules {
		if Rules[i].ID == id {
			return i
		}
	}
	panic("hostrules: there is no rule " + id)
}

// begin makes a tool the one that is being checked.
func (c *checker) begin(name string) {
	c.tool = visible.Line(name, visible.Name)
	c.places = nil
	c.walker = walker{}
}

// report adds a finding at the place of the walker. The last % in text stands for what,
// which may be a peer's.
func (c *checker) report(id, text, what string) { c.reportAs(id, text, what, true) }

// reportAs is report for a finding that is not logged although its rule is.
func (c *checker) reportAs(id, text, what string, warn bool) {
	if c.places[id] == maxPlaces {
		return
	}
	if i := strings.LastIndexByte(text, '%'); i >= 0 {
		text = text[:i] + shown(what) + text[i+1:]
	}
	if c.places == nil {
		c.places = map[string]int{}
	}
	if c.places[id]++; c.places[id] == maxPlaces {
		text += " (further places are not listed)"
	}
	at := index(id)
	rule := &Rules[at]
	c.found[at] = append(c.found[at], Finding{Rule: rule, Tool: c.tool, Path: c.pointer(), Text: text, Warn: rule.Warns && warn})
}

// name checks the name of a tool.
func (c *checker) name(server, name string) {
	if !plainName(name, "-") {
		c.report("name", "Claude Desktop and OpenAI take letters, digits, _ and - only", "")
	}
	n := utf8.RuneCountInString(name)
	whole := len("mcp__") + utf8.RuneCountInString(server) + len("__") + n
	switch {
	case n > maxName:
		c.report("name-long", "it has % characters, and Claude's API and OpenAI accept 64", strconv.Itoa(n))
	case server != "" && whole > maxName:
		c.report("name-long", "mcp__"+visible.Line(server, visible.Name)+"__"+c.tool+" has % characters, and Claude's API accepts 64", strconv.Itoa(whole))
	}
}

// alike reports a name that differs from an earlier one in case and separators only.
func (c *checker) alike(earlier map[string]string, name string) {
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-./ ", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	if other, taken := earlier[key]; taken && other != c.tool {
		c.report("name-alike", "hosts that rewrite names take it for %", other)
	} else {
		earlier[key] = c.tool
	}
}

// plainName reports whether a name has letters and digits of ASCII, _ and the other
// characters only, and is not empty.
func plainName(name, other string) bool {
	for _, r := range name {
		if letter := r | 0x20; (letter < 'a' || 'z' < letter) && (r < '0' || '9' < r) && r != '_' && !strings.ContainsRune(other, r) {
			return false
		}
	}
	return name != ""
}

// description checks the description of a tool.
func (c *checker) description(text string) {
	if strings.TrimSpace(text) == "" {
		c.report("text-none", "it has no description, and Bedrock refuses it", "")
	} else if n := utf8.RuneCountInString(text); n > maxDescription {
		c.report("text-2048", "the description has % characters, and Claude Code cuts it at 2,048", strconv.Itoa(n))
	}
}

// instructions checks the instructions of a server.
func (c *checker) instructions(text string) {
	if n := utf8.RuneCountInString(text); n > maxDescription {
		c.report("text-2048", "the instructions have % characters, and Claude Code cuts them at 2,048", strconv.Itoa(n))
	}
}

// hidden reports a character that is not seen.
func (c *checker) hidden(what, text string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shown := visible.Text(text, 0)
	if shown == text {
		return
	}
	for _, r := range text {
		as, n := utf8.DecodeRuneInString(shown)
		if as != r {
			c.report("text-hidden", fmt.Sprintf("the %s has %U, and scanners refuse it", what, r), "")
			return
		}
		shown = shown[n:]
	}
}

// shown returns text of a peer for a finding.
func shown(text string) string { return visible.Line(text, maxShown) }
