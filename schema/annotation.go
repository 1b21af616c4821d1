package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// schemaTag is what the jsonschema tags of a field say.
type schemaTag struct {
	note               annotations
	nullable, required bool
	defaults, examples []string
	enum               []string
	consts             []string
	keywords           []keyword // the rest: those that check
}

type keyword struct {
	name, value string
}

func (k keyword) String() string { return k.name + "=" + k.value }

func (k keyword) tag() string { return `jsonschema:"` + k.String() + `"` }

// checkingKeywords are the keywords of the tag that limit values. Those marked
// true are meant for the elements when the field is a list.
var checkingKeywords = map[string]bool{
	"minLength": true, "maxLength": true, "pattern": true, "format": true,
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true,
	"minItems": false, "maxItems": false, "uniqueItems": false,
	"minProperties": false, "maxProperties": false,
}

var knownKeywords = []string{
	"title", "description", "nullable", "required", "deprecated", "readOnly", "writeOnly",
	"default", "example", "enum", "const", "minLength", "maxLength", "pattern", "format",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
}

// refusedKeywords are parts of the grammar that would make schema and decoder
// say different things, or that model providers refuse.
var refusedKeywords = map[string]string{
	"type":                 "change the Go type, or give the type a JSONSchema method",
	"anchor":               "remove it: nothing can refer to it",
	"oneof_required":       "use validate:\"required_without=…\" and excluded_with",
	"anyof_required":       "use validate:\"required_without=…\"",
	"oneof_ref":            "declare an interface and list its variants with schema.Union",
	"anyof_ref":            "declare an interface and list its variants with schema.Union",
	"oneof_type":           "use a type with a JSONSchema method",
	"anyof_type":           "use a type with a JSONSchema method",
	"additionalProperties": "put it on a blank field of the struct: _ struct{} `jsonschema:\"additionalProperties=true\"`",
}

// schemaTag parses the tags jsonschema, jsonschema_description and
// jsonschema_extras.
func (c *compiler) schemaTag(sf reflect.StructField) *schemaTag {
	st := &schemaTag{}
	if d := sf.Tag.Get("jsonschema_description"); d != "" {
		st.note.description = d
	}
	for _, piece := range splitTag(sf.Tag.Get("jsonschema")) {
		c.schemaKeyword(st, piece)
	}
	for _, piece := range splitTag(sf.Tag.Get("jsonschema_extras")) {
		c.extra(st, piece)
	}
	return st
}

func (c *compiler) schemaKeyword(st *schemaTag, piece string) {
	name, value, hasValue := strings.Cut(piece, "=")
	tag := `jsonschema:"` + piece + `"`
	if fix, ok := refusedKeywords[name]; ok {
		c.report(tag, name+" is not supported", fix)
		return
	}
	if !slices.Contains(knownKeywords, name) {
		fix := "known are " + strings.Join(knownKeywords, ", ")
		if near := nearest(name, knownKeywords); near != "" {
			fix = "did you mean " + near + "?"
		}
		c.report(tag, fmt.Sprintf("unknown keyword %q", name), fix)
		return
	}
	if flag := st.flag(name); flag != nil {
		on, err := strconv.ParseBool(value)
		if hasValue && err != nil {
			c.report(tag, name+" is either there or true or false", "write just "+name)
			return
		}
		*flag = on || !hasValue
		return
	}
	if name == "uniqueItems" && !hasValue {
		value, hasValue = "true", true
	}
	if !hasValue {
		c.report(tag, name+" needs a value", "write "+name+"=…")
		return
	}
	switch name {
	case "title":
		st.note.title = value
	case "description":
		if st.note.description != "" && st.note.description != value {
			c.report(tag, "the field has a description already", "keep one of jsonschema_description and description=")
		}
		st.note.description = value
	case "default":
		st.defaults = append(st.defaults, value)
	case "example":
		st.examples = append(st.examples, value)
	case "enum":
		st.enum = append(st.enum, value)
	case "const":
		st.consts = append(st.consts, value)
	default:
		st.keywords = append(st.keywords, keyword{name, value})
	}
}

// flag returns where the keyword that is just there or not is kept.
func (st *schemaTag) flag(name string) *bool {
	switch name {
	case "nullable":
		return &st.nullable
	case "required":
		return &st.required
	case "deprecated":
		return &st.note.deprecated
	case "readOnly":
		return &st.note.readOnly
	case "writeOnly":
		return &st.note.writing
	}
	return nil
}

// extra reads one pair of jsonschema_extras: a name used twice makes an array,
// true and false are booleans, all else is text.
func (c *compiler) extra(st *schemaTag, piece string) {
	name, value, ok := strings.Cut(piece, "=")
	tag := `jsonschema_extras:"` + piece + `"`
	switch {
	case !ok:
		c.report(tag, "needs a value", "write "+name+"=…")
		return
	case name == headerKeyword:
		c.report(tag, "the header name needs checks", `write mcp:"header=`+value+`"`)
		return
	case vocabulary[name]:
		c.report(tag, name+" is a JSON Schema keyword, and extras are not checked", "put it into the jsonschema tag")
		return
	}
	if st.note.extras == nil {
		st.note.extras = map[string]any{}
	}
	switch old := st.note.extras[name].(type) {
	case nil:
		var v any = value
		if value == "true" || value == "false" {
			v = value == "true"
		}
		st.note.extras[name] = v
	case []any:
		st.note.extras[name] = append(old, value)
	default:
		st.note.extras[name] = []any{old, value}
	}
}

// splitTag splits at commas that no backslash precedes and that are not inside
// a JSON array or object after '='.
func splitTag(tag string) []string {
	if tag == "" {
		return nil
	}
	var pieces []string
	var b strings.Builder
	level, inText := 0, false
	for i := 0; i < len(tag); i++ {
		switch ch := tag[i]; {
		case ch == '\\' && i+1 < len(tag) && tag[i+1] == ',':
			b.WriteByte(',')
			i++
			continue
		case level > 0 && ch == '"' && tag[i-1] != '\\':
			inText = !inText
		case inText:
		case (ch == '[' || ch == '{') && (level > 0 || jsonStart(b.String())):
			level++
		case (ch == ']' || ch == '}') && level > 0:
			level--
		case ch == ',' && level == 0:
			pieces = append(pieces, b.String())
			b.Reset()
			continue
		}
		b.WriteByte(tag[i])
	}
	return append(pieces, b.String())
}

// jsonStart tells whether what follows is a JSON value: after default= and the
// like, not inside a pattern.
func jsonStart(s string) bool {
	return s == "default=" || s == "example="
}

// annotate puts the describing keywords on a node.
func (c *compiler) annotate(n *node, st *schemaTag) {
	n.note = st.note
	if st.note.writing {
		n.secret = true
	}
	if n.kind == nodeAny && n.note.description == "" {
		c.warn("", "any value is accepted and nothing describes it", `add jsonschema_description:"…"`)
	}
}
