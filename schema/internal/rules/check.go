// Package rules compiles the rules of a validate tag for a kind of value. Each
// rule becomes a [Check]: a test, the words for what it demands, and the
// keywords of JSON Schema that say the same. All three are made in one place,
// because a schema that says less than the test, or more, would mislead its
// readers.
//
// The names and meanings of the rules are those of go-playground/validator,
// which users know. Its validator is not linked, since it would be a third of a
// small program; [deciders] has its checks again, and tests compare the two.
// Rules that need its registers ask a [Validator] that the user has set.
//
// [Table] lists every rule on one value with the kinds of values it applies to;
// [Compile] looks a rule up there. Files group the rules by what they look at:
// text.go, codes.go, net.go and patterns.go text without a parameter, size.go
// and number.go comparisons, compare.go text with a parameter, time.go times
// and durations, unique.go equal items, special.go the rest. consistency.go
// finds rules of one field that contradict each other.
//
// A rule that cannot be used is a tags.Problem with a fix, never a rule that
// passes everything. The package knows nothing of structs and nodes: presence
// and comparisons with other fields are compiled by package schema.
//
// Tables are built on first use and do not change; tests are safe for
// concurrent use.
package rules

import (
	"context"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// Kind is a group of Go types that rules treat alike.
type Kind byte

// The kinds. A named type is of the kind of its underlying type, unless it has
// a form of its own.
const (
	kindInvalid  Kind = iota
	KindText          // string kinds
	KindInt           // int … int64
	KindUint          // uint … uint64
	KindFloat         // float32, float64
	KindBool          // bool
	KindList          // slices and arrays but []byte
	KindMap           // maps
	KindObject        // structs
	KindAny           // interface types: only kind-free rules
	KindTime          // time.Time
	KindDate          // Date, TimeOfDay, NaiveDateTime
	KindDuration      // time.Duration
	KindBytes         // []byte
	KindOpaque        // types that bring their own schema or text form
)

// Target describes the position that a rule is compiled for.
type Target struct {
	Kind Kind
	Type reflect.Type // pointer-free Go type
	// Own holds the rules of the user, by name. They take precedence over
	// built-in ones.
	Own map[string]CompileFunc
	// Validator decides the rules that only go-playground's validator can
	// decide; nil if there is none.
	Validator Validator
	// ServerState permits rules that look at the server's disk.
	ServerState bool
	// IntegerUnit is the length in nanoseconds of one unit of a Duration that
	// travels as an integer, and 0 for every other value.
	IntegerUnit int64
	Iso         bool // a Duration that travels in ISO 8601 form
	Text        bool // travels as text by methods of its own
}

// CompileFunc turns a rule into checks on the values of a target. No checks and
// no problem means that the rule holds for every value of that kind.
type CompileFunc func(tags.Rule, Target) ([]Check, *tags.Problem)

// Check is one compiled rule: what a value must be, in words and as keywords,
// and the test of it. It is immutable and shared by all documents.
//
// The type of Test is the one among the predicates below that fits the kind of
// the target; the decoder relies on that. Every check that Compile returns has
// one.
type Check struct {
	Tag  string                   // the rule as written, "min=3"
	Code string                   // Issue.Rule: the JSON Schema keyword, or the tag for a residual rule
	Want string                   // Issue.Expected: what a value must be, naming its type: "a UUID"
	Note string                   // sentence for the description, where the schema cannot say it all; "" if it can
	Emit func(*jsonschema.Schema) // adds the keywords; nil if there are none
	Test predicate

	Bound *wording.Bound      // of a rule that limits a value or a length, to be stated with the other end
	Trait bool                // want does not name the type: it says more about the value
	Why   func(string) string // says what is wrong with a text; "" if want says it all
}

// predicate is the test of a check. Its type says what it looks at, and so when
// it runs: a text, a number or a count as soon as it has been read, a decoded
// value when it is complete, and a function of the user when the whole document
// has passed, because that function may be slow or read other data.
type predicate interface{ predicate() }

// The tests, by what they look at.
type (
	TextTest   func(string) bool
	NumberTest func(Number) bool // of a Duration, its nanoseconds
	BoolTest   func(bool) bool
	CountTest  func(int) bool // elements of a list, members of a map, or bytes
	ValueTest  func(reflect.Value) bool
	CustomTest func(context.Context, reflect.Value) error // the error says what is wrong
)

// These methods mark the types that can be the test of a Check.
func (TextTest) predicate() {}

func (NumberTest) predicate() {}

func (BoolTest) predicate() {}

func (CountTest) predicate() {}

func (ValueTest) predicate() {}

func (CustomTest) predicate() {}
