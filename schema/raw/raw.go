package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// Schema is a JSON Schema that arrived as text. It checks documents but does
// not decode them. A Schema does not change and is safe for concurrent use.
type Schema struct {
	text     json.RawMessage
	root     *node
	defaults []*node // that have a default
}

// maxDepth is how deeply a schema may be nested. That is twice the depth of
// documents, because each level of a document takes about two levels of its
// schema: properties, and the member.
const maxDepth = 2 * jsonx.DefaultMaxDepth

// Compile prepares a JSON Schema. Its draft is 2020-12 unless $schema names 7;
// others are not supported. References may lead to parts of the schema itself and
// to the meta-schemas of the two drafts; any other is an error, since nothing is
// ever fetched. Formats are asserted, and patterns are regular expressions of
// package regexp.
//
// A schema nested deeper than 128 levels is refused, because compiling takes
// time and memory that grow with the square of the depth. So are numbers of
// more than 1,000 digits or with an exponent beyond ±400. Errors name the place
// by a JSON Pointer. Compile keeps no reference to text.
func Compile(text []byte) (*Schema, error) {
	s := jsonx.Scanner{Buf: text, MaxDepth: maxDepth}
	_, err := s.Skip()
	if deep, ok := errors.AsType[*jsonx.DepthError](err); ok {
		return nil, fmt.Errorf("schema: %w", deep)
	}
	doc, err := rawDocument(text)
	if err != nil {
		return nil, fmt.Errorf("schema: not valid JSON: %w", err)
	}
	if issues := unwieldy(doc, nil, nil); len(issues) > 0 {
		return nil, fmt.Errorf("schema: %s", issues[0].line())
	}
	root, defaults, err := compile(doc)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Schema{text: b.Bytes(), root: root, defaults: defaults}, nil
}

// rawDocument decodes JSON and keeps numbers as they are written.
func rawDocument(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the value, at byte %d", d.InputOffset())
	}
	return doc, nil
}

// JSON returns the schema as compact JSON, always the same slice. It must not
// be modified.
func (s *Schema) JSON() json.RawMessage { return s.text }

// Check reports whether data is a valid document. It returns nil or an *Error;
// text that is not JSON gives an issue too.
func (s *Schema) Check(data []byte) error {
	doc, err := document(data)
	if err != nil {
		return err
	}
	if issues := s.issues(doc); len(issues) > 0 {
		return &Error{Issues: issues}
	}
	return nil
}

// document reads a document for a check. The error is an *Error.
func document(data []byte) (any, error) {
	scan := jsonx.Scanner{Buf: data}
	_, err := scan.Skip()
	if err == nil {
		err = scan.End()
	}
	var doc any
	if err == nil {
		doc, err = rawDocument(data)
	}
	if err != nil {
		return nil, &Error{Issues: []Issue{Issue(wording.Syntax(err, nil, false))}}
	}
	if issues := unwieldy(doc, nil, nil); len(issues) > 0 {
		return nil, &Error{Issues: issues}
	}
	return doc, nil
}

// issues returns what is wrong with a decoded document, in the order of the
// paths and without repetitions, which alternatives can produce.
func (s *Schema) issues(doc any) []Issue {
	f := s.validate(doc)
	if f == nil {
		return nil
	}
	issues := flatten(f, nil)
	sort.SliceStable(issues, func(i, j int) bool { return issues[i].Path < issues[j].Path })
	return slices.CompactFunc(issues, func(a, b Issue) bool { return a == b })
}

// unwieldy appends an issue for each number of a document that is outside of
// lexical.MaxDigits and lexical.MaxExponent: its exact value could fill the
// memory. It is called for schemas and for documents, before anything else
// looks at their numbers.
func unwieldy(doc any, path []wording.Step, issues []Issue) []Issue {
	switch v := doc.(type) {
	case json.Number:
		text := string(v)
		if !lexical.Bounded(text) {
			want := "a number of at most " + strconv.Itoa(lexical.MaxDigits) + " digits and an exponent of at most " + strconv.Itoa(lexical.MaxExponent)
			issues = append(issues, Issue{Path: wording.Pointer(path), Rule: wording.RuleRange, Expected: want, Got: wording.Cut(text), Message: wording.MustBe(want, wording.Cut(text))})
		}
	case []any:
		for i, e := range v {
			issues = unwieldy(e, append(path, wording.Item(i)), issues)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			issues = unwieldy(v[name], append(path, wording.Member(name)), issues)
		}
	}
	return issues
}

// flatten appends the issues of a failure and of the failures that it consists
// of. Names of missing and unknown members become issues of their own, at the
// place of the member.
func flatten(f *failure, issues []Issue) []Issue {
	path := steps(f.Path)
	each := func(rule, text string) []Issue {
		for i, name := range f.Names {
			is := Issue{Path: wording.Pointer(append(path, wording.Member(name))), Rule: rule, Message: text}
			if i < len(f.Hints) {
				is.Hint = f.Hints[i]
			}
			issues = append(issues, is)
		}
		return issues
	}
	switch f.Keyword {
	case "required":
		return each("required", "is required")
	case "dependentRequired":
		return each("required", "is required when "+f.Want.(string)+" is given")
	case "additionalProperties", "unevaluatedProperties":
		return each(wording.RuleUnknown, "unknown property")
	case "anyOf", "oneOf":
		if !f.several() {
			if meant := flattenMeant(f); meant != nil {
				return append(issues, meant...)
			}
		}
	case "propertyNames":
		for _, is := range flatten(f.Causes[0], nil) {
			is.Path, is.Rule = wording.Pointer(append(path, wording.Member(f.Got.(string)))), "propertyNames"
			is.Message = "the name " + is.Message
			issues = append(issues, is)
		}
		return issues
	case "":
		for _, cause := range f.Causes {
			issues = flatten(cause, issues)
		}
		return issues
	}
	is := Issue{Path: wording.Pointer(path), Rule: f.Keyword}
	is.Expected, is.Got = rawWords(f)
	is.Message = wording.MustBe(is.Expected, is.Got)
	return append(issues, is)
}

// flattenMeant returns the issues of the alternative of anyOf or oneOf that was
// meant, or nil if that is unclear. An alternative is ruled out if it refuses
// the type of the value, or a constant of the value or of one of its members,
// which serves as a discriminator.
//
// If one alternative remains, its issues are returned. If all remain, the
// members that every one of them misses are. If all were ruled out by
// constants, the issue lists those.
func flattenMeant(f *failure) []Issue {
	var left, tags []*failure
	for _, branch := range f.Causes {
		switch tag, wrongType := ruledOut(branch, len(f.Path)); {
		case tag != nil:
			tags = append(tags, tag)
		case !wrongType:
			left = append(left, branch)
		}
	}
	switch {
	case len(left) == 1 && len(f.Causes) > 1:
		return flatten(left[0], nil)
	case len(left) > 1 && len(left) == len(f.Causes):
		return flattenMissing(left, f.Path)
	case len(left) > 0 || len(tags) < 2:
		return nil
	}
	return flattenTags(tags)
}

// flattenMissing returns issues for the members of the object itself that every
// alternative misses.
func flattenMissing(branches []*failure, at []string) []Issue {
	common := missing(branches[0], len(at))
	for _, branch := range branches[1:] {
		names := missing(branch, len(at))
		common = slices.DeleteFunc(slices.Clone(common), func(name string) bool { return !slices.Contains(names, name) })
	}
	var issues []Issue
	for _, name := range common {
		issues = append(issues, Issue{Path: wording.Pointer(append(steps(at), wording.Member(name))), Rule: "required", Message: "is required"})
	}
	return issues
}

// missing returns the members that an alternative misses in the object depth
// steps below the root.
func missing(f *failure, depth int) []string {
	if f.Keyword == "required" && len(f.Path) == depth {
		return f.Names
	}
	var names []string
	if f.Keyword == "" {
		for _, cause := range f.Causes {
			names = append(names, missing(cause, depth)...)
		}
	}
	return names
}

// steps converts a location into a path. The result has room for one more step.
func steps(at []string) []wording.Step {
	path := make([]wording.Step, len(at), len(at)+1)
	for i, name := range at {
		path[i] = wording.Member(name)
	}
	return path
}

// ruledOut looks at why an alternative refuses the value depth steps below the
// root. tag is the failure of a constant, of the value or of one of its
// members. wrongType is set if the type of the value itself was refused.
func ruledOut(f *failure, depth int) (tag *failure, wrongType bool) {
	switch f.Keyword {
	case "const":
		if len(f.Path) <= depth+1 {
			return f, false
		}
	case "type":
		return nil, len(f.Path) == depth
	case "":
		for _, cause := range f.Causes {
			below, wrong := ruledOut(cause, depth)
			if below != nil {
				return below, false
			}
			wrongType = wrongType || wrong
		}
	}
	return nil, wrongType
}

// flattenTags returns one issue with all constants that a value could have had,
// if they are all for the same member, and nil otherwise.
func flattenTags(tags []*failure) []Issue {
	var want []any
	for _, tag := range tags {
		if !slices.Equal(tag.Path, tags[0].Path) {
			return nil
		}
		want = append(want, tag.Want)
	}
	expected, got := wording.OneOf(want), rawValue(tags[0].Got)
	return []Issue{{Path: wording.Pointer(steps(tags[0].Path)), Rule: "const", Expected: expected, Got: got, Message: wording.MustBe(expected, got)}}
}

// rawFormats describes the formats that are better understood by an example.
var rawFormats = map[string]string{
	"date":      "a date such as 2026-01-31",
	"date-time": "a date and time with an offset, such as 2026-01-31T09:30:00Z",
	"email":     "an email address such as ann@example.com",
	"int64":     "an integer that fits 64 bits",
	"uint64":    "an integer of at least 0 that fits 64 bits",
}

// rawWords returns what a keyword demands, and what the value was if that is
// short. got is "" if it is not worth quoting.
func rawWords(f *failure) (expected, got string) {
	switch f.Keyword {
	case "type":
		return rawTypes(f.Want.([]string)), rawKind(f.Got.(string))
	case "enum":
		return wording.OneOf(f.Want.([]any)), rawValue(f.Got)
	case "const":
		return wording.OneOf([]any{f.Want}), rawValue(f.Got)
	case "format":
		if words := rawFormats[f.Want.(string)]; words != "" {
			return words, rawValue(f.Got)
		}
		return "text in the format " + f.Want.(string), rawValue(f.Got)
	case "pattern":
		if f.Want == regex.Base64 {
			return "base64 text", rawValue(f.Got)
		}
		return "text that matches the pattern " + f.Want.(string), rawValue(f.Got)
	case "minimum", "exclusiveMinimum":
		if f.Open || f.Keyword != "minimum" {
			return "greater than " + decimal(f.Want), decimal(f.Got)
		}
		return "at least " + decimal(f.Want), decimal(f.Got)
	case "maximum", "exclusiveMaximum":
		if f.Open || f.Keyword != "maximum" {
			return "less than " + decimal(f.Want), decimal(f.Got)
		}
		return "at most " + decimal(f.Want), decimal(f.Got)
	case "multipleOf":
		return "a multiple of " + decimal(f.Want), decimal(f.Got)
	case "minLength":
		return "at least " + wording.CharacterWords.Quantity(f.Want.(int)) + " long", wording.CharacterWords.Quantity(f.Got.(int))
	case "maxLength":
		return "at most " + wording.CharacterWords.Quantity(f.Want.(int)) + " long", wording.CharacterWords.Quantity(f.Got.(int))
	case "minItems":
		return "an array of at least " + wording.ItemWords.Quantity(f.Want.(int)), wording.ItemWords.Quantity(f.Got.(int))
	case "maxItems":
		return "an array of at most " + wording.ItemWords.Quantity(f.Want.(int)), wording.ItemWords.Quantity(f.Got.(int))
	case "minProperties":
		return "an object with at least " + wording.MemberWords.Quantity(f.Want.(int)), wording.MemberWords.Quantity(f.Got.(int))
	case "maxProperties":
		return "an object with at most " + wording.MemberWords.Quantity(f.Want.(int)), wording.MemberWords.Quantity(f.Got.(int))
	case "uniqueItems":
		pair := f.Want.([2]int)
		return fmt.Sprintf("an array without duplicates; items %d and %d are equal", pair[0], pair[1]), ""
	case "contains":
		return "an array with at least " + wording.ItemWords.Quantity(f.Want.(int)) + " that fit the schema in contains", wording.ItemWords.Quantity(f.Got.(int))
	case "maxContains":
		return "an array with at most " + wording.ItemWords.Quantity(f.Want.(int)) + " that fit the schema in contains", wording.ItemWords.Quantity(f.Got.(int))
	case "schema":
		return f.Want.(string), ""
	case "false":
		return "left out", ""
	case "anyOf":
		return "valid by one of the schemas in anyOf", ""
	case "oneOf":
		return "valid by exactly one of the schemas in oneOf", ""
	case "not":
		return "different: the schema in not refuses it", ""
	}
	return "", ""
}

// rawTypes returns the names of types as a phrase, with null last: "a string or
// null".
func rawTypes(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		if words[i] = wording.TypeNouns[name]; words[i] == "" {
			words[i] = name // null
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { // null last
		return strings.Compare(strings.Repeat("x", strings.Count(a, "null")), strings.Repeat("x", strings.Count(b, "null")))
	})
	return strings.Join(words, " or ")
}

// rawKind returns the name of a type with an article.
func rawKind(name string) string {
	if name == "boolean" {
		return "a boolean"
	}
	if noun := wording.TypeNouns[name]; noun != "" {
		return noun
	}
	return name
}

// rawValue returns a value as an issue quotes it. Arrays and objects are only
// named.
func rawValue(v any) string {
	switch v.(type) {
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return wording.Got(wording.AppendJSON(nil, v), false)
}

// decimal returns a number of a document or schema in decimal. Such numbers
// have a bounded exponent, so the digits end.
func decimal(v any) string {
	x := v.(*big.Rat)
	digits, _ := x.FloatPrec()
	return wording.Cut(x.FloatString(digits))
}
