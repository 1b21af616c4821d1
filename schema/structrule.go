package schema

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/talaria-go/mcp/schema/internal/wording"
)

// structRule is the Rule of NewStructRule.
type structRule struct {
	typ      reflect.Type
	describe string
	run      func(ctx context.Context, v reflect.Value) ([]fault, error)
}

// fault is what a struct rule found. goName is the field that it is about, or
// "" for the whole struct; rule becomes Issue.Rule.
type fault struct {
	goName, rule, msg string
}

// NewStructRule makes a rule that needs no tag, from a function that checks each
// T, a struct; there may be several for one type. It runs after every other rule
// has passed. describe says in English what it demands and becomes part of the
// schema, which has no keyword for that. An error made by FieldError is reported at
// that field, any other error at the object; errors.Join reports several. The function
// must be safe for concurrent use.
func NewStructRule[T any](describe string, check func(ctx context.Context, v *T) error) Rule {
	return Rule{whole: &structRule{typ: reflect.TypeFor[T](), describe: describe,
		run: func(ctx context.Context, v reflect.Value) ([]fault, error) {
			return faults(check(ctx, v.Addr().Interface().(*T))), nil
		}}}
}

// FieldError returns an error about one field, which is named as in Go, for
// functions given to NewStructRule.
func FieldError(name, msg string) error { return &fieldError{name, msg} }

// fieldError is the error that FieldError returns.
type fieldError struct{ name, msg string }

func (e *fieldError) Error() string { return e.msg }

// faults takes the error of a struct rule apart. Errors combined with
// errors.Join become one fault each.
func faults(err error) []fault {
	if err == nil {
		return nil
	}
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		var all []fault
		for _, e := range list.Unwrap() {
			all = append(all, faults(e)...)
		}
		return all
	}
	f := fault{rule: wording.RuleCustom, msg: err.Error()}
	var at *fieldError
	if errors.As(err, &at) {
		f.goName = at.name
	}
	return []fault{f}
}

// ValidatorStructRule makes a rule for T from a struct-level function written
// for go-playground's validator. describe is as for NewStructRule. Only errors
// about fields of T itself are used: structs inside T are checked when it is
// their turn.
func ValidatorStructRule[T any](describe string, fn validator.StructLevelFunc) Rule {
	v := validator.New()
	v.SetTagName("-") // the fields' tags are enforced already
	var zero T
	v.RegisterStructValidation(fn, zero)
	name := reflect.TypeFor[T]().Name()
	return Rule{whole: &structRule{typ: reflect.TypeFor[T](), describe: describe,
		run: func(ctx context.Context, rv reflect.Value) ([]fault, error) {
			err := v.StructCtx(ctx, rv.Addr().Interface())
			var list validator.ValidationErrors
			if err != nil && !errors.As(err, &list) {
				return nil, fmt.Errorf("schema: struct rule of %s: %w", name, err)
			}
			var all []fault
			for _, e := range list {
				// A struct inside is checked when its own turn comes.
				if rest, ok := strings.CutPrefix(e.StructNamespace(), name+"."); !ok || rest == e.StructField() {
					all = append(all, fault{e.StructField(), e.Tag(), "breaks the rule " + e.Tag()})
				}
			}
			return all, nil
		}}}
}
