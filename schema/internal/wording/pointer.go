package wording

import "strconv"

// Step is one level of a path: a member with its name, or an item with its
// index.
type Step struct {
	name  string
	index int // -1 for a member
}

// Member returns the step to a member of an object.
func Member(member string) Step { return Step{member, -1} }

// Item returns the step to an item of an array.
func Item(item int) Step { return Step{"", item} }

// IsItem reports whether the step leads to an item of an array.
func (s Step) IsItem() bool { return s.index >= 0 }

// Pointer returns a path as a JSON Pointer (RFC 6901), "" for the whole
// document. Long names are shortened.
func Pointer(steps []Step) string {
	var b []byte
	for _, s := range steps {
		b = append(b, '/')
		if s.index >= 0 {
			b = strconv.AppendInt(b, int64(s.index), 10)
			continue
		}
		name := ShortName(s.name)
		for i := 0; i < len(name); i++ {
			switch c := name[i]; c {
			case '~':
				b = append(b, "~0"...)
			case '/':
				b = append(b, "~1"...)
			default:
				b = append(b, c)
			}
		}
	}
	return string(b)
}
