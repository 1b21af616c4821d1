// Package arguments turns what a person types, as name=value, into the JSON
// that a tool, a prompt or a form wants, with the help of its JSON Schema.
package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Field is one property of an object schema.
type Field struct {
	Name        string
	Title       string
	Description string
	Types       []string // of JSON Schema, in the order of the schema; empty if it names none
	Required    bool
	Options     []Option        // the values of an enum, or of the items of a list of enums
	Default     json.RawMessage // nil if there is none
	Schema      json.RawMessage // the property's schema, references within it resolved one level deep
	Item        *Field          // of a list; nil if unknown
	Variants    []string        // the kinds of object that a union takes, in short; of a list, those of its items
	rules       rules
}

// Option is one value that a field may have.
type Option struct {
	Value json.RawMessage
	Title string // "" if it has none
}

// Text is the value as a person types it.
func (o Option) Text() string { return Plain(o.Value) }

// Plain returns a JSON value as a person would write it: strings without their
// quotes, all else as JSON.
func Plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && !bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// Texts returns the members of an object as Plain has them.
func Texts(object json.RawMessage) (map[string]string, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(object, &values); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for name, value := range values {
		texts[name] = Plain(value)
	}
	return texts, nil
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
	Items       json.RawMessage   `json:"items"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	rules
}

// rules are the keywords that a hint tells of.
type rules struct {
	Format           string       `json:"format"`
	Encoding         string       `json:"contentEncoding"`
	Pattern          string       `json:"pattern"`
	Minimum          *json.Number `json:"minimum"`
	Maximum          *json.Number `json:"maximum"`
	ExclusiveMinimum *json.Number `json:"exclusiveMinimum"`
	ExclusiveMaximum *json.Number `json:"exclusiveMaximum"`
	MinLength        *int         `json:"minLength"`
	MaxLength        *int         `json:"maxLength"`
	MinItems         *int         `json:"minItems"`
	MaxItems         *int         `json:"maxItems"`
}

// Object is an object schema, taken apart.
type Object struct {
	Fields []Field // in the order of the schema
	Closed bool    // nothing but Fields is allowed
	schema json.RawMessage
}

// ReadObject reads a schema, which may come from a server that nobody trusts:
// what it cannot make sense of it leaves out. nil is an object without fields.
func ReadObject(schema json.RawMessage) (*Object, error) {
	o := &Object{schema: schema}
	if len(schema) == 0 {
		return o, nil
	}
	var root node
	if err := decode(schema, &root); err != nil {
		return nil, fmt.Errorf("the schema is no JSON object: %w", err)
	}
	o.Closed = string(bytes.TrimSpace(root.Additional)) == "false"
	r := &reader{root: schema, left: maxNodes, found: map[string]json.RawMessage{}}
	for _, m := range members(root.Properties) {
		f := r.field(m.name, m.value, maxNesting)
		f.Required = slices.Contains(root.Required, m.name)
		o.Fields = append(o.Fields, f)
	}
	return o, nil
}

// Field returns the field of that name.
func (o *Object) Field(name string) (Field, bool) {
	i := slices.IndexFunc(o.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return o.Fields[i], true
}

// Names lists the fields.
func (o *Object) Names() []string {
	names := make([]string, len(o.Fields))
	for i, f := range o.Fields {
		names[i] = f.Name
	}
	return names
}

// The bounds of reading a schema: how deep lists of lists and references are
// followed, and how many schemas are looked at in all.
const (
	maxNesting = 8
	maxNodes   = 5000
)

// reader reads the fields of one schema.
type reader struct {
	root  json.RawMessage
	left  int                        // how many schemas it may still look at
	found map[string]json.RawMessage // references that were followed
}

func (r *reader) field(name string, text json.RawMessage, depth int) Field {
	text = r.resolve(text, depth)
	f := Field{Name: name, Schema: text}
	var n node
	if r.left--; r.left < 0 || decode(text, &n) != nil { // true, false, or not what a schema may be
		return f
	}
	f.Title, f.Description, f.Default, f.rules = n.Title, n.Description, n.Default, n.rules
	f.Types = types(n.Type)
	f.Options = options(n)
	if len(f.Options) == 0 {
		for _, part := range slices.Concat(n.AnyOf, n.OneOf) {
			if depth == 0 {
				break
			}
			if v := r.variant(part, depth-1); v != "" {
				f.Variants = append(f.Variants, v)
			}
			branch := r.field(name, part, depth-1)
			f.Types = append(f.Types, branch.Types...)
			f.Options = append(f.Options, branch.Options...)
			if f.Item == nil {
				f.Item = branch.Item
			}
			if len(n.AnyOf)+len(n.OneOf) == 2 && !slices.Equal(branch.Types, []string{"null"}) {
				f.rules = branch.rules // the usual way of saying "or null"
			}
		}
	}
	if len(n.Items) > 0 && depth > 0 {
		item := r.field(name, n.Items, depth-1)
		f.Item = &item
		if len(f.Options) == 0 {
			f.Options = item.Options
		}
		if len(f.Variants) == 0 {
			f.Variants = item.Variants
		}
	}
	if len(f.Types) == 0 {
		f.Types = optionTypes(f.Options)
	}
	f.Types = unique(f.Types)
	return f
}

// resolve follows references into the same document. Others are never loaded.
func (r *reader) resolve(text json.RawMessage, depth int) json.RawMessage {
	for ; depth > 0; depth-- {
		var n node
		if r.left <= 0 || decode(text, &n) != nil || n.Ref == "" {
			break
		}
		target, known := r.found[n.Ref]
		if !known {
			r.left -= 10 // it costs more than a field
			target = r.lookup(n.Ref)
			r.found[n.Ref] = target
		}
		if target == nil {
			break
		}
		text = target
	}
	return text
}

// lookup returns what a reference names, nil if that is not here.
func (r *reader) lookup(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := r.root
	for step := range strings.SplitSeq(path, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return nil
		}
		at = object[step]
	}
	return at
}

func types(raw json.RawMessage) []string {
	var one string
	var many []string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &many) // what is no list of names names no type
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
	for _, part := range slices.Concat(n.OneOf, n.AnyOf) {
		var c node
		if len(n.Enum) > 0 || decode(part, &c) != nil || len(c.Const) == 0 {
			continue
		}
		list = append(list, Option{Value: c.Const, Title: c.Title})
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
// no object.
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

// decode is json.Unmarshal into what may have members of surprising types:
// those are skipped one by one, and the rest is kept.
func decode(text json.RawMessage, n *node) error {
	err := json.Unmarshal(text, n)
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
			_ = json.Unmarshal(single, n) // a keyword with a value of the wrong type says nothing
		}
	}
	return nil
}
