package raw

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/schema/internal/wording"
)

// A validation tries at most leastSteps schemas, and stepsPerValue more for each
// value of the document. Without that bound, alternatives within alternatives
// could take time that grows exponentially.
const (
	leastSteps    = 10_000
	stepsPerValue = 200
)

// maxNested bounds how many schemas are tried on one and the same value within
// each other. A schema that refers to itself would not end.
const maxNested = 512

// node is a compiled schema: its keywords in the form in which a validation
// uses them. compile sets all fields; they do not change afterwards, so nodes
// are shared by concurrent validations. A keyword that the schema does not have
// is nil, 0 or empty, and checks nothing.
type node struct {
	at       string // JSON Pointer from the document
	resource *resource
	tracks   bool  // whether some schema asks what others have evaluated
	never    bool  // the schema false
	meta     draft // the meta-schema of a draft, if it is not 0

	// refs are $ref and $dynamicRef. In 2020-12 a schema can have both, next to other keywords.
	refs []reference

	// types is the set of permitted types, 0 for all. hasEnum and hasConst are
	// needed because an empty enum and a const of null are meaningful.
	types     uint8
	typeNames []string
	enum      []any
	texts     map[string]bool // those of enum, if there are many
	others    []any           // that are not in texts
	hasEnum   bool
	constant  any
	hasConst  bool

	// Keywords for numbers and strings. bounds holds minimum and the like,
	// sizes minLength, minItems and the like. format is nil for an unknown
	// format.
	multipleOf *big.Rat
	bounds     []*bound
	sizes      []size
	pattern    *expression
	formatName string
	format     func(string) bool
	integers   func(json.Number) bool

	// Keywords for arrays, named as in 2020-12: prefix checks the first items
	// by position, and items the ones behind them.
	prefix                   []*node
	items                    *node
	contains                 *node
	minContains, maxContains *int
	unique                   bool

	// Keywords for objects. needs is dependentRequired and dependents is
	// dependentSchemas; both include dependencies of draft 7.
	properties    map[string]*node
	patterns      []patterned
	additional    *node
	propertyNames *node
	required      []string
	needs         map[string][]string
	dependents    map[string]*node

	// Keywords that combine schemas for the same value. condition is the
	// keyword if.
	allOf, anyOf, oneOf        []*node
	not                        *node
	condition, then, otherwise *node

	unevaluatedItems, unevaluatedProperties *node

	fallback any // the keyword default, for a Fitter
}

type (
	// reference is a reference to another schema. A dynamic one is resolved for
	// each validation; see target.
	reference struct {
		to      *node
		dynamic bool   // looked up in the resources that led here, the outermost first
		name    string // of the dynamic anchor
	}
	// patterned is one member of patternProperties.
	patterned struct {
		name *expression
		node *node
	}
	// bound is a limit on a number, with the keyword that says how it is meant.
	bound struct {
		limit   *big.Rat
		keyword string
		open    bool // the description says that limit is not a value itself
	}
	// size is a limit on the number of characters, items or members.
	size struct {
		keyword string
		limit   int
	}
)

// evaluated is which members and items of a value have been evaluated by some
// schema, for unevaluatedProperties and unevaluatedItems. It is filled only if
// node.tracks is set, and only by schemas that the value is valid by.
type evaluated struct {
	allProps, allItems bool
	props              map[string]bool
	prefix             int // number of items from the first on
	items              map[int]bool
}

// prop records a member, and item an item.
func (e *evaluated) prop(name string) {
	if e.props == nil {
		e.props = map[string]bool{}
	}
	e.props[name] = true
}

func (e *evaluated) item(i int) {
	if e.items == nil {
		e.items = map[int]bool{}
	}
	e.items[i] = true
}

// add records everything that o has recorded.
func (e *evaluated) add(o *evaluated) {
	e.allProps = e.allProps || o.allProps
	e.allItems = e.allItems || o.allItems
	e.prefix = max(e.prefix, o.prefix)
	for name := range o.props {
		e.prop(name)
	}
	for i := range o.items {
		e.item(i)
	}
}

// validation is the check of one document. It is used by one goroutine.
type validation struct {
	path   []string
	scope  []*resource // that led to the schema at hand
	steps  int         // that are left
	nested int         // schemas on the value at hand, within each other
	hints  int         // of unknown members so far

	// endless is why the validation was given up, or "". Once it is set, every
	// check fails and the result is discarded.
	endless string // why the check was given up, "" if it was not
}

// validate checks a document and returns nil if it is valid. A validation that
// was given up makes the document invalid, whatever the failures say: below
// "not" a failure would count as success.
func (s *Schema) validate(doc any) *failure {
	v := validation{steps: leastSteps + stepsPerValue*values(doc)}
	f := v.check(s.root, doc, &evaluated{})
	if v.endless != "" { // whatever came of it: below a not, giving up would make valid
		return &failure{Keyword: "schema", Want: v.endless}
	}
	return f
}

// values returns the number of values in a document, itself included.
func values(doc any) int {
	n := 1
	switch doc := doc.(type) {
	case []any:
		for _, item := range doc {
			n += values(item)
		}
	case map[string]any:
		for _, member := range doc {
			n += values(member)
		}
	}
	return n
}

// newBound returns a bound of a schema with a description. Servers say in words what hosts
// refuse as exclusiveMinimum or exclusiveMaximum.
func newBound(keyword string, limit *big.Rat, description any) *bound {
	b := &bound{limit: limit, keyword: keyword}
	text, _ := description.(string)
	for keyword, words := range map[string]string{"minimum": "greater than ", "maximum": "less than "} {
		_, rest, found := strings.Cut(text, words+decimal(limit))
		rest = strings.TrimPrefix(rest, ".")
		b.open = b.open || found && keyword == b.keyword && (rest == "" || rest[0] < '0' || rest[0] > '9')
	}
	return b
}

// fail returns a failure at the current value.
func (v *validation) fail(keyword string, want, got any) *failure {
	return &failure{Path: slices.Clone(v.path), Keyword: keyword, Want: want, Got: got}
}

// below checks a member or an item of the current value. What the schema
// evaluates of it does not count for the value around it.
func (v *validation) below(n *node, name string, value any) *failure {
	nested := v.nested
	v.path, v.nested = append(v.path, name), 0
	f := v.check(n, value, &evaluated{})
	v.path, v.nested = v.path[:len(v.path)-1], nested
	return f
}

// check checks a value by a schema. If the value is valid, what the schema has
// evaluated of it is added to seen.
func (v *validation) check(n *node, value any, seen *evaluated) *failure {
	v.steps--
	v.nested++
	defer func() { v.nested-- }()
	switch {
	case v.endless != "":
	case v.steps < 0:
		v.endless = "simpler: its schema has too many alternatives within each other"
	case v.nested > maxNested:
		v.endless = "checked by another schema: this one refers to itself without end"
	}
	if v.endless != "" {
		return v.fail("schema", v.endless, nil)
	}
	if n.never {
		return v.fail("false", nil, nil)
	}
	if n.meta != 0 {
		return v.metaSchema(n.meta, value)
	}
	if len(v.scope) == 0 || v.scope[len(v.scope)-1] != n.resource {
		v.scope = append(v.scope, n.resource)
		defer func() { v.scope = v.scope[:len(v.scope)-1] }()
	}
	var own evaluated
	var failures []*failure
	note := func(f *failure) {
		if f != nil {
			failures = append(failures, f)
		}
	}
	for _, ref := range n.refs {
		note(v.check(v.target(ref), value, &own))
	}
	typed := v.types(n, value)
	note(typed)
	note(v.constants(n, value))
	if typed == nil { // else what follows would say the same again
		switch value := value.(type) {
		case json.Number:
			v.number(n, value, note)
		case string:
			v.text(n, value, note)
		case []any:
			v.array(n, value, &own, note)
		case map[string]any:
			v.object(n, value, &own, note)
		}
	}
	v.combined(n, value, &own, note)
	if len(failures) == 0 && n.tracks {
		v.unevaluated(n, value, &own, note)
	}
	switch {
	case len(failures) > 1:
		return &failure{Path: slices.Clone(v.path), Causes: failures}
	case len(failures) == 1:
		return failures[0]
	case n.tracks:
		seen.add(&own)
	}
	return nil
}

// target returns the schema that a reference means. A dynamic one is looked up
// in the resources on the way to here, the outermost first, as 2020-12 section
// 8.2.3.2 demands.
func (v *validation) target(ref reference) *node {
	if ref.dynamic {
		for _, r := range v.scope {
			if n := r.dynamic[ref.name]; n != nil {
				return n
			}
		}
	}
	return ref.to
}

// metaSchema checks whether the value is itself a schema of a draft. It uses
// the compiler's first pass instead of the text of the meta-schema.
func (v *validation) metaSchema(d draft, value any) *failure {
	c := &compiler{doc: value, resources: map[string]*resource{}, scopes: map[string]*resource{}, indexed: map[string]bool{}}
	if err := c.index(value, "", &resource{uri: base, value: value, draft: d}); err != nil {
		return v.fail("schema", "a JSON Schema; "+err.Error(), nil)
	}
	return nil
}

// types checks the keyword type. A number without a fraction is also an
// integer.
func (v *validation) types(n *node, value any) *failure {
	if n.types == 0 {
		return nil
	}
	bits := typeBit(kindOf(value))
	if number, ok := value.(json.Number); ok && isInteger(number) {
		bits |= bitInteger
	}
	if n.types&bits != 0 {
		return nil
	}
	return v.fail("type", n.typeNames, kindOf(value))
}

// isInteger reports whether a number has no fraction, as 1.0 has none.
func isInteger(n json.Number) bool {
	if writtenAsInteger(n) {
		return true
	}
	r := rational(n)
	return r != nil && r.IsInt()
}

// writtenAsInteger reports whether a number has neither point nor exponent.
func writtenAsInteger(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

// constants checks const and enum.
func (v *validation) constants(n *node, value any) *failure {
	if n.hasConst && !equal(n.constant, value) {
		return v.fail("const", n.constant, value)
	}
	if !n.hasEnum {
		return nil
	}
	if text, ok := value.(string); ok && n.texts[text] {
		return nil
	}
	v.steps -= len(n.others) / fewConstants // a schema may have many long lists of numbers
	if v.steps < 0 || !slices.ContainsFunc(n.others, func(e any) bool { return equal(e, value) }) {
		return v.fail("enum", n.enum, value)
	}
	return nil
}

// sortEnum makes texts be found at once, where there are many.
func (n *node) sortEnum() {
	if n.others = n.enum; len(n.enum) <= fewConstants {
		return
	}
	n.texts, n.others = map[string]bool{}, nil
	for _, one := range n.enum {
		if text, ok := one.(string); ok {
			n.texts[text] = true
		} else {
			n.others = append(n.others, one)
		}
	}
}

// fewConstants are looked through in the time of a step.
const fewConstants = 8

// number checks the keywords for numbers, exactly and without rounding.
func (v *validation) number(n *node, number json.Number, note func(*failure)) {
	if n.integers != nil && !n.integers(number) {
		note(v.fail("format", n.formatName, number))
	}
	if n.multipleOf == nil && len(n.bounds) == 0 {
		return
	}
	x := rational(number)
	if x == nil {
		return
	}
	for _, b := range n.bounds {
		order, ok := x.Cmp(b.limit), false
		switch b.keyword {
		case "minimum":
			ok = order >= 0
		case "maximum":
			ok = order <= 0
		case "exclusiveMinimum":
			ok = order > 0
		case "exclusiveMaximum":
			ok = order < 0
		}
		if !ok {
			f := v.fail(b.keyword, b.limit, x)
			f.Open = b.open
			note(f)
		}
	}
	if n.multipleOf != nil && !new(big.Rat).Quo(x, n.multipleOf).IsInt() {
		note(v.fail("multipleOf", n.multipleOf, x))
	}
}

// size checks the limits of the keywords least and most against a size.
func (v *validation) size(n *node, least, most string, got int, note func(*failure)) {
	for _, s := range n.sizes {
		if s.keyword == least && got < s.limit || s.keyword == most && got > s.limit {
			note(v.fail(s.keyword, s.limit, got))
		}
	}
}

// text checks the keywords for strings.
func (v *validation) text(n *node, text string, note func(*failure)) {
	if len(n.sizes) > 0 {
		v.size(n, "minLength", "maxLength", length(text), note)
	}
	if n.pattern != nil && !n.pattern.MatchString(text) {
		note(v.fail("pattern", n.pattern.String(), text))
	}
	if n.format != nil && !n.format(text) || n.integers != nil && !n.integers(json.Number(text)) {
		note(v.fail("format", n.formatName, text))
	}
}

// array checks the keywords for arrays, unevaluatedItems excepted. Items that
// satisfy contains count as evaluated.
func (v *validation) array(n *node, items []any, own *evaluated, note func(*failure)) {
	v.size(n, "minItems", "maxItems", len(items), note)
	if n.unique {
		if i, j := duplicates(items); j > 0 {
			note(v.fail("uniqueItems", [2]int{i, j}, nil))
		}
	}
	for i, item := range items {
		switch {
		case i < len(n.prefix):
			note(v.below(n.prefix[i], strconv.Itoa(i), item))
		case n.items != nil:
			note(v.below(n.items, strconv.Itoa(i), item))
		}
	}
	own.prefix = max(own.prefix, min(len(n.prefix), len(items)))
	own.allItems = own.allItems || n.items != nil
	if n.contains == nil {
		return
	}
	found := 0
	for i, item := range items {
		if v.below(n.contains, strconv.Itoa(i), item) == nil {
			found++
			own.item(i)
		}
	}
	least := 1
	if n.minContains != nil {
		least = *n.minContains
	}
	switch {
	case found < least:
		note(v.fail("contains", least, found))
	case n.maxContains != nil && found > *n.maxContains:
		note(v.fail("maxContains", *n.maxContains, found))
	}
}

// duplicates returns the indexes of two equal items; j is 0 if there are none.
// It compares only items with the same hash, so that long arrays do not take
// quadratic time.
func duplicates(items []any) (i, j int) {
	seen := make(map[string][]int, len(items))
	for j, item := range items {
		key := hash(item)
		for _, i := range seen[key] {
			if equal(items[i], item) {
				return i, j
			}
		}
		seen[key] = append(seen[key], j)
	}
	return 0, 0
}

// hash returns a key that is the same for equal values and usually different
// for others. It is bounded in length and looks one level deep.
func hash(v any) string {
	switch v := v.(type) {
	case string:
		return "s" + v
	case json.Number:
		if writtenAsInteger(v) && v != "-0" {
			return "n" + string(v)
		}
		if r := rational(v); r != nil {
			return "n" + r.RatString()
		}
	case []any:
		return "a" + strconv.Itoa(len(v))
	case map[string]any:
		key := "o"
		for _, name := range slices.Sorted(maps.Keys(v)) {
			key += strconv.Quote(name)
			if text, ok := v[name].(string); ok {
				key += strconv.Quote(text)
			}
			if len(key) > 256 {
				break
			}
		}
		return key
	}
	return kindOf(v)
}

// object checks the keywords for objects, unevaluatedProperties excepted. All
// unknown members are reported in one failure.
func (v *validation) object(n *node, members map[string]any, own *evaluated, note func(*failure)) {
	v.size(n, "minProperties", "maxProperties", len(members), note)
	v.required(n, members, note)
	if n.properties == nil && n.patterns == nil && n.additional == nil && n.propertyNames == nil && n.dependents == nil {
		return
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if n.propertyNames != nil {
			if f := v.check(n.propertyNames, name, &evaluated{}); f != nil {
				note(&failure{Path: slices.Clone(v.path), Keyword: "propertyNames", Got: name, Causes: []*failure{f}})
			}
		}
		known := false
		if p := n.properties[name]; p != nil {
			known = true
			note(v.below(p, name, members[name]))
		}
		for _, p := range n.patterns {
			if p.name.MatchString(name) {
				known = true
				note(v.below(p.node, name, members[name]))
			}
		}
		switch {
		case known:
			own.prop(name)
		case n.additional != nil && n.additional.never:
			unknown = append(unknown, name)
		case n.additional != nil:
			own.prop(name)
			note(v.below(n.additional, name, members[name]))
		}
		if d := n.dependents[name]; d != nil {
			note(v.check(d, members, own))
		}
	}
	if unknown != nil {
		note(v.unknown(n, "additionalProperties", unknown))
	}
}

// maxHints is the number of unknown members of a document that have a hint, and of
// allowed ones that a hint lists.
const maxHints = 100

// unknown returns the failure for members that n does not allow.
func (v *validation) unknown(n *node, keyword string, names []string) *failure {
	f := v.fail(keyword, nil, nil)
	f.Names = names
	hinted := min(len(names), maxHints-v.hints)
	if hinted <= 0 {
		return f
	}
	v.hints += hinted
	allowed := slices.Sorted(maps.Keys(n.properties))
	more := len(n.patterns) > 0 || keyword != "additionalProperties" || len(allowed) > maxHints
	parent := steps(v.path)
	for _, name := range names[:hinted] {
		f.Hints = append(f.Hints, wording.UnknownHint(parent, name, allowed, more))
	}
	return f
}

// required checks required and dependentRequired. The members that one of them
// misses are reported in one failure.
func (v *validation) required(n *node, members map[string]any, note func(*failure)) {
	missing := func(keyword string, want any, names []string) {
		var gone []string
		for _, name := range names {
			if _, there := members[name]; !there {
				gone = append(gone, name)
			}
		}
		if gone != nil {
			f := v.fail(keyword, want, nil)
			f.Names = gone
			note(f)
		}
	}
	missing("required", nil, n.required)
	for _, name := range slices.Sorted(maps.Keys(n.needs)) {
		if _, there := members[name]; there {
			missing("dependentRequired", name, n.needs[name])
		}
	}
}

// combined checks the keywords that apply schemas to the same value.
func (v *validation) combined(n *node, value any, own *evaluated, note func(*failure)) {
	for _, sub := range n.allOf {
		note(v.check(sub, value, own))
	}
	if n.anyOf != nil {
		note(v.anyOf(n, value, own))
	}
	if n.oneOf != nil {
		note(v.oneOf(n, value, own))
	}
	if n.not != nil && v.check(n.not, value, &evaluated{}) == nil {
		note(v.fail("not", nil, nil))
	}
	if n.condition != nil {
		if v.check(n.condition, value, own) == nil {
			if n.then != nil {
				note(v.check(n.then, value, own))
			}
		} else if n.otherwise != nil {
			note(v.check(n.otherwise, value, own))
		}
	}
}

// anyOf checks the keyword anyOf. If evaluated members are tracked, all
// alternatives have to be tried, because each valid one adds to them.
func (v *validation) anyOf(n *node, value any, own *evaluated) *failure {
	var causes []*failure
	for _, sub := range n.anyOf {
		f := v.check(sub, value, own)
		if f != nil {
			causes = append(causes, f)
		} else if !n.tracks {
			return nil // with unevaluated… each that is valid counts
		}
	}
	if len(causes) < len(n.anyOf) {
		return nil
	}
	f := v.fail("anyOf", nil, nil)
	f.Causes = causes
	return f
}

// oneOf checks the keyword oneOf. Its failure has causes only if no alternative
// is valid; see failure.several.
func (v *validation) oneOf(n *node, value any, own *evaluated) *failure {
	var causes []*failure
	for _, sub := range n.oneOf {
		if f := v.check(sub, value, own); f != nil {
			causes = append(causes, f)
		}
	}
	switch len(n.oneOf) - len(causes) {
	case 1:
		return nil
	case 0:
		f := v.fail("oneOf", nil, nil)
		f.Causes = causes
		return f
	}
	return v.fail("oneOf", nil, nil)
}

// unevaluated checks the members and items that no other schema has evaluated.
// It runs last and only if everything else is valid.
func (v *validation) unevaluated(n *node, value any, own *evaluated, note func(*failure)) {
	if members, ok := value.(map[string]any); ok && n.unevaluatedProperties != nil && !own.allProps {
		var unknown []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			switch {
			case own.props[name]:
			case n.unevaluatedProperties.never:
				unknown = append(unknown, name)
			default:
				note(v.below(n.unevaluatedProperties, name, members[name]))
			}
		}
		if unknown != nil {
			note(v.unknown(n, "unevaluatedProperties", unknown))
		}
		own.allProps = true
	}
	if items, ok := value.([]any); ok && n.unevaluatedItems != nil && !own.allItems {
		for i := own.prefix; i < len(items); i++ {
			if !own.items[i] {
				note(v.below(n.unevaluatedItems, strconv.Itoa(i), items[i]))
			}
		}
		own.allItems = true
	}
}

// equal reports whether two JSON values are equal. Numbers are compared by
// value, so 1 equals 1.0.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		if a == b {
			return true
		}
		if plain(a) && plain(b) {
			return false
		}
		x, y := rational(a), rational(b)
		return x != nil && y != nil && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}
