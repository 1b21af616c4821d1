package ask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/protocol"
)

// formats are the formats of strings that forms know (client/elicitation).
var formats = []string{"email", "uri", "date", "date-time"}

// requested returns the schema that the client draws the form from. Forms know
// fewer keywords than schemas: what they lack is left out and still checked on
// the answer. The fields are in the order of the struct, in which the client
// shows them; that is why the object is written by hand.
func (fm *form) requested(rev protocol.Revision) (json.RawMessage, error) {
	root := fm.plan.Schema()
	var properties bytes.Buffer
	properties.WriteByte('{')
	if root.Properties != nil {
		for pair := root.Properties.Oldest(); pair != nil; pair = pair.Next() {
			field, err := primitive(pair.Value, rev)
			if err != nil {
				return nil, fmt.Errorf("mcp: %v cannot be a form: %s: %w", fm.typ, pair.Key, err)
			}
			if properties.Len() > 1 {
				properties.WriteByte(',')
			}
			name, err := json.Marshal(pair.Key)
			if err != nil {
				return nil, err
			}
			properties.Write(name)
			properties.WriteByte(':')
			properties.Write(field)
		}
	}
	properties.WriteByte('}')
	return json.Marshal(struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required,omitempty"`
	}{"object", properties.Bytes(), root.Required})
}

// field is one entry of a form. The order of its members is that of the
// specification.
type field struct {
	Type        string      `json:"type,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	MinLength   *uint64     `json:"minLength,omitempty"`
	MaxLength   *uint64     `json:"maxLength,omitempty"`
	Format      string      `json:"format,omitempty"`
	Minimum     json.Number `json:"minimum,omitempty"`
	Maximum     json.Number `json:"maximum,omitempty"`
	Enum        []any       `json:"enum,omitempty"`
	EnumNames   []string    `json:"enumNames,omitempty"`
	OneOf       []choice    `json:"oneOf,omitempty"`
	AnyOf       []choice    `json:"anyOf,omitempty"`
	MinItems    *uint64     `json:"minItems,omitempty"`
	MaxItems    *uint64     `json:"maxItems,omitempty"`
	Items       *field      `json:"items,omitempty"`
	Default     any         `json:"default,omitempty"`
}

// choice is a value of an enum with the name that people see.
type choice struct {
	Const any    `json:"const"`
	Title string `json:"title"`
}

// primitive returns the entry of a form for the schema of a member, in the way
// of a revision. A schema that forms do not know is an error: errNoForm, or
// errNoList for a list where only the revision is too old. An enum needs no
// length and no format, as its values are listed.
func primitive(s *jsonschema.Schema, rev protocol.Revision) (json.RawMessage, error) {
	f := field{Type: s.Type, Title: s.Title, Description: s.Description}
	if rev.Has(protocol.FeatureElicitModes) || s.Type == "boolean" {
		f.Default = s.Default
	}
	switch s.Type {
	case "string":
		f.MinLength, f.MaxLength = s.MinLength, s.MaxLength
		if slices.Contains(formats, s.Format) {
			f.Format = s.Format
		}
		if len(s.Enum) > 0 {
			f.MinLength, f.MaxLength, f.Format = nil, nil, ""
			if err := f.choose(s.Enum, s.Extras, rev); err != nil {
				return nil, err
			}
		}
	case "integer", "number":
		f.Minimum, f.Maximum = s.Minimum, s.Maximum
	case "boolean":
	case "array":
		if !rev.Has(protocol.FeatureElicitModes) {
			return nil, errNoList
		}
		if s.Items == nil || s.Items.Type != "string" || len(s.Items.Enum) == 0 {
			return nil, errNoForm
		}
		f.MinItems, f.MaxItems = s.MinItems, s.MaxItems
		f.Items = &field{Type: "string"}
		if err := f.Items.choose(s.Items.Enum, s.Extras, rev); err != nil {
			return nil, err
		}
		f.Items.EnumNames = nil   // which lists never had
		if f.Items.OneOf != nil { // lists say anyOf, and no type
			f.Items = &field{AnyOf: f.Items.OneOf}
		}
	default:
		return nil, errNoForm
	}
	return json.Marshal(f)
}

// choose fills in the values of an enum, and the names that people see if the
// tag jsonschema_extras of the field has them: enumTitles for current forms,
// enumNames for clients that know only the older way.
func (f *field) choose(values []any, extras map[string]any, rev protocol.Revision) error {
	titles, names := texts(extras["enumTitles"]), texts(extras["enumNames"])
	for name, list := range map[string][]string{"enumTitles": titles, "enumNames": names} {
		if list != nil && len(list) != len(values) {
			return fmt.Errorf("%d %s for %d values; give each value one", len(list), name, len(values))
		}
	}
	if titles != nil && rev.Has(protocol.FeatureElicitModes) {
		for i, value := range values {
			f.OneOf = append(f.OneOf, choice{value, titles[i]})
		}
		return nil
	}
	if names == nil {
		names = titles
	}
	f.Enum, f.EnumNames = values, names
	return nil
}

// texts returns an extra keyword that holds one or several texts, in whichever
// way the schema has it; nil if there is none, or it is something else.
func texts(extra any) []string {
	switch list := extra.(type) {
	case string: // there is one
		return []string{list}
	case []string:
		return list
	case []any:
		var out []string
		for _, v := range list {
			out = append(out, fmt.Sprint(v))
		}
		return out
	}
	return nil
}
