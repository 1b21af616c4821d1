package openapi

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
)

// The kinds of bodies.
const (
	bodyJSON = iota
	bodyForm
	bodyParts
	bodyBytes
	bodyText
)

// body is the body of an operation's requests. Either one argument has its value, or
// each of its members is an argument.
type body struct {
	media    string // Content-Type
	kind     int
	required bool
	arg      string            // "" if members are arguments
	members  map[string]string // names of members, by argument
	fields   map[string]field  // of forms, by member
	schema   any
}

// field is how a member of a form travels.
type field struct {
	parameter parameter
	styled    bool   // as parameter has it
	media     string // of its part, "" for what its value is
	file      bool
}

// newBody returns the body of an operation, and nil if it has none.
func newBody(s *schemas, text []byte) (*body, error) {
	o, err := s.doc.follow(text)
	if err != nil {
		return nil, err
	}
	content := membersOf(o["content"])
	if len(content) == 0 {
		return nil, nil
	}
	best := slices.MinFunc(content, func(a, b member) int { return rank(a.name) - rank(b.name) })
	media := objectOf(best.value)
	b := &body{media: strings.TrimSpace(best.name), required: o.yes("required"), fields: map[string]field{}}
	base, _, err := mime.ParseMediaType(b.media)
	if err != nil {
		return nil, fmt.Errorf("its body has the type %.100q, which is none", b.media)
	}
	b.schema = s.convert(decode(media["schema"]), false)
	switch {
	case rank(base) <= 2:
		if b.kind = bodyJSON; strings.Contains(base, "*") {
			b.media = "application/json"
		}
	case base == "application/x-www-form-urlencoded":
		b.kind = bodyForm
		err = b.form(s, media)
	case strings.HasPrefix(base, "multipart/"):
		b.kind = bodyParts
		err = b.form(s, media)
	case isText(base, nil):
		b.kind = bodyText
		if strings.Contains(base, "*") {
			b.media = "text/plain"
		}
		b.schema = described(tree{"type": "string", "description": "The body as " + b.media + "."}, "")
	default:
		b.kind = bodyBytes
		if strings.Contains(base, "*") {
			b.media = "application/octet-stream"
		}
		b.schema = tree{"type": "string", "contentEncoding": "base64", "description": "The body, " + b.media + ", as base64."}
	}
	b.schema = described(b.schema, o.text("description"))
	return b, err
}

// rank says which type of a body is best: JSON, any type, JSON of a vendor, forms, others.
func rank(media string) int {
	base, _, _ := strings.Cut(strings.ToLower(media), ";")
	switch base = strings.TrimSpace(base); {
	case base == "application/json":
		return 0
	case strings.HasSuffix(base, "+json") || strings.Contains(base, "json") && !strings.Contains(base, "seq") && !strings.Contains(base, "jsonl") && !strings.Contains(base, "ndjson"):
		return 1
	case base == "*/*" || base == "application/*":
		return 2
	case base == "application/x-www-form-urlencoded":
		return 3
	case strings.HasPrefix(base, "multipart/"):
		return 4
	case strings.HasPrefix(base, "text/"):
		return 5
	}
	return 6
}

// form reads how the members of a form travel. A file becomes an object.
func (b *body) form(s *schemas, media object) error {
	props, parts := object{}, maxHops
	if err := s.doc.properties(media["schema"], props, &parts); err != nil {
		return err
	}
	encodings := objectOf(media["encoding"])
	root, _ := s.merged(b.schema, maxHops)
	members, _ := root["properties"].(tree)
	changed := maps.Clone(members)
	for name, text := range props {
		enc := objectOf(encodings[name])
		p := parameter{name: name, in: "query", style: enc.text("style"), reserved: enc.yes("allowReserved")}
		f := field{styled: enc["style"] != nil || enc["explode"] != nil || enc["allowReserved"] != nil, media: enc.text("contentType")}
		if !slices.Contains(styles["query"], p.style) {
			p.style = "form"
		}
		if p.explode = p.style == "form" || p.style == "deepObject"; enc["explode"] != nil {
			p.explode = enc.yes("explode")
		}
		if strings.ContainsAny(f.media, "*,\r\n") {
			f.media = ""
		}
		prop, err := s.doc.follow(text)
		if err != nil {
			return err
		}
		isList := prop.text("type") == "array"
		if isList {
			if prop, err = s.doc.follow(prop["items"]); err != nil {
				return err
			}
		}
		if b.kind == bodyParts && isFile(prop) && changed[name] != nil {
			f.file = true
			changed[name] = fileSchema(changed[name], isList)
		}
		f.parameter = p
		b.fields[name] = f
	}
	if changed != nil {
		root = maps.Clone(root)
		root["properties"] = changed
		b.schema = root
	}
	return nil
}

// properties adds the properties of a schema, and of the parts of its allOf, to those of all.
// parts is how many schemas may be read.
func (d *document) properties(schema []byte, all object, parts *int) error {
	if *parts--; *parts < 0 {
		return nil
	}
	o, err := d.follow(schema)
	if err != nil {
		return err
	}
	for name, text := range objectOf(o["properties"]) {
		if all[name] == nil {
			all[name] = text
		}
	}
	for _, part := range o.list("allOf") {
		if err := d.properties(part, all, parts); err != nil {
			return err
		}
	}
	return nil
}

// merged returns a schema, or what it refers to. One that has nothing but an allOf of objects,
// and members, is one object.
func (s *schemas) merged(schema any, parts int) (tree, int) {
	root, err := s.inlined(schema)
	list, _ := root["allOf"].([]any)
	if parts--; err != nil || list == nil || parts < 0 {
		return root, parts
	}
	props, required := tree{}, []any{}
	out := tree{"type": "object", "properties": props}
	own := maps.Clone(root)
	delete(own, "allOf")
	for _, part := range append(slices.Clone(list), own) {
		var one tree
		if one, parts = s.merged(part, parts); parts < 0 {
			return root, parts
		}
		for name, v := range one {
			switch name {
			case "type", "properties", "required", "title", "deprecated", "additionalProperties":
			case "description":
				out[name] = v
			default:
				return root, parts
			}
		}
		if kind := one["type"]; kind != nil && kind != "object" {
			return root, parts
		}
		members, _ := one["properties"].(tree)
		maps.Copy(props, members)
		needed, _ := one["required"].([]any)
		required = append(required, needed...)
	}
	if len(required) > 0 {
		out["required"] = distinct(required, handy)
	}
	return out, parts
}

// isFile reports whether a schema is of bytes.
func isFile(o object) bool {
	return o.text("format") == "binary" || o["contentMediaType"] != nil && o["contentEncoding"] == nil
}

// fileSchema is the schema of a file in a form, or of several.
func fileSchema(of any, list bool) tree {
	file := tree{
		"type": "object", "required": []any{"data"}, "additionalProperties": false,
		"properties": tree{
			"name": tree{"type": "string", "description": "Name of the file."},
			"type": tree{"type": "string", "description": "Media type."},
			"data": tree{"type": "string", "contentEncoding": "base64", "description": "Bytes of the file as base64."},
		},
	}
	if list {
		file = tree{"type": "array", "items": file}
	}
	if t, ok := of.(tree); ok && t["description"] != nil {
		file["description"] = t["description"]
	}
	return file
}

// flat returns the members of a JSON body that can be arguments of their own: those of an
// object with nothing but members. Without a required member it may be left out.
func (b *body) flat(s *schemas) (tree, []any, bool) {
	if b.kind != bodyJSON {
		return nil, nil, false
	}
	t, err := s.inlined(b.schema)
	props, ok := t["properties"].(tree)
	if err != nil || !ok || len(props) == 0 || t["type"] != nil && t["type"] != "object" {
		return nil, nil, false
	}
	for name, v := range t {
		switch name {
		case "type", "properties", "required", "title", "description", "deprecated":
		case "additionalProperties":
			if v != false {
				return nil, nil, false
			}
		default:
			return nil, nil, false
		}
	}
	required, _ := t["required"].([]any)
	for _, name := range required {
		if _, there := props[name.(string)]; !there {
			return nil, nil, false
		}
	}
	return props, required, b.required || len(required) == 0
}

// write returns the body with a value, and its Content-Type.
func (b *body) write(v any) (text []byte, media string, err error) {
	switch b.kind {
	case bodyForm:
		members, ok := v.(tree)
		if !ok {
			return []byte(escaped(plain(v), "=&")), b.media, nil
		}
		var all []string
		for _, name := range sortedKeys(members) {
			all = append(all, b.field(name, members[name])...)
		}
		return []byte(strings.Join(all, "&")), b.media, nil
	case bodyParts:
		return b.multipart(v)
	case bodyBytes:
		text, err := unbase64(b.arg, v)
		return text, b.media, err
	case bodyText:
		return []byte(plain(v)), b.media, nil
	}
	return encoded(v), b.media, nil
}

// field returns a member of a form. Without a style, members that are objects are JSON.
func (b *body) field(name string, v any) []string {
	f, known := b.fields[name]
	p := f.parameter
	if !known {
		p = parameter{name: name, style: "form", explode: true}
	}
	if _, isObject := v.(tree); isObject && !f.styled {
		p.json = true
	}
	return p.query(v)
}

// unbase64 returns the bytes of an argument.
func unbase64(arg string, v any) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(plain(v))
	if err != nil {
		data, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(plain(v), "="))
	}
	if err != nil {
		return nil, fmt.Errorf("argument %q: it must be base64", arg)
	}
	return data, nil
}

// multipart writes a form with a part for each member, and for each item of a list.
func (b *body) multipart(v any) ([]byte, string, error) {
	members, ok := v.(tree)
	if !ok {
		return nil, "", fmt.Errorf("argument %q: it must be an object", b.arg)
	}
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, name := range sortedKeys(members) {
		list, isList := members[name].([]any)
		if !isList {
			list = []any{members[name]}
		}
		for _, item := range list {
			if err := b.part(w, name, item); err != nil {
				return nil, "", err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	base, _, _ := mime.ParseMediaType(b.media)
	if strings.Contains(base, "*") {
		base = "multipart/form-data"
	}
	return out.Bytes(), base + "; boundary=" + w.Boundary(), nil
}

// part writes one part.
func (b *body) part(w *multipart.Writer, name string, v any) error {
	f := b.fields[name]
	media, data := f.media, []byte(plain(v))
	disposition := map[string]string{"name": name}
	file, isObject := v.(tree)
	switch {
	case f.file && isObject:
		var err error
		if data, err = unbase64(b.arg+"."+name+".data", file["data"]); err != nil {
			return err
		}
		disposition["filename"] = "file"
		if given := plain(file["name"]); given != "" {
			disposition["filename"] = given
		}
		if given := plain(file["type"]); given != "" {
			if media, err = cleanMedia(given); err != nil {
				return fmt.Errorf("argument %q: %w", b.arg+"."+name+".type", err)
			}
		}
		if media == "" {
			media = "application/octet-stream"
		}
	case isObject && media == "":
		media = "application/json"
	}
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", formData(disposition))
	if media != "" {
		h.Set("Content-Type", media)
	}
	p, err := w.CreatePart(h)
	if err == nil {
		_, err = p.Write(data)
	}
	return err
}

// cleanMedia returns a media type without anything that could begin another header.
func cleanMedia(text string) (string, error) {
	base, params, err := mime.ParseMediaType(text)
	clean := mime.FormatMediaType(base, params)
	if err != nil || clean == "" || strings.ContainsAny(clean, "\r\n\x00") {
		return "", errors.New("it must be a media type, such as image/png")
	}
	return clean, nil
}

// formData returns the header of a part, with names quoted as browsers do.
func formData(of map[string]string) string {
	quote := strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A", "\x00", "")
	text := `form-data; name="` + quote.Replace(of["name"]) + `"`
	if name, ok := of["filename"]; ok {
		text += `; filename="` + quote.Replace(name) + `"`
	}
	return text
}
