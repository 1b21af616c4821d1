package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// tree is a schema as encoding/json decodes it, with numbers as json.Number.
type tree = map[string]any

// schemas makes the schemas of arguments of those of a document. A reference stays one,
// to a member of $defs; each is converted once, when an operation first needs it. It is
// for one run of Tools.
type schemas struct {
	doc      *document
	names    map[string]string // of definitions, by reference
	defs     map[string]*definition
	subtypes map[string][]subtype       // of bases with a discriminator, by reference
	bases    map[string]bool            // references that are bases
	heirs    func() map[string][]string // schemas that have another one in their allOf, by the reference to that
}

// definition is a member of $defs. It is converted on first use.
type definition struct {
	ref  string
	own  bool // of a base with a discriminator: what the base itself says
	tree any  // nil before it is converted
	err  error
}

// subtype is one choice of a discriminator.
type subtype struct {
	ref    string
	values []any
}

// ownSuffix names the definition of what a base itself says.
const ownSuffix = "_own"

// newSchemas returns what converts schemas of a document.
func newSchemas(d *document) *schemas {
	return &schemas{doc: d, names: map[string]string{}, defs: map[string]*definition{}, subtypes: map[string][]subtype{}, bases: map[string]bool{},
		heirs: sync.OnceValue(d.heirs)}
}

// unsafeName is what a name of a definition does not have.
var unsafeName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// reference returns the reference to the definition of what ref leads to.
func (s *schemas) reference(ref string, own bool) tree {
	key := ref
	if own {
		key += ownSuffix
	}
	name, known := s.names[key]
	if !known {
		name = unsafeName.ReplaceAllString(ref[strings.LastIndexByte(ref, '/')+1:], "_")
		if own {
			name += ownSuffix
		}
		for base, i := name, 2; s.defs[name] != nil; i++ {
			name = fmt.Sprint(base, "_", i)
		}
		s.names[key] = name
		s.defs[name] = &definition{ref: ref, own: own}
	}
	return tree{"$ref": "#/$defs/" + name}
}

// definition returns the converted definition with a name.
func (s *schemas) definition(name string) (any, error) {
	def := s.defs[name]
	if def.tree == nil && def.err == nil {
		def.tree, def.err = s.define(def)
	}
	return def.tree, def.err
}

// define converts what a definition refers to.
func (s *schemas) define(def *definition) (any, error) {
	text, err := s.doc.at(def.ref)
	if err != nil {
		return nil, err
	}
	value := decode(text)
	schema, ok := value.(tree)
	if !ok {
		return s.convert(value, false), nil
	}
	if choices := s.choices(def.ref, schema); len(choices) > 0 && !def.own {
		var all []any
		for _, c := range choices {
			all = append(all, s.choice(c, c.ref == def.ref || s.isBase(c.ref), schema["discriminator"].(tree)))
		}
		return tree{"oneOf": all}, nil
	}
	return s.convert(schema, true), nil
}

// inlined returns what a schema, or the definition that it refers to, says.
func (s *schemas) inlined(schema any) (tree, error) {
	t, _ := schema.(tree)
	for range maxHops {
		ref, ok := t["$ref"].(string)
		if !ok {
			return t, nil
		}
		def, err := s.definition(strings.TrimPrefix(ref, "#/$defs/"))
		if err != nil {
			return nil, err
		}
		t, _ = def.(tree)
	}
	return nil, errors.New("its references lead nowhere")
}

// choices returns the subtypes of a base with a discriminator: those that its mapping
// names, and the schemas that have the base in their allOf. A schema that lists its
// choices itself is not a base.
func (s *schemas) choices(ref string, schema tree) []subtype {
	if known, done := s.subtypes[ref]; done {
		return known
	}
	s.subtypes[ref] = nil
	d, ok := schema["discriminator"].(tree)
	if name, _ := d["propertyName"].(string); !ok || name == "" || schema["oneOf"] != nil || schema["anyOf"] != nil {
		return nil
	}
	found := mapped(d)
	bases := []string{ref}
	for _, t := range found {
		bases = append(bases, t.ref)
	}
	for ; len(bases) > 0; bases = bases[1:] { // a subtype has subtypes
		for _, own := range s.heirs()[bases[0]] {
			if own != ref && !slices.ContainsFunc(found, func(t subtype) bool { return t.ref == own }) {
				found, bases = append(found, subtype{own, []any{plainName(own)}}), append(bases, own)
			}
		}
	}
	if len(found) > 0 && d["mapping"] == nil { // the base may be one of them
		found = append(found, subtype{ref, []any{plainName(ref)}})
	}
	s.subtypes[ref], s.bases[ref] = found, len(found) > 0
	return found
}

// heirs returns the references to schemas that have another one in their allOf, by the
// reference to that, in the order of the document.
func (d *document) heirs() map[string][]string {
	all := map[string][]string{}
	for _, m := range membersOf(d.components()["schemas"]) {
		if !bytes.Contains(m.value, []byte(`"allOf"`)) {
			continue
		}
		for _, part := range objectOf(m.value).list("allOf") {
			if ref := objectOf(part).text("$ref"); ref != "" {
				all[ref] = append(all[ref], "#/components/schemas/"+escape(m.name))
			}
		}
	}
	return all
}

// mapped returns the choices that the mapping of a discriminator names.
func mapped(discriminator tree) []subtype {
	mapping, _ := discriminator["mapping"].(tree)
	var found []subtype
	for _, value := range sortedKeys(mapping) {
		ref, _ := mapping[value].(string)
		if !strings.Contains(ref, "/") && !strings.Contains(ref, "#") {
			ref = "#/components/schemas/" + escape(ref)
		}
		if !strings.HasPrefix(ref, "#/") {
			continue // in another document
		}
		if i := slices.IndexFunc(found, func(t subtype) bool { return t.ref == ref }); i >= 0 {
			found[i].values = append(found[i].values, value)
			continue
		}
		found = append(found, subtype{ref, []any{value}})
	}
	return found
}

// choice returns the schema of one choice, with the values that select it.
func (s *schemas) choice(c subtype, own bool, discriminator tree) tree {
	name, _ := discriminator["propertyName"].(string)
	value := tree{"const": c.values[0]}
	if len(c.values) > 1 {
		value = tree{"enum": c.values}
	}
	return tree{"allOf": []any{s.reference(c.ref, own), tree{"properties": tree{name: value}, "required": []any{name}}}}
}

// isBase reports whether a reference leads to a base with a discriminator.
func (s *schemas) isBase(ref string) bool {
	if _, done := s.subtypes[ref]; !done {
		text, err := s.doc.at(ref)
		if err != nil || !bytes.Contains(text, []byte(`"discriminator"`)) {
			s.subtypes[ref] = nil
			return false
		}
		schema, _ := decode(text).(tree)
		s.choices(ref, schema)
	}
	return s.bases[ref]
}

// The forms of keywords that are kept; others are left out. A keyword whose value has
// another form is left out, too.
type form int

const (
	text form = iota
	yesNo
	count
	number
	positive
	anything
	subschema
	subschemas
	properties
	enumeration
	nameList
)

var keywords = map[string]form{
	"title": text, "description": text, "format": text, "contentEncoding": text, "contentMediaType": text,
	"uniqueItems": yesNo, "deprecated": yesNo,
	"minLength": count, "maxLength": count, "minItems": count, "maxItems": count, "minProperties": count, "maxProperties": count,
	"minContains": count, "maxContains": count,
	"minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number, "multipleOf": positive,
	"const": anything,
	"items": subschema, "additionalProperties": subschema, "not": subschema, "contains": subschema, "propertyNames": subschema,
	"if": subschema, "then": subschema, "else": subschema, "unevaluatedProperties": subschema, "unevaluatedItems": subschema,
	"allOf": subschemas, "anyOf": subschemas, "oneOf": subschemas, "prefixItems": subschemas,
	"properties": properties, "patternProperties": properties, "dependentSchemas": properties,
	"enum": enumeration, "required": nameList,
}

// convert returns a schema of the document as one of draft 2020-12. top is set for a
// definition as such, whose allOf names the bases of a subtype.
func (s *schemas) convert(value any, top bool) any {
	in, ok := value.(tree)
	if !ok {
		if no, isBool := value.(bool); isBool && !no {
			return false
		}
		return tree{}
	}
	if ref, ok := in["$ref"].(string); ok {
		return s.referring(ref, in)
	}
	out := tree{}
	for name, v := range in {
		if f, known := keywords[name]; known {
			if kept, ok := s.keyword(f, v); ok {
				out[name] = kept
			}
		}
	}
	if list, ok := in["allOf"].([]any); ok && top {
		s.inherit(list, out)
	}
	if choices := s.told(in); choices != nil {
		delete(out, "anyOf")
		out["oneOf"] = choices
	}
	s.types(in, out)
	fitting(out)
	bounds(in, out)
	members(out)
	s.withoutReadOnly(in, out)
	notes(in, out)
	return nullable(in, out)
}

// referring returns a reference and its sibling keywords, which have no meaning in
// 3.0, except nullable and the description, which documents often have there.
func (s *schemas) referring(ref string, in tree) any {
	out := s.reference(ref, false)
	beside := tree{}
	for name, v := range in {
		if name != "$ref" && name != "nullable" && (!s.doc.old || name == "description" || name == "default") {
			beside[name] = v
		}
	}
	more, _ := s.convert(beside, false).(tree)
	maps.Copy(out, more)
	if in["nullable"] == true {
		return tree{"anyOf": []any{out, tree{"type": "null"}}}
	}
	return out
}

// inherit points the bases of a subtype at what they say themselves: with their choices
// a subtype would contain itself.
func (s *schemas) inherit(list []any, out tree) {
	converted, _ := out["allOf"].([]any)
	for i, part := range list {
		p, _ := part.(tree)
		if ref, ok := p["$ref"].(string); ok && i < len(converted) && s.isBase(ref) {
			converted[i] = s.reference(ref, true)
		}
	}
}

// told returns the choices of a schema that lists them and has a discriminator, with the
// values that select them; nil for any other schema.
func (s *schemas) told(in tree) []any {
	d, ok := in["discriminator"].(tree)
	list, _ := in["oneOf"].([]any)
	if list == nil {
		list, _ = in["anyOf"].([]any)
	}
	if name, _ := d["propertyName"].(string); !ok || name == "" {
		return nil
	}
	named, some := mapped(d), false
	var choices []any
	for _, part := range list {
		p, _ := part.(tree)
		ref, ok := p["$ref"].(string)
		if some = some || ok; !ok { // such as null
			choices = append(choices, s.convert(part, false))
			continue
		}
		c := subtype{ref: ref, values: []any{plainName(ref)}}
		if i := slices.IndexFunc(named, func(t subtype) bool { return t.ref == ref }); i >= 0 {
			c = named[i]
		}
		choices = append(choices, s.choice(c, false, d))
	}
	if !some {
		return nil
	}
	return choices
}

// plainName returns the name that a reference ends with.
func plainName(ref string) string {
	return unescaping.Replace(ref[strings.LastIndexByte(ref, '/')+1:])
}

// keyword returns the value of a keyword, or false if it does not have the form.
func (s *schemas) keyword(f form, v any) (any, bool) {
	list, isList := v.([]any)
	switch f {
	case text:
		_, ok := v.(string)
		return v, ok
	case yesNo:
		_, ok := v.(bool)
		return v, ok
	case count:
		r, ok := rational(v)
		return v, ok && r.Sign() >= 0 && r.IsInt()
	case number:
		_, ok := rational(v)
		return v, ok
	case positive:
		r, ok := rational(v)
		return v, ok && r.Sign() > 0
	case anything:
		return v, handy(v)
	case subschema:
		if isList {
			return nil, false
		}
		return s.convert(v, false), true
	case subschemas:
		all := make([]any, len(list))
		for i, item := range list {
			all[i] = s.convert(item, false)
		}
		return all, len(all) > 0
	case properties:
		in, ok := v.(tree)
		out := tree{}
		for name, p := range in {
			out[name] = s.convert(p, false)
		}
		return out, ok
	case nameList:
		all := distinct(list, func(v any) bool { _, ok := v.(string); return ok })
		return all, len(all) > 0
	default:
		all := distinct(list, handy)
		return all, len(all) > 0
	}
}

// handy reports whether a value has no number that package raw refuses.
func handy(v any) bool {
	switch v := v.(type) {
	case json.Number:
		_, ok := rational(v)
		return ok
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !handy(item) })
	case tree:
		for _, item := range v {
			if !handy(item) {
				return false
			}
		}
	}
	return true
}

// rational returns the value of a number that is written with few digits.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 40 || strings.ContainsAny(n.String(), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}

// distinct returns the items that pass, each once.
func distinct(list []any, pass func(any) bool) []any {
	var all []any
	seen := map[string]bool{}
	for _, item := range list {
		if key := string(encoded(item)); pass(item) && !seen[key] {
			seen[key] = true
			all = append(all, item)
		}
	}
	return all
}

// encoded returns what was decoded as JSON, without the escapes that HTML needs.
func encoded(v any) []byte {
	text, _ := jsonx.Plain(v) // what was decoded encodes
	return text
}

// typeNames are the types of JSON Schema.
var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// types keeps types that exist. An array says what its items are.
func (s *schemas) types(in, out tree) {
	var all []any
	switch t := in["type"].(type) {
	case string:
		all = []any{t}
	case []any:
		all = distinct(t, func(any) bool { return true })
	}
	all = slices.DeleteFunc(all, func(v any) bool {
		name, _ := v.(string)
		return !slices.Contains(typeNames, name)
	})
	switch len(all) {
	case 0:
		return
	case 1:
		out["type"] = all[0]
	default:
		out["type"] = all
	}
	if slices.Contains(all, any("array")) && out["items"] == nil {
		out["items"] = tree{}
	}
}

// fitting writes the members of an enumeration in the type of the schema: documents have
// numbers for texts, as YAML reads those without quotes, and texts for numbers.
func fitting(out tree) {
	list, _ := out["enum"].([]any)
	all := make([]any, len(list))
	for i, v := range list {
		all[i] = v
		switch text, isText := v.(string); out["type"] {
		case "string":
			switch v.(type) {
			case json.Number, bool:
				all[i] = fmt.Sprint(v)
			}
		case "integer", "number":
			if n := json.Number(text); isText && json.Valid([]byte(text)) && text == strings.TrimSpace(text) && handy(n) {
				all[i] = n
			}
		case "boolean":
			if isText && (text == "true" || text == "false") {
				all[i] = text == "true"
			}
		}
	}
	if list != nil {
		out["enum"] = distinct(all, handy)
	}
}

// bounds writes the exclusive bounds of 3.0, which are booleans, as numbers.
func bounds(in, out tree) {
	for exclusive, inclusive := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if limit, ok := out[inclusive]; ok && in[exclusive] == true {
			out[exclusive] = limit
			delete(out, inclusive)
		}
	}
}

// withoutReadOnly leaves members out that only responses have, also of what the parts of an allOf
// require of each other. A part that is a reference requires what it says.
func (s *schemas) withoutReadOnly(in, out tree) {
	list, _ := in["allOf"].([]any)
	names := map[any]bool{}
	for _, part := range append(slices.Clone(list), in) {
		p, _ := part.(tree)
		if ref, ok := p["$ref"].(string); ok {
			if text, err := s.doc.at(ref); err == nil && bytes.Contains(text, []byte(`"readOnly"`)) {
				p, _ = decode(text).(tree)
			}
		}
		props, _ := p["properties"].(tree)
		for name, prop := range props {
			names[name] = s.isReadOnly(prop)
		}
	}
	props, _ := out["properties"].(tree)
	maps.DeleteFunc(props, func(name string, _ any) bool { return names[name] })
	converted, _ := out["allOf"].([]any)
	for _, part := range append(slices.Clone(converted), out) {
		p, _ := part.(tree)
		required, _ := p["required"].([]any)
		kept := slices.DeleteFunc(slices.Clone(required), func(v any) bool { return names[v] })
		if len(kept) > 0 {
			p["required"] = kept
		} else {
			delete(p, "required")
		}
	}
}

// isReadOnly reports whether a schema, or what it refers to, says readOnly.
func (s *schemas) isReadOnly(v any) bool {
	p, _ := v.(tree)
	if ref, ok := p["$ref"].(string); ok {
		text, err := s.doc.at(ref)
		return err == nil && bytes.Contains(text, []byte(`"readOnly"`)) && objectOf(text).yes("readOnly")
	}
	return p["readOnly"] == true
}

// notes adds to the description what the schema cannot say: a pattern that Go cannot
// read, and the default. As a keyword, a default would be filled in and sent: a change
// of one member would then reset the others.
func notes(in, out tree) {
	var more []string
	if pattern, ok := in["pattern"].(string); ok {
		if _, err := regexp.Compile(portable(pattern)); err == nil {
			out["pattern"] = portable(pattern)
		} else if len(pattern) <= 200 {
			more = append(more, "Pattern: "+pattern)
		}
	}
	if v, ok := in["default"]; ok && v != nil {
		if text := encoded(v); len(text) <= 100 {
			more = append(more, "Default: "+string(text))
		}
	}
	if len(more) > 0 {
		said, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(strings.TrimSpace(said) + "\n" + strings.Join(more, "\n"))
	}
}

// members writes the patterns of members as Go reads them. If it cannot read one, any member
// is taken.
func members(out tree) {
	patterns, _ := out["patternProperties"].(tree)
	kept := make(tree, len(patterns))
	for pattern, schema := range patterns {
		if _, err := regexp.Compile(portable(pattern)); err != nil {
			delete(out, "patternProperties")
			delete(out, "additionalProperties")
			return
		}
		kept[portable(pattern)] = schema
	}
	if patterns != nil {
		out["patternProperties"] = kept
	}
}

// codePoint matches \u and a code, which is a character in a pattern of ECMAScript, or an
// escaped backslash, as a u may follow that.
var codePoint = regexp.MustCompile(`\\(?:\\|u[0-9A-Fa-f]{4})`)

// portable returns a pattern with such characters as Go reads them, too.
func portable(pattern string) string {
	return codePoint.ReplaceAllStringFunc(pattern, func(text string) string {
		code, err := strconv.ParseUint(text[2:], 16, 16)
		switch r := rune(code); {
		case err != nil, utf16.IsSurrogate(r):
			return text
		case r < 0x80:
			return `\x` + text[4:]
		default:
			return string(r)
		}
	})
}

// nullable allows null where 3.0 says so.
func nullable(in, out tree) any {
	if in["nullable"] != true {
		return out
	}
	if list, isList := out["type"].([]any); len(out) == 0 || isList && slices.Contains(list, any("null")) {
		return out
	}
	return tree{"anyOf": []any{out, tree{"type": "null"}}}
}

// withoutNull returns a schema that does not take null, which has no form in a style: a
// required parameter would be there without a value.
func (s *schemas) withoutNull(schema any) any {
	t, err := s.inlined(schema)
	if err != nil {
		return schema // the operation has the same error
	}
	null := map[string]any{"anyOf": tree{"type": "null"}, "oneOf": tree{"type": "null"}, "type": "null", "enum": nil}
	for _, name := range []string{"anyOf", "oneOf", "type", "enum"} {
		list, _ := t[name].([]any)
		kept := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return reflect.DeepEqual(v, null[name]) })
		switch {
		case len(kept) == len(list) || len(kept) == 0:
			continue
		case len(kept) == 1 && len(t) == 1 && name != "type" && name != "enum":
			return kept[0]
		}
		t = maps.Clone(t)
		t[name] = kept
		schema = t
	}
	return schema
}

// arguments returns the JSON Schema of the arguments, with the definitions that it
// needs, and what had to be left out because it is too large.
func (s *schemas) arguments(args []argument) (schema []byte, cut string, err error) {
	schema, err = s.assemble(args, trimmer{})
	if err != nil || len(schema) <= maxSchema {
		return schema, "", err
	}
	was := len(schema)
	for _, t := range []trimmer{{bare: true}, {bare: true, levels: maxLevels}, {bare: true, levels: maxLevels - 1}, {bare: true, levels: maxLevels - 2}} {
		if schema, err = s.assemble(args, t); err != nil || len(schema) <= maxSchema || t.levels == maxLevels-2 {
			cut = "descriptions are left out"
			if t.levels > 0 {
				cut = fmt.Sprintf("descriptions, and optional members deeper than %d levels, are left out", t.levels)
			}
			break
		}
	}
	return schema, fmt.Sprintf("its schema has %d bytes: %s", was, cut), err
}

// assemble returns the schema as a trimmer leaves it.
func (s *schemas) assemble(args []argument, t trimmer) ([]byte, error) {
	var out, required []byte
	levels := map[string]int{}
	out = append(out, `{"type":"object","properties":{`...)
	for i, a := range args {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, a.name), ':')
		out = append(out, encoded(t.trim(a.schema, 1, a.required))...)
		references(t.trim(a.schema, 1, a.required), 1, levels)
		if a.required {
			required = append(jsonx.AppendString(required, a.name), ',')
		}
	}
	out = append(out, '}')
	if required != nil {
		out = append(append(append(out, `,"required":[`...), bytes.TrimSuffix(required, []byte(","))...), ']')
	}
	out = append(out, `,"additionalProperties":false`...)
	defs, err := s.closure(levels, t)
	if err != nil {
		return nil, err
	}
	if len(defs) > 0 {
		out = append(append(out, `,"$defs":`...), encoded(defs)...)
	}
	return append(out, '}'), nil
}

// closure returns the definitions with these names and all that they refer to. levels
// has the least level at which each is needed.
func (s *schemas) closure(levels map[string]int, t trimmer) (tree, error) {
	defs := tree{}
	done := map[string]int{}
	for len(levels) > 0 {
		next := map[string]int{}
		for name, level := range levels {
			if was, again := done[name]; again && was <= level {
				continue
			}
			done[name] = level
			def, err := s.definition(name)
			if err != nil {
				return nil, err
			}
			if t.bare {
				def = t.trim(def, level, true)
			}
			defs[name] = def
			references(def, level, next)
		}
		levels = next
	}
	return defs, nil
}
