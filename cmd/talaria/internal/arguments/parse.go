package arguments

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// Parse makes the JSON object of arguments that were typed one by one:
//
//	name=value      a value that is read as the schema says; again for a list
//	name:=JSON      any JSON
//	name=@file      the text of a file; its bytes where the schema says base64
//	name:=@file     the JSON in a file
//	a.b=value       a member of an object
//	{…}             a whole object, which the others add to
//	@file           such an object in a file
//
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

// Read makes the value of what was typed after name=, which may name a file.
func (f Field) Read(typed string) (json.RawMessage, error) {
	text, isFile, err := content(typed)
	if err != nil {
		return nil, err
	}
	if isFile && f.bytes() {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return f.Value(text)
}

// Typed returns how a text is typed after name= for Read to give it back. What
// is offered to a person for completion goes through here: a server may have
// chosen it, and a file is sent only if the person has named it.
func Typed(text string) string {
	if strings.HasPrefix(text, "@") {
		return `\` + text
	}
	return text
}

// Nameable tells whether a field can be given as name=value: the name is not
// read as something else then.
func (f Field) Nameable() bool {
	return f.Name != "" && !strings.ContainsAny(f.Name[:1], "@{") && !strings.Contains(f.Name, "=")
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

// bytes reports whether the field, or each item of the list that it is, holds
// bytes as base64.
func (f Field) bytes() bool {
	return f.rules.base64() || f.Item != nil && f.Item.rules.base64()
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

// Value reads what was typed as the field's type says: the first type that
// fits, in the order of the schema. Without a type, a JSON number, boolean, null,
// list or object is one, and all else is text.
func (f Field) Value(text string) (json.RawMessage, error) {
	if o, ok := f.option(text); ok && !slices.Contains(f.Types, "array") {
		return o.Value, nil
	}
	if len(f.Types) == 0 {
		if t := strings.TrimSpace(text); json.Valid([]byte(t)) && !strings.HasPrefix(t, `"`) {
			return json.RawMessage(t), nil
		}
		return quote(text), nil
	}
	var last error
	for _, name := range f.Types {
		value, err := f.as(name, text)
		if err == nil {
			return value, nil
		}
		if last == nil {
			last = err
		}
	}
	return nil, last
}

// option finds a value of an enum by its text, or by its title.
func (f Field) option(text string) (Option, bool) {
	for _, o := range f.Options {
		if o.Text() == text {
			return o, true
		}
	}
	for _, o := range f.Options {
		if o.Title != "" && strings.EqualFold(o.Title, text) {
			return o, true
		}
	}
	return Option{}, false
}

func (f Field) as(name, text string) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	switch name {
	case "string":
		if len(f.Options) > 0 {
			return nil, fmt.Errorf("must be one of %s; got %s", f.Choices(), shorten(text))
		}
		return quote(text), nil
	case "integer", "number":
		return numeric(name, trimmed)
	case "boolean":
		switch strings.ToLower(trimmed) {
		case "true", "yes", "y", "on", "1":
			return json.RawMessage("true"), nil
		case "false", "no", "n", "off", "0":
			return json.RawMessage("false"), nil
		}
		return nil, fmt.Errorf("must be true or false; got %s", shorten(text))
	case "null":
		if trimmed == "null" || trimmed == "" {
			return json.RawMessage("null"), nil
		}
		return nil, fmt.Errorf("must be null; got %s", shorten(text))
	case "array":
		return f.list(trimmed)
	case "object":
		if strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) {
			return json.RawMessage(trimmed), nil
		}
		return nil, fmt.Errorf("must be a JSON object such as {\"name\": 1}; got %s", shorten(text))
	}
	return nil, fmt.Errorf("the schema has the unknown type %q; write %s:=JSON", name, f.Name)
}

func numeric(name, text string) (json.RawMessage, error) {
	text = strings.TrimPrefix(text, "+")
	var n json.Number
	if json.Unmarshal([]byte(text), &n) != nil || strings.HasPrefix(text, `"`) || text == "null" {
		return nil, fmt.Errorf("must be %s; got %s", map[string]string{"integer": "an integer", "number": "a number"}[name], shorten(text))
	}
	if name == "integer" {
		if v, err := strconv.ParseFloat(text, 64); err != nil || v != float64(int64(v)) && v < 1e18 && v > -1e18 {
			return nil, fmt.Errorf("must be an integer; got %s", shorten(text))
		}
	}
	return json.RawMessage(text), nil
}

// list reads a JSON list, or values with commas between them.
func (f Field) list(text string) (json.RawMessage, error) {
	if strings.HasPrefix(text, "[") {
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("must be a JSON list such as [1, 2]; got %s", shorten(text))
		}
		return json.RawMessage(text), nil
	}
	item := Field{Name: f.Name}
	if f.Item != nil {
		item = *f.Item
	}
	if len(item.Options) == 0 {
		item.Options = f.Options
	}
	var values []json.RawMessage
	parts := strings.Split(text, ",")
	if slices.Contains(item.Types, "object") || text == "" {
		parts = []string{text} // an object has commas of its own
	}
	for _, part := range parts {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		value, err := item.Value(part)
		if err != nil {
			return nil, fmt.Errorf("each item %w", err)
		}
		values = append(values, value)
	}
	return append(append(json.RawMessage("["), bytes.Join(rawBytes(values), []byte(","))...), ']'), nil
}

func rawBytes(values []json.RawMessage) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// Check holds one value against the field's schema.
func (f Field) Check(value json.RawMessage) error {
	if len(f.Schema) == 0 {
		return nil
	}
	return check(f.Schema, value)
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

func quote(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always encodes
	return bytes.TrimSpace(b.Bytes())
}

// shorten quotes text for a message.
func shorten(text string) string {
	const limit = 60
	if r := []rune(text); len(r) > limit {
		text = string(r[:limit]) + "…"
	}
	return strconv.Quote(text)
}
