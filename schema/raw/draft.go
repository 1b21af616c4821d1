package raw

import (
	"slices"
	"strings"
)

// draft is a version of JSON Schema; 0 is not a draft.
type draft int

const (
	draft7 draft = iota + 1
	draft2020
)

// drafts maps the values of $schema, without scheme and trailing "#".
var drafts = map[string]draft{
	"//json-schema.org/draft-07/schema":      draft7,
	"//json-schema.org/draft/2020-12/schema": draft2020,
}

// draftOf returns the draft that a URI names, or 0. Both http and https are
// accepted, since both spellings are in use.
func draftOf(uri string) draft {
	scheme, rest, _ := strings.Cut(uri, ":")
	if scheme != "http" && scheme != "https" {
		return 0
	}
	return drafts[strings.TrimSuffix(rest, "#")]
}

// shape is the form that the value of a keyword must have.
type shape int

const (
	anything       shape = iota
	oneSchema            // a schema
	schemaList           // a non-empty array of schemas
	schemaMap            // an object of schemas
	schemaOrList         // a schema, or an array of schemas
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
	namesMap             // an object of arrays of different strings
	typeNames            // the name of a type, or an array of different ones
	anObject             // an object
	schemaPatterns       // an object of schemas by regular expressions
)

// keyword is a row of the table below: a keyword, the form of its value, and
// the draft that has it, 0 for both.
type keyword struct {
	name  string
	shape shape
	draft draft
}

// keywords is what the drafts say about the form of each keyword. A keyword
// whose form has changed has a row for each form. Keywords that are missing
// here are ignored in schemas, as the drafts demand.
var keywords = []keyword{
	{"$schema", aString, 0}, {"$id", aString, 0}, {"$ref", aString, 0}, {"$anchor", aString, draft2020},
	{"$dynamicRef", aString, draft2020}, {"$dynamicAnchor", aString, draft2020},
	{"$comment", aString, 0}, {"title", aString, 0}, {"description", aString, 0}, {"default", anything, 0},
	{"$defs", schemaMap, draft2020}, {"definitions", schemaMap, 0},
	{"type", typeNames, 0}, {"enum", aList, 0}, {"const", anything, 0},
	{"multipleOf", aPositive, 0}, {"maximum", aNumber, 0}, {"minimum", aNumber, 0},
	{"exclusiveMaximum", aNumber, 0}, {"exclusiveMinimum", aNumber, 0},
	{"maxLength", aCount, 0}, {"minLength", aCount, 0}, {"pattern", aPattern, 0}, {"format", aString, 0},
	{"items", schemaOrList, draft7}, {"items", oneSchema, draft2020}, {"prefixItems", schemaList, draft2020},
	{"additionalItems", oneSchema, draft7}, {"contains", oneSchema, 0},
	{"minContains", aCount, draft2020}, {"maxContains", aCount, draft2020},
	{"maxItems", aCount, 0}, {"minItems", aCount, 0}, {"uniqueItems", aBoolean, 0},
	{"properties", schemaMap, 0}, {"patternProperties", schemaPatterns, 0},
	{"additionalProperties", oneSchema, 0}, {"propertyNames", oneSchema, 0},
	{"maxProperties", aCount, 0}, {"minProperties", aCount, 0}, {"required", nameList, 0}, {"dependencies", dependencies, 0},
	{"dependentRequired", namesMap, draft2020}, {"dependentSchemas", schemaMap, draft2020},
	{"allOf", schemaList, 0}, {"anyOf", schemaList, 0}, {"oneOf", schemaList, 0}, {"not", oneSchema, 0},
	{"if", oneSchema, 0}, {"then", oneSchema, 0}, {"else", oneSchema, 0},
	{"unevaluatedItems", oneSchema, draft2020}, {"unevaluatedProperties", oneSchema, draft2020},
	{"contentSchema", oneSchema, draft2020}, {"contentEncoding", aString, 0}, {"contentMediaType", aString, 0},
	{"examples", aList, 0}, {"$vocabulary", anObject, draft2020},
	{"readOnly", aBoolean, 0}, {"writeOnly", aBoolean, 0}, {"deprecated", aBoolean, draft2020},
}

// shapeOf returns the form that the draft demands of a keyword; ok is false if
// the draft does not have the keyword.
func (d draft) shapeOf(name string) (shape, bool) {
	i := slices.IndexFunc(keywords, func(k keyword) bool { return k.name == name && (k.draft == 0 || k.draft == d) })
	if i < 0 {
		return anything, false
	}
	return keywords[i].shape, true
}
