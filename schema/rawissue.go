package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	jsonschemav6 "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/message"
)

// flatten makes issues of the leaves of a validation error.
func flatten(e *jsonschemav6.ValidationError, p *message.Printer, issues *[]Issue) {
	path := steps(e.InstanceLocation)
	keyword := "schema"
	if k := e.ErrorKind.KeywordPath(); len(k) > 0 {
		keyword = k[len(k)-1]
	}
	below := func(name, rule, text string) {
		*issues = append(*issues, Issue{Path: pointer(append(path, step{name, -1})), Rule: rule, Message: text})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			below(name, "required", "is required")
		}
		return
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			below(name, "required", "is required when "+k.Prop+" is given")
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			below(name, ruleUnknown, "unknown property")
		}
		return
	}
	if flattenMeant(e, p, issues) {
		return
	}
	expected, got := rawWords(e.ErrorKind)
	whole := false // the causes are of alternatives, which say less than the whole
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		whole = true
	}
	if len(e.Causes) == 0 || whole {
		is := Issue{Path: pointer(path), Rule: keyword, Expected: expected, Got: got}
		if is.Message = mustBe(expected, got); expected == "" {
			is.Message = e.ErrorKind.LocalizedString(p)
		}
		*issues = append(*issues, is)
		return
	}
	for _, cause := range e.Causes {
		flatten(cause, p, issues)
	}
}

// rawFormats are the formats that are easier understood by an example.
var rawFormats = map[string]string{
	"date":      "a date such as 2026-01-31",
	"date-time": "a date and time with an offset, such as 2026-01-31T09:30:00Z",
	"email":     "an email address such as ann@example.com",
}

// rawWords says what a keyword wants, and what it got where that is short.
func rawWords(e jsonschemav6.ErrorKind) (expected, got string) {
	switch k := e.(type) {
	case *kind.Type:
		return rawTypes(k.Want), rawKind(k.Got)
	case *kind.Enum:
		return oneOf(k.Want), rawValue(k.Got)
	case *kind.Const:
		return oneOf([]any{k.Want}), rawValue(k.Got)
	case *kind.Format:
		if words := rawFormats[k.Want]; words != "" {
			return words, rawValue(k.Got)
		}
		return "text in the format " + k.Want, rawValue(k.Got)
	case *kind.Pattern:
		if k.Want == base64Pattern {
			return "base64 text", quoted(k.Got)
		}
		return "text that matches the pattern " + k.Want, quoted(k.Got)
	case *kind.Minimum:
		return "at least " + decimal(k.Want), decimal(k.Got)
	case *kind.Maximum:
		return "at most " + decimal(k.Want), decimal(k.Got)
	case *kind.ExclusiveMinimum:
		return "greater than " + decimal(k.Want), decimal(k.Got)
	case *kind.ExclusiveMaximum:
		return "less than " + decimal(k.Want), decimal(k.Got)
	case *kind.MultipleOf:
		return "a multiple of " + decimal(k.Want), decimal(k.Got)
	case *kind.MinLength:
		return "at least " + characterWords.quantity(k.Want) + " long", characterWords.quantity(k.Got)
	case *kind.MaxLength:
		return "at most " + characterWords.quantity(k.Want) + " long", characterWords.quantity(k.Got)
	case *kind.MinItems:
		return "an array of at least " + itemWords.quantity(k.Want), itemWords.quantity(k.Got)
	case *kind.MaxItems:
		return "an array of at most " + itemWords.quantity(k.Want), itemWords.quantity(k.Got)
	case *kind.MinProperties:
		return "an object with at least " + memberWords.quantity(k.Want), memberWords.quantity(k.Got)
	case *kind.MaxProperties:
		return "an object with at most " + memberWords.quantity(k.Want), memberWords.quantity(k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("an array without duplicates; items %d and %d are equal", k.Duplicates[0], k.Duplicates[1]), ""
	case *kind.FalseSchema:
		return "left out", ""
	case *kind.AnyOf:
		return "valid by one of the schemas in anyOf", ""
	case *kind.OneOf:
		return "valid by exactly one of the schemas in oneOf", ""
	case *kind.Not:
		return "different: the schema in not refuses it", ""
	}
	return "", ""
}

func rawTypes(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		if words[i] = typeNouns[name]; words[i] == "" {
			words[i] = name // null
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { // null last
		return strings.Compare(strings.Repeat("x", strings.Count(a, "null")), strings.Repeat("x", strings.Count(b, "null")))
	})
	return strings.Join(words, " or ")
}

func rawKind(name string) string {
	if name == "boolean" {
		return "a boolean"
	}
	if noun := typeNouns[name]; noun != "" {
		return noun
	}
	return name
}

func rawValue(v any) string {
	switch v.(type) {
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return gotValue(appendAny(nil, v), false)
}

// decimal writes a number of a document or schema. Those are decimals with a
// bounded exponent, so the digits end.
func decimal(x *big.Rat) string {
	digits, _ := x.FloatPrec()
	return cut(x.FloatString(digits))
}
