package schema

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

// Rule is a check of a program's own, given to Options.Rules: of a value whose
// validate tag names it, made by NewRule or ValidatorRule, or of a whole struct,
// made by NewStructRule or ValidatorStructRule. The zero value is not usable. A
// rule with a name may replace a built-in rule on a value, such as email, but not
// the words that shape a tag, such as required or dive. A Rule is safe for
// concurrent use if its function is.
type Rule struct {
	name string
	// typ is what the function takes; nil for any type.
	typ reflect.Type
	// describe and emit say what the rule checks; one of them has to.
	describe string
	emit     func(param string, s *jsonschema.Schema)
	// run gets a value of typ, or of a type with the same underlying type.
	run func(ctx context.Context, v reflect.Value, param string) error
	// fault is what is wrong with the rule itself; "" if nothing is.
	fault string
	// whole checks whole structs; nil for a rule that a tag names.
	whole *structRule
}

// RuleOption says what a Rule checks, to those who read the schema.
type RuleOption func(*Rule)

// Emit makes a rule add keywords to the schema of a field: emit gets an empty
// schema and the parameter in the tag, or "" without one. A pattern is also
// checked, before the function of the rule runs; it must keep to what RE2 and
// ECMA-262 read alike. Of other keywords the function must see to it that
// whatever it accepts is valid by them.
func Emit(emit func(param string, s *jsonschema.Schema)) RuleOption {
	return func(r *Rule) { r.emit = emit }
}

// Describe says in words what the keywords cannot: a fragment that reads well
// after "must be", or a sentence that starts with "must". It becomes part of
// the field's description and of the error.
func Describe(text string) RuleOption {
	return func(r *Rule) { r.describe = strings.TrimSuffix(strings.TrimSpace(text), ".") }
}

// NewRule makes a rule for fields of type T, and of types with the same
// underlying type if that is a basic one. check gets the decoded value and the
// parameter in the tag; the text of its error is what the caller of the tool
// reads. It runs once all other rules have passed. It also runs when a type is
// registered, on the defaults and examples of its fields, with a context without values.
//
// A rule without Emit and without Describe is an error at registration:
// callers could not learn of it.
func NewRule[T any](name string, check func(ctx context.Context, v T, param string) error, opts ...RuleOption) Rule {
	r := Rule{name: name, typ: reflect.TypeFor[T]()}
	r.run = func(ctx context.Context, v reflect.Value, param string) error {
		return check(ctx, v.Convert(reflect.TypeFor[T]()).Interface().(T), param)
	}
	if check == nil {
		r.fault = "it has no function"
	}
	return r.with(opts)
}

// ValidatorRule makes a rule of a function written for go-playground's
// validator. The function sees only the field: its Parent and Top are the value
// itself, so it cannot look at other fields.
func ValidatorRule(name string, fn validator.Func, opts ...RuleOption) Rule {
	r := Rule{name: name}
	v := validator.New()
	v.SetTagName("-") // no tags of a struct are read, this one rule is all
	if err := registerFunc(v, name, fn); err != nil {
		r.fault = err.Error()
		return r
	}
	r = r.with(opts)
	describe := r.wants()
	r.run = func(_ context.Context, value reflect.Value, param string) error {
		err := v.Var(value.Interface(), rules.PlaygroundTag(name, param, param != ""))
		var failed validator.ValidationErrors
		switch {
		case err == nil:
			return nil
		case errors.As(err, &failed):
			return errors.New("must be " + describe)
		}
		return err
	}
	return r
}

// registerFunc registers fn with v. It first refuses the names for which
// go-playground would panic.
func registerFunc(v *validator.Validate, name string, fn validator.Func) error {
	if fn == nil {
		return errors.New("it has no function")
	}
	if tags.ShapeTags[name] {
		return errors.New("its name belongs to the tag grammar")
	}
	return v.RegisterValidation(name, fn)
}

// with applies the options and records what is wrong with the rule itself. That
// is reported when a type is compiled, because NewRule returns no error.
func (r Rule) with(opts []RuleOption) Rule {
	for _, o := range opts {
		o(&r)
	}
	class := rules.ClassOf(r.name)
	switch {
	case r.fault != "":
	case r.name == "" || strings.ContainsAny(r.name, ",|=' \t\n"):
		r.fault = "its name must be one word without , | = and '"
	case class == rules.ClassStructure:
		r.fault = "its name belongs to the tag grammar"
	case r.describe == "" && r.emit == nil:
		r.fault = "it says neither to the schema nor in words what it checks; add schema.Emit or schema.Describe"
	case r.typ != nil && r.typ.Kind() == reflect.Pointer:
		r.fault = "it must take a value, not a pointer; rules run on values that are there"
	}
	return r
}

// wants returns what a value must be, as a fragment that follows "must be".
func (r Rule) wants() string {
	text := r.describe
	for _, prefix := range []string{"Must be ", "must be "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if text == "" {
		return "valid for " + r.name
	}
	return text
}

// note returns the sentence for the description, or "" if the rule has no
// words.
func (r Rule) note() string {
	switch {
	case r.describe == "":
		return ""
	case strings.HasPrefix(r.describe, "must ") || strings.HasPrefix(r.describe, "Must "):
		return "M" + r.describe[1:] + "."
	}
	return "Must be " + r.describe + "."
}

// takes reports whether the rule's function can take values of typ: values of
// its own type, of a type with the same basic kind, or of a type that
// implements its interface.
func (r Rule) takes(typ reflect.Type) bool {
	switch {
	case r.typ == nil || typ == nil || typ == r.typ:
		return true
	case r.typ.Kind() == reflect.Interface:
		return typ.Implements(r.typ)
	case typ.Kind() != r.typ.Kind():
		return false
	}
	switch typ.Kind() {
	case reflect.Struct, reflect.Array, reflect.Slice, reflect.Map, reflect.Interface:
		return typ.ConvertibleTo(r.typ) && (typ.Name() == "" || r.typ.Name() == "")
	}
	return true
}

// compile returns the checks for one use of the rule: the pattern that it
// emits, if any, and then its function. It is a rules.CompileFunc.
func (r Rule) compile(use tags.Rule, t rules.Target) ([]rules.Check, *tags.Problem) {
	if r.fault != "" {
		return nil, nil // checkRules has reported it
	}
	if t.Kind == rules.KindAny || !r.takes(t.Type) {
		return nil, use.Fault(fmt.Sprintf("the custom rule %q takes %s, not %s", r.name, r.typ, t.Type), "use it on a field of its type")
	}
	c := rules.Check{Tag: use.Written, Code: r.name, Want: r.wants(), Note: r.note(), Trait: true}
	run := r.run
	c.Test = rules.CustomTest(func(ctx context.Context, v reflect.Value) error { return run(ctx, v, use.Param) })
	if r.emit == nil {
		return []rules.Check{c}, nil
	}
	first := &jsonschema.Schema{}
	if failure := guard(func() { r.emit(use.Param, first) }); failure != nil {
		return nil, use.Fault(fmt.Sprintf("the Emit of the custom rule %q panicked: %v", r.name, failure), "make it work with every parameter of a tag")
	}
	pattern := first.Pattern
	var checks []rules.Check
	if pattern != "" && t.Kind == rules.KindText {
		re, rewritten, p := regex.Lint(pattern)
		if p != nil {
			return nil, use.Fault(fmt.Sprintf("the custom rule %q emits the pattern %q: %s", r.name, pattern, p.Msg), p.Fix)
		}
		pattern = rewritten
		checks = append(checks, rules.Check{Tag: use.Written, Code: "pattern", Want: c.Want, Trait: true, Test: rules.TextTest(re.MatchString)})
	}
	c.Emit = func(s *jsonschema.Schema) {
		more := &jsonschema.Schema{} // a fresh one: schemas must not share parts
		r.emit(use.Param, more)
		more.Pattern = pattern
		schemadoc.AddAll(s, more)
	}
	return append(checks, c), nil
}

// ownRules returns the compile functions of the rules by name. Of two rules
// with one name, which checkRules reports, the first is kept.
func ownRules(list []Rule) map[string]rules.CompileFunc {
	own := make(map[string]rules.CompileFunc, len(list))
	for _, r := range slices.Backward(list) {
		if r.whole == nil {
			own[r.name] = r.compile
		}
	}
	return own
}

// checkRules returns what is wrong with the custom rules themselves, whether
// they are used or not.
func checkRules(list []Rule) []tags.Problem {
	var problems []tags.Problem
	seen := map[string]bool{}
	for _, r := range list {
		if r.whole != nil {
			continue
		}
		switch {
		case r.run == nil && r.fault == "":
			problems = append(problems, tags.Problem{Tag: "Options.Rules", Msg: "a Rule is empty", Fix: "make it with schema.NewRule or schema.NewStructRule"})
		case r.fault != "":
			problems = append(problems, tags.Problem{Tag: "Options.Rules", Msg: fmt.Sprintf("rule %q: %s", r.name, r.fault)})
		case seen[r.name]:
			problems = append(problems, tags.Problem{Tag: "Options.Rules", Msg: fmt.Sprintf("two rules are named %q", r.name), Fix: "choose another name for one"})
		}
		seen[r.name] = true
	}
	return problems
}
