package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ruleClass says how far JSON Schema can say what a rule checks.
type ruleClass byte

const (
	classUnknown   ruleClass = iota
	classExact               // the schema says exactly what the rule checks
	classNecessary           // the schema says part, the description the rest
	classTightened           // stricter than go-playground, which is surprising here
	classDescribed           // only the description says it
	classRefused             // not to be had: it looks at the server, or checks nothing
	classStructure           // shape, presence and other fields: not compiled here
)

// kindSet is a set of valueKinds.
type kindSet uint32

func kinds(list ...valueKind) kindSet {
	var set kindSet
	for _, k := range list {
		set |= 1 << k
	}
	return set
}

func (s kindSet) has(k valueKind) bool { return s&(1<<k) != 0 }

// kindNames are the words for kinds in messages.
var kindNames = map[valueKind]string{
	kindText: "strings", kindInt: "integers", kindUint: "unsigned integers",
	kindFloat: "floating-point numbers", kindBool: "booleans", kindList: "slices and arrays",
	kindMap: "maps", kindObject: "structs", kindAny: "values of any type", kindTime: "time.Time",
	kindDate: "dates and times of day", kindDuration: "time.Duration", kindBytes: "[]byte",
	kindOpaque: "types with their own text form",
}

func (s kindSet) String() string {
	var names []string
	for k := kindText; k <= kindOpaque; k++ {
		if s.has(k) {
			names = append(names, kindNames[k])
		}
	}
	return strings.Join(names, ", ")
}

// paramNeed says whether a rule takes a parameter.
type paramNeed byte

const (
	paramNone paramNeed = iota
	paramNeeded
	paramOptional
)

// ruleDef is one entry of the rule table.
type ruleDef struct {
	class   ruleClass
	kinds   kindSet
	param   paramNeed
	example string // a parameter, for messages
	compile func(rule, target) ([]check, *problem)
}

var kindsNumber = kinds(kindInt, kindUint, kindFloat)

// ruleTable has every tag of go-playground that is a rule on one value.
var ruleTable = func() map[string]ruleDef {
	table := map[string]ruleDef{}
	addSizeRules(table)
	addTextRules(table)
	addCompareRules(table)
	addSpecialRules(table)
	addServerRules(table)
	return table
}()

// isKnownTag reports whether name belongs to the built-in grammar.
func isKnownTag(name string) bool { return classOf(name) != classUnknown }

// classOf tells the class of a built-in tag.
func classOf(name string) ruleClass {
	if shapeTags[name] || isConditional(name) || crossTags[name] {
		return classStructure
	}
	return ruleTable[name].class
}

// fault makes a problem about r.
func (r rule) fault(msg, fix string) *problem {
	p := tagProblem(r.written, msg, fix)
	return &p
}

// compileRule turns one rule into checks on a value of t's kind. No checks
// and no problem means that the rule holds for every value of that kind.
func compileRule(r rule, t target) ([]check, *problem) {
	if len(r.or) > 0 {
		return compileAlternatives(r, t)
	}
	if t.opts != nil {
		for i := range t.opts.Rules {
			if t.opts.Rules[i].name == r.name {
				return t.opts.Rules[i].compile(r, t)
			}
		}
	}
	def, ok := ruleTable[r.name]
	if !ok {
		return nil, unknownRule(r, t)
	}
	if !def.kinds.has(t.kind) {
		return nil, wrongKind(r, def, t)
	}
	switch {
	case def.param == paramNone && r.hasParam:
		return nil, r.fault(r.name+" takes no parameter", "write "+r.name)
	case def.param == paramNeeded && !r.hasParam:
		return nil, r.fault(r.name+" needs a parameter", "write "+r.name+"="+def.example)
	}
	return def.compile(r, t)
}

func unknownRule(r rule, t target) *problem {
	if classOf(r.name) == classStructure {
		return r.fault(r.name+" cannot stand here", "use it on a field of a struct")
	}
	fix := "register it as a schema.Rule"
	if near := nearestRule(r.name, t); near != "" {
		fix = "did you mean " + near + "?"
	} else if !r.hasParam {
		fix += "; if it is a value of the list before it, separate values with spaces"
	}
	return r.fault(fmt.Sprintf("unknown rule %q", r.name), fix)
}

func wrongKind(r rule, def ruleDef, t target) *problem {
	typ := "this type"
	if t.typ != nil {
		typ = t.typ.String()
	}
	msg := fmt.Sprintf("%s does not apply to %s", r.name, typ)
	fix := "use it on " + def.kinds.String()
	switch {
	case def.kinds == 0:
		return r.fault(r.name+" cannot be used", "remove it")
	case t.kind == kindAny:
		fix = "give the field a concrete type, or put the rule on a schema.Rule"
	case r.name == "port" && t.kind == kindText:
		fix = "use an integer field, or hostname_port for host and port"
	case strings.HasPrefix(r.name, "oneof") && t.kind == kindFloat:
		fix = "use a string or an integer field"
	}
	return r.fault(msg, fix)
}

// nearestRule finds the known name closest to a mistyped one.
func nearestRule(name string, t target) string {
	var names []string
	for n := range ruleTable {
		names = append(names, n)
	}
	for n := range shapeTags {
		names = append(names, n)
	}
	for n := range conditionalTags {
		names = append(names, n)
	}
	for n := range crossTags {
		names = append(names, n)
	}
	if t.opts != nil {
		for _, r := range t.opts.Rules {
			names = append(names, r.name)
		}
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
		if d := editDistance(strings.ToLower(name), strings.ToLower(n)); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

// editDistance is the number of bytes to insert, remove or replace to make b
// of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// typeIs reports whether t is of exactly the Go type T.
func typeIs[T any](t target) bool { return t.typ == reflect.TypeFor[T]() }
