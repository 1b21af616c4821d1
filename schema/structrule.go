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

// StructRule checks a whole struct with a function. It runs after every other
// rule has passed, because JSON Schema cannot say what it checks; its
// description goes into the schema instead. Put it into Options.StructRules.
type StructRule struct {
	typ      reflect.Type
	describe string
	run      func(ctx context.Context, v reflect.Value) ([]fault, error)
}

// fault is what a struct rule found, at a field or, with the Go name "", at the
// struct.
type fault struct {
	goName, rule, msg string
}

// NewStructRule makes a rule of a function on T. An error that FieldError made is reported
// at that field, any other at the object; errors.Join gives several.
func NewStructRule[T any](describe string, check func(ctx context.Context, v *T) error) *StructRule {
	return &StructRule{typ: reflect.TypeFor[T](), describe: describe,
		run: func(ctx context.Context, v reflect.Value) ([]fault, error) {
			return faults(check(ctx, v.Addr().Interface().(*T))), nil
		}}
}

// FieldError returns an error about one field, named as in Go, for use in a rule
// made by NewStructRule.
func FieldError(name, msg string) error { return &fieldError{name, msg} }

type fieldError struct{ name, msg string }

func (e *fieldError) Error() string { return e.msg }

// faults takes the error of a struct rule apart, where errors.Join has put
// several together.
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

// ValidatorStructRule makes a rule of a struct-level function of go-playground's
// validator for T.
func ValidatorStructRule[T any](describe string, fn validator.StructLevelFunc) *StructRule {
	v := validator.New()
	v.SetTagName("-") // the fields' tags are enforced already
	var zero T
	v.RegisterStructValidation(fn, zero)
	name := reflect.TypeFor[T]().Name()
	return &StructRule{typ: reflect.TypeFor[T](), describe: describe,
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
		}}
}
