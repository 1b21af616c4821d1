// Package arguments turns what a person types, as name=value, into the JSON
// that a tool, a prompt or a form wants, with the help of its JSON Schema.
package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// Object is an object schema, taken apart.
type Object struct {
	Fields []Field // in the order of the schema
	Closed bool    // nothing but Fields is allowed
	schema json.RawMessage
}

// ReadObject reads a schema, which may come from a server that nobody trusts:
// what it cannot make sense of it leaves out. nil is an object without fields.
func ReadObject(schema json.RawMessage) (*Object, error) {
	root, err := ReadField(schema)
	if err != nil {
		return nil, err
	}
	return &Object{Fields: root.Fields, Closed: root.Closed, schema: schema}, nil
}

// ReadField reads a schema as ReadObject does, as a field without a name.
func ReadField(schema json.RawMessage) (Field, error) {
	if len(schema) == 0 {
		return Field{Types: []string{"object"}}, nil
	}
	var root node
	if len(schema) <= maxBytes {
		if err := decode(schema, &root); err != nil {
			return Field{}, fmt.Errorf("the schema is no JSON object: %w", err)
		}
	}
	return newReader(schema).field("", schema, maxNesting+1), nil
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

// Help tells people how the members of an object are typed.
const Help = `  name=value      read as the tool's schema says; again for one more item of a list
  name:=JSON      any JSON
  name=@file      the text of a file, or its bytes where a tool takes base64
  name:=@file     the JSON in a file
  a.b=value       a member of an object`

// Parse makes the JSON object of arguments that were typed one by one, as Help
// says, or whole, as {…} or as a @file that has it, to which the others are added.
// A backslash before @ keeps it from naming a file.
func (o *Object) Parse(list []string) (json.RawMessage, error) {
	out := &tree{}
	var faults []error
	for _, text := range list {
		if err := o.add(out, text); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return out.json(), nil
}

func (o *Object) add(out *tree, text string) error {
	if whole, ok, err := wholeObject(text); ok {
		if err == nil {
			err = out.merge(whole)
		}
		return err
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || name == ":" {
		return fmt.Errorf("%q is no argument; write name=value, name:=JSON or {…}", text)
	}
	name, raw := strings.CutSuffix(name, ":")
	field, path, err := o.find(name)
	if err != nil {
		return err
	}
	if raw {
		value, _, err := content(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !json.Valid([]byte(value)) {
			return fmt.Errorf("%s: %s is not valid JSON; write %s=%s for text", name, shorten(value), name, shorten(value))
		}
		return out.set(path, json.RawMessage(value), false)
	}
	parsed, err := field.Read(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return out.set(path, parsed, slices.Contains(field.Types, "array"))
}

// find returns the field of a name, which may lead into objects by dots.
func (o *Object) find(name string) (Field, []string, error) {
	if f, ok := o.Field(name); ok {
		return f, []string{name}, nil
	}
	if first, rest, ok := strings.Cut(name, "."); ok {
		if f, known := o.Field(first); known && slices.Contains(f.Types, "object") {
			inner, err := ReadObject(f.Schema)
			if err != nil {
				return f, nil, err
			}
			leaf, path, err := inner.find(rest)
			return leaf, append([]string{first}, path...), err
		}
	}
	if o.Closed {
		return Field{}, nil, o.unknown(name)
	}
	return Field{Name: name}, []string{name}, nil
}

func (o *Object) unknown(name string) error {
	if len(o.Fields) == 0 {
		return fmt.Errorf("%s: there are no arguments", name)
	}
	if near := Nearest(name, o.Names()); near != "" {
		return fmt.Errorf("%s: unknown argument; did you mean %s?", name, near)
	}
	return fmt.Errorf("%s: unknown argument; there are: %s", name, strings.Join(o.Names(), ", "))
}

// Check holds a whole object against the schema. A schema that does not
// compile checks nothing: the server judges then.
func (o *Object) Check(object json.RawMessage) error {
	if len(o.schema) == 0 {
		return nil
	}
	return check(o.schema, object)
}

func check(text, value json.RawMessage) error {
	compiled, err := raw.Compile(text)
	if err != nil {
		return nil
	}
	faults, ok := errors.AsType[*schema.Error](compiled.Check(value))
	if !ok {
		return nil
	}
	lines := make([]error, len(faults.Issues))
	for i, is := range faults.Issues {
		line := is.Message
		if name := strings.TrimPrefix(is.Path, "/"); name != "" {
			line = name + ": " + line
		}
		if is.Hint != "" {
			line += "; " + is.Hint
		}
		lines[i] = errors.New(line)
	}
	return errors.Join(lines...)
}

// wholeObject reads an argument that is no name and value.
func wholeObject(text string) (object json.RawMessage, ok bool, err error) {
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case isFile:
		data, err := readFile(name)
		if err != nil {
			return nil, true, err
		}
		text = string(data)
	case !strings.HasPrefix(strings.TrimSpace(text), "{"):
		return nil, false, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, true, fmt.Errorf("invalid JSON: %w; write an object such as {\"name\": \"value\"}", err)
	}
	return json.RawMessage(text), true, nil
}

// content returns a value, or what is in the file that it names.
func content(value string) (text string, isFile bool, err error) {
	if rest, ok := strings.CutPrefix(value, `\@`); ok {
		return "@" + rest, false, nil
	}
	name, ok := strings.CutPrefix(value, "@")
	if !ok {
		return value, false, nil
	}
	data, err := readFile(name)
	return string(data), true, err
}

// maxFile bounds what an argument may take from a file.
const maxFile = 64 << 20

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf(`file not found: %s; write \@ for a text that begins with @`, name)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that an argument may have", name, info.Size(), maxFile)
	}
	return os.ReadFile(name)
}
