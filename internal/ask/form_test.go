package ask

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// Forms have the fields that the revision of the client has.
func TestForm(t *testing.T) {
	for _, tt := range []struct {
		name             string
		form             any
		first, since2511 string // the properties in 2025-06-18, and from 2025-11-25 on; "" is an error
	}{
		{"text", struct {
			Name string `json:"name,omitempty" validate:"min=2,max=9" jsonschema:"title=Name,default=Ada" jsonschema_description:"who you are"`
		}{}, `{"name":{"type":"string","title":"Name","description":"who you are","minLength":2,"maxLength":9}}`,
			`{"name":{"type":"string","title":"Name","description":"who you are","minLength":2,"maxLength":9,"default":"Ada"}}`},
		{"formats", struct {
			Mail string `json:"mail,omitempty" validate:"omitempty,email"`
			ID   string `json:"id,omitempty" validate:"omitempty,uuid4"` // which forms do not know
		}{}, `{"mail":{"type":"string","description":"Must be plain ASCII without quotes, with a dot in the domain.","format":"email"},"id":{"type":"string"}}`,
			`{"mail":{"type":"string","description":"Must be plain ASCII without quotes, with a dot in the domain.","format":"email"},"id":{"type":"string"}}`},
		{"numbers", struct {
			Cups int     `json:"cups,omitempty" validate:"min=1,max=9" jsonschema:"default=2"`
			Tip  float64 `json:"tip,omitempty" validate:"max=0.5"`
		}{}, `{"cups":{"type":"integer","minimum":1,"maximum":9},"tip":{"type":"number","maximum":0.5}}`,
			`{"cups":{"type":"integer","minimum":1,"maximum":9,"default":2},"tip":{"type":"number","maximum":0.5}}`},
		{"boolean", struct {
			Sure bool `json:"sure,omitempty" jsonschema:"default=true"`
		}{}, `{"sure":{"type":"boolean","default":true}}`, `{"sure":{"type":"boolean","default":true}}`},
		{"choice", struct {
			Size string `json:"size,omitempty" validate:"oneof=s l" jsonschema:"default=s"`
		}{}, `{"size":{"type":"string","enum":["s","l"]}}`, `{"size":{"type":"string","enum":["s","l"],"default":"s"}}`},
		{"choice with titles", struct {
			Size string `json:"size,omitempty" validate:"oneof=s l" jsonschema_extras:"enumTitles=Small,enumTitles=Large"`
		}{}, `{"size":{"type":"string","enum":["s","l"],"enumNames":["Small","Large"]}}`,
			`{"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]}}`},
		{"choice the older way", struct {
			Size string `json:"size,omitempty" validate:"oneof=s l" jsonschema_extras:"enumNames=Small,enumNames=Large"`
		}{}, `{"size":{"type":"string","enum":["s","l"],"enumNames":["Small","Large"]}}`,
			`{"size":{"type":"string","enum":["s","l"],"enumNames":["Small","Large"]}}`},
		{"several", struct {
			Extra []string `json:"extra,omitempty" validate:"max=2,dive,oneof=milk sugar"`
		}{}, "", `{"extra":{"type":"array","maxItems":2,"items":{"type":"string","enum":["milk","sugar"]}}}`},
		{"several with titles", struct {
			Extra []string `json:"extra,omitempty" validate:"dive,oneof=m s" jsonschema_extras:"enumTitles=Milk,enumTitles=Sugar"`
		}{}, "", `{"extra":{"type":"array","items":{"anyOf":[{"const":"m","title":"Milk"},{"const":"s","title":"Sugar"}]}}}`},
		{"nothing", struct{}{}, `{}`, `{}`},
		{"an object", struct {
			In struct{ X int }
		}{}, "", ""},
		{"texts", struct{ List []string }{}, "", ""},
		{"a title short", struct {
			Size string `json:"size,omitempty" validate:"oneof=s l" jsonschema_extras:"enumTitles=Small"`
		}{}, "", ""},
	} {
		for _, rev := range protocol.Revisions() {
			if !rev.Has(protocol.FeatureElicitation) {
				continue
			}
			want := tt.first
			if rev.Has(protocol.FeatureElicitModes) {
				want = tt.since2511
			}
			got, err := func() (json.RawMessage, error) {
				form, err := formOf(reflect.TypeOf(tt.form), nil)
				if err != nil {
					return nil, err
				}
				return form.requested(rev)
			}()
			if want == "" {
				if err == nil || !strings.Contains(err.Error(), "cannot be a form") {
					t.Errorf("%s, %v: %s, %v; want an error", tt.name, rev, got, err)
				}
				continue
			}
			var schema struct{ Properties json.RawMessage }
			if err != nil || json.Unmarshal(got, &schema) != nil || string(schema.Properties) != want {
				t.Errorf("%s, %v: %v\ngot  %s\nwant %s", tt.name, rev, err, schema.Properties, want)
			}
		}
	}
}

// Where lists are refused, the error says which revision brought them.
func TestFormListRefused(t *testing.T) {
	type order struct {
		Extra []string `json:"extra,omitempty" validate:"dive,oneof=milk sugar"`
	}
	form, err := formOf(reflect.TypeFor[order](), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = form.requested(protocol.V20250618)
	if err == nil || !strings.Contains(err.Error(), "came with 2025-11-25") || strings.Contains(err.Error(), "a form is") {
		t.Errorf("requested: %v", err)
	}
}
