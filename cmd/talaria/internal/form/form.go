// Package form asks a person for values, one by one, as a JSON Schema says.
package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// The actions of a person other than an answer.
var (
	ErrDecline = errors.New("declined")
	ErrCancel  = errors.New("cancelled")
)

// Asker is who is asked.
type Asker interface {
	// Ask returns a line. The error is ErrDecline, ErrCancel, or that of
	// reading.
	Ask(prompt string, complete func(typed string) []string) (string, error)
	// Say shows a line.
	Say(line string)
}

// Fill asks for the fields of a schema that given does not have, and returns
// the whole object. Required fields are asked for first. The others follow if
// all is set, and else only if the person wants to see them.
func Fill(asker Asker, object *arguments.Object, given json.RawMessage, all bool) (json.RawMessage, error) {
	have := map[string]json.RawMessage{}
	if len(given) > 0 {
		if err := json.Unmarshal(given, &have); err != nil {
			return nil, err
		}
	}
	list := []string{}
	if len(given) > 0 {
		list = append(list, string(given))
	}
	missing := func(required bool) []arguments.Field {
		return slices.DeleteFunc(slices.Clone(object.Fields), func(f arguments.Field) bool {
			_, known := have[f.Name]
			return known || !all && f.Required != required
		})
	}
	fields := missing(true)
	if optional := missing(false); !all && len(optional) > 0 {
		want, err := wantsOptional(asker, optional, len(have) == 0)
		if err != nil {
			return nil, err
		}
		if want {
			fields = append(fields, optional...)
		}
	}
	for _, f := range fields {
		value, ok, err := ask(asker, f, all)
		if err != nil {
			return nil, err
		}
		if ok {
			member, err := json.Marshal(map[string]json.RawMessage{f.Name: value})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			list = append(list, string(member))
		}
	}
	return (&arguments.Object{}).Parse(list)
}

// wantsOptional asks whether to go through the optional fields; if nothing
// else is asked, there is no need to.
func wantsOptional(asker Asker, fields []arguments.Field, worth bool) (bool, error) {
	if !worth {
		return false, nil
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = console.Line(f.Name)
	}
	return YesNo(asker, fmt.Sprintf("optional: %s", strings.Join(names, ", ")), "fill them in, too?", false)
}

// ask asks for one field until the answer passes its schema. ok is false if
// the field is left out. defaults puts the schema's default into the answer.
func ask(asker Asker, f arguments.Field, defaults bool) (value json.RawMessage, ok bool, err error) {
	label := console.Line(f.Name)
	if title := console.Line(f.Title); title != "" && title != label {
		label += ", " + title
	}
	if d := console.Line(f.Description); d != "" {
		label += ": " + d
	}
	asker.Say(label)
	hint := console.Line(f.Hint())
	if hasParts(f) {
		hint += "; " + onePart + " asks for its parts"
	}
	asker.Say("  (" + hint + ")")
	if f.Wrong != "" {
		asker.Say("  " + console.Line(f.Wrong))
	}
	prompt := "  " + console.Line(f.Name)
	if d := console.Line(arguments.Plain(f.Default)); d != "" && len(d) <= 30 {
		prompt += " [" + d + "]"
	}
	for {
		text, err := asker.Ask(prompt+": ", func(typed string) []string { return Values(f, typed) })
		if err != nil {
			return nil, false, err
		}
		if strings.TrimSpace(text) == onePart && hasParts(f) {
			if value, err = parts(asker, f, defaults); err != nil {
				return nil, false, err
			}
			text = string(value)
		}
		value, ok, fault := read(f, text, defaults)
		if fault == nil {
			return value, ok, nil
		}
		asker.Say("  " + strings.ReplaceAll(fault.Error(), "\n", "; "))
	}
}

// read makes a value of what was typed. Nothing typed is the default, or leaves
// the field out; "" in quotes is the empty text.
func read(f arguments.Field, text string, defaults bool) (value json.RawMessage, ok bool, err error) {
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "" && len(f.Default) > 0:
		return f.Default, defaults, nil
	case trimmed == "" && !f.Required:
		return nil, false, nil
	case trimmed == "":
		return nil, false, errors.New(`is required; write "" for an empty text`)
	case trimmed == `""`:
		text = ""
	}
	if value, err = f.Read(text); err != nil {
		return nil, false, err
	}
	return value, true, f.Check(value)
}

// Values returns the values of a field that continue from what was typed, each
// as it is typed.
func Values(f arguments.Field, typed string) []string {
	var list []string
	head := ""
	if slices.Contains(f.Types, "array") {
		if i := strings.LastIndexByte(typed, ','); i >= 0 {
			head, typed = typed[:i+1], typed[i+1:]
		}
	}
	add := func(text string) {
		if head == "" {
			text = arguments.Typed(text)
		}
		if strings.HasPrefix(text, typed) {
			list = append(list, head+text)
		}
	}
	for _, o := range f.Options {
		add(o.Text())
	}
	if len(list) == 0 && slices.Contains(f.Types, "boolean") {
		add("true")
		add("false")
	}
	if len(f.Options) == 0 && len(f.Default) > 0 && !slices.Contains(f.Types, "boolean") {
		add(arguments.Plain(f.Default))
	}
	return list
}

// YesNo asks a question until the answer is yes or no; Enter is preset.
func YesNo(asker Asker, text, question string, preset bool) (bool, error) {
	if text != "" {
		asker.Say(text)
	}
	prompt := question + map[bool]string{true: " [Y/n] ", false: " [y/N] "}[preset]
	for {
		answer, err := asker.Ask(prompt, nil)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "":
			return preset, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		asker.Say("please answer y or n")
	}
}
