package inspector

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// The bounds of looking for secrets. What lies beyond them counts as secret.
const (
	maxVeilDepth = 100
	maxVeilNodes = 100_000 // of the schema, over the whole value
)

// veil takes out of a value what a schema calls secret: what is writeOnly, or has the
// format password. Where a schema has alternatives, one that says so is enough.
type veil struct {
	root  any
	left  int
	mark  string   // is in the place of what is secret; "" leaves it out
	found []string // the texts and numbers that were secret
}

// unveil returns a value without what is secret, and the secrets. mark is a JSON text.
// An invalid schema marks nothing as secret; a value that is not JSON is dropped.
func unveil(schema, value json.RawMessage, mark string) (json.RawMessage, []string) {
	if !json.Valid(value) {
		return nil, nil
	}
	v := &veil{left: maxVeilNodes, mark: mark}
	if json.Unmarshal(schema, &v.root) != nil {
		return value, nil
	}
	out, secret := v.strip(bytes.TrimSpace(value), []any{v.root}, 0)
	if secret {
		out = json.RawMessage(mark)
	}
	return out, v.found
}

// strip returns a value without its secrets, or tells that it is one.
func (v *veil) strip(value json.RawMessage, schemas []any, depth int) (out json.RawMessage, secret bool) {
	nodes, ok := v.all(schemas, depth)
	secret = !ok
	for _, n := range nodes {
		format, _ := n["format"].(string)
		secret = secret || n["writeOnly"] == true || strings.EqualFold(format, "password")
	}
	switch {
	case secret:
		v.found = leaves(v.found, value)
		return nil, true
	case len(nodes) == 0:
		return value, false
	case value[0] == '{':
		return v.object(value, nodes, depth), false
	case value[0] == '[':
		return v.list(value, nodes, depth), false
	}
	return value, false
}

func (v *veil) object(value json.RawMessage, nodes []map[string]any, depth int) json.RawMessage {
	var out bytes.Buffer
	out.WriteByte('{')
	d := json.NewDecoder(bytes.NewReader(value))
	_, _ = d.Token() // the value is valid, as are all its parts
	for d.More() {
		token, _ := d.Token()
		var inner json.RawMessage
		_ = d.Decode(&inner) // the same
		name, _ := token.(string)
		inner, secret := v.strip(inner, member(nodes, name), depth+1)
		if secret && v.mark == "" {
			continue
		} else if secret {
			inner = json.RawMessage(v.mark)
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(name)
		out.Write(key)
		out.WriteByte(':')
		out.Write(inner)
	}
	out.WriteByte('}')
	return out.Bytes()
}

func (v *veil) list(value json.RawMessage, nodes []map[string]any, depth int) json.RawMessage {
	var items []json.RawMessage
	_ = json.Unmarshal(value, &items) // it is valid
	var out bytes.Buffer
	out.WriteByte('[')
	for i, inner := range items {
		inner, secret := v.strip(inner, item(nodes, i), depth+1)
		if secret && v.mark == "" {
			inner = json.RawMessage("null") // the others keep their places
		} else if secret {
			inner = json.RawMessage(v.mark)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(inner)
	}
	out.WriteByte(']')
	return out.Bytes()
}

// all returns the schemas that count for a value: those given, what they refer to, and
// the parts they are made of. false means that the bounds were met.
func (v *veil) all(schemas []any, depth int) (nodes []map[string]any, ok bool) {
	if depth > maxVeilDepth {
		return nil, false
	}
	for len(schemas) > 0 {
		if v.left--; v.left < 0 {
			return nil, false
		}
		last := len(schemas) - 1
		n, is := schemas[last].(map[string]any)
		schemas = schemas[:last:last]
		if !is {
			continue
		}
		nodes = append(nodes, n)
		for _, key := range []string{"$ref", "$dynamicRef"} {
			if ref, is := n[key].(string); is {
				schemas = append(schemas, v.lookup(ref))
			}
		}
		for _, key := range []string{"allOf", "anyOf", "oneOf"} {
			list, _ := n[key].([]any)
			schemas = append(schemas, list...)
		}
		for _, key := range []string{"if", "then", "else"} {
			schemas = append(schemas, n[key])
		}
		for _, key := range []string{"dependentSchemas", "dependencies"} {
			parts, _ := n[key].(map[string]any)
			for _, part := range parts {
				schemas = append(schemas, part)
			}
		}
	}
	return nodes, true
}

// lookup finds what a reference within the schema leads to, nil if it leads elsewhere.
func (v *veil) lookup(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if path != "" && path[0] != '/' {
		return v.anchored(v.root, path)
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	at := v.root
	for _, name := range strings.Split(path, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := at.(type) {
		case map[string]any:
			at = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			at = in[i]
		default:
			return nil
		}
	}
	return at
}

// anchored finds the schema with that anchor. Each place that is examined
// counts.
func (v *veil) anchored(at any, name string) any {
	if v.left--; v.left < 0 {
		return nil
	}
	var inner []any
	switch in := at.(type) {
	case map[string]any:
		if in["$anchor"] == name || in["$dynamicAnchor"] == name || in["$id"] == "#"+name {
			return in
		}
		for _, one := range in {
			inner = append(inner, one)
		}
	case []any:
		inner = in
	}
	for _, one := range inner {
		if found := v.anchored(one, name); found != nil {
			return found
		}
	}
	return nil
}

// member returns the schemas of a member.
func member(nodes []map[string]any, name string) (list []any) {
	for _, n := range nodes {
		own, _ := n["properties"].(map[string]any)
		if one, ok := own[name]; ok {
			list = append(list, one)
		} else {
			list = append(list, n["additionalProperties"], n["unevaluatedProperties"])
		}
		patterns, _ := n["patternProperties"].(map[string]any)
		for pattern, one := range patterns {
			if re, err := regexp.Compile(pattern); err != nil || re.MatchString(name) {
				list = append(list, one)
			}
		}
	}
	return list
}

// item returns the schemas of an item.
func item(nodes []map[string]any, i int) (list []any) {
	for _, n := range nodes {
		for _, key := range []string{"prefixItems", "items"} {
			if places, ok := n[key].([]any); ok && i < len(places) {
				list = append(list, places[i])
			}
		}
		list = append(list, n["items"], n["additionalItems"], n["unevaluatedItems"], n["contains"])
	}
	return list
}

// leaves adds the texts and numbers of a value.
func leaves(list []string, value json.RawMessage) []string {
	var read any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if d.Decode(&read) != nil {
		return append(list, string(value))
	}
	return walked(list, read)
}

func walked(list []string, value any) []string {
	switch v := value.(type) {
	case string:
		return append(list, v)
	case json.Number:
		return append(list, v.String())
	case []any:
		for _, inner := range v {
			list = walked(list, inner)
		}
	case map[string]any:
		for _, inner := range v {
			list = walked(list, inner)
		}
	}
	return list
}
