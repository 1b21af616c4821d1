package arguments

import (
	"encoding/json"
	"testing"
)

// Whatever a server's schema says and a person types, what comes out is a JSON
// object or an error.
func FuzzParse(f *testing.F) {
	for _, typed := range []string{"city=Oslo", "days:=1", "a.b=1", "tags=a,b", "{}", "=", "place.lat=1", "any=null", `points={"lat":1}`} {
		f.Add(sample, typed, typed)
	}
	f.Add(`{"properties":{"a":{"$ref":"#/properties/a"}}}`, "a=1", "a=2")
	f.Fuzz(func(t *testing.T, schema, a, b string) {
		o, err := ReadObject(json.RawMessage(schema))
		if err != nil {
			return
		}
		for _, field := range o.Fields {
			_ = field.Hint()
		}
		out, err := o.Parse([]string{"x=1", a, b})
		if err != nil {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(out, &members); err != nil || members == nil {
			t.Errorf("%q and %q make %s: %v", a, b, out, err)
		}
		_ = o.Check(out) // must not panic
	})
}
