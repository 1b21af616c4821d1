package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// What became of a member. The zero mark is absent.
const (
	markAbsent  byte = iota
	markDropped      // it was there and stood for absent
	markNull         // null, where null is a value
	markBad          // it has issues
	markEmpty        // the empty string
	markSet          // any other value
)

// object reads into a struct.
func (d *decoder) object(n *node, sh *shape, p unsafe.Pointer, k jsonx.Kind) bool {
	if k != jsonx.Object {
		return d.fromText(n, p, k, jsonx.Object)
	}
	start, before := d.s.Pos, len(d.issues)
	more, err := d.s.ObjectStart()
	if err != nil {
		return d.stop(err)
	}
	base := len(d.marks)
	d.marks = append(d.marks, sh.blank()...)
	next := 0
	var others map[string]struct{}
	for more {
		name, err := d.s.Name()
		if err != nil {
			return d.stop(err)
		}
		i := sh.find(name, next)
		switch {
		case i < 0:
			ok := true
			if others, ok = d.other(n, sh, p, string(name), others); !ok {
				return false
			}
		case d.marks[base+i] != markAbsent:
			d.push(sh.fields[i].name)
			d.duplicate()
			if !d.skip() {
				return false
			}
			d.pop()
			d.marks[base+i] = markBad
		default:
			next = i + 1
			mark, ok := d.member(&sh.fields[i], p)
			if !ok {
				return false
			}
			d.marks[base+i] = mark
		}
		if more, err = d.s.ObjectNext(); err != nil {
			return d.stop(err)
		}
	}
	ok := d.complete(n, sh, p, base)
	if ok && sh.verify != nil && len(d.issues) == before {
		d.verify(n, sh.verify, d.s.Buf[start:d.s.Pos])
	}
	d.marks = d.marks[:base]
	return ok
}

// noMarks is where blank marks are taken from.
var noMarks [256]byte

func (sh *shape) blank() []byte {
	if len(sh.fields) <= len(noMarks) {
		return noMarks[:len(sh.fields)]
	}
	return make([]byte, len(sh.fields))
}

// find returns the index of a member, or -1. Members mostly come in the order
// of the schema, so the next one is tried first.
func (sh *shape) find(name []byte, next int) int {
	if next < len(sh.fields) && sh.fields[next].name == string(name) {
		return next
	}
	if i, ok := sh.byName[string(name)]; ok {
		return i
	}
	return -1
}

// member reads one member into its field.
func (d *decoder) member(f *field, p unsafe.Pointer) (mark byte, ok bool) {
	d.push(f.name)
	n := f.node
	k := d.s.Peek()
	if d.coerces(n) && !f.required {
		dropped, err := d.dropEmpty(n, k)
		if err != nil {
			return 0, d.stop(err)
		}
		if dropped {
			d.coerce()
			d.pop()
			return markDropped, true
		}
	}
	before := len(d.issues)
	at := f.at(p)
	if !d.value(n, at) {
		return 0, false
	}
	d.pop()
	switch {
	case len(d.issues) > before:
		if f.omitZero && d.coerces(n) && zeroBrokeRule(d.issues[before:], n, at) {
			d.issues = d.issues[:before]
			d.push(f.name)
			d.coerce()
			d.pop()
			return markDropped, true
		}
		return markBad, true
	case k == jsonx.Null:
		return markNull, true
	case n.kind == nodeString:
		if s := (*string)(n.deref(at)); s != nil && *s == "" {
			return markEmpty, true
		}
	}
	return markSet, true
}

// dropEmpty reads null and "" where they can only mean "not set".
func (d *decoder) dropEmpty(n *node, k jsonx.Kind) (bool, error) {
	switch {
	case k == jsonx.Null && !n.takesNull():
		return true, d.s.Null()
	case k == jsonx.String && n.notEmpty && len(d.s.Buf) > d.s.Pos+1 && d.s.Buf[d.s.Pos+1] == '"' && !n.acceptsEmpty():
		_, err := d.s.Str()
		return true, err
	}
	return false, nil
}

// acceptsEmpty tells whether "" is one of the values that a node lists.
func (n *node) acceptsEmpty() bool {
	return n.kind == nodeString && passesText(n, "") || n.kind == nodeAny || n.kind == nodeRaw || n.kind == nodeOpaque ||
		n.kind == nodeNull && n.elem.acceptsEmpty() || n.kind == nodeBytes
}

// zeroBrokeRule tells whether the issues are those of a zero value that was
// read well.
func zeroBrokeRule(issues []Issue, n *node, at unsafe.Pointer) bool {
	for _, is := range issues {
		switch is.Rule {
		case "type", ruleRange, ruleSyntax, ruleDuplicate:
			return false
		case "format", "pattern":
			if n.kind != nodeString {
				return false
			}
		}
	}
	return reflect.NewAt(n.typ, at).Elem().IsZero()
}

// other handles a member that is no field.
func (d *decoder) other(n *node, sh *shape, p unsafe.Pointer, name string, seen map[string]struct{}) (map[string]struct{}, bool) {
	if seen == nil {
		seen = map[string]struct{}{}
	}
	d.push(name)
	_, dup := seen[name]
	seen[name] = struct{}{}
	switch {
	case dup:
		d.duplicate()
	case sh.skip != "" && name == sh.skip:
	case sh.rest != nil:
		start := d.s.Pos
		if !d.skip() {
			return seen, false
		}
		m := (*map[string]json.RawMessage)(sh.rest.at(p))
		if *m == nil {
			*m = map[string]json.RawMessage{}
		}
		(*m)[name] = append(json.RawMessage(nil), trimSpace(d.s.Buf[start:d.s.Pos])...)
		d.pop()
		return seen, true
	case !sh.open:
		d.unknown(n, sh, name)
	}
	if !d.skip() {
		return seen, false
	}
	d.pop()
	return seen, true
}

// unknown records a member that the object does not have.
func (d *decoder) unknown(n *node, sh *shape, name string) {
	is := Issue{Path: pointer(d.path), Rule: ruleUnknown, Message: "unknown property"}
	names := sh.names
	if sh.skip != "" && !slices.Contains(names, sh.skip) {
		names = append([]string{sh.skip}, names...)
	}
	if len(names) == 0 {
		is.Expected = "no properties"
		is.Hint = "the object has no properties"
	} else {
		is.Expected = "one of " + strings.Join(names, ", ")
		is.Hint = "allowed: " + strings.Join(names, ", ")
		if near := nearest(name, names); near != "" {
			parent := d.path[:len(d.path)-1]
			is.Hint = "did you mean " + pointer(append(slices.Clone(parent), step{near, -1})) + "? Allowed: " + strings.Join(names, ", ")
		}
	}
	d.add(nil, is)
}

// complete looks at an object after its last member: defaults, missing
// members, and the rules among members.
func (d *decoder) complete(n *node, sh *shape, p unsafe.Pointer, base int) bool {
	marks := d.marks[base : base+len(sh.fields)]
	for i := range sh.fields {
		f := &sh.fields[i]
		if marks[i] > markDropped || f.def == nil && !f.required {
			continue
		}
		if f.def != nil {
			d.setDefault(f, p)
			marks = d.marks[base : base+len(sh.fields)]
			continue
		}
		d.push(f.name)
		d.missing(f.node, "")
		d.pop()
	}
	if len(sh.conds) > 0 {
		d.conditionals(sh, p, marks)
	}
	if len(sh.cross) > 0 || len(sh.funcs) > 0 || sh.tracked {
		d.relate(n, sh, p, marks)
	}
	return true
}

// missing records that the member at the path is not there. When says in which
// case it must be.
func (d *decoder) missing(n *node, when string) {
	brief := n.brief()
	text := "is required"
	if when != "" {
		text += " " + when
	}
	d.add(n, Issue{Path: pointer(d.path), Rule: "required", Expected: n.describe(), Message: text + " (" + brief + ")"})
}
