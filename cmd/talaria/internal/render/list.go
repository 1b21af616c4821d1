package render

import (
	"fmt"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

// Tools lists tools.
func (r *Renderer) Tools(list []protocol.Tool) {
	rows := make([][]string, len(list))
	for i, t := range list {
		rows[i] = []string{console.Line(t.Name), Signature(t), console.Line(summary(t.Title, t.Description))}
	}
	r.table([]string{"tool", "arguments", "description"}, rows, "tools")
}

// table writes rows, or that there are none.
func (r *Renderer) table(header []string, rows [][]string, what string) {
	if len(rows) == 0 {
		r.Console.Notef("no %s", what)
		return
	}
	r.Console.Table(header, rows)
}

// summary is a description, or else a title; of a long one the beginning.
func summary(title, description string) string {
	const limit = 200
	text := description
	if text == "" {
		text = title
	}
	text, _, _ = strings.Cut(text, "\n\n")
	if short := []rune(text); len(short) > limit {
		text = string(short[:limit]) + "…"
	}
	return text
}

// shownArguments is how many arguments a list names.
const shownArguments = 6

// Signature names a tool's arguments; the optional ones are in brackets.
func Signature(t protocol.Tool) string {
	object, err := arguments.ReadObject(t.InputSchema)
	if err != nil {
		return "?"
	}
	var required, optional []string
	for _, f := range object.Fields {
		name := console.Line(f.Name)
		if f.Required {
			required = append(required, name)
		} else {
			optional = append(optional, "["+name+"]")
		}
	}
	names := append(required, optional...)
	if extra := len(names) - shownArguments; extra > 0 {
		names = append(names[:shownArguments], fmt.Sprintf("… %d more", extra))
	}
	return strings.Join(names, " ")
}

// Tool shows all of one tool.
func (r *Renderer) Tool(t protocol.Tool) error {
	c := r.Console
	name := c.Paint(console.Bold, console.Line(t.Name))
	if t.Title != "" {
		c.Printf("%s  %s", name, console.Line(t.Title))
	} else {
		c.Print(name)
	}
	if t.Description != "" {
		c.Print(c.Wrap(t.Description, "  "))
	}
	if hints := hints(t.Annotations); hints != "" {
		c.Printf("  %s", c.Paint(console.Faint, hints))
	}
	object, err := arguments.ReadObject(t.InputSchema)
	if err != nil {
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	c.Print()
	r.fields(object, "arguments")
	if len(t.OutputSchema) > 0 {
		output, err := arguments.ReadObject(t.OutputSchema)
		if err != nil {
			return fmt.Errorf("tool %s: output: %w", t.Name, err)
		}
		if len(output.Fields) > 0 {
			c.Print()
			r.fields(output, "results")
		}
	}
	return nil
}

func (r *Renderer) fields(object *arguments.Object, what string) {
	rows := make([][]string, len(object.Fields))
	for i, f := range object.Fields {
		description := f.Description
		if description == "" {
			description = f.Title
		}
		rows[i] = []string{console.Line(f.Name), console.Line(f.Hint()), console.Line(description)}
	}
	r.table([]string{strings.TrimSuffix(what, "s"), "takes", "description"}, rows, what)
}

// hints says what annotations claim.
func hints(a *protocol.ToolAnnotations) string {
	if a == nil {
		return ""
	}
	var list []string
	add := func(value *bool, yes, no string) {
		switch {
		case value == nil:
		case *value && yes != "":
			list = append(list, yes)
		case !*value && no != "":
			list = append(list, no)
		}
	}
	add(a.ReadOnlyHint, "changes nothing", "")
	if a.ReadOnlyHint == nil || !*a.ReadOnlyHint {
		add(a.DestructiveHint, "may destroy", "destroys nothing")
	}
	add(a.IdempotentHint, "may be repeated", "")
	add(a.OpenWorldHint, "deals with the world outside", "")
	if len(list) == 0 {
		return ""
	}
	return "it says that it " + strings.Join(list, ", ")
}

// Prompts lists prompts.
func (r *Renderer) Prompts(list []protocol.Prompt) {
	rows := make([][]string, len(list))
	for i, p := range list {
		var names []string
		for _, a := range p.Arguments {
			if name := console.Line(a.Name); a.Required {
				names = append(names, name)
			} else {
				names = append(names, "["+name+"]")
			}
		}
		rows[i] = []string{console.Line(p.Name), strings.Join(names, " "), console.Line(summary(p.Title, p.Description))}
	}
	r.table([]string{"prompt", "arguments", "description"}, rows, "prompts")
}

// PromptFields returns the arguments of a prompt as fields; all are text.
func PromptFields(p protocol.Prompt) *arguments.Object {
	object := &arguments.Object{Closed: true}
	for _, a := range p.Arguments {
		object.Fields = append(object.Fields, arguments.Field{
			Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required, Types: []string{"string"},
		})
	}
	return object
}

// Resources lists resources.
func (r *Renderer) Resources(list []protocol.Resource) {
	rows := make([][]string, len(list))
	for i, x := range list {
		bytes := ""
		if x.Size != nil {
			bytes = size(int(*x.Size))
		}
		rows[i] = []string{console.Line(x.URI), console.Line(x.Name), console.Line(x.MIMEType), bytes, console.Line(summary(x.Title, x.Description))}
	}
	r.table([]string{"resource", "name", "type", "size", "description"}, rows, "resources")
}

// Templates lists resource templates.
func (r *Renderer) Templates(list []protocol.ResourceTemplate) {
	rows := make([][]string, len(list))
	for i, x := range list {
		rows[i] = []string{console.Line(x.URITemplate), console.Line(x.Name), console.Line(x.MIMEType), console.Line(summary(x.Title, x.Description))}
	}
	r.table([]string{"template", "name", "type", "description"}, rows, "resource templates")
}

// Completion shows values.
func (r *Renderer) Completion(c *protocol.Completion) {
	for _, value := range c.Values {
		r.Console.Data(value)
	}
	switch {
	case len(c.Values) == 0:
		r.Console.Notef("no values")
	case c.Total > len(c.Values):
		r.Console.Notef("%d more", c.Total-len(c.Values))
	case c.HasMore:
		r.Console.Notef("and more")
	}
}
