package hostrules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// walker is where the check of a schema is.
type walker struct {
	root  map[string]any
	path  []string
	depth int
	refs  map[string]bool // that were reported
}

// visited, under the key mark, marks a schema that was examined: each is once,
// however many references lead to it. JSON has no such value.
type visited struct{}

const mark = "\x00"

// pointer returns the place as a JSON Pointer.
func (w *walker) pointer() string {
	var b strings.Builder
	for _, segment := range w.path {
		b.WriteByte('/')
		b.WriteString(shown(strings.NewReplacer("~", "~0", "/", "~1").Replace(segment)))
	}
	return b.String()
}

// parse reads a schema; nil is one that is not an object.
func parse(text json.RawMessage) (schema map[string]any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&schema) != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return schema
}

// NoArguments is the schema of a tool without arguments, which every host accepts.
var NoArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// results checks a schema of results.
func (c *checker) results(text json.RawMessage) {
	if !bytes.Contains(text, []byte("schema")) {
		return // what it looks for has this in its name, and an escape of a letter there is unusual
	}
	if dialect, ok := parse(text)["$schema"].(string); ok && !strings.Contains(dialect, "2020-12") {
		c.report("dialect", fmt.Sprintf("the schema of results is of %s, and claude.ai refuses draft-07 there", shown(dialect)))
	}
}

// arguments checks a schema of arguments.
func (c *checker) arguments(text json.RawMessage) {
	if bytes.Equal(text, NoArguments) {
		return
	}
	root := parse(text)
	if root["type"] != "object" {
		c.report("root-type", "the arguments are not of type object, and Claude Code drops all tools of the server")
	}
	if root == nil {
		return
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		if _, there := root[k]; there {
			c.report("root-union", fmt.Sprintf("Claude's API refuses %s at the root", k))
		}
	}
	for _, k := range []string{"if", "not", "enum", "const", "dependentRequired", "dependentSchemas", "dependencies"} {
		if _, there := root[k]; there {
			c.report("root-if", fmt.Sprintf("Claude Code drops a tool with %s at the root", k))
		}
	}
	properties, there := root["properties"].(map[string]any)
	if !there && root["type"] == "object" {
		c.report("properties", "OpenAI refuses an object without properties")
	}
	for _, name := range sorted(properties) {
		if n := utf8.RuneCountInString(name); n == 0 || n > maxMember || strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) && r != '.' }) {
			c.path = []string{"properties", name}
			c.report("member", fmt.Sprintf("Claude's API takes 1 to 64 letters, digits, _ . and - in the name of an argument, not %q", shown(name)))
		}
	}
	if dialect, ok := root["$schema"].(string); ok && !strings.Contains(dialect, "draft-07") {
		c.path = nil
		c.report("dialect", fmt.Sprintf("the schema of arguments is of %s, and VS Code left out such tools", shown(dialect)))
	}
	c.walker = walker{root: root}
	c.schema(root, place{grammar: true})
}

// place is where a schema stands.
type place struct {
	adds    bool // to the schema around it, such as a part of allOf: it needs no type of its own
	grammar bool // llama.cpp makes a part of its grammar of it
}

// schema checks a schema and what is in it.
func (c *checker) schema(v any, at place) {
	s, ok := v.(map[string]any)
	if !ok {
		if v == true && !at.adds {
			c.report("type-none", "any value is accepted, and Vertex refuses a schema without a type")
		}
		return
	}
	if _, again := s[mark].(visited); again {
		return
	}
	s[mark] = visited{}
	if c.depth++; c.depth > MaxDepth {
		c.report("unchecked", fmt.Sprintf("lint looks %d levels deep", MaxDepth))
		c.depth--
		return
	}
	defer func() { c.depth-- }()
	types := typesOf(s)
	c.types(s, types, at)
	c.values(s)
	if pattern, ok := s["pattern"].(string); ok {
		c.pattern(pattern, at.grammar && texts(s, types))
	}
	if at.grammar {
		c.sizes(s, types)
	}
	c.keywords(s, types)
	if ref, ok := s["$ref"].(string); ok {
		c.reference(ref, at)
	}
	c.children(s, types, at)
}

// typesOf returns the types that a schema names.
func typesOf(s map[string]any) (types []string) {
	switch t := s["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		for _, one := range t {
			types = append(types, fmt.Sprint(one))
		}
	}
	return types
}

// has reports whether s has one of the keywords.
func has(s map[string]any, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(k string) bool { _, there := s[k]; return there })
}

// texts reports whether llama.cpp reads s as a text.
func texts(s map[string]any, types []string) bool {
	return (len(types) == 0 || slices.Contains(types, "string")) && !has(s, "$ref", "anyOf", "oneOf", "const", "enum", "allOf") &&
		(len(types) > 0 || !has(s, "properties", "items", "prefixItems"))
}

// types checks what says of which type a value is.
func (c *checker) types(s map[string]any, types []string, at place) {
	if list, ok := s["type"].([]any); ok {
		text, _ := json.Marshal(list)
		c.report("type-list", fmt.Sprintf("Gemini refuses the list of types %s", shown(string(text))))
	}
	if len(types) == 0 && !at.adds && !has(s, "$ref", "anyOf", "oneOf", "allOf") {
		switch description, _ := s["description"].(string); {
		case has(s, "enum", "const"):
			c.reportAs("type-none", "an enum without a type is refused by Vertex", false)
		case len(c.path) > 0:
			c.reportAs("type-none", "any value is accepted, and Vertex refuses a schema without a type", description == "")
		}
	}
	_, tuple := s["items"].([]any)
	if tuple = tuple || has(s, "prefixItems"); tuple || slices.Contains(types, "array") && !has(s, "items") {
		if tuple {
			c.report("items", "OpenAI and Gemini refuse a tuple")
		} else {
			c.report("items", "OpenAI and Gemini refuse an array without items")
		}
	}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for _, name := range required {
		if name, _ := name.(string); !at.adds && !has(s, "$ref") && !has(properties, name) {
			c.report("required", fmt.Sprintf("Gemini refuses the required name %q, which is no property", shown(name)))
		}
	}
}

// values checks enum and const.
func (c *checker) values(s map[string]any) {
	list, _ := s["enum"].([]any)
	number, blank := -1, false
	for i, v := range list {
		switch v := v.(type) {
		case json.Number, bool:
			number = max(number, i)
		case string:
			blank = blank || v == ""
		case nil:
			blank = true
		}
	}
	if number >= 0 {
		c.report("enum-number", fmt.Sprintf("Gemini takes texts in an enum, not %s", shown(fmt.Sprint(list[number]))))
	}
	if blank {
		c.report("enum-blank", "Gemini refuses an empty text or null in an enum")
	}
	switch v := s["const"].(type) {
	case json.Number, bool:
		c.report("enum-number", fmt.Sprintf("Gemini takes texts as a const, not %s", shown(fmt.Sprint(v))))
	}
	for _, k := range []string{"description", "title"} {
		if text, ok := s[k].(string); ok {
			c.hidden(k, text)
		}
	}
}

// pattern checks a regular expression. grammar is set if llama.cpp reads it.
func (c *checker) pattern(p string, grammar bool) {
	look, python := read(p)
	switch {
	case look:
		c.report("pattern-look", fmt.Sprintf("OpenAI refuses look-around, in %s", shown(p)))
	case !python:
		c.report("pattern", fmt.Sprintf("OpenAI cannot compile %s", shown(p)))
	case grammar:
		plain, most := plainly(p)
		if !plain {
			c.report("pattern-plain", fmt.Sprintf("llama.cpp cannot read %s", shown(p)))
		} else if most >= 2000 {
			c.report("repeat", fmt.Sprintf("llama.cpp refuses a repetition of %d, in %s", most, shown(p)))
		}
	}
}

// sizes checks repetitions that llama.cpp counts.
func (c *checker) sizes(s map[string]any, types []string) {
	format, _ := s["format"].(string)
	var keys []string
	switch {
	case has(s, "$ref", "anyOf", "oneOf", "const", "enum"):
		return
	case slices.Contains(types, "string") && !has(s, "pattern", "allOf") && !slices.Contains([]string{"uuid", "date", "time", "date-time"}, format):
		keys = []string{"minLength", "maxLength"}
	}
	if (len(types) == 0 || slices.Contains(types, "array")) && has(s, "items", "prefixItems") {
		keys = append(keys, "minItems", "maxItems")
	}
	for _, k := range keys {
		if n, ok := s[k].(json.Number); ok {
			if f, err := n.Float64(); err != nil || f >= 2000 {
				c.report("repeat", fmt.Sprintf("llama.cpp refuses %s %s", k, shown(n.String())))
			}
		}
	}
}

// rare are the keywords that some host refuses or deletes.
var rare = []string{"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "propertyNames", "patternProperties", "uniqueItems", "not", "if",
	"dependentRequired", "dependentSchemas", "dependencies", "contains", "unevaluatedProperties", "unevaluatedItems", "additionalItems"}

// formats are those of strings that JSON Schema has.
const formats = " date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri iri iri-reference uuid uri-template json-pointer relative-json-pointer regex "

// keywords notes keywords and formats that some host refuses.
func (c *checker) keywords(s map[string]any, types []string) {
	for _, k := range rare {
		atRoot := len(c.path) == 0 && slices.Contains([]string{"not", "if", "dependentRequired", "dependentSchemas", "dependencies"}, k) // root-if
		if v, there := s[k]; there && v != false && !atRoot {
			c.report("keyword", fmt.Sprintf("llguidance or Gemini refuses %s", k))
		}
	}
	format, ok := s["format"].(string)
	if !ok || strings.Contains(formats, " "+format+" ") {
		return
	}
	if numbers := slices.Contains(types, "integer") || slices.Contains(types, "number"); numbers && strings.Contains(" int32 int64 float double ", " "+format+" ") {
		return
	}
	c.report("format", fmt.Sprintf("llguidance or Gemini refuses the format %s", shown(format)))
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
	c.report("ref", fmt.Sprintf("Claude's managed agents and Nova refuse $ref %s", shown(ref)))
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return
	}
	var target any = c.root
	path := c.path
	c.path = nil // within reports, the place is that of the target
	if fragment != "" {
		for _, segment := range strings.Split(strings.TrimPrefix(fragment, "/"), "/") {
			segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
			switch in := target.(type) {
			case map[string]any:
				target = in[segment]
			case []any:
				target = nil
				if n, err := strconv.Atoi(segment); err == nil && 0 <= n && n < len(in) {
					target = in[n]
				}
			default:
				target = nil
			}
			if target == nil {
				break
			}
			c.path = append(c.path, segment)
		}
	}
	if target != nil {
		c.schema(target, at)
	}
	c.path = path
}

// children checks the schemas within s.
func (c *checker) children(s map[string]any, types []string, at place) {
	grammar := grammarOf(s, types)
	for _, k := range sorted(s) {
		within := place{grammar: at.grammar && slices.Contains(grammar, k)}
		switch k {
		case "properties":
			c.members(k, s[k], within)
		case "patternProperties", "dependentSchemas":
			within.adds = k == "dependentSchemas"
			c.members(k, s[k], within)
		case "additionalProperties", "propertyNames", "not", "if", "then", "else", "contains", "unevaluatedProperties", "unevaluatedItems", "additionalItems":
			within.adds = true
			c.child(k, s[k], within)
		case "items", "anyOf", "oneOf", "allOf", "prefixItems":
			list, ok := s[k].([]any)
			if !ok {
				c.child(k, s[k], within)
				continue
			}
			within.adds = k == "allOf" || (k == "anyOf" || k == "oneOf") && len(types) > 0
			if k != "items" && k != "prefixItems" && len(c.path) == 0 {
				within.adds = true // an alternative of the arguments as a whole
			}
			for i, v := range list {
				c.path = append(c.path, k)
				c.child(strconv.Itoa(i), v, within)
				c.path = c.path[:len(c.path)-1]
			}
		}
	}
}

// grammarOf returns the keywords of s whose schemas become a part of llama.cpp's
// grammar.
func grammarOf(s map[string]any, types []string) []string {
	untyped := len(types) == 0
	switch {
	case has(s, "$ref"):
		return nil
	case has(s, "oneOf"):
		return []string{"oneOf"}
	case has(s, "anyOf"):
		return []string{"anyOf"}
	case has(s, "const", "enum"):
		return nil
	case (untyped || slices.Contains(types, "object")) && (has(s, "properties") || has(s, "additionalProperties") && s["additionalProperties"] != true):
		return []string{"properties", "additionalProperties"}
	case (untyped || slices.Contains(types, "array")) && has(s, "items"):
		return []string{"items"}
	case (untyped || slices.Contains(types, "array")) && has(s, "prefixItems"):
		return []string{"prefixItems"}
	}
	return nil
}

// members checks schemas by name.
func (c *checker) members(keyword string, v any, at place) {
	named, _ := v.(map[string]any)
	c.path = append(c.path, keyword)
	for _, name := range sorted(named) {
		c.child(name, named[name], at)
	}
	c.path = c.path[:len(c.path)-1]
}

// child checks a schema one step further.
func (c *checker) child(segment string, v any, at place) {
	c.path = append(c.path, segment)
	c.schema(v, at)
	c.path = c.path[:len(c.path)-1]
}

// sorted returns the keys of m in order.
func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
