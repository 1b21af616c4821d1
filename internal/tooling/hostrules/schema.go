package hostrules

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
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
	list, _ := s["type"].([]any)
	if one, is := s["type"].(string); is {
		list = []any{one}
	}
	for _, name := range list {
		switch name {
		case "string":
			set |= kindString
		case "number", "integer":
			set |= kindNumber
		case "array":
			set |= kindArray
		case "object":
			set |= kindObject
		default:
			set |= kindOther
		}
	}
	return set
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

// escaped escapes a name for a JSON Pointer (RFC 6901).
func escaped(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// unescaped undoes escaped.
func unescaped(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// namesOf returns the names of members in order.
func namesOf(members map[string]any) []string { return slices.Sorted(maps.Keys(members)) }

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

// unions are the keywords of alternatives and of schemas that all apply.
var unions = [...]string{"anyOf", "oneOf", "allOf"}

// place is where a schema stands.
type place struct {
	adds    bool // to the schema around it, such as a part of allOf: it needs no type of its own
	grammar bool // llama.cpp makes a part of its grammar of it
}

// text reports whether llama.cpp reads n as a text.
func (n *node) text() bool {
	return n.types.may(kindString) && n.has&(kRef|kAnyOf|kOneOf|kConst|kEnum|kAllOf) == 0 &&
		(n.types != 0 || n.has&(kProperties|kItems|kPrefixItems) == 0)
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

// ownGrammar are the formats for which llama.cpp has a grammar.
var ownGrammar = []any{"uuid", "date", "time", "date-time"}

// rareRoot are the keywords at the root of arguments that rule root-if reports.
var rareRoot = [...]string{"if", "not", "enum", "const", "dependentRequired", "dependentSchemas", "dependencies"}

// rare are the keywords that some host refuses or deletes. Only lint notes them.
var rare = []string{"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "propertyNames", "patternProperties", "uniqueItems", "not", "if",
	"dependentRequired", "dependentSchemas", "dependencies", "contains", "unevaluatedProperties", "unevaluatedItems", "additionalItems"}

// formats are those of strings that JSON Schema has.
const formats = " date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri iri iri-reference uuid uri-template json-pointer relative-json-pointer regex "

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
