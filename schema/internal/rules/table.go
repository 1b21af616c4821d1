package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// ruleClass is how much of a rule JSON Schema can express.
type ruleClass byte

// The classes.
const (
	classUnknown   ruleClass = iota
	ClassExact               // the schema says exactly what the rule checks
	ClassNecessary           // the schema says part, the description the rest
	classTightened           // stricter than go-playground, which is surprising here
	ClassDescribed           // only the description says it
	ClassRefused             // not to be had: it looks at the server, or checks nothing
	ClassStructure           // shape, presence and other fields: not compiled here
)

// kindSet is a set of Kinds.
type kindSet uint32

// kinds returns a set of kinds.
func kinds(list ...Kind) kindSet {
	var set kindSet
	for _, k := range list {
		set |= 1 << k
	}
	return set
}

// Has reports whether the set contains k.
func (s kindSet) Has(k Kind) bool { return s&(1<<k) != 0 }

// kindNames are the kinds as messages call them.
var kindNames = map[Kind]string{
	KindText: "strings", KindInt: "integers", KindUint: "unsigned integers",
	KindFloat: "floating-point numbers", KindBool: "booleans", KindList: "slices and arrays",
	KindMap: "maps", KindObject: "structs", KindAny: "values of any type", KindTime: "time.Time",
	KindDate: "dates and times of day", KindDuration: "time.Duration", KindBytes: "[]byte",
	KindOpaque: "types with their own text form",
}

// String returns the kinds as messages list them.
func (s kindSet) String() string {
	var names []string
	for k := KindText; k <= KindOpaque; k++ {
		if s.Has(k) {
			names = append(names, kindNames[k])
		}
	}
	return strings.Join(names, ", ")
}

// paramNeed is whether a rule takes a parameter.
type paramNeed byte

// Whether a rule takes a parameter.
const (
	ParamNone paramNeed = iota
	ParamNeeded
	ParamOptional
)

// ruleDef is an entry of the table of rules. Compile has checked the kind and
// the presence of a parameter before it calls compile.
type ruleDef struct {
	Class   ruleClass
	Kinds   kindSet
	Param   paramNeed
	Example string // a parameter, for messages
	compile CompileFunc
}

// kindsNumber are the kinds that number.go handles.
var kindsNumber = kinds(KindInt, KindUint, KindFloat)

// Table returns every tag of go-playground that is a rule on one value. The map
// must not be modified.
var Table = sync.OnceValue(func() map[string]ruleDef {
	table := map[string]ruleDef{}
	addSizeRules(table)
	addTextRules(table)
	addCompareRules(table)
	addSpecialRules(table)
	addServerRules(table)
	return table
})

// IsKnownTag reports whether name belongs to the built-in grammar.
func IsKnownTag(name string) bool { return ClassOf(name) != classUnknown }

// ClassOf returns the class of a built-in tag, or classUnknown, which is 0.
func ClassOf(name string) ruleClass {
	if tags.ShapeTags[name] || tags.IsConditional(name) || tags.CrossTags[name] {
		return ClassStructure
	}
	return Table()[name].Class
}

// Compile turns one rule into checks on a value of t's kind. No checks and no
// problem means that the rule holds for every value of that kind.
//
// A rule of the user comes before a built-in one of the same name. What keeps a
// rule from being used on this kind of value is a problem with a fix, and never
// a rule that passes everything.
func Compile(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	if len(r.Or) > 0 {
		return compileAlternatives(r, t)
	}
	if compile := t.Own[r.Name]; compile != nil {
		return compile(r, t)
	}
	def, ok := Table()[r.Name]
	if !ok {
		return nil, unknownRule(r, t)
	}
	if t.Text && t.Kind == KindOpaque && (strings.HasPrefix(r.Name, "oneof") || strings.HasPrefix(r.Name, "noneof")) {
		t.Kind = KindText // a list of texts
	}
	if !def.Kinds.Has(t.Kind) {
		return nil, wrongKind(r, def, t)
	}
	switch {
	case def.Param == ParamNone && r.HasParam:
		return nil, r.Fault(r.Name+" takes no parameter", "write "+r.Name)
	case def.Param == ParamNeeded && !r.HasParam:
		return nil, r.Fault(r.Name+" needs a parameter", "write "+r.Name+"="+def.Example)
	}
	checks, fault := def.compile(r, t)
	if fault != nil || !asked[r.Name] || r.Name == "postcode_iso3166_alpha2" {
		return checks, fault
	}
	if t.Validator == nil {
		return nil, Unasked(r)
	}
	test, decide := checks[0].Test.(TextTest), Ask(t.Validator, r.Name, r.Param, r.HasParam)
	checks[0].Test = TextTest(func(s string) bool { return test(s) && decide(s) })
	return checks, nil
}

// unknownRule returns the problem of a rule that does not exist, with the most
// similar name. A name without a parameter behind a list of values is often a
// value after a comma.
func unknownRule(r tags.Rule, t Target) *tags.Problem {
	if ClassOf(r.Name) == ClassStructure {
		return r.Fault(r.Name+" cannot stand here", "use it on a field of a struct")
	}
	fix := "register it as a schema.Rule"
	if of := ofKeyword(r.Name); of != "" {
		fix = of
	} else if near := nearestRule(r.Name, t); near != "" {
		fix = "did you mean " + near + "?"
	} else if !r.HasParam {
		fix += "; if it is a value of the list before it, separate values with spaces"
	}
	return r.Fault(fmt.Sprintf("unknown rule %q", r.Name), fix)
}

// ofKeyword returns what to write for the name of a keyword of JSON Schema; "" if name is
// not one.
func ofKeyword(name string) string {
	rule := ""
	switch name {
	case "minimum", "minLength", "minItems", "minProperties":
		rule = "min"
	case "maximum", "maxLength", "maxItems", "maxProperties":
		rule = "max"
	case "exclusiveMinimum":
		rule = "gt"
	case "exclusiveMaximum":
		rule = "lt"
	case "enum":
		rule = "oneof"
	case "uniqueItems":
		rule = "unique"
	case "pattern", "format", "multipleOf", "default", "title", "description", "example":
		return "write " + name + " in the tag jsonschema"
	default:
		return ""
	}
	return "write " + rule + ", or " + name + " in the tag jsonschema"
}

// wrongKind returns the problem of a rule on a kind of value that it does not
// apply to, with what it applies to, or with the rule that was probably meant.
func wrongKind(r tags.Rule, def ruleDef, t Target) *tags.Problem {
	typ := "this type"
	if t.Type != nil {
		typ = t.Type.String()
	}
	msg := fmt.Sprintf("%s does not apply to %s", r.Name, typ)
	fix := "use it on " + def.Kinds.String()
	switch {
	case def.Kinds == 0:
		return r.Fault(r.Name+" cannot be used", "remove it")
	case t.Kind == KindAny:
		fix = "give the field a concrete type, or put the rule on a schema.Rule"
	case r.Name == "port" && t.Kind == KindText:
		fix = "use an integer field, or hostname_port for host and port"
	case strings.HasPrefix(r.Name, "oneof") && t.Kind == KindFloat:
		fix = "use a string or an integer field"
	}
	return r.Fault(msg, fix)
}

// nearestRule returns the known name that is most similar to a mistyped one, or
// "".
func nearestRule(name string, t Target) string {
	var names []string
	for n := range Table() {
		names = append(names, n)
	}
	for n := range tags.ShapeTags {
		names = append(names, n)
	}
	for n := range tags.ConditionalTags {
		names = append(names, n)
	}
	for n := range tags.CrossTags {
		names = append(names, n)
	}
	for n := range t.Own {
		names = append(names, n)
	}
	slices.Sort(names) // so that ties have one winner
	limit := 2
	switch n := len(name); {
	case n < 3:
		return "" // everything is near to so short a name
	case n < 5:
		limit = 1
	}
	best, bestDistance := "", limit+1
	for _, n := range names {
		if d := wording.EditDistance(strings.ToLower(name), strings.ToLower(n)); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

// typeIs reports whether t is of exactly the Go type T.
func typeIs[T any](t Target) bool { return t.Type == reflect.TypeFor[T]() }
