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

// keywords is a set of keywords. A schema is asked for its keywords once.
type keywords uint32

const (
	kRef keywords = 1 << iota
	kAnyOf
	kOneOf
	kAllOf
	kEnum
	kConst
	kProperties
	kAdditional
	kItems
	kPrefixItems
)

// keywordNames has the name of each keyword of a set, in the order of the bits.
var keywordNames = [...]string{"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "properties", "additionalProperties", "items", "prefixItems"}

// keywordsOf returns the keywords of s.
func keywordsOf(s map[string]any) (set keywords) {
	for i, name := range keywordNames {
		if _, there := s[name]; there {
			set |= 1 << i
		}
	}
	return set
}

// kinds is a set of types, as a schema names them.
type kinds uint8

const (
	kindString kinds = 1 << iota
	kindNumber       // or integer
	kindArray
	kindObject
	kindOther
)

// kindsOf returns the types that a schema names.
func kindsOf(s map[string]any) (set kinds) {
	switch t := s["type"].(type) {
	case string:
		return kindOf(t)
	case []any:
		for _, one := range t {
			set |= kindOf(one)
		}
	}
	return set
}

// kindOf returns the set of one type.
func kindOf(name any) kinds {
	switch name {
	case "string":
		return kindString
	case "number", "integer":
		return kindNumber
	case "array":
		return kindArray
	case "object":
		return kindObject
	}
	return kindOther
}

// may reports whether a value may be of that type, as llama.cpp reads it.
func (k kinds) may(one kinds) bool { return k == 0 || k&one != 0 }

// node is a schema that is being checked.
type node struct {
	schema map[string]any
	has    keywords
	types  kinds
	place
}

// pointer returns the place as a JSON Pointer.
func (w *walker) pointer() (pointer string) {
	for _, segment := range w.path {
		pointer += "/" + shown(escaper.Replace(segment))
	}
	return pointer
}

// escaper escapes a name for a JSON Pointer (RFC 6901), unescaper reverses it.
var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

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
	for _, k := range rareRoot {
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
	n := &node{schema: s, has: keywordsOf(s), types: kindsOf(s), place: at}
	c.types(n)
	c.values(s)
	if pattern, ok := s["pattern"].(string); ok {
		c.pattern(pattern, at.grammar && n.text())
	}
	if at.grammar {
		c.sizes(n)
	}
	c.keywords(n)
	if ref, ok := s["$ref"].(string); ok {
		c.reference(ref, at)
	}
	c.children(n)
}

// text reports whether llama.cpp reads n as a text.
func (n *node) text() bool {
	return n.types.may(kindString) && n.has&(kRef|kAnyOf|kOneOf|kConst|kEnum|kAllOf) == 0 &&
		(n.types != 0 || n.has&(kProperties|kItems|kPrefixItems) == 0)
}

// types checks what says of which type a value is.
func (c *checker) types(n *node) {
	if list, ok := n.schema["type"].([]any); ok {
		text, _ := json.Marshal(list)
		c.report("type-list", fmt.Sprintf("Gemini refuses the list of types %s", shown(string(text))))
	}
	if n.types == 0 && !n.adds && n.has&(kRef|kAnyOf|kOneOf|kAllOf) == 0 {
		switch description, _ := n.schema["description"].(string); {
		case n.has&(kEnum|kConst) != 0:
			c.reportAs("type-none", "an enum without a type is refused by Vertex", false)
		case len(c.path) > 0:
			c.reportAs("type-none", "any value is accepted, and Vertex refuses a schema without a type", description == "")
		}
	}
	_, tuple := n.schema["items"].([]any)
	switch {
	case tuple || n.has&kPrefixItems != 0:
		c.report("items", "OpenAI and Gemini refuse a tuple")
	case n.types&kindArray != 0 && n.has&kItems == 0:
		c.report("items", "OpenAI and Gemini refuse an array without items")
	}
	if n.adds || n.has&kRef != 0 {
		return
	}
	required, _ := n.schema["required"].([]any)
	properties, _ := n.schema["properties"].(map[string]any)
	for _, name := range required {
		name, _ := name.(string)
		if _, there := properties[name]; !there {
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

// ownGrammar are the formats for which llama.cpp has a grammar.
var ownGrammar = []any{"uuid", "date", "time", "date-time"}

// size checks one count.
func (c *checker) size(n *node, keyword string) {
	if count, ok := n.schema[keyword].(json.Number); ok {
		if f, err := count.Float64(); err != nil || f >= 2000 {
			c.report("repeat", fmt.Sprintf("llama.cpp refuses %s %s", keyword, shown(count.String())))
		}
	}
}

// rare are the keywords that some host refuses or deletes.
var rare = []string{"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "propertyNames", "patternProperties", "uniqueItems", "not", "if",
	"dependentRequired", "dependentSchemas", "dependencies", "contains", "unevaluatedProperties", "unevaluatedItems", "additionalItems"}

// rareRoot are the keywords at the root of arguments that rule root-if reports.
var rareRoot = []string{"if", "not", "enum", "const", "dependentRequired", "dependentSchemas", "dependencies"}

// formats are those of strings that JSON Schema has.
const formats = " date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri iri iri-reference uuid uri-template json-pointer relative-json-pointer regex "

// keywords notes keywords and formats that some host refuses.
func (c *checker) keywords(n *node) {
	for _, k := range rare {
		if v, there := n.schema[k]; there && v != false && (len(c.path) > 0 || !slices.Contains(rareRoot, k)) {
			c.report("keyword", fmt.Sprintf("llguidance or Gemini refuses %s", k))
		}
	}
	format, ok := n.schema["format"].(string)
	if !ok || strings.Contains(formats, " "+format+" ") {
		return
	}
	if n.types&kindNumber != 0 && strings.Contains(" int32 int64 float double ", " "+format+" ") {
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
			segment = unescaper.Replace(segment)
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

// children checks the schemas within n.
func (c *checker) children(n *node) {
	grammar := n.grammarParts()
	for _, k := range sorted(n.schema) {
		within := place{}
		if i := slices.Index(keywordNames[:], k); i >= 0 {
			within.grammar = n.grammar && grammar&(1<<i) != 0
		}
		v := n.schema[k]
		switch k {
		case "properties":
			c.members(k, v, within)
		case "patternProperties", "dependentSchemas":
			within.adds = k == "dependentSchemas"
			c.members(k, v, within)
		case "additionalProperties", "propertyNames", "not", "if", "then", "else", "contains", "unevaluatedProperties", "unevaluatedItems", "additionalItems":
			within.adds = true
			c.child(k, v, within)
		case "items", "anyOf", "oneOf", "allOf", "prefixItems":
			list, ok := v.([]any)
			if !ok {
				c.child(k, v, within)
				continue
			}
			within.adds = k == "allOf" || (k == "anyOf" || k == "oneOf") && n.types != 0
			if k != "items" && k != "prefixItems" && len(c.path) == 0 {
				within.adds = true // an alternative of the arguments as a whole
			}
			c.path = append(c.path, k)
			for i, v := range list {
				c.child(strconv.Itoa(i), v, within)
			}
			c.path = c.path[:len(c.path)-1]
		}
	}
}

// grammarParts returns the keywords of n whose schemas become a part of llama.cpp's
// grammar.
func (n *node) grammarParts() keywords {
	switch additional := n.has&kAdditional != 0 && n.schema["additionalProperties"] != true; {
	case n.has&kRef != 0:
		return 0
	case n.has&kOneOf != 0:
		return kOneOf
	case n.has&kAnyOf != 0:
		return kAnyOf
	case n.has&(kConst|kEnum) != 0:
		return 0
	case n.types.may(kindObject) && (n.has&kProperties != 0 || additional):
		return kProperties | kAdditional
	case n.types.may(kindArray) && n.has&kItems != 0:
		return kItems
	case n.types.may(kindArray) && n.has&kPrefixItems != 0:
		return kPrefixItems
	}
	return 0
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
