package arguments

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The bounds of what a hint shows of a union.
const (
	shownVariants = 6
	shownMembers  = 6
)

// variant says an object schema in short, as {kind: circle, radius, color?}:
// members with one value alone, those that are required, and the others. It is
// "" for what is no object with members.
func (r *reader) variant(text json.RawMessage, depth int) string {
	text = r.resolve(text, depth)
	var n node
	if r.left--; r.left < 0 || decode(text, &n) != nil {
		return ""
	}
	var parts []string
	all := members(n.Properties)
	for i, m := range all {
		if i == shownMembers {
			parts = append(parts, fmt.Sprintf("… %d more", len(all)-i))
			break
		}
		var member node
		r.left--
		switch {
		case r.left >= 0 && decode(m.value, &member) == nil && len(options(member)) == 1:
			parts = append(parts, m.name+": "+options(member)[0].Text())
		case slices.Contains(n.Required, m.name):
			parts = append(parts, m.name)
		default:
			parts = append(parts, m.name+"?")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// variants lists the kinds of object of a union; one alone is no union.
func (f Field) variants() string {
	if len(f.Variants) < 2 {
		return ""
	}
	list := slices.Clone(f.Variants)
	if len(list) > shownVariants {
		list = append(list[:shownVariants], fmt.Sprintf("… %d more", len(list)-shownVariants))
	}
	return strings.Join(list, " | ")
}
