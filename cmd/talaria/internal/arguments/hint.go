package arguments

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

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
	if r := f.rules.text(); r != "" {
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

// shownChoices bounds how many values of an enum a hint lists.
const shownChoices = 12

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

// text says bounds as 1..14 or ≥ 1.
func (r rules) text() string {
	var parts []string
	switch low, high := number(r.Minimum), number(r.Maximum); {
	case low != "" && high != "":
		parts = append(parts, low+".."+high)
	case low != "":
		parts = append(parts, low+" or more")
	case high != "":
		parts = append(parts, "at most "+high)
	}
	if r.ExclusiveMinimum != nil {
		parts = append(parts, "more than "+number(r.ExclusiveMinimum))
	}
	if r.ExclusiveMaximum != nil {
		parts = append(parts, "less than "+number(r.ExclusiveMaximum))
	}
	for _, limits := range []string{counted("character", r.MinLength, r.MaxLength), counted("item", r.MinItems, r.MaxItems)} {
		if limits != "" {
			parts = append(parts, limits)
		}
	}
	if r.Format != "" {
		parts = append(parts, "format "+r.Format)
	}
	if r.base64() {
		return strings.Join(append(parts, "base64; @file sends a file"), ", ") // the pattern would say the same at length
	}
	if r.Pattern != "" {
		parts = append(parts, "matching "+short(r.Pattern))
	}
	return strings.Join(parts, ", ")
}

// shownPattern is how many characters of a pattern a hint shows.
const shownPattern = 60

func short(pattern string) string {
	if runes := []rune(pattern); len(runes) > shownPattern {
		return string(runes[:shownPattern]) + "…"
	}
	return pattern
}

// base64 reports whether the text stands for bytes.
func (r rules) base64() bool { return strings.EqualFold(r.Encoding, "base64") }

func number(n *json.Number) string {
	if n == nil {
		return ""
	}
	return n.String()
}

// counted says how many characters or items there may be, "" if any number.
func counted(what string, low, high *int) string {
	many := func(n int) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	switch {
	case low != nil && *low <= 0:
		return counted(what, nil, high) // which says nothing
	case low != nil && high != nil && *low == *high:
		return "exactly " + many(*low)
	case low != nil && high != nil:
		return fmt.Sprintf("%d..%d %ss", *low, *high, what)
	case low != nil:
		return "at least " + many(*low)
	case high != nil:
		return "at most " + many(*high)
	}
	return ""
}
