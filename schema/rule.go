package schema

import (
	"context"
	"math/big"
	"reflect"

	"github.com/invopop/jsonschema"
)

// valueKind groups the Go types that rules treat alike.
type valueKind byte

const (
	kindInvalid  valueKind = iota
	kindText               // string kinds
	kindInt                // int … int64
	kindUint               // uint … uint64
	kindFloat              // float32, float64
	kindBool               // bool
	kindList               // slices and arrays but []byte
	kindMap                // maps
	kindObject             // structs
	kindAny                // interface types: only kind-free rules
	kindTime               // time.Time
	kindDate               // Date, TimeOfDay, NaiveDateTime
	kindDuration           // time.Duration
	kindBytes              // []byte
	kindOpaque             // types that bring their own schema or text form
)

// target is the position a rule is compiled for.
type target struct {
	kind valueKind
	typ  reflect.Type // pointer-free Go type
	opts *Options
	// integerUnit is not 0 for a Duration that travels as an integer: the
	// length of its unit in nanoseconds.
	integerUnit int64
	iso         bool // a Duration that travels in ISO 8601 form
}

// rule is one element of a validate tag: a name with its parameter, or
// alternatives joined by '|'.
type rule struct {
	name, param string
	hasParam    bool
	or          []rule // alternatives; name is "" then
	written     string // as the user wrote it, for messages
}

// tagRules is a parsed validate tag: what one field says about itself, and
// below dive about its elements and keys.
type tagRules struct {
	skip         bool   // "-": no rules below
	structOnly   string // structonly or nostructlevel: no rules on the fields of the struct
	required     bool   // required
	omit         string // omitempty, omitnil or omitzero; "" for none
	isDefault    bool
	conditionals []rule // required_if … excluded_without_all, skip_unless
	cross        []rule // eqfield … fieldexcludes, postcode_iso3166_alpha2_field
	own          []rule // everything else, in the order written
	keys         *tagRules
	elem         *tagRules // after dive
}

// check is one compiled rule. Exactly one of the functions is set, the one of
// its target's kind; each reports whether the value passes. A Duration has
// integer, which gets nanoseconds; []byte has count, the number of bytes.
type check struct {
	tag  string                   // the rule as written, "min=3"
	code string                   // Issue.Rule: the JSON Schema keyword, or the tag for a residual rule
	want string                   // Issue.Expected: what a value must be, naming its type: "a UUID"
	note string                   // sentence for the description, where the schema cannot say it all; "" if it can
	emit func(*jsonschema.Schema) // adds the keywords; nil if there are none

	bound  *bound              // of a rule that limits a value or a length, to be told with the other end
	trait  bool                // want does not name the type: it says more about the value
	why    func(string) string // says what is wrong with a text; "" if want says it all
	unique *uniqueRule         // finds the items that are equal, in place of value

	text     func(string) bool
	integer  func(int64) bool
	unsigned func(uint64) bool
	float    func(float64) bool
	decimal  func(*big.Rat) bool // float without rounding, for numbers that a float64 does not hold
	long     bool                // the parameter is such a number
	boolean  func(bool) bool
	count    func(int) bool           // elements of a list, members of a map
	value    func(reflect.Value) bool // any other, on the decoded value

	// custom is a user's rule. It gets the decoded value and runs after the
	// whole document has passed, because it may be slow or read other data;
	// its error text says what is wrong.
	custom func(context.Context, reflect.Value) error
}

// problem is a fault in a tag, found at registration.
type problem struct {
	tag string // the tag with its key: `validate:"min=1.5"`
	msg string // what is wrong
	fix string // what to write instead; "" if there is nothing to suggest
}
