package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"unsafe"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// list reads into a slice or an array.
func (d *decoder) list(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	if k != jsonx.Array {
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
		count, err = d.strings(n, (*[]string)(p), more)
	} else {
		count, err = d.elements(n, p, more)
	}
	if err != nil {
		return err != errStopped && d.stop(err)
	}
	d.counts(n, count)
	return true
}

// counts runs the checks on the number of elements or members.
func (d *decoder) counts(n *node, count int) {
	for i := range n.checks {
		if c := &n.checks[i]; c.count != nil && !c.count(count) {
			words := itemWords
			if n.kind == nodeMap {
				words = memberWords
			}
			d.fail(n, c, words.quantity(count), "")
		}
	}
}

// errStopped says that the reason for the end has been recorded.
var errStopped = errors.New("stopped")

// strings is elements for the most frequent kind of list.
func (d *decoder) strings(n *node, p *[]string, more bool) (count int, err error) {
	out := []string{}
	if more {
		out = make([]string, 0, 4)
	}
	for more {
		out = append(out, "")
		d.pushIndex(count)
		if !d.value(n.elem, unsafe.Pointer(&out[count])) {
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

func (d *decoder) elements(n *node, p unsafe.Pointer, more bool) (count int, err error) {
	v := reflect.NewAt(n.typ, p).Elem()
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
		if !d.value(n.elem, v.Index(count).Addr().UnsafePointer()) {
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

func (d *decoder) arrayElements(n *node, p unsafe.Pointer, more bool) (count int, err error) {
	size := n.typ.Elem().Size()
	for more {
		d.pushIndex(count)
		if count < n.length {
			if !d.value(n.elem, unsafe.Add(p, uintptr(count)*size)) {
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
		d.misfit(n, rule, "an array of exactly "+itemWords.quantity(n.length), itemWords.quantity(count), "")
	}
	return count, nil
}

// fromText reads a JSON array or object that came as a string, which models
// do. It is parsed once: a string inside stays a string.
func (d *decoder) fromText(n *node, p unsafe.Pointer, k, want jsonx.Kind) bool {
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
	if probe.Peek() != want || !wellFormed(&probe) {
		d.wrongType(n, d.s.Buf[start:d.s.Pos])
		return true
	}
	d.coerce()
	outer := d.s
	d.s = jsonx.Scanner{Buf: inner, MaxDepth: d.plan.maxDepth}
	d.s.SetDepth(outer.Depth())
	d.inText = true
	d.nodes--
	ok := d.plainValue(n, p, want)
	d.inText = false
	d.s = outer
	return ok
}

// wellFormed tells whether a text is JSON, but for duplicate members.
func wellFormed(s *jsonx.Scanner) bool {
	_, err := s.Skip()
	if _, dup := err.(*jsonx.DuplicateError); dup {
		return json.Valid(s.Buf) // the walk will report it
	}
	return err == nil && s.End() == nil
}

// dict reads into a map.
func (d *decoder) dict(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	if k != jsonx.Object {
		return d.fromText(n, p, k, jsonx.Object)
	}
	more, err := d.s.ObjectStart()
	if err != nil {
		return d.stop(err)
	}
	m := reflect.NewAt(n.typ, p).Elem()
	m.Set(reflect.MakeMap(n.typ))
	count := 0
	for more {
		name, err := d.s.Name()
		if err != nil {
			return d.stop(err)
		}
		text := string(name)
		d.push(text)
		if !d.entry(n, m, text) {
			return false
		}
		d.pop()
		count++
		if more, err = d.s.ObjectNext(); err != nil {
			return d.stop(err)
		}
	}
	d.counts(n, count)
	return true
}

// entry reads one member of a map.
func (d *decoder) entry(n *node, m reflect.Value, name string) bool {
	key := reflect.New(n.key.typ).Elem()
	good := d.mapKey(n.key, key, name)
	if good && m.MapIndex(key).IsValid() {
		d.duplicate()
		return d.skip()
	}
	elem := reflect.New(n.typ.Elem())
	if !d.value(n.elem, elem.UnsafePointer()) {
		return false
	}
	if good {
		m.SetMapIndex(key, elem.Elem())
	}
	return true
}

func (d *decoder) duplicate() {
	d.add(nil, Issue{Path: pointer(d.path), Rule: ruleDuplicate, Expected: "each member once", Message: "is there twice", Hint: "keep one of them"})
}

// mapKey reads a member name as a key. Faults of it are reported as
// propertyNames, at the member.
func (d *decoder) mapKey(n *node, key reflect.Value, name string) bool {
	before := len(d.issues)
	switch n.kind {
	case nodeString:
		if !(n.orZero && name == "") && !passesText(n, name) {
			d.failText(n, name)
		}
		key.SetString(name)
	case nodeText:
		u, ok := key.Addr().Interface().(encoding.TextUnmarshaler)
		if !ok {
			key.Set(reflect.Zero(key.Type()))
			return false
		}
		if err := u.UnmarshalText([]byte(name)); err != nil {
			d.badForm(n, name, err)
		}
	default:
		d.intKey(n, key, name)
	}
	for i := before; i < len(d.issues); i++ {
		is := &d.issues[i]
		is.Rule = "propertyNames"
		is.Message = "the name " + is.Message
	}
	return len(d.issues) == before
}

// intKey reads an integer key, which has exactly one spelling.
func (d *decoder) intKey(n *node, key reflect.Value, name string) {
	s := jsonx.Scanner{Buf: []byte(name)}
	if s.Peek() == jsonx.Number && name != "-0" {
		if text, plain, err := s.Number(); err == nil && plain && len(text) == len(name) {
			negative, magnitude, form := exactInteger(text, true)
			if n.kind == nodeInt {
				d.int(n, key.Addr().UnsafePointer(), text, negative, magnitude, form)
			} else {
				d.uint(n, key.Addr().UnsafePointer(), text, negative, magnitude, form)
			}
			return
		}
	}
	d.misfit(n, "pattern", "an integer", quoted(name), "")
}

// any reads a value of unknown type: map[string]any, []any, string, bool, nil,
// and json.Number, which keeps every digit.
func (d *decoder) any() (any, bool) {
	switch d.s.Peek() {
	case jsonx.Object:
		return d.anyObject()
	case jsonx.Array:
		return d.anyArray()
	case jsonx.String:
		b, err := d.s.Str()
		if err != nil {
			return nil, d.stop(err)
		}
		return string(b), true
	case jsonx.Number:
		text, _, err := d.s.Number()
		if err != nil {
			return nil, d.stop(err)
		}
		return json.Number(text), true
	case jsonx.Bool:
		b, err := d.s.Bool()
		if err != nil {
			return nil, d.stop(err)
		}
		return b, true
	case jsonx.Null:
		if err := d.s.Null(); err != nil {
			return nil, d.stop(err)
		}
		return nil, true
	}
	_, err := d.s.Skip()
	return nil, d.stop(err)
}

// part reads a value inside an any, which counts.
func (d *decoder) part() (any, bool) {
	if d.nodes++; d.nodes > d.plan.maxNodes {
		return nil, d.tooMany()
	}
	return d.any()
}

func (d *decoder) anyObject() (any, bool) {
	out := map[string]any{}
	more, err := d.s.ObjectStart()
	for more && err == nil {
		var b []byte
		if b, err = d.s.Name(); err != nil {
			break
		}
		name := string(b)
		d.push(name)
		if _, dup := out[name]; dup {
			d.duplicate()
		}
		v, ok := d.part()
		if !ok {
			return nil, false
		}
		d.pop()
		out[name] = v
		more, err = d.s.ObjectNext()
	}
	if err != nil {
		return nil, d.stop(err)
	}
	return out, true
}

func (d *decoder) anyArray() (any, bool) {
	out := []any{}
	more, err := d.s.ArrayStart()
	for more && err == nil {
		d.pushIndex(len(out))
		v, ok := d.part()
		if !ok {
			return nil, false
		}
		d.pop()
		out = append(out, v)
		more, err = d.s.ArrayNext()
	}
	if err != nil {
		return nil, d.stop(err)
	}
	return out, true
}
