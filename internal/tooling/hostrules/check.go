package hostrules

import (
	"bytes"
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
func Name(name string) []Finding { return Tool(name, "-", nil) }

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
	places []int                 // by rule, how many this tool has
	notes  func(*checker, *node) // finds what servers do not log, in a schema; nil finds nothing
	walker
}

// newChecker returns a checker without findings.
func newChecker() *checker {
	return &checker{found: make([][]Finding, len(Rules)), places: make([]int, len(Rules))}
}

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
	clear(c.places)
	c.walker = walker{}
}

// report adds a finding at the place of the walker. The last % in text stands for what,
// which may be a peer's.
func (c *checker) report(id, text, what string) { c.reportAs(id, text, what, true) }

// reportAs is report for a finding that is not logged although its rule is.
func (c *checker) reportAs(id, text, what string, warn bool) {
	at := index(id)
	if c.places[at] == maxPlaces {
		return
	}
	if i := strings.LastIndexByte(text, '%'); i >= 0 {
		text = text[:i] + shown(what) + text[i+1:]
	}
	if c.places[at]++; c.places[at] == maxPlaces {
		text += " (further places are not listed)"
	}
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

// results checks a schema of results.
func (c *checker) results(text json.RawMessage) {
	if !bytes.Contains(text, []byte("schema")) {
		return // what it looks for has this in its name, and an escape of a letter there is unusual
	}
	if dialect, ok := parse(text)["$schema"].(string); ok && !strings.Contains(dialect, "2020-12") {
		c.report("dialect", "the schema of results is of %, and claude.ai refuses draft-07 there", dialect)
	}
}

// note notes keywords and formats that some host refuses, and hidden characters.
func (c *checker) note(n *node) {
	if dialect, ok := n.schema["$schema"].(string); ok && len(c.path) == 0 && !strings.Contains(dialect, "draft-07") {
		c.report("dialect", "the schema of arguments is of %, and VS Code left out such tools", dialect)
	}
	for _, k := range []string{"description", "title"} {
		if text, ok := n.schema[k].(string); ok {
			c.hidden(k, text)
		}
	}
	for _, k := range rare {
		if v, there := n.schema[k]; there && v != false && (len(c.path) > 0 || !slices.Contains(rareRoot[:], k)) {
			c.report("keyword", "llguidance or Gemini refuses %", k)
		}
	}
	format, ok := n.schema["format"].(string)
	if !ok || strings.Contains(formats, " "+format+" ") {
		return
	}
	if n.types&kindNumber != 0 && strings.Contains(" int32 int64 float double ", " "+format+" ") {
		return
	}
	c.report("format", "llguidance or Gemini refuses the format %", format)
}

// arguments checks a schema of arguments.
func (c *checker) arguments(text json.RawMessage) {
	root := parse(text)
	object := root["type"] == "object"
	if !object {
		c.report("root-type", "the arguments are not of type object, and Claude Code drops all tools of the server", "")
	}
	if root == nil {
		return
	}
	for _, k := range unions {
		if _, there := root[k]; there {
			c.report("root-union", "Claude's API refuses % at the root", k)
		}
	}
	for _, k := range rareRoot {
		if _, there := root[k]; there {
			c.report("root-if", "Claude Code drops a tool with % at the root", k)
		}
	}
	properties, there := root["properties"].(map[string]any)
	if !there && object {
		c.report("properties", "OpenAI refuses an object without properties", "")
	}
	for _, name := range namesOf(properties) {
		if len(name) > maxMember || !plainName(name, "-.") {
			c.path = []string{"properties", name}
			c.report("member", "Claude's API takes 1 to 64 letters, digits, _ . and - in the name of an argument, not \"%\"", name)
		}
	}
	c.walker = walker{root: root}
	c.schema(root, place{grammar: true})
}

// schema checks a schema and what is in it.
func (c *checker) schema(v any, at place) {
	s, ok := v.(map[string]any)
	if !ok {
		if v == true && !at.adds {
			c.report("type-none", "any value is accepted, and Vertex refuses a schema without a type", "")
		}
		return
	}
	if _, again := s[mark].(visited); again {
		return
	}
	s[mark] = visited{}
	if c.depth++; c.depth > MaxDepth {
		c.report("unchecked", "lint looks % levels deep", strconv.Itoa(MaxDepth))
	} else {
		c.node(&node{schema: s, has: keywordsOf(s), types: kindsOf(s), place: at})
	}
	c.depth--
}

// node checks what a schema has, and what is in it.
func (c *checker) node(n *node) {
	c.types(n)
	c.values(n.schema)
	if pattern, ok := n.schema["pattern"].(string); ok {
		c.pattern(pattern, n.grammar && n.text())
	}
	if n.grammar {
		c.sizes(n)
	}
	if c.notes != nil {
		c.notes(c, n)
	}
	if ref, ok := n.schema["$ref"].(string); ok {
		c.reference(ref, n.place)
	}
	c.children(n)
}

// types checks what says of which type a value is.
func (c *checker) types(n *node) {
	if list, ok := n.schema["type"].([]any); ok {
		text, _ := json.Marshal(list)
		c.report("type-list", "Gemini refuses the list of types %", string(text))
	}
	if n.types == 0 && !n.adds && n.has&(kRef|kAnyOf|kOneOf|kAllOf) == 0 {
		switch description, _ := n.schema["description"].(string); {
		case n.has&(kEnum|kConst) != 0:
			c.reportAs("type-none", "an enum without a type is refused by Vertex", "", false)
		case len(c.path) > 0:
			c.reportAs("type-none", "any value is accepted, and Vertex refuses a schema without a type", "", description == "")
		}
	}
	_, tuple := n.schema["items"].([]any)
	switch {
	case tuple || n.has&kPrefixItems != 0:
		c.report("items", "OpenAI and Gemini refuse a tuple", "")
	case n.types&kindArray != 0 && n.has&kItems == 0:
		c.report("items", "OpenAI and Gemini refuse an array without items", "")
	}
	if n.adds || n.has&kRef != 0 {
		return
	}
	required, _ := n.schema["required"].([]any)
	properties, _ := n.schema["properties"].(map[string]any)
	for _, name := range required {
		name, _ := name.(string)
		if _, there := properties[name]; !there {
			c.report("required", "Gemini refuses the required name \"%\", which is not a property", name)
		}
	}
}

// values checks enum and const.
func (c *checker) values(s map[string]any) {
	list, _ := s["enum"].([]any)
	number, blank := "", false
	for _, v := range list {
		if n := numeral(v); n != "" {
			number = n
		}
		blank = blank || v == "" || v == nil
	}
	if number != "" {
		c.report("enum-number", "Gemini takes texts in an enum, not %", number)
	}
	if blank {
		c.report("enum-blank", "Gemini refuses an empty text or null in an enum", "")
	}
	if n := numeral(s["const"]); n != "" {
		c.report("enum-number", "Gemini takes texts as a const, not %", n)
	}
}

// pattern checks a regular expression. grammar is set if llama.cpp reads it.
func (c *checker) pattern(p string, grammar bool) {
	look, python := read(p)
	switch {
	case look:
		c.report("pattern-look", "OpenAI refuses look-around, in %", p)
	case !python:
		c.report("pattern", "OpenAI cannot compile %", p)
	case grammar:
		plain, most := plainly(p)
		if !plain {
			c.report("pattern-plain", "llama.cpp cannot read %", p)
		} else if most >= 2000 {
			c.report("repeat", "llama.cpp refuses a repetition of "+strconv.Itoa(most)+", in %", p)
		}
	}
}

// sizes checks repetitions that llama.cpp counts.
func (c *checker) sizes(n *node) {
	if n.has&(kRef|kAnyOf|kOneOf|kConst|kEnum) != 0 {
		return
	}
	if _, pattern := n.schema["pattern"]; n.types&kindString != 0 && !pattern && n.has&kAllOf == 0 && !slices.Contains(ownGrammar, n.schema["format"]) {
		c.size(n, "minLength")
		c.size(n, "maxLength")
	}
	if n.types.may(kindArray) && n.has&(kItems|kPrefixItems) != 0 {
		c.size(n, "minItems")
		c.size(n, "maxItems")
	}
}

// size checks one count.
func (c *checker) size(n *node, keyword string) {
	if count, ok := n.schema[keyword].(json.Number); ok {
		if f, err := count.Float64(); err != nil || f >= 2000 {
			c.report("repeat", "llama.cpp refuses "+keyword+" %", string(count))
		}
	}
}

// reference checks a $ref and follows it.
func (c *checker) reference(ref string, at place) {
	if c.refs[ref] {
		return
	}
	if c.refs == nil {
		c.refs = map[string]bool{}
	}
	c.refs[ref] = true
	c.report("ref", "Claude's managed agents and Nova refuse $ref %", ref)
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return
	}
	var target any = c.root
	path := c.path
	c.path = nil                                               // within reports, the place is that of the target
	for _, segment := range strings.Split(fragment, "/")[1:] { // an item of a list is checked where it stands
		segment = unescaped(segment)
		in, _ := target.(map[string]any)
		target = in[segment]
		c.path = append(c.path, segment)
	}
	c.schema(target, at)
	c.path = path
}

// children checks the schemas within n.
func (c *checker) children(n *node) {
	grammar := n.grammarParts()
	for i := range below {
		b := &below[i]
		v, there := n.schema[b.name]
		if !there {
			continue
		}
		within := place{adds: b.adds, grammar: n.grammar && grammar&b.keyword != 0}
		if b.keyword&(kAnyOf|kOneOf) != 0 && (n.types != 0 || len(c.path) == 0) {
			within.adds = true // alternatives of what has a type, or of the arguments as a whole
		}
		c.path = append(c.path, b.name)
		switch v := v.(type) {
		case map[string]any:
			if !b.named {
				c.schema(v, within)
				break
			}
			for _, name := range namesOf(v) {
				c.child(name, v[name], within)
			}
		case []any:
			for i, v := range v {
				c.child(strconv.Itoa(i), v, within)
			}
		default:
			c.schema(v, within)
		}
		c.path = c.path[:len(c.path)-1]
	}
}

// child checks a schema one step further.
func (c *checker) child(segment string, v any, at place) {
	c.path = append(c.path, segment)
	c.schema(v, at)
	c.path = c.path[:len(c.path)-1]
}
