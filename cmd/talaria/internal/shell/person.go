package shell

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
)

// person is asked for missing arguments of a command, if there is a person.
type person struct {
	console *console.Console
	editor  *editor.Editor
}

// ask asks for one text; values are those that can be meant.
func (p person) ask(what string, values func() []string) (string, error) {
	if !p.console.Interactive() {
		return "", wrong("%s is missing", what)
	}
	text, err := p.editor.Ask(what+": ", func(typed string) []string { return matching(values(), typed) })
	if text = strings.TrimSpace(text); err == nil && text == "" {
		err = form.ErrCancel
	}
	return text, err
}

// fill makes the arguments of what was typed, and asks for the rest. If they are wrong,
// the server may have to say so: they are not nil then.
func (p person) fill(object *arguments.Object, typed []string) (json.RawMessage, error) {
	given, err := object.Parse(typed)
	if err == nil && p.console.Interactive() && missing(object, given, len(typed) == 0) {
		if given, err = form.Fill(p.editor, object, given, false); err != nil {
			return nil, err
		}
		err = object.Check(given)
	} else {
		given, err = object.Arguments(typed)
	}
	return given, misused(err)
}

// misused returns the error of wrong arguments, with a line for each fault.
func misused(err error) error {
	if err == nil {
		return nil
	}
	return wrong("%s", strings.ReplaceAll(err.Error(), "\n", "\n       "))
}

// missing reports whether a required field is, or any if nothing was typed.
func missing(object *arguments.Object, given json.RawMessage, nothing bool) bool {
	var have map[string]json.RawMessage
	if json.Unmarshal(given, &have) != nil {
		return false
	}
	return slices.ContainsFunc(object.Fields, func(f arguments.Field) bool {
		_, ok := have[f.Name]
		return !ok && (f.Required || nothing)
	})
}
