package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// crossRule compares a member with another one, of the same struct or, for the
// cs tags, on a path from the top.
type crossRule struct {
	field int
	other []int // path of field indexes
	root  bool  // the path starts at the top struct
	tag   string
	op    string // "eq", "gt", …, "contains", "excludes", "postcode"
	want  string // "greater than %s"
	name  string // of the other member
}

// crossWords say what a rule demands, for the sorts of values that have their
// own words; comparesNothing has those for all others. The verb stands for the name of
// the other member.
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

// words returns the format for what the rule demands of n.
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

// cross compiles one of the tags eqfield … postcode_iso3166_alpha2_field.
func (c *compiler) cross(sh *shape, i int, r rule) {
	k := crossRule{field: i, tag: r.written, root: strings.HasSuffix(r.name, "csfield")}
	name := strings.TrimSpace(r.param)
	switch r.name {
	case "fieldcontains", "fieldexcludes":
		k.op = strings.TrimPrefix(r.name, "field")
	case "postcode_iso3166_alpha2_field":
		k.op = "postcode"
	default:
		k.op = strings.TrimSuffix(strings.TrimSuffix(r.name, "csfield"), "field")
	}
	if name == "" {
		return // the tag parser has reported it
	}
	if k.root {
		where := c.where
		c.later = append(c.later, func() {
			c.where = where
			c.crossRoot(sh, k, r, name)
		})
		return
	}
	at, ok := c.sibling(sh, i, r, name)
	if !ok || !c.comparable(sh.fields[i].node, sh.fields[at].node, k, r) {
		return
	}
	k.other = []int{at}
	c.addCross(sh, k, sh.fields[at].name)
}

func (c *compiler) addCross(sh *shape, k crossRule, name string) {
	f := &sh.fields[k.field]
	k.want, k.name = k.words(f.node), name
	f.when = append(f.when, "Must be "+fmt.Sprintf(k.want, name)+".")
	sh.cross = append(sh.cross, k)
}

// crossRoot resolves a path from the top struct.
func (c *compiler) crossRoot(sh *shape, k crossRule, r rule, path string) {
	at := c.top
	var names []string
	var last *node
	for _, name := range strings.Split(path, ".") {
		if at == nil {
			c.report(`validate:"`+r.written+`"`, fmt.Sprintf("%q goes beyond a field that is no struct", path), "")
			return
		}
		i, ok := c.sibling(at, -1, r, name)
		if !ok {
			return
		}
		at.tracked = true
		k.other = append(k.other, i)
		names = append(names, at.fields[i].name)
		last = at.fields[i].node
		at = last.object
	}
	if c.comparable(sh.fields[k.field].node, last, k, r) {
		c.addCross(sh, k, strings.Join(names, "."))
	}
}

// comparable checks that a rule can compare two members, and means what it
// seems to.
func (c *compiler) comparable(a, b *node, k crossRule, r rule) bool {
	if a.kind == nodeInvalid || b.kind == nodeInvalid {
		return false
	}
	tag := `validate:"` + r.written + `"`
	text := a.typ.Kind() == reflect.String && b.typ.Kind() == reflect.String
	switch k.op {
	case "contains", "excludes", "postcode":
		if !text {
			c.report(tag, r.name+" compares strings", "")
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
		c.report(tag, r.name+" on strings compares their lengths", "use "+strings.TrimSuffix(r.name, "field")+"csfield to compare the text")
		return false
	}
	return true
}

// comparison is a sort of values that can be compared with each other.
type comparison int

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
	case reflect.TypeFor[Date]():
		return comparesDate
	case reflect.TypeFor[TimeOfDay]():
		return comparesTimeOfDay
	case reflect.TypeFor[NaiveDateTime]():
		return comparesNaive
	}
	return comparesNothing
}

// holds evaluates the rule on two values.
func (k *crossRule) holds(a, b reflect.Value) bool {
	switch k.op {
	case "contains":
		return strings.Contains(a.String(), b.String())
	case "excludes":
		return !strings.Contains(a.String(), b.String())
	case "postcode":
		return postcodeOf(a.String(), b.String())
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
	case Date:
		return x.Compare(b.Interface().(Date))
	case TimeOfDay:
		return x.Compare(b.Interface().(TimeOfDay))
	case NaiveDateTime:
		return x.Compare(b.Interface().(NaiveDateTime))
	}
	return 0
}

func postcodeOf(code, country string) bool {
	_, known := postcodes[country]
	return known && playground(playgroundTag("postcode_iso3166_alpha2", country, true))(code)
}

// relate runs, or puts off, the rules of an object that need decoded values.
func (d *decoder) relate(n *node, sh *shape, p unsafe.Pointer, marks []byte) {
	if sh.tracked {
		if d.saved == nil {
			d.saved = map[unsafe.Pointer][]byte{}
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
		} else if o := &sh.fields[k.other[0]]; marks[k.other[0]] >= markEmpty {
			d.compare(f.node, k, at, o.node, o.find(p), pointer(d.path))
		}
		d.pop()
	}
	if len(sh.funcs) > 0 {
		d.putOff(deferred{n: n, sh: sh, at: p})
	}
}

// compare enforces a cross-field rule on two members that are there.
func (d *decoder) compare(n *node, k *crossRule, at unsafe.Pointer, other *node, otherAt unsafe.Pointer, path string) {
	a, b := n.deref(at), other.deref(otherAt)
	if a == nil || b == nil {
		return
	}
	v, w := reflect.NewAt(n.typ, a).Elem(), reflect.NewAt(other.typ, b).Elem()
	if k.holds(v, w) {
		return
	}
	than, got := k.name, ""
	if !d.hides(n) && !d.hides(other) { // what a secret is compared with is as good as the secret
		than, got = than+" ("+other.shown(w)+")", n.shown(v)
	}
	name, _, _ := strings.Cut(k.tag, "=")
	c := check{tag: name, code: ruleCross, want: fmt.Sprintf(k.want, than)}
	d.failAt(n, &c, got, "", path)
}

// shown writes a value that is compared as it looks in JSON.
func (n *node) shown(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return quoted(x.Format(time.RFC3339Nano))
	case time.Duration:
		if n.unit != 0 {
			return strconv.FormatInt(int64(x)/n.unit, 10)
		}
		return quoted(durationText(x, n.iso))
	case fmt.Stringer:
		if n.kind == nodeText {
			return quoted(x.String())
		}
	}
	if v.Kind() == reflect.String {
		return quoted(v.String())
	}
	return string(appendAny(nil, plainValue(v)))
}

// compareRoot enforces a rule whose other side is on a path from the top.
func (d *decoder) compareRoot(r *deferred, dst unsafe.Pointer) {
	root := d.plan.root
	at, sh := root.deref(dst), root.object
	for i, index := range r.cross.other {
		marks := d.saved[at]
		if at == nil || len(marks) <= index || marks[index] < markEmpty {
			return
		}
		f := &sh.fields[index]
		at = f.find(at)
		if i == len(r.cross.other)-1 {
			d.compare(r.n, r.cross, r.at, f.node, at, pointer(r.path))
			return
		}
		at, sh = f.node.deref(at), f.node.object
	}
}

// runDeferred runs what had to wait for the whole document. User rules run
// only on a document that is fine otherwise.
func (d *decoder) runDeferred(dst unsafe.Pointer) {
	for i := range d.later {
		if r := &d.later[i]; r.cross != nil {
			d.secret = r.secret
			d.compareRoot(r, dst)
		}
	}
	if len(d.issues) > 0 {
		return
	}
	for i := range d.later {
		r := &d.later[i]
		switch {
		case r.check != nil:
			d.custom(r)
		case r.sh != nil:
			d.structRules(r)
		}
	}
}

// custom runs a user's rule on one value.
func (d *decoder) custom(r *deferred) {
	v := reflect.NewAt(r.n.typ, r.at).Elem()
	err := r.check.custom(d.ctx, v)
	if err == nil {
		return
	}
	is := Issue{Path: pointer(r.path), Rule: r.check.code, Expected: r.check.want, Message: err.Error()}
	d.add(r.n, is)
}
