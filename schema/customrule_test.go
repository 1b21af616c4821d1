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

	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
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
	target := rules.Target{Kind: rules.KindText, Type: reflect.TypeFor[sku](), Own: ownRules([]Rule{r})}
	checks := compileTag(t, "alpha,sku=AB", target)
	if len(checks) != 3 || !textPasses(checks[1:2], "ABx") || textPasses(checks[1:2], "xAB") {
		t.Fatalf("the emitted pattern is not checked: %+v", checks)
	}
	c := checks[2]
	if c.Want != "an existing SKU" || c.Note != "Must be an existing SKU." || c.Code != "sku" {
		t.Errorf("got %+v", c)
	}
	if text, _ := json.Marshal(emitted(checks)); string(text) != `{"allOf":[{"pattern":"^AB"}],"pattern":"^[a-zA-Z]+$"}` {
		t.Errorf("schema %s", text)
	}
	if err := c.Test.(rules.CustomTest)(t.Context(), reflect.ValueOf(sku("AB-1"))); err != nil {
		t.Error(err)
	}
	if err := c.Test.(rules.CustomTest)(t.Context(), reflect.ValueOf(sku("X"))); err == nil || err.Error() != "no such SKU" {
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
		if len(problems) != 1 || !strings.Contains(problems[0].Msg, tt.want) {
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
	own := ownRules([]Rule{skuRule(describe)})
	for _, typ := range []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[[]string](), reflect.TypeFor[any]()} {
		if _, p := rules.Compile(tags.Rule{Name: "sku", Written: "sku"}, rules.Target{Kind: rules.KindInt, Type: typ, Own: own}); p == nil || p.Fix == "" {
			t.Errorf("sku on %s: want a problem with a fix, got %+v", typ, p)
		}
	}
	bad := ownRules([]Rule{skuRule(Emit(func(_ string, s *jsonschema.Schema) { s.Pattern = `(?i)x` }))})
	if _, p := rules.Compile(tags.Rule{Name: "sku", Written: "sku"}, rules.Target{Kind: rules.KindText, Type: reflect.TypeFor[string](), Own: bad}); p == nil || !strings.Contains(p.Fix, "spell") {
		t.Errorf("a pattern outside the common dialect: got %+v", p)
	}
	if _, p := rules.Compile(tags.Rule{Name: "suk", Written: "suk"}, rules.Target{Kind: rules.KindText, Type: reflect.TypeFor[string](), Own: own}); p == nil {
		t.Error("suk is taken for a rule")
	}
}

func TestValidatorRule(t *testing.T) {
	r := ValidatorRule("even", func(fl validator.FieldLevel) bool {
		return fl.Field().Int()%2 == 0 && fl.Param() == "a,b"
	}, Describe("even"))
	target := rules.Target{Kind: rules.KindInt, Type: reflect.TypeFor[int](), Own: ownRules([]Rule{r})}
	c := compileTag(t, "even=a0x2Cb", target)[0]
	if err := c.Test.(rules.CustomTest)(t.Context(), reflect.ValueOf(2)); err != nil {
		t.Error(err)
	}
	if err := c.Test.(rules.CustomTest)(t.Context(), reflect.ValueOf(3)); err == nil || err.Error() != "must be even" {
		t.Errorf("got %v", err)
	}
}

func TestCustomRuleReplacesBuiltIn(t *testing.T) {
	r := NewRule("email", func(_ context.Context, v string, _ string) error { return errors.New("closed") }, Describe("an address of ours"))
	own := ownRules([]Rule{r})
	c := compileTag(t, "email", rules.Target{Kind: rules.KindText, Type: reflect.TypeFor[string](), Own: own})[0]
	if _, ok := c.Test.(rules.CustomTest); !ok || c.Note != "Must be an address of ours." {
		t.Errorf("got %+v", c)
	}
}
