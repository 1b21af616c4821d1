package raw

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/lexical"
)

// Fitter checks documents against a Schema, and first makes them fit it: members that
// are absent get their defaults, and values that models are known to send are read as
// what they mean, when that is certain. These are the coercions of package schema: "5"
// for a number, "true" for a boolean, 5 for text, JSON inside of text, one item for a
// list, null or "" for an optional member that is not set. A Fitter does not change and
// is safe for concurrent use.
type Fitter struct {
	schema   *Schema
	defaults map[*node]any
}

// NewFitter returns a Fitter. The issues are about defaults that are not valid by their
// own schema; those are not filled in.
func NewFitter(s *Schema) (*Fitter, []Issue) {
	f := &Fitter{s, map[*node]any{}}
	var issues []Issue
	for _, n := range s.defaults {
		v := validation{steps: leastSteps}
		bad := v.check(n, n.fallback, &evaluated{})
		if bad == nil {
			f.defaults[n] = n.fallback
			continue
		}
		is := flatten(bad, nil)[0]
		is.Path = n.at + "/default" + is.Path
		issues = append(issues, is)
	}
	return f, issues
}

// Fit returns data as the schema means it, data itself if there is nothing to change,
// and what Check says of it. A default that would make a valid document invalid is left
// out, with all others.
func (f *Fitter) Fit(data []byte) ([]byte, error) {
	doc, err := document(data)
	if err != nil {
		return data, err
	}
	if len(f.defaults) == 0 && !fractions(doc) && f.schema.validate(doc) == nil {
		return data, nil
	}
	fitted, changed := f.fit(doc, true)
	issues := f.schema.issues(fitted)
	if len(issues) > 0 && len(f.defaults) > 0 {
		if bare, less := f.fit(doc, false); f.schema.validate(bare) == nil {
			fitted, changed, issues = bare, less, nil
		}
	}
	switch {
	case len(issues) > 0:
		return data, &Error{Issues: issues}
	case !changed:
		return data, nil
	}
	return jsonx.Append(nil, fitted)
}

// fit returns a copy of a document that fits, and whether anything has changed. With
// fill, defaults are filled in.
func (f *Fitter) fit(doc any, fill bool) (any, bool) {
	t := fitting{Fitter: f, v: validation{steps: leastSteps + stepsPerValue*values(doc)}, fill: fill}
	doc = t.value(f.schema.root, clone(doc))
	return doc, t.changed
}

// fitting makes one document fit. It is used by one goroutine. Its work is bounded by
// the steps of v: when these are used up, values stay as they are.
type fitting struct {
	*Fitter
	v       validation
	fill    bool
	changed bool
	inText  bool // within JSON that came as text
	inList  bool // the value is an item of a list
	nested  int  // alternatives within each other
}

// maxAlternatives bounds how deep alternatives are tried within each other.
const maxAlternatives = 8

// value returns a value, which may be changed in place, so that it fits n if possible.
func (t *fitting) value(n *node, value any) any {
	if t.v.steps--; t.v.steps < 0 || n.meta != 0 {
		return value
	}
	t.v.scope = append(t.v.scope, n.resource)
	inText := t.inText
	defer func() { t.v.scope, t.inText = t.v.scope[:len(t.v.scope)-1], inText }()
	parts := t.parts(n, nil)
	value = t.coerce(n, parts, value)
	switch v := value.(type) {
	case map[string]any:
		t.object(parts, v)
	case []any:
		t.array(parts, v)
	}
	for _, p := range parts {
		value = t.alternatives(p.anyOf, value)
		value = t.alternatives(p.oneOf, value)
		if p.condition == nil {
			continue
		}
		branch := p.then
		if !t.valid(p.condition, value) {
			branch = p.otherwise
		}
		if branch != nil {
			value = t.value(branch, value)
		}
	}
	return value
}

// valid reports whether a value is valid by a schema.
func (t *fitting) valid(n *node, value any) bool {
	t.v.nested, t.v.endless = 0, ""
	return t.v.check(n, value, &evaluated{}) == nil && t.v.endless == ""
}

// parts appends n and all schemas that a value has to be valid by together with it.
func (t *fitting) parts(n *node, list []*node) []*node {
	if slices.Contains(list, n) || len(list) == maxNested {
		return list
	}
	list = append(list, n)
	for _, ref := range n.refs {
		list = t.parts(t.v.target(ref), list)
	}
	for _, sub := range n.allOf {
		list = t.parts(sub, list)
	}
	return list
}

// typesOf returns the types that all parts permit, 0 if none of them names any. A number
// includes the integers, which is why a part that says number and one that says integer
// leave integers.
func typesOf(parts []*node) uint8 {
	types, named := uint8(0xff), false
	for _, p := range parts {
		if p.types != 0 {
			own := p.types
			if own&bitNumber != 0 {
				own |= bitInteger
			}
			types, named = types&own, true
		}
	}
	if !named {
		return 0
	}
	return types
}

// plainText reports whether the parts say nothing of which texts there are, so that a
// number may stand for its digits. A pattern or a length is checked afterwards, as for
// any other text.
func plainText(parts []*node) bool {
	return !slices.ContainsFunc(parts, func(p *node) bool { return p.hasEnum || p.hasConst || p.formatName != "" })
}

// coerce returns a value of another type in the only form in which it fits, or as it is.
func (t *fitting) coerce(n *node, parts []*node, value any) any {
	types := typesOf(parts)
	if types == 0 {
		return value
	}
	whole := types&bitInteger != 0 && types&bitNumber == 0
	kind := typeBit(kindOf(value))
	if types&kind != 0 || kind == bitNumber && whole && isInteger(value.(json.Number)) {
		return t.form(parts, value, whole)
	}
	var forms []any
	text, isText := value.(string)
	trimmed := strings.Trim(text, " \t\r\n")
	number, isNumber := value.(json.Number)
	switch {
	case isText:
		forms = t.fromText(types, whole, trimmed)
	case isNumber && types&bitString != 0 && plainText(parts) && writtenAsInteger(number) && number != "-0":
		forms = append(forms, string(number))
	}
	mayBeJSON := isText && (trimmed == "" || trimmed[0] == '[' || trimmed[0] == '{')
	if types&bitArray != 0 && value != nil && !t.inList {
		if list, ok := t.item(n, value, trimmed, mayBeJSON); ok {
			forms = append(forms, list)
		}
	}
	if len(forms) != 1 {
		return value
	}
	t.changed = true
	return forms[0]
}

// item returns a list with a value as its only item, and whether that is valid. Text
// that may be JSON stands for the object that it has, if the list has no texts.
func (t *fitting) item(n *node, value any, text string, mayBeJSON bool) (any, bool) {
	if !mayBeJSON {
		list := t.trial(n, []any{value})
		return list, t.valid(n, list)
	}
	doc, err := document([]byte(text))
	if _, object := doc.(map[string]any); err != nil || !object || t.inText || t.valid(n, []any{value}) {
		return nil, false
	}
	t.inText = true
	list := t.trial(n, []any{doc})
	t.inText = t.valid(n, list)
	return list, t.inText
}

// form returns a value of the right type in the form that all readers take: an integer
// without a fraction, and one of several texts without spaces around it.
func (t *fitting) form(parts []*node, value any, whole bool) any {
	switch v := value.(type) {
	case json.Number:
		if text := digits(v); whole && text != "" && text != string(v) {
			t.changed = true
			return json.Number(text)
		}
	case string:
		trimmed := strings.TrimSpace(v)
		enumerated := slices.ContainsFunc(parts, func(p *node) bool { return p.hasEnum })
		fits := func(s string) bool {
			return !slices.ContainsFunc(parts, func(p *node) bool { return t.v.constants(p, s) != nil })
		}
		if enumerated && trimmed != v && !fits(v) && fits(trimmed) {
			t.changed = true
			return trimmed
		}
	}
	return value
}

// fractions reports whether a document has a number that is not written as an integer.
func fractions(doc any) bool {
	switch v := doc.(type) {
	case json.Number:
		return !plain(v)
	case []any:
		return slices.ContainsFunc(v, fractions)
	case map[string]any:
		for _, member := range v {
			if fractions(member) {
				return true
			}
		}
	}
	return false
}

// digits returns an integer without fraction and exponent, or "" for a long one
// or another value.
func digits(n json.Number) string {
	if !lexical.Bounded(string(n)) {
		return ""
	}
	if r, ok := new(big.Rat).SetString(string(n)); ok && r.IsInt() {
		return r.Num().String()
	}
	return ""
}

// fromText returns what a text without spaces around it can mean as another type.
func (t *fitting) fromText(types uint8, whole bool, text string) (forms []any) {
	s := jsonx.Scanner{Buf: []byte(text), MaxDepth: jsonx.DefaultMaxDepth}
	switch kind := s.Peek(); kind {
	case jsonx.Number:
		if _, _, err := s.Number(); err != nil || s.End() != nil || types&(bitNumber|bitInteger) == 0 {
			return nil
		}
		plain := digits(json.Number(text))
		switch {
		case !lexical.Bounded(text) || whole && plain == "":
		case whole:
			forms = append(forms, json.Number(plain))
		default:
			forms = append(forms, json.Number(text))
		}
	case jsonx.Array, jsonx.Object:
		bit := uint8(bitArray)
		if kind == jsonx.Object {
			bit = bitObject
		}
		if types&bit == 0 || t.inText {
			return nil
		}
		if doc, err := document([]byte(text)); err == nil {
			// The value inside is walked as a part of the document.
			t.inText = true
			t.v.steps += stepsPerValue * values(doc)
			forms = append(forms, doc)
		}
	default:
		if types&bitBoolean != 0 && (strings.EqualFold(text, "true") || strings.EqualFold(text, "false")) {
			forms = append(forms, strings.EqualFold(text, "true"))
		}
	}
	return forms
}

// trial returns a copy of a value that was made to fit n. Its changes do not count as
// changes of the document.
func (t *fitting) trial(n *node, value any) any {
	changed := t.changed
	t.v.steps -= values(value)
	value = t.value(n, clone(value))
	t.changed = changed
	return value
}

// object makes the members of an object fit.
func (t *fitting) object(parts []*node, members map[string]any) {
	inList := t.inList
	t.inList = false
	for _, name := range slices.Sorted(maps.Keys(members)) {
		subs := membersOf(parts, name)
		if t.unset(parts, subs, name, members[name]) {
			delete(members, name)
			t.changed = true
			continue
		}
		for _, sub := range subs {
			members[name] = t.value(sub, members[name])
		}
	}
	for _, p := range parts {
		for _, name := range slices.Sorted(maps.Keys(p.properties)) {
			if _, there := members[name]; there || !t.fill {
				continue
			}
			for _, sub := range t.parts(p.properties[name], nil) {
				if value, ok := t.defaults[sub]; ok {
					members[name], t.changed = clone(value), true
					break
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(p.dependents)) {
			if _, there := members[name]; there {
				t.value(p.dependents[name], members)
			}
		}
	}
	t.inList = inList
}

// membersOf returns the schemas of a member.
func membersOf(parts []*node, name string) (subs []*node) {
	for _, p := range parts {
		known := false
		if sub := p.properties[name]; sub != nil {
			subs, known = append(subs, sub), true
		}
		for _, pattern := range p.patterns {
			if pattern.name.MatchString(name) {
				subs, known = append(subs, pattern.node), true
			}
		}
		if !known && p.additional != nil && !p.additional.never {
			subs = append(subs, p.additional)
		}
	}
	return subs
}

// unset reports whether a member is null or "", which its schema refuses, and may as
// well be absent.
func (t *fitting) unset(parts, subs []*node, name string, value any) bool {
	if value != nil && value != "" || slices.ContainsFunc(parts, func(p *node) bool { return slices.Contains(p.required, name) }) {
		return false
	}
	for _, sub := range subs {
		all := t.parts(sub, nil)
		text := value == "" && typesOf(all)&bitString != 0 && plainText(all)
		if !text && !t.valid(sub, value) {
			return true
		}
	}
	return false
}

// array makes the items of an array fit.
func (t *fitting) array(parts []*node, items []any) {
	inList := t.inList
	t.inList = true
	for i := range items {
		for _, p := range parts {
			switch {
			case i < len(p.prefix):
				items[i] = t.value(p.prefix[i], items[i])
			case p.items != nil:
				items[i] = t.value(p.items, items[i])
			}
		}
	}
	t.inList = inList
}

// alternatives makes a value fit one of several schemas. A value that is valid by exactly
// one of them only gets its defaults. Any other value is changed if exactly one schema can
// be made to fit it, and else stays as it is.
func (t *fitting) alternatives(list []*node, value any) any {
	if len(list) == 0 || t.nested == maxAlternatives {
		return value
	}
	t.nested++
	defer func() { t.nested-- }()
	var fits []*node
	for _, n := range list {
		if t.valid(n, value) {
			fits = append(fits, n)
		}
	}
	if len(fits) > 0 {
		if len(fits) == 1 && t.fill { // only defaults are missing
			return t.value(fits[0], value)
		}
		return value
	}
	var found []any
	for _, n := range list {
		other := t.trial(n, value)
		if t.valid(n, other) && !slices.ContainsFunc(found, func(v any) bool { return equal(v, other) }) {
			found = append(found, other)
		}
	}
	if len(found) != 1 {
		return value
	}
	t.changed = true
	return found[0]
}

// clone returns a copy of a JSON value that shares nothing that can change.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = clone(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clone(item)
		}
		return out
	}
	return v
}
