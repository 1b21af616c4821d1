package schema

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/raw"
)

// grade is text with a known set of values.
type grade string

func (grade) Enum() []grade { return []grade{"low", "high"} }

// label is text that brings its schema along.
type label string

func (label) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^[a-z]+$"}
}

// A text that is refused as a value is refused as a key, and one that is taken
// as a value is taken as a key: by the decoder and by the schema.
func TestKeysAreCheckedAsValues(t *testing.T) {
	tests := []struct {
		key  reflect.Type
		good []string
		bad  []string
	}{
		{reflect.TypeFor[time.Time](), []string{"2026-01-02T03:04:05Z", "2026-01-02t03:04:05z", "2016-12-31T23:59:60Z"},
			[]string{"2026-01-02T0:00:00Z", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05+24:00", "2026-01-02", "", "2016-12-31T22:59:60Z"}},
		{reflect.TypeFor[civil.Date](), []string{"2026-01-31"}, []string{"2026-02-30", "2026-1-31", ""}},
		{reflect.TypeFor[civil.TimeOfDay](), []string{"09:30"}, []string{"9:30", "24:00"}},
		{reflect.TypeFor[netip.Addr](), []string{"192.0.2.1", "::1"}, []string{"192.0.2", "x"}},
		{reflect.TypeFor[uint8](), []string{"0", "9", "10", "99", "100", "199", "200", "249", "255"}, []string{"256", "300", "1000", "-1", "-0", "00", "01", "1.0", "1e1", "", " 1", "+1"}},
		{reflect.TypeFor[int8](), []string{"0", "-1", "-128", "127", "-99", "-100"}, []string{"128", "-129", "-200", "200", "-0"}},
		{reflect.TypeFor[int16](), []string{"-32768", "32767", "9999", "10000"}, []string{"32768", "-32769", "40000"}},
		{reflect.TypeFor[uint32](), []string{"4294967295", "999999999"}, []string{"4294967296", "9999999999"}},
		{reflect.TypeFor[int64](), []string{"9223372036854775807", "-9223372036854775808"}, []string{"9223372036854775808", "-9223372036854775809"}},
		{reflect.TypeFor[uint64](), []string{"18446744073709551615"}, []string{"18446744073709551616", "-1"}},
		{reflect.TypeFor[grade](), []string{"low"}, []string{"mid", " low", ""}},
		{reflect.TypeFor[label](), []string{"abc"}, []string{"ABC", ""}},
	}
	for _, tt := range tests {
		typ := reflect.MapOf(tt.key, reflect.TypeFor[bool]())
		p, err := Compile(typ, nil)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		raw, err := raw.Compile(p.JSON())
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		for _, name := range slices.Concat(tt.good, tt.bad) {
			good := slices.Contains(tt.good, name)
			doc := fmt.Sprintf("{%q:true}", name)
			dst := reflect.New(typ)
			err := p.Decode(context.Background(), []byte(doc), dst.Interface())
			if (err == nil) != good || good && dst.Elem().Len() != 1 {
				t.Errorf("%s: %s gave %v", typ, doc, err)
			}
			if err != nil && !strings.Contains(err.Error(), ": the name must be ") {
				t.Errorf("%s: %s gave %v", typ, doc, err)
			}
			if tt.key == reflect.TypeFor[netip.Addr]() {
				continue // its schema says in words alone what an address is
			}
			if err := raw.Check([]byte(doc)); (err == nil) != good {
				t.Errorf("the schema of %s on %s: %v\n%s", typ, doc, err, p.JSON())
			}
		}
	}
}

// Rules of a key run on it, and a user's own too.
func TestRulesOfKeys(t *testing.T) {
	even := NewRule("even", func(_ context.Context, s string, _ string) error {
		if len(s)%2 != 0 {
			return errors.New("has an odd length")
		}
		return nil
	}, Describe("of an even length"))
	type args struct {
		M map[string]int     `json:"m,omitempty" validate:"dive,keys,even,max=4,endkeys,min=1"`
		D map[civil.Date]int `json:"d,omitempty" validate:"dive,keys,min=2026-01-01,endkeys"`
	}
	p, err := Compile(reflect.TypeFor[args](), &Options{Rules: []Rule{even}})
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string]string{
		`{"m":{"ab":1},"d":{"2026-01-01":1}}`: "",
		`{"m":{"abc":1}}`:                     "/m/abc: the name has an odd length",
		`{"m":{"abcdef":1}}`:                  "/m/abcdef: the name must be at most 4 characters long",
		`{"d":{"2025-12-31":1}}`:              "/d/2025-12-31: the name must be 2026-01-01 or later",
	} {
		got := ""
		if err := p.Check([]byte(doc)); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
}

// quotes is text of which its own errors tell the value.
type quotes string

func (q *quotes) UnmarshalText(text []byte) error {
	if strings.Contains(string(text), "s3cret") {
		return fmt.Errorf("cannot take %s", text)
	}
	*q = quotes(text)
	return nil
}

// strictly is a type with a schema, and with members in it.
type strictly map[string]int

func (strictly) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer"}, PropertyNames: &jsonschema.Schema{Pattern: "^[a-z]+$"}}
}

// What is below a secret is told by nobody: not by paths, names or values in
// issues, not by the list of what was coerced, not by a rule of the user.
func TestSecretsKeepNames(t *testing.T) {
	telling := NewRule("telling", func(_ context.Context, s string, _ string) error { return errors.New("bad value " + s) }, Describe("told"))
	type login struct {
		User string `json:"user"`
		Pass string `json:"pass"`
	}
	type holder struct {
		Name  string `json:"name"`
		Token string `json:"token" mcp:"secret"`
	}
	type args struct {
		Map    map[string]int       `json:"map,omitempty" mcp:"secret"`
		Deep   map[string]login     `json:"deep,omitempty" mcp:"secret"`
		Struct *login               `json:"struct,omitempty" mcp:"secret"`
		Any    any                  `json:"any,omitempty" mcp:"secret" jsonschema:"description=Any."`
		Keys   map[quotes]bool      `json:"keys,omitempty" mcp:"secret"`
		Own    strictly             `json:"own,omitempty" mcp:"secret"`
		Rule   string               `json:"rule,omitempty" mcp:"secret" validate:"telling"`
		Rules  map[string]string    `json:"rules,omitempty" mcp:"secret" validate:"dive,keys,telling,endkeys,telling"`
		Holder *holder              `json:"holder,omitempty"`
		Times  map[time.Time]string `json:"times,omitempty" mcp:"secret"`
		Unique map[string]string    `json:"unique,omitempty" mcp:"secret" validate:"unique"`
		List   []map[string]int     `json:"list,omitempty" mcp:"secret"`
	}
	rule := NewStructRule("name and token go together", func(_ context.Context, h *holder) error {
		return errors.Join(fmt.Errorf("the token %s is wrong", h.Token), FieldError("Name", "does not go with "+h.Token))
	})
	p, err := Compile(reflect.TypeFor[args](), &Options{Rules: []Rule{telling, rule}})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{
		`{"map":{"s3cret":"x"}}`, `{"map":{"s3cret":1,"s3cret":2}}`, `{"map":{"s3cret":null}}`, `{"map":{"s3cret":1e99}}`,
		`{"deep":{"s3cret":{"user":1}}}`, `{"deep":{"s3cret":{"s3cret":1}}}`, `{"deep":{"s3cret":{"userr":"s3cret"}}}`,
		`{"struct":{"s3cret":1}}`, `{"struct":{"s3cret":1,"s3cret":1}}`, `{"struct":{"uses3cret":1}}`, `{"struct":"s3cret"}`,
		`{"any":{"s3cret":1,"s3cret":2}}`, `{"any":[{"s3cret":{"a":1,"a":2}}]}`,
		`{"keys":{"s3cret":true}}`, `{"own":{"s3cret":1}}`, `{"own":{"s3cret":"s3cret"}}`, `{"own":{"s3cret":1,"s3cret":1}}`,
		`{"rule":"s3cret"}`, `{"rules":{"s3cret":"x"}}`, `{"rules":{"x":"s3cret"}}`,
		`{"holder":{"name":"x","token":"s3cret"}}`, `{"times":{"s3cret":"x"}}`, `{"unique":{"s3cret":"x","s3cret2":"x"}}`,
		`{"list":[{"s3cret":"x"}]}`, `{"list":[{"s3cret":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}]}`,
	} {
		var dst args
		coerced, err := p.report([]byte(doc), &dst)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		if said := fmt.Sprintf("%+v %v %s", e.Issues, coerced, e.Text("tool")); strings.Contains(said, "s3cret") || strings.Contains(said, "did you mean") {
			t.Errorf("%s is told: %s", doc, said)
		}
	}
	var dst args
	coerced, err := p.report([]byte(`{"map":{"s3cret":"5"},"list":[{"s3cret":"6"}]}`), &dst)
	if err != nil || len(coerced) != 2 || strings.Contains(fmt.Sprint(coerced), "s3cret") {
		t.Errorf("%v, %v", coerced, err)
	}
}
