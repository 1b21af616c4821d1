package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

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

// variant says an object schema in short, as {kind: circle, radius, color?}:
// members with one value alone, those that are required, and the others. It is
// "" for what is no object with members.
func (r *reader) variant(text json.RawMessage, depth int) string {
	text = r.resolve(text, depth)
	var n node
	if r.left--; r.left < 0 || decode(text, &n) != nil {
		return ""
	}
	var parts []string
	all := members(n.Properties)
	for i, m := range all {
		if i == shownMembers {
			parts = append(parts, fmt.Sprintf("… %d more", len(all)-i))
			break
		}
		var member node
		r.left--
		switch {
		case r.left >= 0 && decode(m.value, &member) == nil && len(options(member)) == 1:
			parts = append(parts, m.name+": "+options(member)[0].Text())
		case slices.Contains(n.Required, m.name):
			parts = append(parts, m.name)
		default:
			parts = append(parts, m.name+"?")
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
	Items       json.RawMessage   `json:"items"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	rules
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
