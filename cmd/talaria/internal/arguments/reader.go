package arguments

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// The bounds of reading a schema, which may come from an attacker: how deep
// objects, lists and references are followed; how many schemas are examined in
// total; and how many bytes of them, as the same part may be read many times. The
// rest is cut off, and marked.
const (
	maxNesting = 12
	maxNodes   = 2000
	maxBytes   = 8 << 20
)

// maxDefault is how long the schema may be, in bytes, that a default is held
// against.
const maxDefault = 4 << 10

// reader reads the fields of one schema.
type reader struct {
	root  json.RawMessage
	left  int                                   // how many schemas it may still look at
	bytes int                                   // and how many bytes
	found map[string]json.RawMessage            // references that were followed
	parts map[string]map[string]json.RawMessage // objects on the way of references, by their place
	open  []string                              // references that are being read
}

func newReader(root json.RawMessage) *reader {
	return &reader{root: root, left: maxNodes, bytes: maxBytes, found: map[string]json.RawMessage{}, parts: map[string]map[string]json.RawMessage{}}
}

// look decodes a schema. It is false for one that is true, false or no schema at
// all, and where a bound is reached.
func (r *reader) look(text json.RawMessage, n *node) bool {
	if r.left <= 0 || r.bytes < len(text) {
		return false
	}
	r.left--
	r.bytes -= len(text)
	return decode(text, n) == nil
}

// spent reports whether a bound is reached.
func (r *reader) spent(text json.RawMessage) bool { return r.left <= 0 || r.bytes < len(text) }

func (r *reader) field(name string, text json.RawMessage, depth int) Field {
	own := text
	text, refs := r.resolve(text, depth)
	f := Field{Name: name, Schema: text}
	var n node
	if slices.ContainsFunc(refs, func(ref string) bool { return slices.Contains(r.open, ref) }) || r.spent(text) {
		f.Cut = true // a schema within itself, or too much of it
		if r.look(text, &n) {
			f.Title, f.Description, f.Types = n.Title, n.Description, types(n.Type)
		}
		return f
	}
	if !r.look(text, &n) {
		return f
	}
	r.open = append(r.open, refs...)
	defer func() { r.open = r.open[:len(r.open)-len(refs)] }()
	f.Title, f.Description, f.Rules = n.Title, n.Description, n.Rules
	f.Types, f.Options = types(n.Type), options(n)
	if len(f.Options) == 0 {
		r.union(&f, n, depth)
	}
	r.merge(&f, n, depth)
	r.object(&f, n, depth)
	r.list(&f, n, depth)
	if len(refs) > 0 {
		r.addSiblings(&f, own, depth)
	}
	if len(f.Types) == 0 {
		f.Types = optionTypes(f.Options)
	}
	f.Types = unique(f.Types)
	f.setDefault(n.Default)
	return f
}

// union reads the branches of anyOf and oneOf. "Or null" does not make a union.
func (r *reader) union(f *Field, n node, depth int) {
	parts := slices.Concat(n.AnyOf, n.OneOf)
	if depth == 0 {
		f.Cut = f.Cut || len(parts) > 0
		return
	}
	var variants []Variant
	for _, part := range parts {
		branch := r.field(f.Name, part, depth-1)
		if branch.Union() {
			variants = append(variants, branch.Variants...)
		} else if !slices.Equal(branch.Types, []string{"null"}) {
			variants = append(variants, Variant{branch.short(), branch})
		}
		f.Types = append(f.Types, branch.Types...)
		f.Options = append(f.Options, branch.Options...)
		f.Cut = f.Cut || branch.Cut
		if f.Item == nil {
			f.Item = branch.Item
		}
	}
	if len(variants) > 1 {
		f.Variants = variants
		return
	}
	if len(variants) == 1 { // the usual way of saying "or null"
		one := variants[0].Field
		f.Rules, f.Fields, f.Closed, f.Rest, f.First = one.Rules, one.Fields, one.Closed, one.Rest, one.First
		f.Variants, f.ofItems, f.Patterns = one.Variants, one.ofItems, one.Patterns
		if f.Title == "" {
			f.Title = one.Title
		}
		if f.Description == "" {
			f.Description = one.Description
		}
	}
}

// merge adds what allOf says, and the members that other members bring.
func (r *reader) merge(f *Field, n node, depth int) {
	parts := slices.Clone(n.AllOf)
	for _, text := range []json.RawMessage{n.Then, n.Else} {
		if len(text) > 0 {
			parts = append(parts, text)
		}
	}
	for _, m := range members(n.Dependent) {
		parts = append(parts, m.value)
	}
	for i, part := range parts {
		if depth == 0 {
			f.Cut = true
			return
		}
		branch := r.field(f.Name, part, depth-1)
		if i >= len(n.AllOf) { // it holds at times
			for i := range branch.Fields {
				branch.Fields[i].Required = false
			}
			branch = Field{Fields: branch.Fields, Cut: branch.Cut}
		}
		f.add(branch)
	}
}

// addSiblings adds the keywords next to a reference.
func (r *reader) addSiblings(f *Field, own json.RawMessage, depth int) {
	var n node
	var object map[string]json.RawMessage
	if !r.look(own, &n) || json.Unmarshal(own, &object) != nil || len(object) < 2 {
		return
	}
	f.Title, f.Description = cmp.Or(n.Title, f.Title), cmp.Or(n.Description, f.Description)
	if n.Default != nil {
		f.setDefault(n.Default)
	}
	delete(object, "$ref")
	if depth == 0 || !slices.ContainsFunc(structural, func(name string) bool { return object[name] != nil }) {
		return
	}
	if rest, err := json.Marshal(object); err == nil {
		f.add(r.field(f.Name, rest, depth-1))
	}
}

// structural are the keywords that add members or items.
var structural = []string{"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "required", "allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas", "items", "prefixItems"}

// add adds what another schema says of the same value. Existing parts stay.
func (f *Field) add(branch Field) {
	for _, inner := range branch.Fields {
		i := slices.IndexFunc(f.Fields, func(have Field) bool { return have.Name == inner.Name })
		if i < 0 {
			f.Fields = append(f.Fields, inner)
			continue
		}
		f.Fields[i].add(inner)
	}
	if len(f.Types) == 0 {
		f.Types = branch.Types
	}
	if len(f.Options) == 0 {
		f.Options = branch.Options
	}
	if len(f.Variants) == 0 {
		f.Variants, f.ofItems = branch.Variants, branch.ofItems
	}
	if f.Item == nil {
		f.Item = branch.Item
	}
	if f.Rest == nil {
		f.Rest = branch.Rest
	}
	if len(f.First) == 0 {
		f.First = branch.First
	}
	if f.Rules == (Rules{}) {
		f.Rules = branch.Rules
	}
	f.Patterns = append(f.Patterns, branch.Patterns...)
	f.Title, f.Description = cmp.Or(f.Title, branch.Title), cmp.Or(f.Description, branch.Description)
	f.Required, f.Cut = f.Required || branch.Required, f.Cut || branch.Cut
}

// object reads the members of an object.
func (r *reader) object(f *Field, n node, depth int) {
	if len(n.Additional) == 0 {
		n.Additional = n.Unevaluated
	}
	f.Closed = f.Closed || string(bytes.TrimSpace(n.Additional)) == "false"
	list := members(n.Properties)
	if depth == 0 {
		f.Cut = f.Cut || len(list) > 0
		return
	}
	own := make([]Field, 0, len(list)+len(f.Fields))
	for _, m := range list {
		own = append(own, r.field(m.name, m.value, depth-1))
	}
	for _, inherited := range f.Fields {
		if i := slices.IndexFunc(own, func(have Field) bool { return have.Name == inherited.Name }); i >= 0 {
			own[i].add(inherited)
		} else {
			own = append(own, inherited)
		}
	}
	if len(own) == 0 {
		own = nil
	}
	for i := range own {
		own[i].Required = own[i].Required || slices.Contains(n.Required, own[i].Name)
	}
	f.Fields = own
	for _, m := range members(n.Patterns) {
		regex, _ := regexp.Compile(m.name) // one of another language matches nothing here
		f.Patterns = append(f.Patterns, Pattern{r.field("", m.value, depth-1), regex})
	}
	if rest := bytes.TrimSpace(n.Additional); len(rest) > 2 && rest[0] == '{' {
		value := r.field("", rest, depth-1)
		f.Rest = &value
	}
	if len(f.Types) == 0 && len(f.Fields) > 0 && len(f.Variants) == 0 {
		f.Types = []string{"object"}
	}
}

// list reads the items of a list.
func (r *reader) list(f *Field, n node, depth int) {
	if depth == 0 {
		f.Cut = f.Cut || len(n.Items) > 0
		return
	}
	if jsonx.Unmarshal(n.Items, &n.Prefix) == nil { // before 2020-12
		n.Items = n.Further
	}
	for i, part := range n.Prefix {
		f.First = append(f.First, r.field(fmt.Sprint(i+1), part, depth-1))
	}
	if text := bytes.TrimSpace(n.Items); len(text) == 0 || string(text) == "false" {
		return
	}
	item := r.field(f.Name, n.Items, depth-1)
	f.Item = &item
	if len(f.Options) == 0 {
		f.Options = item.Options
	}
	if len(f.Variants) == 0 {
		f.Variants, f.ofItems = item.Variants, true
	}
}

// setDefault takes the default of the schema, unless it breaks the schema.
func (f *Field) setDefault(value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	if len(f.Types) > 0 && !slices.ContainsFunc(f.Types, func(name string) bool { return isType(name, value) }) {
		f.Wrong = "the default of the schema, " + shorten(string(value)) + ", is no " + f.Type()
		return
	}
	if len(f.Schema) <= maxDefault && !bytes.Contains(f.Schema, []byte(`"$`)) {
		if err := check(f.Schema, value); err != nil {
			f.Wrong = "the default of the schema, " + shorten(string(value)) + ", does not fit it: " + err.Error()
			return
		}
	}
	f.Default = value
}

// isType reports whether a value is of a type of JSON Schema.
func isType(name string, value json.RawMessage) bool {
	c := byte(0)
	if text := bytes.TrimSpace(value); len(text) > 0 {
		c = text[0]
	}
	switch name {
	case "string":
		return c == '"'
	case "integer", "number":
		return c == '-' || c >= '0' && c <= '9'
	case "boolean":
		return c == 't' || c == 'f'
	case "null":
		return c == 'n'
	case "array":
		return c == '['
	case "object":
		return c == '{'
	}
	return true
}

// resolve follows references into the same document, and returns them. Others are
// never loaded.
func (r *reader) resolve(text json.RawMessage, depth int) (json.RawMessage, []string) {
	var refs []string
	for ; depth > 0; depth-- {
		if !bytes.Contains(text, []byte(`"$ref"`)) {
			break
		}
		var n node
		if !r.look(text, &n) || n.Ref == "" || slices.Contains(refs, n.Ref) {
			break
		}
		target, known := r.found[n.Ref]
		if !known {
			target = r.lookup(n.Ref)
			r.found[n.Ref] = target
		}
		if target == nil {
			break
		}
		text, refs = target, append(refs, n.Ref)
	}
	return text, refs
}

// lookup returns what a reference names, nil if that is not here. Each object on
// the way is decoded once.
func (r *reader) lookup(ref string) json.RawMessage {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if text, err := url.PathUnescape(fragment); err == nil {
		fragment = text
	}
	path, ok := strings.CutPrefix(fragment, "/")
	if !ok && fragment != "" {
		return r.anchor(fragment)
	}
	if !ok {
		return r.root
	}
	at, place := r.root, ""
	for step := range strings.SplitSeq(path, "/") {
		parts, known := r.parts[place]
		if !known {
			if r.bytes < len(at) {
				return nil
			}
			r.bytes -= len(at)
			parts = children(at)
			r.parts[place] = parts
		}
		at = parts[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		place += "/" + step
	}
	return at
}

// children returns the members of an object, or the items of a list by their indexes.
func children(text json.RawMessage) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(text, &object) == nil || json.Unmarshal(text, &list) != nil {
		return object // of anything else there are none
	}
	object = map[string]json.RawMessage{}
	for i, item := range list {
		object[strconv.Itoa(i)] = item
	}
	return object
}

// anchor returns the definition that an $anchor names.
func (r *reader) anchor(name string) json.RawMessage {
	for _, place := range []string{"#/$defs", "#/definitions"} {
		for _, m := range members(r.lookup(place)) {
			var n struct {
				Anchor string `json:"$anchor"`
				ID     string `json:"$id"`
			}
			if json.Unmarshal(m.value, &n) == nil && (n.Anchor == name || n.ID == "#"+name) {
				return m.value
			}
		}
	}
	return nil
}

// short says an object in short, as {kind: circle, radius, color?}: members with
// a single value, those that are required, and the others. It is "" for what is
// not an object with members.
func (f Field) short() string {
	var parts []string
	for i, m := range f.Fields {
		if i == shownMembers {
			parts = append(parts, fmt.Sprintf("… %d more", len(f.Fields)-i))
			break
		}
		switch {
		case len(m.Options) == 1 && !slices.Contains(m.Types, "array"):
			parts = append(parts, m.Name+": "+m.Options[0].Text())
		case m.Required:
			parts = append(parts, m.Name)
		default:
			parts = append(parts, m.Name+"?")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// node is what this package reads of a schema.
type node struct {
	Ref         string            `json:"$ref"`
	Type        json.RawMessage   `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Const       json.RawMessage   `json:"const"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	OneOf       []json.RawMessage `json:"oneOf"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	AllOf       []json.RawMessage `json:"allOf"`
	Then        json.RawMessage   `json:"then"`
	Else        json.RawMessage   `json:"else"`
	Dependent   json.RawMessage   `json:"dependentSchemas"`
	Prefix      []json.RawMessage `json:"prefixItems"`
	Items       json.RawMessage   `json:"items"`
	Further     json.RawMessage   `json:"additionalItems"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Unevaluated json.RawMessage   `json:"unevaluatedProperties"`
	Patterns    json.RawMessage   `json:"patternProperties"`
	Rules
}

func types(raw json.RawMessage) []string {
	var one string
	var many []string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &many) // what is not a list of names names no type
	return many
}

// options finds the values of an enum, in every way that elicitation has had.
func options(n node) []Option {
	var list []Option
	for i, value := range n.Enum {
		o := Option{Value: value}
		if i < len(n.EnumNames) {
			o.Title = n.EnumNames[i]
		}
		list = append(list, o)
	}
	if len(n.Enum) == 0 && len(n.Const) > 0 {
		list = append(list, Option{Value: n.Const, Title: n.Title})
	}
	if len(n.Enum) > 0 {
		return list
	}
	own := len(list)
	for _, part := range slices.Concat(n.OneOf, n.AnyOf) {
		var c node
		if decode(part, &c) == nil && len(c.Const) > 0 {
			list = append(list, Option{Value: c.Const, Title: c.Title})
		} else if !slices.Equal(types(c.Type), []string{"null"}) {
			return list[:own] // a union, of which some kinds are one value
		}
	}
	return list
}

// optionTypes are the types of the values of an enum that names none.
func optionTypes(list []Option) []string {
	var names []string
	for _, o := range list {
		switch c := bytes.TrimSpace(o.Value); {
		case len(c) == 0:
		case c[0] == '"':
			names = append(names, "string")
		case c[0] == 't' || c[0] == 'f':
			names = append(names, "boolean")
		case c[0] == '-' || c[0] >= '0' && c[0] <= '9':
			names = append(names, "number")
		}
	}
	return names
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in their order, none if it is
// not an object.
func members(object json.RawMessage) []member {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var list []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return list
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return list
		}
		list = append(list, member{fmt.Sprint(name), value})
	}
	return list
}

// decode is jsonx.Unmarshal into what may have members of surprising types:
// those are skipped one by one, and the rest is kept.
func decode(text json.RawMessage, n *node) error {
	err := jsonx.Unmarshal(text, n)
	if err == nil {
		return nil
	}
	list := members(text)
	if list == nil {
		return err
	}
	for _, m := range list {
		single, err := json.Marshal(map[string]json.RawMessage{m.name: m.value})
		if err == nil {
			_ = jsonx.Unmarshal(single, n) // a keyword with a value of the wrong type says nothing
		}
	}
	return nil
}
