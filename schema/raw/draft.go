package raw

import (
	"slices"
	"strings"
)

// draft is a version of JSON Schema. Older drafts are smaller, so they can be
// compared; 0 is not a draft.
type draft int

const (
	draft4 draft = iota + 1
	draft6
	draft7
	draft2019
	draft2020
)

// drafts maps the values of $schema, without a trailing "#".
var drafts = map[string]draft{
	"http://json-schema.org/draft-04/schema":       draft4,
	"http://json-schema.org/draft-06/schema":       draft6,
	"http://json-schema.org/draft-07/schema":       draft7,
	"https://json-schema.org/draft/2019-09/schema": draft2019,
	"https://json-schema.org/draft/2020-12/schema": draft2020,
}

// draftOf returns the draft that a URI names, or 0. Both http and https are
// accepted, since both spellings are in use.
func draftOf(uri string) draft {
	uri = strings.TrimSuffix(uri, "#")
	if d := drafts[uri]; d != 0 {
		return d
	}
	if rest, ok := strings.CutPrefix(uri, "https:"); ok {
		return drafts["http:"+rest]
	}
	if rest, ok := strings.CutPrefix(uri, "http:"); ok {
		return drafts["https:"+rest]
	}
	return 0
}

// shape is the form that the value of a keyword must have.
type shape int

const (
	anything       shape = iota
	oneSchema            // a schema
	schemaList           // a non-empty array of schemas
	schemaMap            // an object of schemas
	schemaOrList         // a schema, or an array of schemas
	schemaOrBool         // a schema, or true or false where those are not schemas yet
	dependencies         // an object of schemas and arrays of names
	aString              // text
	aPattern             // a regular expression
	aBoolean             // true or false
	aNumber              // a number
	aPositive            // a number above zero
	aCount               // an integer, zero or more
	aList                // an array
	aFilledList          // an array with something in it
	nameList             // an array of different strings
	filledNames          // the same with something in it
	namesMap             // an object of arrays of different strings
	typeNames            // the name of a type, or an array of different ones
	numberOrBool         // exclusiveMinimum and exclusiveMaximum: a number, or a boolean in draft 4
	anObject             // an object
	schemaPatterns       // an object of schemas by regular expressions
)

// keyword is a row of the table below: a keyword, the form of its value, and
// the drafts that have it. last is 0 if all later drafts have it too.
type keyword struct {
	name        string
	shape       shape
	first, last draft
}

// keywords is what the drafts say about the form of each keyword. A keyword
// whose form has changed has a row for each form. Keywords that are missing
// here are ignored in schemas, as the drafts demand.
var keywords = []keyword{
	{"$schema", aString, draft4, 0}, {"$id", aString, draft6, 0}, {"id", aString, draft4, draft4},
	{"$ref", aString, draft4, 0}, {"$anchor", aString, draft2019, 0},
	{"$dynamicRef", aString, draft2020, 0}, {"$dynamicAnchor", aString, draft2020, 0},
	{"$recursiveRef", aString, draft2019, draft2019}, {"$recursiveAnchor", aBoolean, draft2019, draft2019},
	{"$comment", aString, draft7, 0}, {"title", aString, draft4, 0}, {"description", aString, draft4, 0}, {"default", anything, draft4, 0},
	{"$defs", schemaMap, draft2019, 0}, {"definitions", schemaMap, draft4, 0},
	{"type", typeNames, draft4, 0}, {"enum", aList, draft4, 0}, {"const", anything, draft6, 0},
	{"multipleOf", aPositive, draft4, 0}, {"maximum", aNumber, draft4, 0}, {"minimum", aNumber, draft4, 0},
	{"exclusiveMaximum", numberOrBool, draft4, 0}, {"exclusiveMinimum", numberOrBool, draft4, 0},
	{"maxLength", aCount, draft4, 0}, {"minLength", aCount, draft4, 0}, {"pattern", aPattern, draft4, 0},
	{"format", aString, draft4, 0},
	{"items", schemaOrList, draft4, draft2019}, {"items", oneSchema, draft2020, 0}, {"prefixItems", schemaList, draft2020, 0},
	{"additionalItems", schemaOrBool, draft4, draft2019}, {"contains", oneSchema, draft6, 0},
	{"minContains", aCount, draft2019, 0}, {"maxContains", aCount, draft2019, 0},
	{"maxItems", aCount, draft4, 0}, {"minItems", aCount, draft4, 0}, {"uniqueItems", aBoolean, draft4, 0},
	{"properties", schemaMap, draft4, 0}, {"patternProperties", schemaPatterns, draft4, 0},
	{"additionalProperties", schemaOrBool, draft4, 0}, {"propertyNames", oneSchema, draft6, 0},
	{"maxProperties", aCount, draft4, 0}, {"minProperties", aCount, draft4, 0},
	{"required", filledNames, draft4, draft4}, {"required", nameList, draft6, 0},
	{"dependencies", dependencies, draft4, 0},
	{"dependentRequired", namesMap, draft2019, 0}, {"dependentSchemas", schemaMap, draft2019, 0},
	{"allOf", schemaList, draft4, 0}, {"anyOf", schemaList, draft4, 0}, {"oneOf", schemaList, draft4, 0},
	{"not", oneSchema, draft4, 0}, {"if", oneSchema, draft7, 0}, {"then", oneSchema, draft7, 0}, {"else", oneSchema, draft7, 0},
	{"unevaluatedItems", oneSchema, draft2019, 0}, {"unevaluatedProperties", oneSchema, draft2019, 0},
	{"contentSchema", oneSchema, draft2019, 0}, {"contentEncoding", aString, draft7, 0}, {"contentMediaType", aString, draft7, 0},
	{"examples", aList, draft6, 0}, {"$vocabulary", anObject, draft2019, 0},
	{"readOnly", aBoolean, draft7, 0}, {"writeOnly", aBoolean, draft7, 0}, {"deprecated", aBoolean, draft2019, 0},
}

// shapeOf returns the form that the draft demands of a keyword; ok is false if
// the draft does not have the keyword.
func (d draft) shapeOf(name string) (shape, bool) {
	i := slices.IndexFunc(keywords, func(k keyword) bool {
		return k.name == name && k.first <= d && (k.last == 0 || d <= k.last)
	})
	if i < 0 {
		return anything, false
	}
	return keywords[i].shape, true
}

// idKeyword returns the keyword that gives a schema its URI.
func (d draft) idKeyword() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}
