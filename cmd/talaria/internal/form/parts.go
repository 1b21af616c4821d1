package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// onePart is what a person types to be asked for a value part by part.
const onePart = "+"

// hasParts reports whether a field can be asked for part by part.
func hasParts(f arguments.Field) bool {
	return len(f.Variants) > 1 || len(f.Fields) > 0 || f.Item != nil && hasParts(*f.Item)
}

// parts asks for a value part by part: which kind of a union, the members of an
// object, the items of a list.
func parts(asker Asker, f arguments.Field, defaults bool) (json.RawMessage, error) {
	switch {
	case slices.Contains(f.Types, "array") && f.Item != nil && hasParts(*f.Item):
		return items(asker, f, defaults)
	case len(f.Variants) > 1:
		v, err := chooseVariant(asker, f)
		if err != nil {
			return nil, err
		}
		if len(v.Fields) == 0 {
			value, _, err := ask(asker, v, defaults)
			return value, err
		}
		return Fill(asker, &arguments.Object{Fields: v.Fields}, nil, defaults)
	}
	return Fill(asker, &arguments.Object{Fields: f.Fields}, nil, defaults)
}

// chooseVariant asks which kind of a union it shall be.
func chooseVariant(asker Asker, f arguments.Field) (arguments.Field, error) {
	for i, v := range f.Variants {
		text := v.Short
		switch {
		case v.Title != "":
			text = v.Title + " " + text
		case text == "":
			text = v.Type()
		}
		asker.Say(fmt.Sprintf("  %d: %s", i+1, console.Line(text)))
	}
	for {
		answer, err := asker.Ask(fmt.Sprintf("  which kind of %s (1 to %d): ", console.Line(f.Name), len(f.Variants)), nil)
		if err != nil {
			return arguments.Field{}, err
		}
		if n, err := strconv.Atoi(strings.TrimSpace(answer)); err == nil && n >= 1 && n <= len(f.Variants) {
			chosen := f.Variants[n-1].Field
			chosen.Name, chosen.Required = f.Name, true
			return chosen, nil
		}
	}
}

// items asks for one item after the other.
func items(asker Asker, f arguments.Field, defaults bool) (json.RawMessage, error) {
	list := []json.RawMessage{}
	for {
		item := *f.Item
		item.Name, item.Required = fmt.Sprintf("%s[%d]", f.Name, len(list)), true
		asker.Say("  " + console.Line(item.Name))
		value, err := parts(asker, item, defaults)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		more, err := YesNo(asker, "", "  one more of "+console.Line(f.Name)+"?", false)
		if err != nil {
			return nil, err
		}
		if !more {
			return json.Marshal(list)
		}
	}
}
