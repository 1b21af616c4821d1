package schema

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
	coerced *[]string // where to record what was coerced; nil for nowhere
	later   []deferred
	saved   map[unsafe.Pointer][]byte // marks of the structs that cross-field rules look into
	fault   error                     // a rule panicked
}

// deferred is a check that waits for the whole document.
type deferred struct {
	n     *node
	check *check
	cross *crossRule
	sh    *shape
	at    unsafe.Pointer
	path  []step
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

// specialValue reads a value that has checks on its decoded form, or that is
// read strictly with all below it.
func (d *decoder) specialValue(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	before, start, lenient := len(d.issues), d.s.Pos, d.lenient
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
			d.later = append(d.later, deferred{n: n, check: c, at: p, path: append([]step(nil), d.path...)})
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
		if n.secret {
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

// add records an issue of the value that n describes.
func (d *decoder) add(n *node, is Issue) {
	if len(d.issues) >= maxIssues {
		return
	}
	if n != nil {
		for _, m := range n.message {
			if m.rule == "" || m.rule == is.Rule {
				is.Message = strings.NewReplacer("{expected}", is.Expected, "{got}", is.Got).Replace(m.text)
			}
		}
	}
	d.issues = append(d.issues, is)
}

// fail records that a value breaks a check. Got is how it looked, and why what
// is wrong with it, if the check's words do not say so.
func (d *decoder) fail(n *node, c *check, got, why string) {
	d.failAt(n, c, got, why, pointer(d.path))
}

func (d *decoder) failAt(n *node, c *check, got, why, path string) {
	if n.secret {
		got, why = "", ""
	}
	is := Issue{Path: path, Rule: c.code, Expected: n.wanted(c), Got: got}
	is.Message = mustBe(because(is.Expected, why), got)
	name, _, _ := strings.Cut(c.tag, "=")
	for _, m := range n.message {
		if m.rule != "" && m.rule == name {
			is.Message = strings.NewReplacer("{expected}", is.Expected, "{got}", got).Replace(m.text)
			d.add(nil, is)
			return
		}
	}
	d.add(n, is)
}

// mustBe is the sentence of most issues. Words of a custom rule may start with
// "must" themselves.
func mustBe(expected, got string) string {
	text := expected
	if !strings.HasPrefix(text, "must ") {
		text = "must be " + text
	}
	if got == "" {
		return text
	}
	return text + "; got " + got
}

// because puts what is wrong behind what is expected. A wrong form needs no
// words: what is expected shows the right one.
func because(expected, why string) string {
	if why == "" || strings.HasPrefix(why, wrongForm) {
		return expected
	}
	return expected + "; " + why
}

// mismatch reads over a value that is not of the node's type.
func (d *decoder) mismatch(n *node) bool {
	start := d.s.Pos
	if !d.skip() {
		return false
	}
	d.wrongType(n, d.s.Buf[start:d.s.Pos])
	return true
}

// wrongType records that raw is not of the node's type.
func (d *decoder) wrongType(n *node, raw []byte) {
	d.misfit(n, "type", n.describe(), gotValue(raw, true), "")
}

// misfit records a value that cannot be stored at all; why says what is wrong
// with it.
func (d *decoder) misfit(n *node, rule, expected, got, why string) {
	if n.secret {
		got, why = "", ""
	}
	d.add(n, Issue{Path: pointer(d.path), Rule: rule, Expected: expected, Got: got, Message: mustBe(because(expected, why), got)})
}

// coerce records that the value at the path was not taken as it came.
func (d *decoder) coerce() {
	if d.coerced != nil {
		*d.coerced = append(*d.coerced, pointer(d.path))
	}
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
