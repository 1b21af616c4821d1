package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// parameter is a parameter of an operation. Its values are written in the styles of
// OpenAPI (https://spec.openapis.org/oas/v3.1.1.html#style-values).
type parameter struct {
	name, in, style   string
	explode, reserved bool
	required, json    bool
	schema            any
	arg               string  // the argument that has its value
	fixed             *string // its value, if it is not an argument
}

// styles are the styles that a place allows; the first is its default.
var styles = map[string][]string{
	"path":   {"simple", "label", "matrix"},
	"query":  {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
	"header": {"simple"},
	"cookie": {"form"},
}

// newParameter reads a parameter.
func newParameter(s *schemas, o object) (*parameter, error) {
	p := &parameter{name: o.text("name"), in: o.text("in"), required: o.yes("required")}
	p.reserved = p.in == "query" && o.yes("allowReserved")
	allowed, known := styles[p.in]
	switch {
	case p.name == "":
		return nil, fmt.Errorf("a parameter has no name%w", errUnsendable)
	case p.in == "header" && strings.ContainsFunc(p.name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }):
		return nil, fmt.Errorf("no header can have the name %.100q%w", p.name, errUnsendable)
	case !known:
		return nil, fmt.Errorf("parameter %q: its place %q is not path, query, header or cookie", p.name, p.in)
	}
	p.required = p.required || p.in == "path"
	if p.style = o.text("style"); p.style == "" || !slices.Contains(allowed, p.style) {
		p.style = allowed[0]
	}
	p.explode = p.style == "form" || p.style == "deepObject"
	if o["explode"] != nil {
		p.explode = o.yes("explode")
	}
	schema := o["schema"]
	for _, m := range membersOf(o["content"]) {
		p.json = strings.Contains(m.name, "json")
		schema = objectOf(m.value)["schema"]
	}
	p.schema = s.convert(decode(schema), false)
	if p.required && !p.json {
		p.schema = s.withoutNull(p.schema)
	}
	p.schema = described(p.schema, o.text("description"))
	return p, nil
}

// errUnsendable is the end of the error of a parameter that no request can have.
var errUnsendable = errors.New(": the parameter is left out")

// described returns a schema with a description, unless it has one.
func described(schema any, text string) any {
	t, ok := schema.(tree)
	if !ok || text == "" {
		return schema
	}
	said, _ := t["description"].(string)
	if _, has := t["description"]; has && !strings.HasPrefix(said, "Default: ") && !strings.HasPrefix(said, "Pattern: ") {
		return schema
	}
	out := maps.Clone(t)
	out["description"] = strings.TrimSpace(text + "\n" + said)
	return out
}

// ignored reports whether a document and a caller cannot set a header: it decides where
// the request goes, who sends it, or how its body travels. OpenAPI ignores Accept,
// Content-Type and Authorization, too.
func ignored(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{"content-", "mcp-", "proxy-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "accept", "accept-encoding", "authorization", "connection", "cookie", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// unreserved are the characters besides letters and digits that are never encoded.
const unreserved = "-._~"

// reserved are those that allowReserved keeps. The others of RFC 3986 would begin
// another part of the URL, or another value.
const reserved = ":/?@!$'()*,"

// escaped returns text percent-encoded, except the characters of keep.
func escaped(text, keep string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(unreserved, c) >= 0 || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// plain returns a value within a style: a text as it is, what has no form there as JSON.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return string(encoded(v))
}

// present returns a value of an argument without what is null, which a style does not have
// (RFC 6570 §2.3).
func (p *parameter) present(v any) any {
	if p.json {
		return v
	}
	inside := func(v any) any {
		if p.style == "deepObject" {
			return p.present(v)
		}
		return v
	}
	switch v := v.(type) {
	case []any:
		all := make([]any, 0, len(v))
		for _, item := range v {
			if item != nil {
				all = append(all, inside(item))
			}
		}
		return all
	case tree:
		all := tree{}
		for name, member := range v {
			if member != nil {
				all[name] = inside(member)
			}
		}
		return all
	}
	return v
}

// part is one name and value of a parameter or a form, before they are encoded. The
// values of one part are joined.
type part struct {
	name   string
	values []string
}

// parts returns a value in a style that has names: form, deepObject and the delimited.
func (p *parameter) parts(v any) []part {
	if p.style == "deepObject" {
		return deep(p.name, v, nil)
	}
	var all []part
	joined := part{name: p.name}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			joined.values = append(joined.values, plain(item))
			all = append(all, part{p.name, []string{plain(item)}})
		}
	case tree:
		for _, name := range sortedKeys(v) {
			joined.values = append(joined.values, name, plain(v[name]))
			list, isList := v[name].([]any)
			if !isList {
				list = []any{v[name]}
			}
			for _, item := range list {
				all = append(all, part{name, []string{plain(item)}})
			}
		}
	default:
		return []part{{p.name, []string{plain(v)}}}
	}
	if p.explode || joined.values == nil {
		return all
	}
	return []part{joined}
}

// deep appends the parts of a value with the names of its members in brackets.
func deep(name string, v any, all []part) []part {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			all = deep(fmt.Sprintf("%s[%d]", name, i), item, all)
		}
		return all
	case tree:
		for _, member := range sortedKeys(v) {
			all = deep(name+"["+member+"]", v[member], all)
		}
		return all
	}
	return append(all, part{name, []string{plain(v)}})
}

// query returns a value as parts of a query or of a form, or as cookies.
func (p *parameter) query(v any) []string {
	if p.json {
		return []string{escaped(p.name, "") + "=" + escaped(string(encoded(v)), "")}
	}
	keep, between := "", ","
	if p.reserved {
		keep = reserved
	}
	switch p.style {
	case "spaceDelimited":
		between = "%20"
	case "pipeDelimited":
		between = "%7C"
	}
	var all []string
	for _, part := range p.parts(v) {
		values := make([]string, len(part.values))
		for i, value := range part.values {
			values[i] = escaped(value, keep)
		}
		all = append(all, escaped(part.name, "")+"="+strings.Join(values, between))
	}
	return all
}

// path returns a value as a part of a path.
func (p *parameter) path(v any) string {
	if p.json {
		return escaped(string(encoded(v)), "")
	}
	first, between, named := "", ",", false
	switch {
	case p.style == "label" && p.explode:
		first, between = ".", "."
	case p.style == "label":
		first = "."
	case p.style == "matrix" && p.explode:
		first, between, named = ";", ";", true
	case p.style == "matrix":
		first = ";" + escaped(p.name, "") + "="
	}
	all := p.simple(v, func(text string) string { return escaped(text, "") })
	if _, isObject := v.(tree); named && !isObject {
		for i, text := range all {
			all[i] = strings.TrimSuffix(escaped(p.name, "")+"="+text, "=")
		}
	}
	text := strings.Join(all, between)
	if p.style == "matrix" && text == "" {
		return strings.TrimSuffix(first, "=") // no value has no sign
	}
	return first + text
}

// simple returns what the style simple has of a value: items, or names and values of members.
func (p *parameter) simple(v any, write func(string) string) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			all = append(all, write(plain(item)))
		}
	case tree:
		for _, name := range sortedKeys(v) {
			if p.explode {
				all = append(all, write(name)+"="+write(plain(v[name])))
			} else {
				all = append(all, write(name), write(plain(v[name])))
			}
		}
	default:
		return []string{write(plain(v))}
	}
	return all
}

// header returns a value as that of a header.
func (p *parameter) header(v any) (string, error) {
	text := string(encoded(v))
	if !p.json {
		text = strings.Join(p.simple(v, func(text string) string { return text }), ",")
	}
	if strings.ContainsAny(text, "\r\n\x00") {
		return "", fmt.Errorf("argument %q: a header has no line breaks", p.arg)
	}
	return text, nil
}
