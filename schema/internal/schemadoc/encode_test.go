package schemadoc_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/schemadoc"
)

// Append writes each field that is set, whatever its type, and where the others are not.
func TestAppendFields(t *testing.T) {
	for field := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		s := &jsonschema.Schema{}
		v := reflect.ValueOf(s).Elem().FieldByIndex(field.Index)
		v.Set(smallest(t, v.Type()))
		var got map[string]json.RawMessage
		if err := json.Unmarshal(schemadoc.Append(nil, s), &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(got) != 1 || got[name] == nil {
			t.Errorf("%s: wrote %v", name, got)
		}
	}
}

// smallest returns the value of a type with the fewest bits set that is not zero, as a
// schema can have it.
func smallest(t *testing.T, typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ {
	case reflect.TypeFor[*jsonschema.Schema]():
		v.Set(reflect.ValueOf(&jsonschema.Schema{}))
		return v
	case reflect.TypeOf(jsonschema.NewProperties()):
		properties := jsonschema.NewProperties()
		properties.Set("a", &jsonschema.Schema{})
		return reflect.ValueOf(properties)
	}
	switch typ.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("1")
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
	case reflect.Interface:
		v.Set(reflect.ValueOf(0))
	case reflect.Slice:
		v.Set(reflect.Append(v, smallest(t, typ.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(reflect.ValueOf("a"), smallest(t, typ.Elem()))
	default:
		t.Fatalf("no value of %v", typ)
	}
	return v
}
