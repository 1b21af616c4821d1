package inspector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/internal/visible"
)

// control is a field as the page draws it. Values are JSON texts within strings,
// as a browser's numbers lose digits; what a person reads is made visible.
type control struct {
	Key      string    `json:"key"`
	Label    string    `json:"label"`
	Help     string    `json:"help,omitempty"`
	Hint     string    `json:"hint,omitempty"`
	Kind     string    `json:"kind"` // text, long, number, bool, choice, date, time, datetime, file, object, list, union, json
	Required bool      `json:"required,omitempty"`
	Null     bool      `json:"null,omitempty"`  // may be null
	Types    []string  `json:"types,omitempty"` // of what is JSON, if it has to have one of them
	Preset   *string   `json:"preset,omitempty"`
	Wrong    string    `json:"wrong,omitempty"`
	Options  []option  `json:"options,omitempty"`
	Count    int       `json:"count,omitempty"` // of options, if those are not all
	List     int       `json:"list,omitempty"`  // by which the others are asked for
	Fields   []control `json:"fields,omitempty"`
	Rest     *control  `json:"rest,omitempty"`
	Free     bool      `json:"free,omitempty"` // an object may have further members
	Item     *control  `json:"item,omitempty"`
	First    []control `json:"first,omitempty"`
	Variants []control `json:"variants,omitempty"`
	Complete bool      `json:"complete,omitempty"` // the server can say what it may be
}

type option struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// The bounds of what the page draws: options of a choice at a time, and of a
// form in total.
const (
	shownOptions = 50
	mostOptions  = 200
	longText     = 200 // characters, from which on a text has lines
	mostControls = 2000
	mostDrawn    = 2000 // options of all fields of a form that the page receives before it requests more
	mostVariants = 100
)

// drawer makes controls of fields.
type drawer struct {
	lists [][]arguments.Option // those that are too long to be drawn
	n     int                  // controls
	drawn int                  // options
}

func (d *drawer) control(f arguments.Field) control {
	d.n++
	c := control{Key: f.Name, Label: visible.Line(f.Name, visible.Name), Help: visible.Text(f.Description, visible.Sentence), Required: f.Required,
		Wrong: visible.Line(f.Wrong, visible.Sentence), Hint: visible.Line(f.Rules.Bounds(), visible.Sentence)}
	if title := visible.Line(f.Title, visible.Name); title != "" {
		c.Label = title
	}
	if len(f.Default) > 0 {
		text := string(f.Default)
		c.Preset = &text
	}
	types := slices.DeleteFunc(slices.Clone(f.Types), func(name string) bool { return name == "null" })
	c.Null = len(types) < len(f.Types)
	c.Kind = kindOf(f, types)
	switch c.Kind {
	case "json":
		c.Types = types
	case "choice":
		c.Options = d.options(f.Options, &c)
	case "object":
		for _, inner := range f.Fields {
			c.Fields = append(c.Fields, d.control(inner))
		}
		if c.Free = !f.Closed; f.Rest != nil {
			rest := d.control(*f.Rest)
			c.Rest = &rest
		}
	case "list":
		for _, inner := range f.First {
			inner.Required = true
			c.First = append(c.First, d.control(inner))
		}
		if f.Item != nil {
			item := d.control(*f.Item)
			item.Required = true
			c.Item = &item
		}
	case "union":
		for _, v := range f.Variants {
			one := d.control(v.Field)
			one.Required, one.Key = true, f.Name
			one.Label = visible.Line(strings.TrimSpace(v.Title+" "+v.Short), visible.Name)
			if one.Label == "" && len(v.Options) == 1 {
				one.Label = visible.Line(v.Options[0].Text(), visible.Name)
			}
			if one.Label == "" {
				one.Label = v.Type()
			}
			c.Variants = append(c.Variants, one)
		}
	}
	return c
}

// kindOf returns the control of a field; JSON if there is no other.
func kindOf(f arguments.Field, types []string) string {
	open := func(f arguments.Field) bool { return len(f.Options) == 0 || slices.Contains(f.Types, "array") }
	union := f.Union() && slices.ContainsFunc(f.Variants, func(v arguments.Variant) bool { return open(v.Field) })
	switch {
	case !union && !open(f):
		return "choice"
	case union && len(f.Fields) == 0 && len(f.Variants) <= mostVariants:
		return "union"
	case f.Cut && len(f.Fields) == 0, len(types) != 1:
		return "json"
	}
	switch types[0] {
	case "boolean":
		return "bool"
	case "integer", "number":
		return "number"
	case "object":
		if len(f.Fields) > 0 || f.Rest != nil || f.Closed {
			return "object"
		}
	case "array":
		if f.Item != nil || len(f.First) > 0 {
			return "list"
		}
	case "string":
		return textKind(f.Rules)
	}
	return "json"
}

func textKind(r arguments.Rules) string {
	switch {
	case strings.EqualFold(r.Encoding, "base64"):
		return "file"
	case r.Format == "date" || r.Format == "time":
		return r.Format
	case r.Format == "date-time":
		return "datetime"
	case r.MaxLength != nil && *r.MaxLength > longText:
		return "long"
	}
	return "text"
}

// options draws options, or the first of too many.
func (d *drawer) options(list []arguments.Option, c *control) []option {
	if len(list) > mostOptions || d.drawn+len(list) > mostDrawn && len(list) > 1 {
		d.lists = append(d.lists, list)
		c.List, c.Count = len(d.lists), len(list)
		list = list[:min(len(list), shownOptions, max(0, mostDrawn-d.drawn))]
	}
	d.drawn += len(list)
	return drawn(list)
}

func drawn(list []arguments.Option) []option {
	out := make([]option, len(list))
	for i, o := range list {
		out[i] = option{string(o.Value), visible.Line(o.Text(), visible.Name)}
		if title := visible.Line(o.Title, visible.Name); title != "" && title != out[i].Label {
			out[i].Label = title + " (" + out[i].Label + ")"
		}
	}
	return out
}

// search returns those of a long list that have all words of a text, in any order and
// without regard to case.
func search(list []arguments.Option, text string) []option {
	words := strings.Fields(strings.ToLower(text))
	var found []arguments.Option
	for _, o := range list {
		in := strings.ToLower(o.Text() + " " + o.Title)
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(in, word) }) {
			if found = append(found, o); len(found) == shownOptions {
				break
			}
		}
	}
	return drawn(found)
}

// draw reads a schema and draws it.
func draw(schema json.RawMessage) (control, [][]arguments.Option, error) {
	f, err := arguments.ReadField(schema)
	if err != nil {
		return control{}, nil, err
	}
	if len(f.Types) == 0 {
		f.Types = []string{"object"}
	}
	d := &drawer{}
	c := d.control(f)
	if d.n > mostControls {
		return control{}, nil, fmt.Errorf("a form would have %d fields: type JSON", d.n)
	}
	if c.Required = true; c.Kind == "json" {
		c.Kind, c.Free = "object", true // nothing else can be arguments
	}
	return c, d.lists, nil
}
