package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

// Tools lists tools.
func (r *Renderer) Tools(list []protocol.Tool) {
	table(r.Console, "tools", []string{"tool", "arguments", "description"}, list, func(t protocol.Tool) []string {
		return []string{t.Name, Signature(t), summary(t.Title, t.Description)}
	})
}

// table writes a row for each item of a list, or that there are none.
func table[T any](c *console.Console, what string, header []string, list []T, row func(T) []string) {
	if len(list) == 0 {
		c.Notef("no %s", what)
		return
	}
	rows := make([][]string, len(list))
	for i, item := range list {
		rows[i] = row(item)
	}
	c.Table(header, rows)
}

// summary is a description, or else a title; of a long one the beginning.
func summary(title, description string) string {
	const limit = 200
	text, _, _ := strings.Cut(cmp.Or(description, title), "\n\n")
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
	table(r.Console, what, []string{strings.TrimSuffix(what, "s"), "takes", "description"}, object.Fields, func(f arguments.Field) []string {
		return []string{f.Name, f.Hint(), cmp.Or(f.Description, f.Title)}
	})
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
	table(r.Console, "prompts", []string{"prompt", "arguments", "description"}, list, func(p protocol.Prompt) []string {
		var names []string
		for _, a := range p.Arguments {
			if name := console.Line(a.Name); a.Required {
				names = append(names, name)
			} else {
				names = append(names, "["+name+"]")
			}
		}
		return []string{p.Name, strings.Join(names, " "), summary(p.Title, p.Description)}
	})
}

// PromptFields returns the arguments of a prompt in a list as fields; all are
// text. A prompt that is not listed may have any.
func PromptFields(list []protocol.Prompt, name string) *arguments.Object {
	i := slices.IndexFunc(list, func(p protocol.Prompt) bool { return p.Name == name })
	if i < 0 {
		return &arguments.Object{}
	}
	object := &arguments.Object{Closed: true}
	for _, a := range list[i].Arguments {
		object.Fields = append(object.Fields, arguments.Field{
			Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required, Types: []string{"string"},
		})
	}
	return object
}

// Resources lists resources.
func (r *Renderer) Resources(list []protocol.Resource) {
	table(r.Console, "resources", []string{"resource", "name", "type", "size", "description"}, list, func(x protocol.Resource) []string {
		bytes := ""
		if x.Size != nil {
			bytes = size(int(*x.Size))
		}
		return []string{x.URI, x.Name, x.MIMEType, bytes, summary(x.Title, x.Description)}
	})
}

// Templates lists resource templates.
func (r *Renderer) Templates(list []protocol.ResourceTemplate) {
	table(r.Console, "resource templates", []string{"template", "name", "type", "description"}, list, func(x protocol.ResourceTemplate) []string {
		return []string{x.URITemplate, x.Name, x.MIMEType, summary(x.Title, x.Description)}
	})
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
