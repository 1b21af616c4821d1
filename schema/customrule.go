package schema

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
)

// Rule is a custom validate tag, made by NewRule or ValidatorRule and given to
// Options.Rules. The zero value is not usable. A Rule may replace a built-in
// rule on a value, such as email, but not the words that shape a tag, such as
// required or dive. It is safe for concurrent use if its function is.
type Rule struct {
	name     string
	typ      reflect.Type // what the function takes; nil for any type
	describe string
	emit     func(param string, s *jsonschema.Schema)
	run      func(ctx context.Context, v reflect.Value, param string) error
	fault    string // what is wrong with the rule itself
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
// reads. It runs once all other rules have passed.
//
// A rule without Emit and without Describe is an error at registration: nobody
// could know of it.
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
// validator. The function sees the field alone: its Parent and Top are the
// value itself, so it cannot look at other fields.
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
		err := v.Var(value.Interface(), playgroundTag(name, param, param != ""))
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

// registerFunc keeps go-playground from panicking over a name of its own.
func registerFunc(v *validator.Validate, name string, fn validator.Func) error {
	if fn == nil {
		return errors.New("it has no function")
	}
	if shapeTags[name] {
		return errors.New("its name belongs to the tag grammar")
	}
	return v.RegisterValidation(name, fn)
}

func (r Rule) with(opts []RuleOption) Rule {
	for _, o := range opts {
		o(&r)
	}
	class := classOf(r.name)
	switch {
	case r.fault != "":
	case r.name == "" || strings.ContainsAny(r.name, ",|=' \t\n"):
		r.fault = "its name must be one word without , | = and '"
	case class == classStructure:
		r.fault = "its name belongs to the tag grammar"
	case r.describe == "" && r.emit == nil:
		r.fault = "it says neither to the schema nor in words what it checks; add schema.Emit or schema.Describe"
	case r.typ != nil && r.typ.Kind() == reflect.Pointer:
		r.fault = "it must take a value, not a pointer; rules run on values that are there"
	}
	return r
}

// wants is what a value must be, in words.
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

// note is the sentence for the description, if there are words.
func (r Rule) note() string {
	switch {
	case r.describe == "":
		return ""
	case strings.HasPrefix(r.describe, "must ") || strings.HasPrefix(r.describe, "Must "):
		return "M" + r.describe[1:] + "."
	}
	return "Must be " + r.describe + "."
}

// takes reports whether the rule's function can take values of a type.
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

func (r Rule) compile(use rule, t target) ([]check, *problem) {
	if r.fault != "" {
		return nil, nil // checkRules has reported it
	}
	if t.kind == kindAny || !r.takes(t.typ) {
		return nil, use.fault(fmt.Sprintf("the custom rule %q takes %s, not %s", r.name, r.typ, t.typ), "use it on a field of its type")
	}
	c := check{tag: use.written, code: r.name, want: r.wants(), note: r.note(), trait: true}
	run := r.run
	c.custom = func(ctx context.Context, v reflect.Value) error { return run(ctx, v, use.param) }
	if r.emit == nil {
		return []check{c}, nil
	}
	first := &jsonschema.Schema{}
	r.emit(use.param, first)
	pattern := first.Pattern
	var checks []check
	if pattern != "" && t.kind == kindText {
		re, rewritten, p := lintPattern(pattern)
		if p != nil {
			return nil, use.fault(fmt.Sprintf("the custom rule %q emits the pattern %q: %s", r.name, pattern, p.msg), p.fix)
		}
		pattern = rewritten
		checks = append(checks, check{tag: use.written, code: "pattern", want: c.want, trait: true, text: re.MatchString})
	}
	c.emit = func(s *jsonschema.Schema) {
		more := &jsonschema.Schema{} // a fresh one: schemas must not share parts
		r.emit(use.param, more)
		more.Pattern = pattern
		addAll(s, more)
	}
	return append(checks, c), nil
}

// checkRules reports what is wrong with the custom rules themselves, used or
// not.
func checkRules(rules []Rule) []problem {
	var problems []problem
	seen := map[string]bool{}
	for _, r := range rules {
		switch {
		case r.run == nil && r.fault == "":
			problems = append(problems, problem{tag: "Options.Rules", msg: "a Rule is empty", fix: "make it with schema.NewRule or schema.ValidatorRule"})
		case r.fault != "":
			problems = append(problems, problem{tag: "Options.Rules", msg: fmt.Sprintf("rule %q: %s", r.name, r.fault)})
		case seen[r.name]:
			problems = append(problems, problem{tag: "Options.Rules", msg: fmt.Sprintf("two rules are named %q", r.name), fix: "choose another name for one"})
		}
		seen[r.name] = true
	}
	return problems
}
