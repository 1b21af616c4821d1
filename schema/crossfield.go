package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// crossRule compares a member with another one: of the same struct, or on a
// path from the root for the tags that end in csfield. JSON Schema cannot
// express that, so only the decoder enforces the rule and the description of
// the member states it.
type crossRule struct {
	// field is the index of the member that has the rule.
	field int
	// other is the path of indexes to the other member: one index in the same
	// struct, or several from the root if root is set.
	other []int
	root  bool
	// tag is the rule as written.
	tag string
	// op is the comparison: "eq", "ne", "gt", "gte", "lt", "lte", "contains",
	// "excludes" or "postcode".
	op string
	// validator decides about postal codes; it is set for "postcode" only.
	validator Validator
	// want is a format for what the rule demands, such as "greater than %s".
	// name is the other member as issues and descriptions call it.
	want string
	name string
}

// crossWords has the format for each operation, for the sorts of values that
// need their own words. comparesNothing has the words for all other sorts.
var crossWords = map[comparison]map[string]string{
	comparesNothing: {
		"eq": "the same as %s", "ne": "different from %s", "gt": "greater than %s", "gte": "greater than or equal to %s",
		"lt": "less than %s", "lte": "less than or equal to %s", "contains": "text that contains the value of %s",
		"excludes": "text that does not contain the value of %s", "postcode": "a postal code for the country in %s",
	},
	comparesText: {
		"gt": "text that sorts after %s", "gte": "the same as %s, or text that sorts after it",
		"lt": "text that sorts before %s", "lte": "the same as %s, or text that sorts before it",
	},
	comparesTime:     {"gt": "after %s", "gte": "the same as %s or later", "lt": "before %s", "lte": "the same as %s or earlier"},
	comparesDuration: {"gt": "longer than %s", "gte": "at least as long as %s", "lt": "shorter than %s", "lte": "no longer than %s"},
}

// words returns the format for what the rule demands of a value of n.
func (k *crossRule) words(n *node) string {
	kind := comparisonKind(n)
	if kind >= comparesTime {
		kind = comparesTime
	}
	if text, ok := crossWords[kind][k.op]; ok {
		return text
	}
	return crossWords[comparesNothing][k.op]
}

// compileCross compiles one of the tags eqfield … postcode_iso3166_alpha2_field
// on field i of sh. A path from the root is resolved after the whole type has
// been compiled, because the struct with the rule may come before the one that
// the path leads to.
func compileCross(c *compiler, sh *shape, i int, r tags.Rule) {
	k := crossRule{field: i, tag: r.Written, root: strings.HasSuffix(r.Name, "csfield")}
	name := strings.TrimSpace(r.Param)
	switch r.Name {
	case "fieldcontains", "fieldexcludes":
		k.op = strings.TrimPrefix(r.Name, "field")
	case "postcode_iso3166_alpha2_field":
		if c.opts.Validator == nil {
			p := rules.Unasked(r)
			c.report(p.Tag, p.Msg, p.Fix)
			return
		}
		k.op, k.validator = "postcode", c.opts.Validator
	default:
		k.op = strings.TrimSuffix(strings.TrimSuffix(r.Name, "csfield"), "field")
	}
	if name == "" {
		return // the tag parser has reported it
	}
	if k.root {
		where := c.where
		c.later = append(c.later, func() {
			c.where = where
			compileRootRule(c, sh, k, r, name)
		})
		return
	}
	at, ok := findSibling(c, sh, i, r, name)
	if !ok || !canCompare(c, sh.fields[i].node, sh.fields[at].node, k, r) {
		return
	}
	k.other = []int{at}
	addCross(c, sh, k, sh.fields[at].name)
}

// addCross adds a rule to a struct, and the sentence about it to the member
// that has the rule.
func addCross(c *compiler, sh *shape, k crossRule, name string) {
	f := &sh.fields[k.field]
	k.want, k.name = k.words(f.node), name
	f.when = append(f.when, "Must be "+fmt.Sprintf(k.want, name)+".")
	sh.cross = append(sh.cross, k)
}

// compileRootRule resolves a path of member names from the root. Each struct on
// the path becomes tracked: the decoder then keeps the marks of its members
// until the end of the document. It runs from compiler.later.
func compileRootRule(c *compiler, sh *shape, k crossRule, r tags.Rule, path string) {
	at := c.top
	var names []string
	var last *node
	for _, name := range strings.Split(path, ".") {
		if at == nil {
			c.report(`validate:"`+r.Written+`"`, fmt.Sprintf("%q goes beyond a field that is no struct", path), "")
			return
		}
		i, ok := findSibling(c, at, -1, r, name)
		if !ok {
			return
		}
		at.tracked = true
		k.other = append(k.other, i)
		names = append(names, at.fields[i].name)
		last = at.fields[i].node
		at = last.object
	}
	if canCompare(c, sh.fields[k.field].node, last, k, r) {
		addCross(c, sh, k, strings.Join(names, "."))
	}
}

// canCompare reports whether a rule can compare two members and means what it
// seems to mean. It reports a problem otherwise. In go-playground gtfield on
// strings compares their lengths, which is surprising, so that is rejected with
// the tag to use instead.
func canCompare(c *compiler, a, b *node, k crossRule, r tags.Rule) bool {
	if a.kind == nodeInvalid || b.kind == nodeInvalid {
		return false
	}
	tag := `validate:"` + r.Written + `"`
	text := a.typ.Kind() == reflect.String && b.typ.Kind() == reflect.String
	switch k.op {
	case "contains", "excludes", "postcode":
		if !text {
			c.report(tag, r.Name+" compares strings", "")
		}
		return text
	}
	if comparisonKind(a) == comparesNothing || comparisonKind(a) != comparisonKind(b) {
		c.report(tag, fmt.Sprintf("%s and %s cannot be compared", a.typ, b.typ), "use two strings, numbers of one kind, times or durations")
		return false
	}
	ordered := k.op != "eq" && k.op != "ne"
	switch {
	case ordered && a.typ.Kind() == reflect.Bool:
		c.report(tag, "booleans have no order", "use eqfield or nefield")
		return false
	case ordered && text && !k.root:
		c.report(tag, r.Name+" on strings compares their lengths", "use "+strings.TrimSuffix(r.Name, "field")+"csfield to compare the text")
		return false
	}
	return true
}

// comparison is a sort of values that can be compared with each other. Integers
// are not compared with floats, because the tag does not say which of the two
// would be rounded.
type comparison int

// The sorts. Those from comparesTime on have words such as "after" and
// "before", and none compares with another: a date and a point in time differ
// in whether they have a zone.
const (
	comparesNothing comparison = iota
	comparesText
	comparesInt
	comparesUint
	comparesFloat
	comparesBool
	comparesDuration
	comparesTime // and all below: times do not compare with dates
	comparesDate
	comparesTimeOfDay
	comparesNaive
)

// comparisonKind returns the sort of the values of n, or comparesNothing if
// they cannot be compared.
func comparisonKind(n *node) comparison {
	switch n.kind {
	case nodeString:
		return comparesText
	case nodeInt:
		return comparesInt
	case nodeUint:
		return comparesUint
	case nodeFloat:
		return comparesFloat
	case nodeBool:
		return comparesBool
	case nodeTime:
		return comparesTime
	case nodeDuration:
		return comparesDuration
	}
	switch n.typ {
	case reflect.TypeFor[civil.Date]():
		return comparesDate
	case reflect.TypeFor[civil.TimeOfDay]():
		return comparesTimeOfDay
	case reflect.TypeFor[civil.NaiveDateTime]():
		return comparesNaive
	}
	return comparesNothing
}

// holds evaluates the rule on two decoded values of the same sort.
func (k *crossRule) holds(a, b reflect.Value) bool {
	switch k.op {
	case "contains":
		return strings.Contains(a.String(), b.String())
	case "excludes":
		return !strings.Contains(a.String(), b.String())
	case "postcode":
		return postcodeOf(k.validator, a.String(), b.String())
	}
	c := compareValues(a, b)
	switch k.op {
	case "eq":
		return c == 0
	case "ne":
		return c != 0
	case "gt":
		return c > 0
	case "gte":
		return c >= 0
	case "lt":
		return c < 0
	}
	return c <= 0
}

// compareValues returns a negative number, 0 or a positive number as a is less
// than, equal to or greater than b. Both have the same sort. For booleans only
// equality is meaningful.
func compareValues(a, b reflect.Value) int {
	switch a.Kind() {
	case reflect.String:
		return cmp.Compare(a.String(), b.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return cmp.Compare(a.Int(), b.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return cmp.Compare(a.Uint(), b.Uint())
	case reflect.Float32, reflect.Float64:
		return cmp.Compare(a.Float(), b.Float())
	case reflect.Bool:
		if a.Bool() == b.Bool() {
			return 0
		}
		return 1
	}
	switch x := a.Interface().(type) {
	case time.Time:
		return x.Compare(b.Interface().(time.Time))
	case civil.Date:
		return x.Compare(b.Interface().(civil.Date))
	case civil.TimeOfDay:
		return x.Compare(b.Interface().(civil.TimeOfDay))
	case civil.NaiveDateTime:
		return x.Compare(b.Interface().(civil.NaiveDateTime))
	}
	return 0
}

// postcodeOf reports whether code is a postal code of country, an ISO 3166-1
// alpha-2 code. A country whose postal codes are not known has none.
func postcodeOf(v Validator, code, country string) bool {
	_, known := rules.Postcodes()[country]
	return known && rules.Ask(v, "postcode_iso3166_alpha2", country, true)(code)
}

// checkRelations runs the rules of an object that need decoded values.
// Comparisons with siblings run at once; comparisons along a path, and the
// struct rules of users, are put off to the end of the document. p is where the
// struct lies, and marks says what became of its members; it is copied if the
// shape is tracked.
func checkRelations(d *decoder, n *node, sh *shape, p slot, marks []byte) {
	if sh.tracked {
		if d.saved == nil {
			d.saved = map[slot][]byte{}
		}
		d.saved[p] = append([]byte(nil), marks...)
	}
	for i := range sh.cross {
		k := &sh.cross[i]
		if marks[k.field] < markEmpty {
			continue
		}
		f := &sh.fields[k.field]
		at := f.find(p)
		d.push(f.name)
		if k.root {
			d.putOff(deferred{n: f.node, cross: k, at: at})
		} else if o := &sh.fields[k.other[0]]; o.comparable(marks[k.other[0]]) {
			k.check(d, f.node, at, o.node, o.find(p), wording.Pointer(d.path))
		}
		d.pop()
	}
	if len(sh.funcs) > 0 {
		d.putOff(deferred{n: n, sh: sh, at: p})
	}
}

// check enforces the rule on two members that are both there. path is where the
// issue is reported. The message quotes both values unless one of them is a
// secret: the value that a secret is compared with tells as much as the secret.
func (k *crossRule) check(d *decoder, n *node, at slot, other *node, otherAt slot, path string) {
	a, b := n.deref(at), other.deref(otherAt)
	if a == (slot{}) || b == (slot{}) {
		return
	}
	v, w := a.value(n.typ), b.value(other.typ)
	if k.holds(v, w) {
		return
	}
	than, got := k.name, ""
	if !d.hides(n) && !d.hides(other) { // what a secret is compared with is as good as the secret
		than, got = than+" ("+other.shown(w)+")", n.shown(v)
	}
	name, _, _ := strings.Cut(k.tag, "=")
	c := rules.Check{Tag: name, Code: wording.RuleCross, Want: fmt.Sprintf(k.want, than)}
	d.failAt(n, &c, got, "", path)
}

// findCycles reports rules of one struct that can never all hold, because each
// of some members would have to be greater than the next one in a circle. No
// document could pass. Rules along paths are not looked at.
func findCycles(c *compiler, sh *shape) {
	greater := map[int][]int{} // member → members that it is not less than
	type pair struct {
		high, low int
		rule      *crossRule
	}
	var strict []pair
	for i := range sh.cross {
		k := &sh.cross[i]
		if k.root {
			continue
		}
		p := pair{k.field, k.other[0], k}
		switch k.op {
		case "lt", "lte":
			p.high, p.low = p.low, p.high
		case "gt", "gte":
		default:
			continue
		}
		greater[p.high] = append(greater[p.high], p.low)
		if k.op == "gt" || k.op == "lt" {
			strict = append(strict, p)
		}
	}
	for _, p := range strict {
		if reaches(greater, p.low, p.high, map[int]bool{}) {
			f := &sh.fields[p.rule.field]
			c.where.field, c.where.json = f.goName, f.name
			c.report(`validate:"`+p.rule.tag+`"`, "this and the other comparisons can never both hold: they go round in a circle", "remove one of them")
			return
		}
	}
}

// reaches reports whether edges lead from one member to another. seen holds the
// members visited so far.
func reaches(edges map[int][]int, from, to int, seen map[int]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for _, next := range edges[from] {
		if !seen[next] && reaches(edges, next, to, seen) {
			return true
		}
	}
	return false
}
