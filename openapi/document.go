package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/jsonx"
)

const (
	maxNested = 200 // levels of a document
	maxHops   = 16  // references that lead to references
)

// object has the members of a JSON object by their names.
type object map[string]json.RawMessage

// member is one member of an object, in the order of the document.
type member struct {
	name  string
	value json.RawMessage
}

// document is a document as JSON text that was checked.
type document struct {
	root  object
	text  json.RawMessage
	old   bool              // OpenAPI 3.0
	known map[string]object // by JSON Pointer
}

// read reads a document in JSON or YAML. It refers to text, and what is made of it does not.
func read(text []byte) (*document, error) {
	text = jsonx.Document(text)
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	err := checked(text)
	if _, deep := errors.AsType[*jsonx.DepthError](err); err != nil && !deep {
		fromYAML, other := jsonOfYAML(text)
		switch {
		case other == nil:
			text, err = fromYAML, checked(fromYAML)
		case !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
			err = other
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the document cannot be read: %w", err)
	}
	d := &document{text: text, root: objectOf(text), known: map[string]object{}}
	d.known[""] = d.root
	version := strings.Trim(string(d.root["openapi"]), `"`) // in YAML it may be a number
	switch {
	case d.root["swagger"] != nil:
		return nil, errors.New("the document is Swagger 2.0: convert it to OpenAPI 3 first")
	case !strings.HasPrefix(version, "3."):
		return nil, fmt.Errorf("its member openapi is %.40q: it must be a version 3", version)
	}
	d.old = strings.HasPrefix(version, "3.0")
	return d, nil
}

// checked reports whether text is one JSON value. A member that occurs twice is there
// for the last time.
func checked(text []byte) error {
	s := jsonx.Scanner{Buf: text, MaxDepth: maxNested, AllowDuplicates: true}
	if _, err := s.Skip(); err != nil {
		return err
	}
	return s.End()
}

// membersOf returns the members of an object, and nothing for any other value. The text
// has been checked.
func membersOf(text json.RawMessage) []member {
	s := jsonx.Scanner{Buf: text, MaxDepth: maxNested}
	if s.Peek() != jsonx.Object {
		return nil
	}
	var all []member
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		s.Peek()
		own, start := string(name), s.Pos
		s.SkipChecked()
		all = append(all, member{own, json.RawMessage(text[start:s.Pos:s.Pos])})
		more, err = s.ObjectNext()
	}
	return all
}

// objectOf is membersOf by name.
func objectOf(text json.RawMessage) object {
	o := object{}
	for _, m := range membersOf(text) {
		o[m.name] = m.value
	}
	return o
}

// text returns a member that is a text, else "".
func (o object) text(name string) string {
	var s string
	if jsonx.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

// yes reports whether a member is true.
func (o object) yes(name string) bool { return string(o[name]) == "true" }

// list returns the items of a member that is an array.
func (o object) list(name string) []json.RawMessage { return items(o[name]) }

// texts returns the items of a member that are texts.
func (o object) texts(name string) []string {
	var all []string
	for _, item := range o.list(name) {
		var s string
		if jsonx.Unmarshal(item, &s) == nil {
			all = append(all, s)
		}
	}
	return all
}

// items returns the items of an array.
func items(text json.RawMessage) []json.RawMessage {
	s := jsonx.Scanner{Buf: text, MaxDepth: maxNested}
	if len(text) == 0 || s.Peek() != jsonx.Array {
		return nil
	}
	var all []json.RawMessage
	more, err := s.ArrayStart()
	for more && err == nil {
		s.Peek()
		start := s.Pos
		s.SkipChecked()
		all = append(all, json.RawMessage(text[start:s.Pos:s.Pos]))
		more, err = s.ArrayNext()
	}
	return all
}

// decode returns a value as encoding/json decodes it, numbers as they are written.
func decode(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v) // what cannot be decoded is null, and no schema
	return v
}

// at returns what a reference leads to.
func (d *document) at(ref string) (json.RawMessage, error) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, fmt.Errorf("it refers to another document, %q: bundle the documents into one first", ref)
	}
	value, pointer := d.text, ""
	if fragment == "" {
		return value, nil
	}
	for _, token := range strings.Split(strings.TrimPrefix(fragment, "/"), "/") {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}
		token = unescaping.Replace(token)
		var next json.RawMessage
		if list := items(value); list != nil {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) {
				next = list[i]
			}
		} else {
			o, known := d.known[pointer]
			if !known {
				o = objectOf(value)
				d.known[pointer] = o
			}
			next = o[token]
		}
		if next == nil {
			return nil, fmt.Errorf("it refers to %q, which is not there", ref)
		}
		value, pointer = next, pointer+"/"+escape(token)
	}
	return value, nil
}

// components returns the components of the document.
func (d *document) components() object {
	o, known := d.known["/components"]
	if !known {
		o = objectOf(d.root["components"])
		d.known["/components"] = o
	}
	return o
}

// follow returns the object that a value is, or refers to.
func (d *document) follow(value json.RawMessage) (object, error) {
	o := objectOf(value)
	for range maxHops {
		ref := o.text("$ref")
		if ref == "" {
			return o, nil
		}
		next, err := d.at(ref)
		if err != nil {
			return nil, err
		}
		o = objectOf(next)
	}
	return nil, errors.New("its references lead nowhere")
}

// escaping writes a name as a part of a JSON Pointer; unescaping reads it.
var (
	escaping   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaping = strings.NewReplacer("~1", "/", "~0", "~")
)

// escape writes a name as a part of a JSON Pointer.
func escape(name string) string { return escaping.Replace(name) }
