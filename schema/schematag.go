package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/rules"

	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// schemaTag is what the jsonschema tags of a field say, before the type of the
// field is taken into account: most keywords have a meaning only together with
// the type.
type schemaTag struct {
	// note holds the keywords that describe.
	note annotations
	// nullable and required are about presence, as is having a default.
	nullable, required bool
	// defaults and examples are JSON or text, depending on the type; see
	// textJSON.
	defaults, examples []string
	enum               []string
	// consts has one value; more are a mistake that is reported later.
	consts []string
	// keywords are those that check, in the order of the tag.
	keywords []keyword
}

// keyword is one checking keyword with its value as it is written.
type keyword struct {
	name, value string
}

// String returns the keyword as it is in the tag.
func (k keyword) String() string { return k.name + "=" + k.value }

// tag returns the keyword with the tag's key, as problems quote it.
func (k keyword) tag() string { return `jsonschema:"` + k.String() + `"` }

// checkingKeywords are the keywords of the tag that limit values. Those marked
// true apply to the elements if the field is a list, as in invopop's package:
// maxLength on a list of strings cannot be about the list.
var checkingKeywords = map[string]bool{
	"minLength": true, "maxLength": true, "pattern": true, "format": true,
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true,
	"minItems": false, "maxItems": false, "uniqueItems": false,
	"minProperties": false, "maxProperties": false,
}

// knownKeywords are all keywords of the tag, for suggestions.
var knownKeywords = []string{
	"title", "description", "nullable", "required", "deprecated", "readOnly", "writeOnly",
	"default", "example", "enum", "const", "minLength", "maxLength", "pattern", "format",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
}

// refusedKeywords are parts of invopop's grammar that would make schema and
// decoder disagree, or that model providers refuse, with what to write instead.
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

// schemaKeys are the keys of struct tags that this package reads for keywords.
var schemaKeys = []string{"jsonschema", "jsonschema_description", "jsonschema_extras"}

// otherKeys returns the keys of a struct tag that look like one of schemaKeys.
func otherKeys(tag string) (keys []string) {
	for start := 0; ; {
		next := strings.Index(tag[start:], schemaKeys[0])
		if next < 0 {
			return keys
		}
		at := start + next
		start = at + len(schemaKeys[0])
		key, _, ok := strings.Cut(tag[at:], `:"`)
		if ok && (at == 0 || tag[at-1] == ' ') && typeWord(key) == key && !slices.Contains(schemaKeys, key) {
			keys = append(keys, key)
		}
	}
}

// readSchemaTag parses the tags jsonschema, jsonschema_description and
// jsonschema_extras of a field. Mistakes are reported; the result is never nil.
func readSchemaTag(c *compiler, sf reflect.StructField) *schemaTag {
	st := &schemaTag{}
	if d := sf.Tag.Get("jsonschema_description"); d != "" {
		st.note.description = d
	}
	for _, key := range otherKeys(string(sf.Tag)) {
		c.report(key+`:"…"`, "there is no such tag", "known are "+strings.Join(schemaKeys, ", "))
	}
	whole := sf.Tag.Get("jsonschema")
	pieces := tags.Split(whole)
	if len(pieces) > 0 && prose(pieces[0]) {
		c.report(`jsonschema:"`+whole+`"`, "the tag is a text and no keyword", fmt.Sprintf("write a description as jsonschema_description:%q", whole))
		pieces = nil
	}
	for _, piece := range pieces {
		readKeyword(c, st, piece)
	}
	for _, piece := range tags.Split(sf.Tag.Get("jsonschema_extras")) {
		readExtra(c, st, piece)
	}
	return st
}

// foreignTags are tags in which other packages have what a tag here has.
var foreignTags = [...]struct{ key, ours string }{
	{"description", "jsonschema_description"}, {"desc", "jsonschema_description"}, {"doc", "jsonschema_description"},
	{"help", "jsonschema_description"}, {"binding", "validate"},
}

// neglected warns of tags of other packages where the tag that is read is missing.
func neglected(c *compiler, sf reflect.StructField) {
	for _, tag := range foreignTags {
		value := sf.Tag.Get(tag.key)
		if value == "" || sf.Tag.Get(tag.ours) != "" || tag.ours != "validate" && strings.Contains(sf.Tag.Get("jsonschema"), "description=") {
			continue
		}
		c.warn(fmt.Sprintf("%s:%q", tag.key, value), "the tag is not read", fmt.Sprintf("write %s:%q", tag.ours, value))
	}
}

// prose reports whether a piece of a jsonschema tag is not a keyword, nor one
// with a typing error, but text: other packages take the whole tag for a
// description.
func prose(piece string) bool {
	name, _, hasValue := strings.Cut(piece, "=")
	if slices.Contains(knownKeywords, name) || refusedKeywords[name] != "" {
		return false
	}
	return strings.Contains(strings.TrimSpace(name), " ") || !hasValue && name != "" && wording.Nearest(name, knownKeywords) == ""
}

// readKeyword reads one piece of a jsonschema tag. A flag may have no value,
// true or false; everything else has a value. Keywords that may come several
// times collect their values.
func readKeyword(c *compiler, st *schemaTag, piece string) {
	name, value, hasValue := strings.Cut(piece, "=")
	tag := `jsonschema:"` + piece + `"`
	if fix, ok := refusedKeywords[name]; ok {
		c.report(tag, name+" is not supported", fix)
		return
	}
	if !slices.Contains(knownKeywords, name) {
		fix := "known are " + strings.Join(knownKeywords, ", ")
		if near := wording.Nearest(name, knownKeywords); near != "" {
			fix = "did you mean " + near + "?"
		} else if prose(piece) {
			fix = "write a description as jsonschema_description:\"…\"; a comma in description=… is written \\\\,"
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

// flag returns the variable of a keyword that is either present or not, or nil
// for any other keyword.
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

// readExtra reads one pair of jsonschema_extras: a name used twice makes an
// array, true and false are booleans, all else is text. Keywords of JSON Schema
// are refused here, because extras reach the schema unchecked and the decoder
// would know nothing of them.
func readExtra(c *compiler, st *schemaTag, piece string) {
	name, value, ok := strings.Cut(piece, "=")
	tag := `jsonschema_extras:"` + piece + `"`
	switch {
	case !ok:
		c.report(tag, "needs a value", "write "+name+"=…")
		return
	case name == headerKeyword:
		c.report(tag, "the header name needs checks", `write mcp:"header=`+value+`"`)
		return
	case schemadoc.Vocabulary()[name]:
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

// keywordRules turns the checking keywords of a jsonschema tag into validate
// rules, so that a limit is implemented once, whatever it is called. Keywords
// without a counterpart become checks immediately. Keywords about elements are
// applied to the elements of a list; the rules for the field itself are
// returned.
func keywordRules(c *compiler, n *node, st *schemaTag) []tags.Rule {
	if n.kind == nodeInvalid {
		return nil
	}
	if n.kind == nodeNull {
		return keywordRules(c, n.elem, st)
	}
	list := n.kind == nodeList || n.kind == nodeArray
	var own, below []tags.Rule
	for _, k := range st.keywords {
		at := n
		if list && checkingKeywords[k.name] {
			at = n.elem
		}
		r, ok := keywordRule(c, at, k)
		switch {
		case !ok:
		case at == n:
			own = append(own, r)
		default:
			below = append(below, r)
		}
	}
	at := n
	if list {
		at = n.elem
	}
	addValueSets(c, at, st)
	if len(below) > 0 {
		c.ruleSet(n.elem, &tags.Rules{}, below)
	}
	return own
}

// keywordRule handles one keyword at the position that it applies to. It
// returns the equivalent rule; ok is false if there is none, because the
// keyword became a check or does not apply.
func keywordRule(c *compiler, n *node, k keyword) (tags.Rule, bool) {
	kind := c.target(n).Kind
	wrong := func() (tags.Rule, bool) {
		c.report(k.tag(), fmt.Sprintf("%s does not apply to %s", k.name, n.typ), "remove it")
		return tags.Rule{}, false
	}
	switch k.name {
	case "minLength", "maxLength":
		if kind != rules.KindText {
			return wrong()
		}
	case "minItems", "maxItems", "uniqueItems":
		if kind != rules.KindList {
			return wrong()
		}
		if k.name == "uniqueItems" {
			return tags.Rule{Name: "unique", Written: strings.TrimSuffix(k.String(), "=true"), Keyword: true}, k.value == "true"
		}
	case "minProperties", "maxProperties":
		if kind != rules.KindMap {
			return wrong()
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if kind != rules.KindInt && kind != rules.KindUint && kind != rules.KindFloat {
			return wrong()
		}
		return tags.Rule{Name: ruleOf[k.name], Param: k.value, HasParam: true, Written: k.String(), Keyword: true}, true
	case "multipleOf":
		return multipleOf(c, n, k, kind)
	case "pattern":
		if kind != rules.KindText {
			return wrong()
		}
		addPattern(c, n, k)
		return tags.Rule{}, false
	case "format":
		addFormat(c, n, k, kind)
		return tags.Rule{}, false
	}
	if _, err := strconv.ParseUint(k.value, 10, 31); err != nil {
		c.report(k.tag(), fmt.Sprintf("%q is not a length", k.value), "write "+k.name+"=0 or more")
		return tags.Rule{}, false
	}
	return tags.Rule{Name: ruleOf[k.name], Param: k.value, HasParam: true, Written: k.String(), Keyword: true}, true
}

// multipleOf adds the check of multipleOf. The step is a decimal, so that 0.3
// is a multiple of 0.1, which it is not in binary.
func multipleOf(c *compiler, n *node, k keyword, kind rules.Kind) (tags.Rule, bool) {
	step, ok := new(big.Rat).SetString(k.value)
	if !ok || step.Sign() <= 0 || !json.Valid([]byte(k.value)) {
		c.report(k.tag(), "multipleOf needs a number greater than 0", "write multipleOf=5, say")
		return tags.Rule{}, false
	}
	ck := rules.Check{Tag: k.String(), Code: "multipleOf", Want: "a multiple of " + k.value,
		Emit: func(s *jsonschema.Schema) { s.MultipleOf = json.Number(k.value) }}
	if kind != rules.KindInt && kind != rules.KindUint && kind != rules.KindFloat {
		c.report(k.tag(), fmt.Sprintf("multipleOf does not apply to %s", n.typ), "remove it")
		return tags.Rule{}, false
	}
	ck.Test = rules.NumberTest(func(v rules.Number) bool { return new(big.Rat).Quo(v.Rat(), step).IsInt() })
	n.checks = append(n.checks, ck)
	return tags.Rule{}, false
}

// addPattern adds the check of a pattern. Patterns are limited to the dialect
// that RE2 and ECMA-262 share, and are rewritten in the schema where the two
// would read them differently.
func addPattern(c *compiler, n *node, k keyword) {
	re, emitted, p := regex.Lint(k.value)
	if p != nil {
		c.report(k.tag(), p.Msg, p.Fix)
		return
	}
	n.checks = append(n.checks, rules.Check{
		Tag: k.String(), Code: "pattern", Want: "text that matches the pattern " + k.value,
		Emit: func(s *jsonschema.Schema) { schemadoc.AddPattern(s, emitted) },
		Test: rules.TextTest(re.MatchString),
	})
}

// checkFormats reports what is wrong with Options.Formats.
func checkFormats(c *compiler) {
	for _, name := range slices.Sorted(maps.Keys(c.opts.Formats)) {
		switch {
		case strings.TrimSpace(name) != name || name == "":
			c.report("Options.Formats", fmt.Sprintf("invalid name %q", name), "a name is not empty and has no white space around it")
		case lexical.Format(name) != nil:
			c.report("Options.Formats", fmt.Sprintf("the format %q is one of JSON Schema, which is always checked", name), "choose another name")
		}
	}
}

// addFormat adds the check of a format of JSON Schema or of Options.Formats. The
// standard leaves it open whether formats are asserted; here they are, so that what is
// advertised is also checked. A format without a check is a hint: it is in the schema
// of any type. On a Duration the format "duration" selects ISO 8601.
func addFormat(c *compiler, n *node, k keyword, kind rules.Kind) {
	valid, own := c.opts.Formats[k.value]
	if !own {
		valid = lexical.Format(k.value)
	}
	switch {
	case n.kind == nodeDuration && k.value == "duration" && n.unit == 0:
		n.iso = true
	case n.kind == nodeTime && k.value == "date-time":
	case valid == nil && (own || kind == rules.KindText && k.value == "password"):
		n.hint = k.value
	case valid == nil:
		c.report(k.tag(), fmt.Sprintf("unknown format %q", k.value), unknownFormat(c, k.value))
	case kind != rules.KindText:
		c.report(k.tag(), fmt.Sprintf("format does not apply to %s: %s is checked on text", n.typ, k.value), "remove it")
	default:
		n.checks = append(n.checks, rules.Check{Tag: k.String(), Code: "format", Want: "text in the format " + k.value,
			Emit: func(s *jsonschema.Schema) { schemadoc.AddFormat(s, k.value) }, Test: rules.TextTest(valid)})
	}
}

// unknownFormat says what to write for a format that is not known.
func unknownFormat(c *compiler, name string) string {
	known := slices.Concat(lexical.Formats, slices.Sorted(maps.Keys(c.opts.Formats)))
	declare := fmt.Sprintf("declare it in schema.Options.Formats, which a server takes by mcp.Options.Schema: %q: nil is a hint, and a func checks it", name)
	if near := wording.Nearest(name, known); near != "" {
		return "did you mean " + near + "? or " + declare
	}
	return "known are " + strings.Join(known, ", ") + "; or " + declare
}

// addHint adds the format of a hint to a schema. It takes the place of the format that
// an integer has by its size, which checks nothing either.
func addHint(s *jsonschema.Schema, hint string) {
	if s.Format == "int64" || s.Format == "uint64" {
		s.Format = ""
	}
	schemadoc.AddFormat(s, hint)
}

// addValueSets adds the checks of enum and const.
func addValueSets(c *compiler, n *node, st *schemaTag) {
	if len(st.enum) > 0 {
		addValueSet(c, n, "enum", st.enum)
	}
	if len(st.consts) > 1 {
		c.report(`jsonschema:"const=`+st.consts[1]+`"`, "const has two values", "use enum=… for each")
	} else if len(st.consts) == 1 {
		addValueSet(c, n, "const", st.consts)
	}
}

// addValueSet adds the check of one enum or const. Values are read as the Go
// type reads them; equal ones are reported.
func addValueSet(c *compiler, n *node, code string, texts []string) {
	values := make([]reflect.Value, 0, len(texts))
	for _, text := range texts {
		tag := `jsonschema:"` + code + "=" + text + `"`
		v := reflect.New(n.typ).Elem()
		if n.kind == nodeText {
			v = reflect.ValueOf(text)
		} else if !setText(v, n, text) {
			c.report(tag, fmt.Sprintf("%q is not a value of %s", text, n.typ), "write "+code+"= with a value of the field's type")
			return
		}
		for _, old := range values {
			if old.Interface() == v.Interface() {
				c.report(tag, "the value is there twice", "remove one")
				return
			}
		}
		values = append(values, v)
	}
	k := rules.SetCheck(code+"="+strings.Join(texts, ","), code, values)
	if !listsTexts(c, n, k) || code == "enum" && c.sameEnum(n, k) {
		return
	}
	n.checks = append(n.checks, k)
}

// setText stores a value written in a tag in v and reports whether the text is
// one. It is for the kinds that enum and const can list. Numbers must follow
// JSON's grammar, so that 0x10 and 1_000 do not reach the schema.
func setText(v reflect.Value, n *node, text string) bool {
	switch n.kind {
	case nodeString:
		v.SetString(text)
		return true
	case nodeInt:
		x, err := strconv.ParseInt(text, 10, int(n.bits))
		v.SetInt(x)
		return err == nil && json.Valid([]byte(text))
	case nodeUint:
		x, err := strconv.ParseUint(text, 10, int(n.bits))
		v.SetUint(x)
		return err == nil && json.Valid([]byte(text))
	case nodeFloat:
		x, err := strconv.ParseFloat(text, int(n.bits))
		v.SetFloat(x)
		return err == nil && json.Valid([]byte(text))
	case nodeBool:
		v.SetBool(text == "true")
		return text == "true" || text == "false"
	}
	return false
}

// ruleOf maps a keyword of the jsonschema tag to the validate rule that means
// the same.
var ruleOf = map[string]string{
	"minLength": "min", "maxLength": "max", "minItems": "min", "maxItems": "max",
	"minProperties": "min", "maxProperties": "max", "minimum": "min", "maximum": "max",
	"exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "uniqueItems": "unique",
}
