// Package arguments turns what a person types, as name=value, into the JSON
// that a tool, a prompt or a form wants, with the help of its JSON Schema.
package arguments

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/files"
	"github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// Object is an object schema, taken apart.
type Object struct {
	Fields []Field // in the order of the schema
	Closed bool    // nothing but Fields is allowed
	root   Field   // all that the schema says
	schema json.RawMessage
}

// ReadObject reads a schema, which may come from an untrusted server; it omits
// parts that it does not understand. nil is an object without fields.
func ReadObject(schema json.RawMessage) (*Object, error) {
	root, err := ReadField(schema)
	if err != nil {
		return nil, err
	}
	return &Object{Fields: root.Fields, Closed: root.Closed, root: root, schema: schema}, nil
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
  a.b=value       a member of an object
  a[0].b=value    a member of an item of a list`

// Parse makes the JSON object of arguments that were typed one by one, as Help
// says, or whole, as {…} or as a @file that has it, to which the others are added.
// A backslash before @ keeps it from naming a file.
//
// A name may lead to several places, such as members of two variants of a union. The
// first combination that fits the whole schema counts, else the first of all.
func (o *Object) Parse(list []string) (json.RawMessage, error) {
	typed, faults := o.readAll(list)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return o.choose(typed)
}

// Arguments is Parse and Check in one: its error has everything that is wrong, also
// where some of what was typed cannot be read. The object is then what a server can check,
// with such values as texts; nil if there is none.
func (o *Object) Arguments(list []string) (json.RawMessage, error) {
	typed, faults := o.readAll(list)
	if len(faults) == 0 {
		object, err := o.choose(typed)
		if err == nil {
			err = o.Check(object)
		}
		return object, err
	}
	said := map[string]bool{}
	for _, err := range faults {
		misread, ok := errors.AsType[*misreadError](err)
		if !ok { // it may be anything
			return nil, errors.Join(faults...)
		}
		said[misread.path()] = true
	}
	object, err := build(typed, 0)
	if err != nil {
		return nil, errors.Join(append(faults, err)...)
	}
	for _, is := range issues(o.schema, object) {
		if !said[strings.TrimPrefix(is.Path, "/")] {
			faults = append(faults, line(is))
		}
	}
	return object, errors.Join(faults...)
}

// misreadError is the error of an argument whose value or name is not what the schema
// says. The text stands for the value while the others are checked.
type misreadError struct {
	assignment
	err error
}

func (e *misreadError) Error() string { return e.err.Error() }
func (e *misreadError) Unwrap() error { return e.err }

// path is the place as issues have it.
func (e *misreadError) path() string {
	names := make([]string, len(e.assignment.path))
	for i, s := range e.assignment.path {
		names[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(s.name)
	}
	return strings.Join(names, "/")
}

// readAll reads the arguments one by one. Misread arguments are among the
// assignments, too.
func (o *Object) readAll(list []string) (typed [][]assignment, faults []error) {
	for _, text := range list {
		choices, err := o.read(text)
		if err != nil {
			faults = append(faults, err)
		}
		if misread, ok := errors.AsType[*misreadError](err); ok {
			choices = []assignment{misread.assignment}
		}
		typed = append(typed, choices)
	}
	return typed, faults
}

// choose makes the object of the first combination that fits the schema.
func (o *Object) choose(typed [][]assignment) (json.RawMessage, error) {
	first, err := build(typed, 0)
	if ways(typed) == 1 || len(o.schema) == 0 {
		return first, err
	}
	compiled, broken := raw.Compile(o.schema)
	for n := 0; broken == nil && n < ways(typed); n++ {
		if object, err := build(typed, n); err == nil && compiled.Check(object) == nil {
			return object, nil
		}
	}
	return first, err
}

// assignment is one thing that a typed argument can mean: a value for a path, or for
// an empty path a whole object.
type assignment struct {
	path  []step
	value json.RawMessage
	list  bool // the value is a list, to which another may be added
}

// maxWays bounds how many combinations of assignments are tried.
const maxWays = 256

// ways is how many combinations there are, up to maxWays.
func ways(typed [][]assignment) int {
	n := 1
	for _, choices := range typed {
		n = min(n*len(choices), maxWays)
	}
	return n
}

// build makes the object of the n-th combination.
func build(typed [][]assignment, n int) (json.RawMessage, error) {
	out := &tree{}
	var faults []error
	for _, choices := range typed {
		a := choices[n%len(choices)]
		n /= len(choices)
		if len(a.path) == 0 {
			faults = append(faults, out.merge(a.value))
		} else {
			faults = append(faults, out.set(a.path, a.value, a.list))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return out.json()
}

// read returns what one argument can mean, the likeliest first.
func (o *Object) read(text string) ([]assignment, error) {
	if whole, ok, err := wholeObject(text); ok {
		return []assignment{{value: whole}}, err
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || name == ":" {
		return nil, fmt.Errorf("%q is not an argument; write name=value, name:=JSON or {…}", text)
	}
	name, isJSON := strings.CutSuffix(name, ":")
	places, at, err := o.find(name)
	if err != nil {
		return nil, &misreadError{assignment{path: at, value: quote(value)}, err}
	}
	if isJSON {
		value, _, err := content(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		value = string(jsonx.Document([]byte(value)))
		if !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("%s: %s is not valid JSON; write %s=%s for text", name, shorten(value), name, shorten(value))
		}
		return []assignment{{path: places[0].path, value: json.RawMessage(value)}}, nil
	}
	var list []assignment
	var first error
	for _, p := range places {
		parsed, err := p.field.Read(value)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		a := assignment{p.path, parsed, slices.Contains(p.field.Types, "array")}
		if !slices.ContainsFunc(list, func(b assignment) bool { return slices.Equal(a.path, b.path) && bytes.Equal(a.value, b.value) }) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		list := slices.Contains(places[0].field.Types, "array")
		return nil, &misreadError{assignment{places[0].path, quote(value), list}, fmt.Errorf("%s: %w", name, first)}
	}
	return list, nil
}

// find returns the places of a name, one or more, or an error and where it would be.
func (o *Object) find(name string) ([]place, []step, error) {
	root := o.root
	root.Fields, root.Closed = o.Fields, o.Closed
	f := newFinder(o.schema)
	if list := f.members(f.open(root), name); len(list) > 0 {
		return list, nil, nil
	}
	at, err := f.missing(root, nil, "", name)
	return nil, at, err
}

// unknown is the error for a name that is not a field; before is before it.
func (o *Object) unknown(before, name string) error {
	if len(o.Fields) == 0 {
		return fmt.Errorf("%s: there are no arguments", before+name)
	}
	if near := names.Nearest(name, o.Names()); near != "" {
		return fmt.Errorf("%s: unknown argument; did you mean %s?", before+name, before+near)
	}
	return fmt.Errorf("%s: unknown argument; there are: %s", before+name, before+strings.Join(o.Names(), ", "+before))
}

// Check holds a whole object against the schema. A schema that does not compile
// checks nothing: the server checks then.
func (o *Object) Check(object json.RawMessage) error {
	if len(o.schema) == 0 {
		return nil
	}
	return check(o.schema, object)
}

func check(text, value json.RawMessage) error {
	var lines []error
	for _, is := range issues(text, value) {
		lines = append(lines, line(is))
	}
	return errors.Join(lines...)
}

// issues returns what is wrong with a value; nothing if the schema does not compile.
func issues(text, value json.RawMessage) []schema.Issue {
	compiled, err := raw.Compile(text)
	if err != nil {
		return nil
	}
	faults, ok := errors.AsType[*schema.Error](compiled.Check(value))
	if !ok {
		return nil
	}
	return faults.Issues
}

// line returns an issue as a line of an error.
func line(is schema.Issue) error {
	text := is.Message
	if name := strings.TrimPrefix(is.Path, "/"); name != "" {
		text = name + ": " + text
	}
	if is.Hint != "" {
		text += "; " + is.Hint
	}
	return errors.New(text)
}

// wholeObject reads an argument that is not a name and value.
func wholeObject(text string) (object json.RawMessage, ok bool, err error) {
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case isFile:
		data, err := readFile(name)
		if err != nil {
			return nil, true, err
		}
		text = string(jsonx.Document(data))
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
	text, err := files.Read(name, maxFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf(`file not found: %s; write \@ for a text that begins with @`, name)
	}
	return text, err
}
