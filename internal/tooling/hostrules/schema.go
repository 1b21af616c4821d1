package hostrules

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
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
		pointer += "/" + shown(escaped(segment))
	}
	return pointer
}

// escaped escapes a name for a JSON Pointer (RFC 6901), unescaped reverses it.
func escaped(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func unescaped(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
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
	for _, name := range sorted(properties) {
		if len(name) > maxMember || !plainName(name, "-.") {
			c.path = []string{"properties", name}
			c.report("member", "Claude's API takes 1 to 64 letters, digits, _ . and - in the name of an argument, not \"%\"", name)
		}
	}
	c.walker = walker{root: root}
	c.schema(root, place{grammar: true})
}

// unions are the keywords of alternatives and of schemas that all apply.
var unions = [...]string{"anyOf", "oneOf", "allOf"}

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
	if c.notes != nil {
		c.notes(c, n)
	}
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

// numeral returns a number or a boolean as JSON has it, and "" for another value.
func numeral(v any) string {
	switch v := v.(type) {
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
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

// ownGrammar are the formats for which llama.cpp has a grammar.
var ownGrammar = []any{"uuid", "date", "time", "date-time"}

// size checks one count.
func (c *checker) size(n *node, keyword string) {
	if count, ok := n.schema[keyword].(json.Number); ok {
		if f, err := count.Float64(); err != nil || f >= 2000 {
			c.report("repeat", "llama.cpp refuses "+keyword+" %", string(count))
		}
	}
}

// rareRoot are the keywords at the root of arguments that rule root-if reports.
var rareRoot = [...]string{"if", "not", "enum", "const", "dependentRequired", "dependentSchemas", "dependencies"}

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
	c.path = nil // within reports, the place is that of the target
	if fragment != "" {
		for _, segment := range strings.Split(strings.TrimPrefix(fragment, "/"), "/") {
			segment = unescaped(segment)
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

// below are the keywords that have schemas, in order. adds is set for those whose schemas
// need no type of their own, named for those with a schema for each name.
var below = [...]struct {
	name        string
	keyword     keywords
	named, adds bool
}{
	{name: "additionalItems", adds: true},
	{name: "additionalProperties", adds: true, keyword: kAdditional},
	{name: "allOf", adds: true, keyword: kAllOf},
	{name: "anyOf", keyword: kAnyOf},
	{name: "contains", adds: true},
	{name: "dependentSchemas", adds: true, named: true},
	{name: "else", adds: true},
	{name: "if", adds: true},
	{name: "items", keyword: kItems},
	{name: "not", adds: true},
	{name: "oneOf", keyword: kOneOf},
	{name: "patternProperties", named: true},
	{name: "prefixItems", keyword: kPrefixItems},
	{name: "properties", named: true, keyword: kProperties},
	{name: "propertyNames", adds: true},
	{name: "then", adds: true},
	{name: "unevaluatedItems", adds: true},
	{name: "unevaluatedProperties", adds: true},
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
			for _, name := range sorted(v) {
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
