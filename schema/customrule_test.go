package schema

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
)

type sku string

func skuRule(opts ...RuleOption) Rule {
	return NewRule("sku", func(_ context.Context, v string, param string) error {
		if !strings.HasPrefix(v, param) {
			return errors.New("no such SKU")
		}
		return nil
	}, opts...)
}

func TestCustomRule(t *testing.T) {
	r := skuRule(Emit(func(param string, s *jsonschema.Schema) { s.Pattern = "^" + param }), Describe("an existing SKU."))
	target := target{kind: kindText, typ: reflect.TypeFor[sku](), opts: &Options{Rules: []Rule{r}}}
	checks := compileTag(t, "alpha,sku=AB", target)
	if len(checks) != 3 || !checks[1].text("ABx") || checks[1].text("xAB") {
		t.Fatalf("the emitted pattern is not checked: %+v", checks)
	}
	c := checks[2]
	if c.want != "an existing SKU" || c.note != "Must be an existing SKU." || c.code != "sku" {
		t.Errorf("got %+v", c)
	}
	if text, _ := json.Marshal(emitted(checks)); string(text) != `{"allOf":[{"pattern":"^AB"}],"pattern":"^[a-zA-Z]+$"}` {
		t.Errorf("schema %s", text)
	}
	if err := c.custom(t.Context(), reflect.ValueOf(sku("AB-1"))); err != nil {
		t.Error(err)
	}
	if err := c.custom(t.Context(), reflect.ValueOf(sku("X"))); err == nil || err.Error() != "no such SKU" {
		t.Errorf("got %v", err)
	}
}

func TestCustomRuleNotes(t *testing.T) {
	for describe, want := range map[string]string{
		"an even number": "Must be an even number.", "must be even": "Must be even.", "Must exist": "Must exist.", "": "",
	} {
		r := skuRule(Describe(describe), Emit(func(string, *jsonschema.Schema) {}))
		if got := r.note(); got != want {
			t.Errorf("%q: got %q, want %q", describe, got, want)
		}
	}
}

func TestCustomRuleProblems(t *testing.T) {
	check := func(context.Context, string, string) error { return nil }
	describe := Describe("fine")
	tests := []struct {
		rule Rule
		want string
	}{
		{NewRule("sku", check), "schema.Describe"},
		{NewRule[string]("sku", nil, describe), "no function"},
		{NewRule("a b", check, describe), "one word"},
		{NewRule("", check, describe), "one word"},
		{NewRule("dive", check, describe), "grammar"},
		{NewRule("eqfield", check, describe), "grammar"},
		{NewRule("p", func(context.Context, *int, string) error { return nil }, describe), "pointer"},
		{ValidatorRule("required", func(validator.FieldLevel) bool { return true }, describe), "grammar"},
		{ValidatorRule("x", nil, describe), "no function"},
		{ValidatorRule("x", func(validator.FieldLevel) bool { return true }), "schema.Describe"},
		{Rule{}, "empty"},
	}
	for _, tt := range tests {
		problems := checkRules([]Rule{tt.rule})
		if len(problems) != 1 || !strings.Contains(problems[0].msg, tt.want) {
			t.Errorf("got %+v, want %q", problems, tt.want)
		}
		// No field uses the rule.
		if _, err := Compile(reflect.TypeFor[intPlain](), &Options{Rules: []Rule{tt.rule}}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Compile returned %v, want %q in it", err, tt.want)
		}
	}
	if problems := checkRules([]Rule{skuRule(describe), skuRule(describe)}); len(problems) != 1 {
		t.Errorf("two rules of one name: got %+v", problems)
	}
	opts := &Options{Rules: []Rule{skuRule(describe)}}
	for _, typ := range []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[[]string](), reflect.TypeFor[any]()} {
		if _, p := compileRule(rule{name: "sku", written: "sku"}, target{kind: kindInt, typ: typ, opts: opts}); p == nil || p.fix == "" {
			t.Errorf("sku on %s: want a problem with a fix, got %+v", typ, p)
		}
	}
	bad := &Options{Rules: []Rule{skuRule(Emit(func(_ string, s *jsonschema.Schema) { s.Pattern = `(?i)x` }))}}
	if _, p := compileRule(rule{name: "sku", written: "sku"}, target{kind: kindText, typ: reflect.TypeFor[string](), opts: bad}); p == nil || !strings.Contains(p.fix, "spell") {
		t.Errorf("a pattern outside the common dialect: got %+v", p)
	}
	if _, p := compileRule(rule{name: "suk", written: "suk"}, target{kind: kindText, typ: reflect.TypeFor[string](), opts: opts}); p == nil {
		t.Error("suk is taken for a rule")
	}
}

func TestValidatorRule(t *testing.T) {
	r := ValidatorRule("even", func(fl validator.FieldLevel) bool {
		return fl.Field().Int()%2 == 0 && fl.Param() == "a,b"
	}, Describe("even"))
	target := target{kind: kindInt, typ: reflect.TypeFor[int](), opts: &Options{Rules: []Rule{r}}}
	c := compileTag(t, "even=a0x2Cb", target)[0]
	if err := c.custom(t.Context(), reflect.ValueOf(2)); err != nil {
		t.Error(err)
	}
	if err := c.custom(t.Context(), reflect.ValueOf(3)); err == nil || err.Error() != "must be even" {
		t.Errorf("got %v", err)
	}
}

func TestCustomRuleReplacesBuiltIn(t *testing.T) {
	r := NewRule("email", func(_ context.Context, v string, _ string) error { return errors.New("closed") }, Describe("an address of ours"))
	opts := &Options{Rules: []Rule{r}}
	c := compileTag(t, "email", target{kind: kindText, typ: reflect.TypeFor[string](), opts: opts})[0]
	if c.custom == nil || c.note != "Must be an address of ours." {
		t.Errorf("got %+v", c)
	}
}
