package shell

import (
	"slices"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
)

// matching returns those that go on from what was typed.
func matching(list []string, typed string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(text string) bool { return !strings.HasPrefix(text, typed) })
}

// first completes the first word alone.
func first(candidates func() []string) func(typed []string) []string {
	return func(typed []string) []string {
		if len(typed) > 1 {
			return nil
		}
		return candidates()
	}
}

// completeFields completes name= and, after it, the value. ask may know more
// values than the schema.
func completeFields(object *arguments.Object, typed []string, ask func(field, value string, before map[string]string) []string) []string {
	last := typed[len(typed)-1]
	before := map[string]string{}
	for _, text := range typed[:len(typed)-1] {
		name, value, _ := strings.Cut(text, "=")
		before[strings.TrimSuffix(name, ":")] = value
	}
	var list []string
	if name, value, ok := strings.Cut(last, "="); ok {
		f, known := object.Field(name)
		if !known {
			return nil
		}
		values := form.Values(f, value)
		if len(values) == 0 && ask != nil {
			for _, v := range ask(name, value, before) {
				values = append(values, arguments.Typed(v))
			}
		}
		for _, v := range values {
			list = append(list, name+"="+v)
		}
		return list
	}
	for _, f := range object.Fields {
		if _, given := before[f.Name]; f.Nameable() && (!given || slices.Contains(f.Types, "array")) {
			list = append(list, f.Name+"=")
		}
	}
	return list
}
