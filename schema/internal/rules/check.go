// Package rules compiles the rules of a tag for a kind of value: each becomes a
// check, which has a test, the words for what it asks, and the keywords of JSON
// Schema that say the same. Test and keywords stand in one place, because a schema
// that says less than the test, or more, would mislead whoever reads it.
package rules

import (
	"context"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// Kind groups the Go types that rules treat alike.
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

// Target is the position a rule is compiled for.
type Target struct {
	Kind Kind
	Type reflect.Type // pointer-free Go type
	// own has the rules of the user, by name. They come before built-in ones.
	Own map[string]CompileFunc
	// Validator decides what only go-playground's can; nil if there is none.
	Validator Validator
	// serverState permits rules that look at the server's disk.
	ServerState bool
	// integerUnit is not 0 for a Duration that travels as an integer: the
	// length of its unit in nanoseconds.
	IntegerUnit int64
	Iso         bool // a Duration that travels in ISO 8601 form
}

// CompileFunc turns a rule into checks on a target's values. No checks and no
// problem means that the rule holds for every value of that kind.
type CompileFunc func(tags.Rule, Target) ([]Check, *tags.Problem)

// Check is one compiled rule: what a value must be, in words and as keywords,
// and the test of it.
type Check struct {
	Tag  string                   // the rule as written, "min=3"
	Code string                   // Issue.Rule: the JSON Schema keyword, or the tag for a residual rule
	Want string                   // Issue.Expected: what a value must be, naming its type: "a UUID"
	Note string                   // sentence for the description, where the schema cannot say it all; "" if it can
	Emit func(*jsonschema.Schema) // adds the keywords; nil if there are none
	Test predicate

	Bound *wording.Bound      // of a rule that limits a value or a length, to be told with the other end
	Trait bool                // want does not name the type: it says more about the value
	Why   func(string) string // says what is wrong with a text; "" if want says it all
}

// predicate is the test of a check. Which one it is follows from the kind of the
// target, and says when the decoder has what it looks at: a text, a number or a
// count at once, the decoded value when it is complete, and what a user's rule
// sees when the whole document has passed, because that rule may be slow or read
// other data.
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

func (TextTest) predicate() {}

func (NumberTest) predicate() {}

func (BoolTest) predicate() {}

func (CountTest) predicate() {}

func (ValueTest) predicate() {}

func (CustomTest) predicate() {}
