package schema

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// The limits of a document where Options names none. The number of values
// bounds the memory that one document can make the decoder use, whatever its
// length; a series of measurements has to fit.
const (
	defaultMaxDepth  = 32
	defaultMaxValues = 100_000
)

// decoder reads one document along a plan. It checks every value, stores the
// good ones, and continues after a bad one, so that all issues are reported at
// once. It belongs to one goroutine at a time.
//
// Its methods return false only when the walk cannot continue: the text is not
// JSON, or passes a limit. The reason is among the issues then. If they return
// true, the scanner has read the whole value, good or bad.
//
// A document is walked once. Rules among members wait for the end of their object. Rules
// that look elsewhere, and functions of users, wait for the end of the document. Decoders are pooled; release
// removes everything of the document and keeps the scratch memory.
type decoder struct {
	s    jsonx.Scanner
	plan *Plan
	// ctx is the caller's, for custom rules.
	ctx context.Context
	report
	// marks has the outcome of each member of the open objects.
	marks []byte
	// values counts the values that have been read.
	values int
	// lenient is set if values are coerced. It can change on the way down.
	lenient bool
	// inKey is set while the name of a member is read as a value.
	inKey bool
	// inText is set while JSON that came as a string is read.
	inText bool
	// later holds the checks that wait for the end of the document.
	later []deferred
	// saved holds the marks of tracked structs, by the place of the struct.
	saved map[slot][]byte
	// fault is an error that a struct rule returned and that is not about the
	// document. Decode returns it instead of the issues.
	fault error
}

// decoders keeps scratch memory between documents.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// result returns the error for Decode. The issues leave the decoder with it, so
// that the next document does not overwrite them.
func (d *decoder) result() error {
	if d.fault != nil {
		return d.fault
	}
	if len(d.issues) == 0 {
		return nil
	}
	e := &Error{Issues: d.issues, More: d.more}
	d.issues = nil
	if localize := d.plan.opts.Localize; localize != nil {
		for i := range e.Issues {
			if text := localize(e.Issues[i]); text != "" {
				e.Issues[i].Message = text
			}
		}
	}
	return e
}

// release returns the decoder to the pool, without references to the document
// or to the caller's context.
func (d *decoder) release() {
	d.s.Reset(nil)
	d.plan, d.ctx, d.fault, d.coerced = nil, nil, nil, nil
	clear(d.path[:cap(d.path)])
	clear(d.later)
	d.later = d.later[:0]
	d.saved = nil
	d.issues = d.issues[:0]
	decoders.Put(d)
}

// stop records why the walk ends here, and returns false for the caller to
// return. It is not inlined: the Issue would be in the frame of every function
// that calls it, and the goroutines of net/http would outgrow their stacks.
//
//go:noinline
func (d *decoder) stop(err error) bool {
	d.issues = append(d.issues, Issue(wording.Syntax(err, d.path, d.secret)))
	return false
}

// tooMany records that the document has more values than it may have, and ends
// the walk.
func (d *decoder) tooMany() bool {
	d.issues = append(d.issues, Issue{Path: wording.Pointer(d.path), Rule: wording.RuleSize,
		Expected: fmt.Sprintf("at most %d values in all", d.plan.maxValues),
		Message:  fmt.Sprintf("the document has more than %d values", d.plan.maxValues)})
	return false
}

// coerces reports whether a value of n may come in another form than its own,
// such as a number in a string.
func (d *decoder) coerces(n *node) bool { return d.lenient && !n.strict }

// value reads the value at the scanner and stores it at p, behind as many new
// pointers as the type has. If null is a value of n, pointers stay nil;
// otherwise null is reported as a value of the wrong type.
func (d *decoder) value(n *node, p slot) bool {
	if d.values++; d.values > d.plan.maxValues {
		return d.tooMany()
	}
	k := d.s.Peek()
	if k == jsonx.Null && n.takesNull() {
		return d.null(n, p)
	}
	p = n.allocate(p)
	if !n.special {
		return d.plainValue(n, p, k)
	}
	return d.specialValue(n, p, k)
}

// null reads null where it is a value of n.
func (d *decoder) null(n *node, p slot) bool {
	if err := d.s.Null(); err != nil {
		return d.stop(err)
	}
	if n.kind == nodeNull {
		setNull(n, n.allocate(p), false)
	} else if n.kind == nodeRaw {
		*in[[]byte](n.allocate(p)) = []byte("null")
	}
	return true
}

// putOff keeps a check of the current value for the end of the document. It
// copies what will have changed by then: the path, and whether the value is
// secret.
func (d *decoder) putOff(r deferred) {
	r.path, r.secret, r.key = slices.Clone(d.path), d.secret, d.inKey
	d.later = append(d.later, r)
}

// specialValue reads a value that has checks on its decoded form, or that is
// strict or secret with all below it. Values without any of that, which are
// most, take the short way.
//
// A check of the decoded value runs only if the value was read without an
// issue, because otherwise the value is not the one that the document has.
// Rules about equal items are the exception: they leave out the items with
// issues.
func (d *decoder) specialValue(n *node, p slot, k jsonx.Kind) bool {
	before, start, lenient, secret := len(d.issues), d.s.Pos, d.lenient, d.secret
	d.secret = d.hides(n)
	defer func() { d.secret = secret }()
	if n.strict {
		d.lenient = false
	}
	ok := d.plainValue(n, p, k)
	d.lenient = lenient
	if !ok {
		return false
	}
	raw := d.s.Buf[start:d.s.Pos]
	if n.verify != nil && n.kind != nodeOpaque && len(d.issues) == before {
		d.verify(n, n.verify, raw)
	}
	good := len(d.issues) == before
	v := p.value(n.typ)
	if n.orZero && v.IsZero() {
		return true
	}
	for i := range n.checks {
		c := &n.checks[i]
		switch test := c.Test.(type) {
		case *rules.UniqueRule:
			if !good || !test.Holds(v) {
				distinct(d, n, c, test, v, raw, before)
			}
		case rules.CustomTest:
			if good {
				d.putOff(deferred{n: n, check: c, custom: test, at: p})
			}
		case rules.ValueTest:
			if good && !test(v) {
				d.fail(n, c, wording.Got(raw, false), "")
			}
		}
	}
	return true
}

// verify checks raw text against a schema that the tree does not have, because
// a method of a type brought it along. For a secret only the place is reported:
// the names below it may be secret too. Where values are coerced, fitted is the text as
// that schema means it.
func (d *decoder) verify(n *node, by *verifier, text []byte) (fitted []byte) {
	fitted, fault := by.read(text, d.coerces(n))
	if err, bad := fault.(*Error); bad {
		for _, is := range err.Issues {
			is.Path = wording.Pointer(d.path) + is.Path
			if d.hides(n) { // what is below may have names that must not be shown either
				is.Path, is.Got, is.Hint = wording.Pointer(d.path), "", ""
				is.Message = wording.MustBe(cmp.Or(is.Expected, "as its schema says"), "")
			}
			d.add(n, is)
		}
	}
	return fitted
}

// plainValue reads a value according to the kind of its node; k is what the
// first byte announces. It does not run checks of the decoded value.
func (d *decoder) plainValue(n *node, p slot, k jsonx.Kind) bool {
	switch n.kind {
	case nodeString:
		return d.str(n, p, k)
	case nodeInt, nodeUint, nodeFloat, nodeNumber, nodeBigInt:
		return d.number(n, p, k)
	case nodeBool:
		return d.boolean(n, p, k)
	case nodeObject:
		return d.object(n, n.object, p, k)
	case nodeList, nodeArray:
		return d.list(n, p, k)
	case nodeMap:
		return d.dict(n, p, k)
	case nodeBytes, nodeTime, nodeText, nodeURL:
		return d.text(n, p, k)
	case nodeDuration:
		if n.unit != 0 {
			return d.number(n, p, k)
		}
		return d.text(n, p, k)
	case nodeAny:
		v, ok := readAny(d)
		*in[any](p) = v
		return ok
	case nodeRaw:
		start := d.s.Pos
		ok := d.skip()
		*in[[]byte](p) = append([]byte(nil), jsonx.Paired(d.s.Buf[start:d.s.Pos])...)
		return ok
	case nodeUnion:
		return readUnion(d, n, p, k)
	case nodeNull:
		setNull(n, p, true)
		return d.value(n.elem, p)
	case nodeRef:
		return d.value(n.elem, p)
	}
	return readOpaque(d, n, p)
}

// skip reads over one value. It checks that the value is JSON and reports
// duplicate members at their place, for which it reads the value a second time.
func (d *decoder) skip() bool {
	pos, depth := d.s.Pos, d.s.Depth()
	_, err := d.s.Skip()
	if err == nil {
		return true
	}
	var dup *jsonx.DuplicateError
	if !errors.As(err, &dup) {
		return d.stop(err)
	}
	d.s.Pos = pos
	d.s.SetDepth(depth)
	_, ok := readAny(d) // slower, but it knows where it is
	return ok
}

// list reads into a slice or an array. The number of elements is checked last,
// so that issues of elements come first, as in the document.
func (d *decoder) list(n *node, p slot, k jsonx.Kind) bool {
	if k != jsonx.Array {
		if d.coerces(n) && !d.inText && d.listed() && d.single(n.elem, k) {
			return d.wrap(n, p)
		}
		return d.fromText(n, p, k, jsonx.Array)
	}
	more, err := d.s.ArrayStart()
	if err != nil {
		return d.stop(err)
	}
	count := 0
	if n.kind == nodeArray {
		count, err = d.arrayElements(n, p, more)
	} else if n.elem.kind == nodeString && len(n.elem.ptrs) == 0 {
		count, err = d.strings(n, in[[]string](p), more)
	} else {
		count, err = d.elements(n, p, more)
	}
	if err != nil {
		return err != errStopped && d.stop(err)
	}
	d.counts(n, count, wording.ItemWords)
	return true
}

// counts runs the checks on the number of elements, members or bytes.
func (d *decoder) counts(n *node, count int, words *wording.BoundWords) {
	for i := range n.checks {
		if test, ok := n.checks[i].Test.(rules.CountTest); ok && !test(count) {
			d.fail(n, &n.checks[i], words.Quantity(count), "")
		}
	}
}

// errStopped is returned when the walk has ended and the reason is among the
// issues.
var errStopped = errors.New("stopped")

// strings is elements for []string, the most frequent list, without reflection.
// An empty array gives an empty slice and not nil, so that it is encoded as []
// again.
func (d *decoder) strings(n *node, p *[]string, more bool) (count int, err error) {
	out := []string{}
	if more {
		out = make([]string, 0, 4)
	}
	for more {
		out = append(out, "")
		d.pushIndex(count)
		if !d.value(n.elem, slotAt(&out[count])) {
			return 0, errStopped
		}
		d.pop()
		count++
		if more, err = d.s.ArrayNext(); err != nil {
			return 0, err
		}
	}
	*p = out
	return count, nil
}

// elements reads the elements of a slice, which grows as they come: JSON does
// not announce the length of an array, and memory must follow what was really
// sent.
func (d *decoder) elements(n *node, p slot, more bool) (count int, err error) {
	v := p.value(n.typ)
	if !more {
		v.Set(reflect.MakeSlice(n.typ, 0, 0))
		return 0, nil
	}
	for more {
		if count == v.Cap() {
			v.Grow(max(4, count))
		}
		v.SetLen(count + 1)
		d.pushIndex(count)
		if !d.value(n.elem, slotOf(v.Index(count).Addr())) {
			return 0, errStopped
		}
		d.pop()
		count++
		if more, err = d.s.ArrayNext(); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// arrayElements reads the elements of an array in place. Elements past its end
// are skipped and counted, so that the message can say how many there were.
func (d *decoder) arrayElements(n *node, p slot, more bool) (count int, err error) {
	size := n.typ.Elem().Size()
	for more {
		d.pushIndex(count)
		if count < n.length {
			if !d.value(n.elem, p.at(uintptr(count)*size)) {
				return 0, errStopped
			}
		} else if !d.skip() {
			return 0, errStopped
		}
		d.pop()
		count++
		if more, err = d.s.ArrayNext(); err != nil {
			return 0, err
		}
	}
	if count != n.length {
		rule := "minItems"
		if count > n.length {
			rule = "maxItems"
		}
		d.misfit(n, rule, "an array of exactly "+wording.ItemWords.Quantity(n.length), wording.ItemWords.Quantity(count), "")
	}
	return count, nil
}

// fromText reads a JSON array or object that came inside a string, as some
// models send it. Only one level is unwrapped. An object for a list of objects is its
// only item. Text that is not wholly an array or object is reported as a value of the
// wrong type, quoted as it came.
func (d *decoder) fromText(n *node, p slot, k, want jsonx.Kind) bool {
	if k != jsonx.String || !d.coerces(n) || d.inText {
		return d.mismatch(n)
	}
	start := d.s.Pos
	str, err := d.s.Str()
	if err != nil {
		return d.stop(err)
	}
	inner := append([]byte(nil), trimSpace(str)...)
	probe := jsonx.Scanner{Buf: inner, MaxDepth: d.plan.maxDepth}
	probe.SetDepth(d.s.Depth())
	if kind := probe.Peek(); kind == jsonx.Object && want == jsonx.Array && d.listed() && ofObjects(n.elem) {
		inner = slices.Concat([]byte{'['}, inner, []byte{']'})
		probe.Buf = inner
	}
	if probe.Peek() != want || !wellFormed(&probe) {
		d.wrongType(n, d.s.Buf[start:d.s.Pos])
		return true
	}
	d.coerce()
	outer := d.s
	d.s = jsonx.Scanner{Buf: inner, MaxDepth: d.plan.maxDepth}
	d.s.SetDepth(outer.Depth())
	d.inText = true
	d.values--
	ok := d.plainValue(n, p, want)
	d.inText = false
	d.s = outer
	return ok
}

// wellFormed reports whether a text is JSON. Duplicate members are not a fault
// here; the walk reports them at their place.
func wellFormed(s *jsonx.Scanner) bool {
	_, err := s.Skip()
	if _, dup := err.(*jsonx.DuplicateError); dup {
		return json.Valid(s.Buf) // the walk will report it
	}
	return err == nil && s.End() == nil
}

// dict reads into a map, which is never nil afterwards.
func (d *decoder) dict(n *node, p slot, k jsonx.Kind) bool {
	if k != jsonx.Object {
		return d.fromText(n, p, k, jsonx.Object)
	}
	more, err := d.s.ObjectStart()
	if err != nil {
		return d.stop(err)
	}
	m := p.value(n.typ)
	m.Set(reflect.MakeMap(n.typ))
	count := 0
	for more {
		name, err := d.s.Name()
		if err != nil {
			return d.stop(err)
		}
		text := string(name)
		d.pushName(text)
		if !d.entry(n, m, text) {
			return false
		}
		d.pop()
		count++
		if more, err = d.s.ObjectNext(); err != nil {
			return d.stop(err)
		}
	}
	d.counts(n, count, wording.MemberWords)
	return true
}

// entry reads one member of a map. Two names can stand for one key, such as 1
// and 01 for an integer; the second is a duplicate. The value of a bad name is
// checked nevertheless, and dropped.
func (d *decoder) entry(n *node, m reflect.Value, name string) bool {
	key := reflect.New(n.key.typ).Elem()
	good := d.mapKey(n.key, key, name)
	if good && m.MapIndex(key).IsValid() {
		d.duplicate()
		return d.skip()
	}
	elem := reflect.New(n.typ.Elem())
	if !d.value(n.elem, slotOf(elem)) {
		return false
	}
	if good {
		m.SetMapIndex(key, elem.Elem())
	}
	return true
}

// mapKey reads the name of a member as a key. A name is a string that stands
// for a value, so nothing is coerced. Its faults are reported under the rule
// propertyNames.
func (d *decoder) mapKey(n *node, key reflect.Value, name string) bool {
	if n.kind == nodeString && !n.special && len(n.checks) == 0 {
		key.SetString(name)
		return true
	}
	if _, ok := key.Addr().Interface().(encoding.TextUnmarshaler); n.kind == nodeText && !ok {
		return false // a result type that can only be written
	}
	before := len(d.issues)
	outer, lenient := d.s, d.lenient
	d.s = jsonx.Scanner{Buf: jsonx.AppendString(nil, name)}
	d.lenient, d.inKey = false, true
	d.values--
	d.value(n, slotOf(key.Addr()))
	d.s, d.lenient, d.inKey = outer, lenient, false
	for i := before; i < len(d.issues); i++ {
		aboutKey(&d.issues[i])
	}
	return len(d.issues) == before
}

// aboutKey turns an issue of a value into one of a member name.
func aboutKey(is *Issue) {
	is.Rule = "propertyNames"
	is.Message = "the name " + is.Message
}

// What became of a member. Rules among members look at marks and not at decoded
// values, because a zero value may have been sent or not. The order matters:
// from markEmpty on there is a value that can be compared.
const (
	markAbsent  byte = iota
	markDropped      // it was there and stood for absent
	markNull         // null, where null is a value
	markBad          // it has issues
	markEmpty        // the empty string
	markSet          // any other value
)

// object reads into a struct: first the members as they come, then what is
// missing, then the rules among members. Objects nest, so the marks of the open
// ones are stacked in one slice; base is where those of this one begin.
func (d *decoder) object(n *node, sh *shape, p slot, k jsonx.Kind) bool {
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

// noMarks is the source of blank marks. Nothing writes to it.
var noMarks [256]byte

// member reads one member into its field and returns what became of it. In
// lenient mode null and "" stand for an optional member that is not set. So
// does a zero value that breaks a rule, if omitempty says that zero means
// nothing.
func (d *decoder) member(f *field, p slot) (mark byte, ok bool) {
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
		if s := in[string](n.deref(at)); s != nil && *s == "" {
			return markEmpty, true
		}
	}
	return markSet, true
}

// dropEmpty reads null and "" where they can only mean "not set": null is
// not a value of the type, or no text of the type is empty.
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

// zeroBrokeRule reports whether the issues are those of a zero value of the
// right type that a rule of the field refused.
func zeroBrokeRule(issues []Issue, n *node, at slot) bool {
	for _, is := range issues {
		switch is.Rule {
		case "type", wording.RuleRange, wording.RuleSyntax, wording.RuleDuplicate:
			return false
		case "format", "pattern":
			if n.kind != nodeString {
				return false
			}
		}
	}
	return at.value(n.typ).IsZero()
}

// other handles a member that is not a field: it goes to the inline map, is
// ignored in an open struct, or is an issue. seen holds the earlier names of
// this kind; it is made when first needed, and returned for the caller to keep.
func (d *decoder) other(n *node, sh *shape, p slot, name string, seen map[string]struct{}) (map[string]struct{}, bool) {
	if seen == nil {
		seen = map[string]struct{}{}
	}
	d.pushName(name)
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
		m := in[map[string]json.RawMessage](sh.rest.at(p))
		if *m == nil {
			*m = map[string]json.RawMessage{}
		}
		(*m)[name] = append(json.RawMessage(nil), jsonx.Paired(trimSpace(d.s.Buf[start:d.s.Pos]))...)
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

// complete finishes an object after its last member: defaults, missing members,
// and the rules among members. Defaults come first, because rules see the value
// that the caller will see.
func (d *decoder) complete(n *node, sh *shape, p slot, base int) bool {
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
		checkConditions(d, sh, p, marks)
	}
	if len(sh.cross) > 0 || len(sh.funcs) > 0 || sh.tracked {
		checkRelations(d, n, sh, p, marks)
	}
	return true
}

// setDefault stores the default of an absent field. A scalar is copied. Anything
// else is decoded again, so that no two documents share memory; its text passed
// the rules when the type was compiled.
func (d *decoder) setDefault(f *field, p slot) {
	at := f.at(p)
	if f.def.scalar.IsValid() {
		at.value(f.node.typ).Set(f.def.scalar)
		return
	}
	outer, lenient := d.s, d.lenient
	d.s, d.lenient = jsonx.Scanner{Buf: f.def.raw}, false
	d.push(f.name)
	d.value(f.node, at)
	d.pop()
	d.s, d.lenient = outer, lenient
}

// runDeferred runs what had to wait for the end of the document. Comparisons
// come first. Functions of users run only if there is no issue: they may rely
// on every other rule, and may be slow.
func (d *decoder) runDeferred(dst slot) {
	for i := range d.later {
		if r := &d.later[i]; r.cross != nil {
			d.secret = r.secret
			r.compare(d, dst)
		}
	}
	if len(d.issues) > 0 {
		return
	}
	for i := range d.later {
		r := &d.later[i]
		switch {
		case r.check != nil:
			r.runRule(d)
		case r.sh != nil:
			r.runStructRules(d)
		}
	}
}

// mismatch skips a value that is not of the node's type and reports it.
func (d *decoder) mismatch(n *node) bool {
	start := d.s.Pos
	if !d.skip() {
		return false
	}
	d.wrongType(n, d.s.Buf[start:d.s.Pos])
	return true
}
