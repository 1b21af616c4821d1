package inspector

import (
	"encoding/json"
	"strconv"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
)

// The bounds of what is said of variants: how many unions within unions are followed, and
// how many bytes of schemas are compiled for it in one check.
const (
	maxNarrowed  = 12
	narrowedRead = 4 << 20
)

// within is the member or item of a value with its field.
func within(f arguments.Field, value json.RawMessage, name string) (arguments.Field, json.RawMessage, bool) {
	var list []json.RawMessage
	if n, err := strconv.Atoi(name); err == nil && json.Unmarshal(value, &list) == nil {
		switch {
		case n < 0 || n >= len(list):
		case n < len(f.First):
			return f.First[n], list[n], true
		case f.Item != nil:
			return *f.Item, list[n], true
		}
		return f, nil, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members[name] == nil {
		return f, nil, false
	}
	for _, inner := range f.Fields {
		if inner.Name == name {
			return inner, members[name], true
		}
	}
	if f.Rest != nil {
		return *f.Rest, members[name], true
	}
	return f, nil, false
}
