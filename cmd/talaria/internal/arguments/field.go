package arguments

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Field is one property of an object schema, with all that is below it, as far as
// the bounds of reading go.
type Field struct {
	Name        string
	Title       string
	Description string
	Types       []string // of JSON Schema, in the order of the schema; empty if it names none
	Required    bool
	Options     []Option        // the values of an enum, or of the items of a list of enums
	Default     json.RawMessage // nil if there is none
	Wrong       string          // why the default of the schema is invalid
	Schema      json.RawMessage // the property's schema, references within it resolved one level deep
	Item        *Field          // of a list; nil if unknown
	First       []Field         // of a list: the items with a place of their own (prefixItems)
	Fields      []Field         // the members of an object
	Closed      bool            // an object has nothing but Fields
	Rest        *Field          // what further members of an object must be; nil if anything
	Patterns    []Pattern       // what members must be whose names match
	Variants    []Variant       // the kinds that a union takes, two or more; of a list, those of its items
	Cut         bool            // there is more below it, which was not read
	Rules

	ofItems bool // Variants are those of the items of a list
}

// Union reports whether Variants are what the field itself takes, one of them.
func (f Field) Union() bool { return len(f.Variants) > 1 && !f.ofItems }

// Variant is one kind that a union takes.
type Variant struct {
	Short string // {kind: circle, radius, color?}; "" if it is not an object with members
	Field
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

// Type says in a word or two what a field takes: "integer", "list of string",
// "string or null", "any".
func (f Field) Type() string {
	if len(f.Types) == 0 {
		return "any"
	}
	names := slices.Clone(f.Types)
	for i, name := range names {
		if name != "array" {
			continue
		}
		names[i] = "list"
		if f.Item != nil && len(f.Item.Types) > 0 {
			names[i] = "list of " + f.Item.Type()
		}
	}
	return strings.Join(names, " or ")
}

// Hint says what a field takes, for a prompt: type, bounds, values, default.
func (f Field) Hint() string {
	parts := []string{f.Type()}
	if r := f.Rules.Bounds(); r != "" {
		parts = append(parts, r)
	}
	if list := f.Choices(); list != "" {
		parts = append(parts, list)
	}
	if list := f.variants(); list != "" {
		parts = append(parts, list)
	}
	if len(f.Default) > 0 {
		parts = append(parts, "default "+Plain(f.Default))
	}
	if !f.Required {
		parts = append(parts, "optional")
	}
	return strings.Join(parts, ", ")
}

// The bounds of what a hint lists: values of an enum, kinds of a union, and
// members of each.
const (
	shownChoices  = 12
	shownVariants = 6
	shownMembers  = 6
)

// Choices lists the values of an enum, "" if there is none.
func (f Field) Choices() string {
	var list []string
	for i, o := range f.Options {
		if i == shownChoices {
			list = append(list, fmt.Sprintf("… %d more", len(f.Options)-i))
			break
		}
		text := o.Text()
		if o.Title != "" && o.Title != text {
			text += " (" + o.Title + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, " | ")
}

// variants lists the kinds of object of a union; a single one is not a union.
func (f Field) variants() string {
	var list []string
	for _, v := range f.Variants {
		if v.Short != "" {
			list = append(list, v.Short)
		}
	}
	if len(list) < 2 {
		return ""
	}
	if len(list) > shownVariants {
		list = append(list[:shownVariants], fmt.Sprintf("… %d more", len(list)-shownVariants))
	}
	return strings.Join(list, " | ")
}

// Typed returns how a text is typed after name= for Read to give it back.
// Completions go through here: a server may have chosen them, and a file is
// sent only if the person has named it.
func Typed(text string) string {
	if strings.HasPrefix(text, "@") {
		return `\` + text
	}
	return text
}

// Nameable reports whether a field can be given as name=value: the name is
// not read as something else then.
func (f Field) Nameable() bool {
	return f.Name != "" && !strings.ContainsAny(f.Name[:1], "@{") && !strings.Contains(f.Name, "=")
}

// bytes reports whether the field, or each item of the list that it is, holds
// bytes as base64.
func (f Field) bytes() bool {
	return f.base64() || f.Item != nil && f.Item.base64()
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
	return listOf(values), nil
}

// kinds returns the field and what it takes instead of itself.
func (f Field) kinds() []Field {
	list := []Field{f}
	if f.ofItems {
		return list
	}
	for _, v := range f.Variants {
		list = append(list, v.Field)
	}
	return list
}

// at returns the field of an item. An item that the schema does not describe is any value.
func (f Field) at(index int) (Field, bool) {
	switch {
	case index < len(f.First):
		return f.First[index], true
	case f.Item != nil:
		return *f.Item, true
	case f.isList(), len(f.Types) == 0 && !f.isObject():
		return Field{}, true
	}
	return Field{}, false
}

// further returns the fields of a member that has no field of its own.
func (f Field) further(name string) []Field {
	var list []Field
	for _, p := range f.Patterns {
		if p.matches(name) {
			list = append(list, p.Field)
		}
	}
	if len(list) == 0 && f.Rest != nil {
		list = append(list, *f.Rest)
	}
	return list
}

// takesAny reports whether an object may have members that its schema does not describe.
func (f Field) takesAny() bool {
	unreadable := slices.ContainsFunc(f.Patterns, func(p Pattern) bool { return p.regex == nil })
	return (!f.Closed || unreadable) && f.Rest == nil && !f.Union() && (len(f.Types) == 0 || slices.Contains(f.Types, "object"))
}

func (f Field) isList() bool { return slices.Contains(f.Types, "array") && !f.isObject() }

func (f Field) isObject() bool {
	return slices.Contains(f.Types, "object") || len(f.Fields) > 0 || len(f.Patterns) > 0 || f.Rest != nil
}

// Check holds one value against the field's schema.
func (f Field) Check(value json.RawMessage) error {
	if len(f.Schema) == 0 {
		return nil
	}
	return check(f.Schema, value)
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

// listOf returns a JSON list.
func listOf(values []json.RawMessage) json.RawMessage {
	list := json.RawMessage("[")
	for i, value := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, value...)
	}
	return append(list, ']')
}

func quote(text string) json.RawMessage {
	quoted, _ := jsonx.Plain(text) // a string always encodes
	return quoted
}

// shorten quotes text for a message.
func shorten(text string) string {
	const limit = 60
	if r := []rune(text); len(r) > limit {
		text = string(r[:limit]) + "…"
	}
	return strconv.Quote(text)
}
