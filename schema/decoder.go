package schema

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"github.com/talaria-go/mcp/internal/jsonx"
)

const (
	defaultMaxDepth = 32
	defaultMaxNodes = 10_000
)

// decoder walks one document along a plan. It checks every value, writes the
// good ones, and goes on after a bad one, so that all issues come out at once.
//
// Its methods return false only when the walk cannot go on: the text is not
// JSON, or is past a limit.
type decoder struct {
	s       jsonx.Scanner
	plan    *Plan
	ctx     context.Context
	path    []step
	marks   []byte // for each open object, what became of its members
	issues  []Issue
	nodes   int
	lenient bool
	inText  bool      // inside JSON that came as a string
	secret  bool      // inside a value that must not be shown
	coerced *[]string // where to record what was coerced; nil for nowhere
	later   []deferred
	saved   map[unsafe.Pointer][]byte // marks of the structs that cross-field rules look into
	fault   error                     // a rule panicked
}

// deferred is a check that waits for the whole document.
type deferred struct {
	n      *node
	check  *check
	cross  *crossRule
	sh     *shape
	at     unsafe.Pointer
	path   []step
	secret bool
}

// decoders keeps scratch memory between documents.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decode reads data into the value at p, which must be zero.
func (p *Plan) decode(ctx context.Context, data []byte, dst unsafe.Pointer, lenient bool, coerced *[]string) (err error) {
	d := decoders.Get().(*decoder)
	d.s.Reset(data)
	d.s.MaxDepth = p.maxDepth
	d.plan, d.ctx, d.lenient, d.coerced = p, ctx, lenient, coerced
	d.path, d.marks, d.nodes, d.inText = d.path[:0], d.marks[:0], 0, false
	d.secret = false
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("schema: a method or rule of %s panicked: %v", p.typ, r)
		}
	}()
	if d.value(p.root, dst) {
		if end := d.s.End(); end != nil {
			d.stop(end)
		} else {
			d.runDeferred(dst)
		}
	}
	err = d.result()
	d.release()
	return err
}

// result turns what was found into Decode's error.
func (d *decoder) result() error {
	if d.fault != nil {
		return d.fault
	}
	if len(d.issues) == 0 {
		return nil
	}
	e := &Error{Issues: d.issues}
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

// stop records why the walk ends here.
func (d *decoder) stop(err error) bool {
	var depth *jsonx.DepthError
	var dup *jsonx.DuplicateError
	is := Issue{Rule: ruleSyntax, Expected: "valid JSON", Message: "is not valid JSON: " + err.Error()}
	switch {
	case errors.As(err, &depth):
		is.Path, is.Rule = pointer(d.path), ruleDepth
		is.Expected = fmt.Sprintf("at most %d levels of nesting", depth.Max)
		is.Message = fmt.Sprintf("is nested deeper than %d levels", depth.Max)
	case errors.As(err, &dup):
		is.Path, is.Rule = pointer(append(d.path, step{dup.Name, -1})), ruleDuplicate
		is.Expected, is.Message = "each member once", "is there twice"
	}
	d.issues = append(d.issues, is)
	return false
}

func (d *decoder) tooMany() bool {
	d.issues = append(d.issues, Issue{Path: pointer(d.path), Rule: ruleSize,
		Expected: fmt.Sprintf("at most %d values in all", d.plan.maxNodes),
		Message:  fmt.Sprintf("the document has more than %d values", d.plan.maxNodes)})
	return false
}

func (d *decoder) push(name string)     { d.path = append(d.path, step{name, -1}) }
func (d *decoder) pushIndex(i int)      { d.path = append(d.path, step{"", i}) }
func (d *decoder) pop()                 { d.path = d.path[:len(d.path)-1] }
func (d *decoder) coerces(n *node) bool { return d.lenient && !n.strict }

// value reads the value at the scanner into p.
func (d *decoder) value(n *node, p unsafe.Pointer) bool {
	if d.nodes++; d.nodes > d.plan.maxNodes {
		return d.tooMany()
	}
	k := d.s.Peek()
	if k == jsonx.Null && n.takesNull() {
		if err := d.s.Null(); err != nil {
			return d.stop(err)
		}
		if n.kind == nodeNull {
			setNull(n, n.allocate(p), false)
		} else if n.kind == nodeRaw {
			*(*[]byte)(n.allocate(p)) = []byte("null")
		}
		return true
	}
	p = n.allocate(p)
	if !n.special {
		return d.plainValue(n, p, k)
	}
	return d.specialValue(n, p, k)
}

// allocate returns where the value goes when the node's place is at p: behind
// as many new pointers as its type has.
func (n *node) allocate(p unsafe.Pointer) unsafe.Pointer {
	for _, elem := range n.ptrs {
		q := reflect.New(elem).UnsafePointer()
		*(*unsafe.Pointer)(p) = q
		p = q
	}
	return p
}

// deref returns where the value lies, or nil behind a nil pointer.
func (n *node) deref(p unsafe.Pointer) unsafe.Pointer {
	for range n.ptrs {
		if p == nil {
			return nil
		}
		p = *(*unsafe.Pointer)(p)
	}
	return p
}

func (n *node) takesNull() bool {
	return n.nullable || n.kind == nodeAny || n.kind == nodeRaw
}

// hides tells whether values of n must not be shown.
func (d *decoder) hides(n *node) bool { return d.secret || n.secret }

// putOff keeps a check of the value at the path for the end.
func (d *decoder) putOff(r deferred) {
	r.path, r.secret = slices.Clone(d.path), d.secret
	d.later = append(d.later, r)
}

// specialValue reads a value that has checks on its decoded form, or that is
// strict or secret with all below it.
func (d *decoder) specialValue(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	before, start, lenient, secret := len(d.issues), d.s.Pos, d.lenient, d.secret
	d.secret = d.hides(n)
	defer func() { d.secret = secret }()
	if n.strict || n.verify != nil {
		d.lenient = false // an extra schema sees the value as it came
	}
	ok := d.plainValue(n, p, k)
	d.lenient = lenient
	if !ok {
		return false
	}
	raw := d.s.Buf[start:d.s.Pos]
	if n.verify != nil && len(d.issues) == before {
		d.verify(n, n.verify, raw)
	}
	good := len(d.issues) == before
	v := reflect.NewAt(n.typ, p).Elem()
	if n.orZero && v.IsZero() {
		return true
	}
	for i := range n.checks {
		c := &n.checks[i]
		switch {
		case c.unique != nil:
			if !good || !c.value(v) {
				d.distinct(n, c, v, raw, before)
			}
		case !good:
		case c.custom != nil:
			d.putOff(deferred{n: n, check: c, at: p})
		case c.value != nil && !c.value(v):
			d.fail(n, c, gotValue(raw, false), "")
		}
	}
	return true
}

// verify checks raw text against a schema that the plan does not know.
func (d *decoder) verify(n *node, raw *Raw, text []byte) {
	for _, is := range raw.issues(text) {
		is.Path = pointer(d.path) + is.Path
		if d.hides(n) {
			is.Got = ""
			is.Message = mustBe(is.Expected, "")
		}
		d.add(n, is)
	}
}

// plainValue reads a value by its kind.
func (d *decoder) plainValue(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
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
		v, ok := d.any()
		*(*any)(p) = v
		return ok
	case nodeRaw:
		start := d.s.Pos
		ok := d.skip()
		*(*[]byte)(p) = append([]byte(nil), d.s.Buf[start:d.s.Pos]...)
		return ok
	case nodeUnion:
		return d.union(n, p, k)
	case nodeNull:
		setNull(n, p, true)
		return d.value(n.elem, p)
	case nodeRef:
		return d.value(n.elem, p)
	}
	return d.opaque(n, p)
}

// skip reads over one value. It is checked as JSON, and duplicate members in
// it are reported.
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
	_, ok := d.any() // slower, but it knows where it is
	return ok
}
