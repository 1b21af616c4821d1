package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// PlainValue returns v as string, bool, int64, uint64 or float64.
func PlainValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
		return f
	case reflect.Float64:
		return v.Float()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	}
	return v.Int()
}

// SetCheck makes the check that a value is one of a few.
func SetCheck(tag, code string, values []reflect.Value) Check {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = PlainValue(v)
	}
	k := Check{Tag: tag, Code: code, Want: wording.OneOf(list)}
	k.Emit = func(s *jsonschema.Schema) {
		if code == "enum" {
			schemadoc.AddEnum(s, append([]any(nil), list...))
		} else {
			schemadoc.AddConst(s, list[0])
		}
	}
	switch values[0].Kind() {
	case reflect.String:
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = v.String()
		}
		k.Test = TextTest(func(s string) bool { return slices.Contains(texts, s) })
	case reflect.Bool:
		k.Test = BoolTest(func(b bool) bool { return slices.Contains(list, any(b)) })
	default:
		numbers := make([]Number, len(values))
		for i, v := range values {
			numbers[i] = NumberOf(v)
		}
		k.Test = NumberTest(func(v Number) bool {
			return slices.ContainsFunc(numbers, func(n Number) bool { return v.compare(n) == 0 })
		})
	}
	return k
}

// RequiredText is what validate:"required" adds on text: it may not be empty.
func RequiredText() Check {
	c := lengthCheck(tags.Rule{Written: "required"}, Target{Kind: KindText}, textCounter, "minLength", 1, -1)
	c.Emit = func(s *jsonschema.Schema) { schemadoc.Raise(&s.MinLength, 1) }
	c.Test = TextTest(func(s string) bool { return s != "" })
	return c
}

// Within reports whether all values that a check lists are among those of another one.
func Within(k, other Check) bool {
	some, all := &jsonschema.Schema{}, &jsonschema.Schema{}
	k.Emit(some)
	other.Emit(all)
	for _, v := range some.Enum {
		if !slices.ContainsFunc(all.Enum, func(w any) bool { return fmt.Sprint(v) == fmt.Sprint(w) }) {
			return false
		}
	}
	return len(some.Enum) > 0
}

// EmittedBytes returns the schema that one check writes.
func EmittedBytes(k Check) []byte {
	s := &jsonschema.Schema{}
	if k.Emit != nil {
		k.Emit(s)
	}
	return schemadoc.Append(nil, s)
}
