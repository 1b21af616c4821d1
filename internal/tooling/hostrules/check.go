package hostrules

import (
	"fmt"
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
	c := &checker{alike: map[string]string{}, found: make([][]Finding, len(Rules))}
	bytes := 0
	for i := range tools {
		t := &tools[i]
		if bytes += len(t.InputSchema) + len(t.OutputSchema) + len(t.Description); i == MaxTools || bytes > MaxBytes {
			c.tool = ""
			c.report("unchecked", fmt.Sprintf("%d of %d tools are not checked, since there are more than %d, or 32 MiB", len(tools)-i, len(tools), MaxTools))
			break
		}
		c.begin(t.Name)
		c.name(server, t)
		c.description(t.Description)
		c.hidden("title", t.Title)
		if a := t.Annotations; a == nil || a.ReadOnlyHint == nil && a.DestructiveHint == nil {
			c.report("hints", "VS Code asks before each call, and directories want a hint")
		}
		c.arguments(t.InputSchema)
		c.results(t.OutputSchema)
		c.tokens += (len(t.Name) + len(t.Description) + len(t.InputSchema)) / 4
	}
	c.begin("")
	if n := len(tools); n > maxListed {
		c.report("tools", fmt.Sprintf("%d tools; OpenAI and Copilot accept 128 of all servers, Cursor 80", n))
	}
	if c.tokens > maxTokens {
		c.report("tokens", fmt.Sprintf("the list has about %d tokens", c.tokens))
	}
	var all []Finding
	for _, findings := range c.found {
		all = append(all, findings...)
	}
	return all
}

// Server returns what hosts do not accept of the tools and the instructions of a server:
// the result of Check, then that of Instructions.
func Server(server string, tools []protocol.Tool, instructions string) []Finding {
	return append(Check(server, tools), Instructions(instructions)...)
}

// Name returns what hosts do not accept of the name of a tool.
func Name(name string) []Finding {
	c := &checker{alike: map[string]string{}, found: make([][]Finding, len(Rules))}
	c.begin(name)
	c.name("", &protocol.Tool{Name: name})
	return append(c.found[index("name")], c.found[index("name-long")]...)
}

// Instructions returns what hosts do not accept of the instructions of a server.
func Instructions(text string) (all []Finding) {
	if text == "" {
		return nil
	}
	c := &checker{found: make([][]Finding, len(Rules))}
	if n := utf8.RuneCountInString(text); n > maxDescription {
		c.report("text-2048", fmt.Sprintf("the instructions have %d characters, and Claude Code cuts them at 2,048", n))
	}
	c.hidden("instructions", text)
	for _, findings := range c.found {
		all = append(all, findings...)
	}
	return all
}

// checker gathers findings, by the index of the rule.
type checker struct {
	found  [][]Finding
	tool   string            // that is being checked, fit to be shown
	places map[string]int    // by rule, how many this tool has
	alike  map[string]string // names by what remains of them without case and separators
	tokens int
	walker
}

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

// report adds a finding at the place of the walker.
func (c *checker) report(id, text string) { c.reportAs(id, text, true) }

// reportAs is report for a finding that is not logged although its rule is.
func (c *checker) reportAs(id, text string, warn bool) {
	if c.places[id] == maxPlaces {
		return
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
func (c *checker) name(server string, t *protocol.Tool) {
	n := utf8.RuneCountInString(t.Name)
	if n == 0 || strings.ContainsFunc(t.Name, func(r rune) bool { return !nameRune(r) }) {
		c.report("name", "Claude Desktop and OpenAI take letters, digits, _ and - only")
	}
	whole := len("mcp__") + utf8.RuneCountInString(server) + len("__") + n
	switch {
	case n > maxName:
		c.report("name-long", fmt.Sprintf("it has %d characters, and Claude's API and OpenAI accept 64", n))
	case server != "" && whole > maxName:
		c.report("name-long", fmt.Sprintf("mcp__%s__%s has %d characters, and Claude's API accepts 64", visible.Line(server, visible.Name), c.tool, whole))
	}
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-./ ", r) {
			return -1
		}
		return r
	}, strings.ToLower(t.Name))
	if other, taken := c.alike[key]; taken && other != c.tool {
		c.report("name-alike", fmt.Sprintf("hosts that rewrite names take it for %s", other))
	} else {
		c.alike[key] = c.tool
	}
}

// nameRune reports whether every host accepts r in a name.
func nameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// description checks the description of a tool.
func (c *checker) description(text string) {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		c.report("text-none", "it has no description, and Bedrock refuses it")
	case n > maxDescription:
		c.report("text-2048", fmt.Sprintf("the description has %d characters, and Claude Code cuts it at 2,048", n))
	case n > maxLong:
		c.report("text-long", fmt.Sprintf("the description has %d characters, and OpenAI's chat completions accept 1,024", n))
	}
	c.hidden("description", text)
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
			c.report("text-hidden", fmt.Sprintf("the %s has %U, and scanners refuse it", what, r))
			return
		}
		shown = shown[n:]
	}
}

// shown returns text of a peer for a finding.
func shown(text string) string { return visible.Line(text, maxShown) }
