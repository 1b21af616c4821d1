package schema

import (
	"fmt"
	"reflect"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// UnionType lists the types that an interface can hold in JSON. Put it into
// Options.Unions.
type UnionType struct {
	typ      reflect.Type
	tag      string
	variants []VariantType
}

// VariantType is one type of a union.
type VariantType struct {
	name string
	typ  reflect.Type
}

// Variant names a struct type of a union; value is any value of it, or of a
// pointer to it if that is what the interface holds.
func Variant(name string, value any) VariantType {
	return VariantType{name, reflect.TypeOf(value)}
}

// Union lists the variants of the interface type I. In JSON each is an object
// whose member named tag tells which one it is:
//
//	schema.Union[Shape]("kind", schema.Variant("circle", Circle{}), schema.Variant("box", Box{}))
//
// For arguments the tag need not be a field of the structs. Where they are encoded
// it must be one that is set, because encoding/json does not know of unions: in
// what a tool returns (Options.Output), and in the structs that a client sends.
// Faults in the list are reported when a type that uses it is compiled. Servers
// take unions by mcp.Options.Schema.
func Union[I any](tag string, variants ...VariantType) UnionType {
	return UnionType{reflect.TypeFor[I](), tag, variants}
}

// unionShape is a compiled union. A variant may contain the interface again,
// which is noticed when the variants are asked for while they are being
// compiled.
type unionShape struct {
	decl     UnionType
	variants []variant
	// names are the names of the variants, for messages.
	names []string
	// started and done tell how far compiling has come. Asking for the variants
	// in between makes the union recursive.
	started, done, recursive bool
}

// variant is one type of a compiled union.
type variant struct {
	name string
	typ  reflect.Type // what the interface holds
	node *node        // of the struct, without pointer
}

// compileVariants compiles the variants of a union, once. Faults in the list
// are reported for the first type that uses it. A variant of a recursive union
// becomes a definition of the schema.
func compileVariants(c *compiler, u *unionShape) {
	if u.started {
		u.recursive = u.recursive || !u.done
		return
	}
	u.started = true
	defer func() {
		u.done = true
		for _, v := range u.variants {
			v.node.object.recursive = v.node.object.recursive || u.recursive
		}
	}()
	fix := "write schema.Union[Interface](\"kind\", schema.Variant(\"name\", Struct{}), …)"
	if u.decl.typ.Kind() != reflect.Interface || u.decl.tag == "" || len(u.decl.variants) == 0 {
		c.report("", "a union needs an interface type, the name of a member, and variants", fix)
		return
	}
	seen := map[string]bool{}
	for _, v := range u.decl.variants {
		t := v.typ
		if t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t == nil || t.Kind() != reflect.Struct:
			c.report("", fmt.Sprintf("variant %q of %s is no struct", v.name, u.decl.typ), fix)
			continue
		case !v.typ.AssignableTo(u.decl.typ):
			c.report("", fmt.Sprintf("variant %q: %s does not implement %s", v.name, v.typ, u.decl.typ), "use a pointer to it, if its methods have pointer receivers")
			continue
		case seen[v.name]:
			c.report("", fmt.Sprintf("two variants of %s are named %q", u.decl.typ, v.name), "choose different names")
			continue
		}
		seen[v.name] = true
		n := &node{kind: nodeObject, name: "object", typ: t}
		n.object = c.shape(t, false, u.decl.tag+"="+v.name)
		u.variants = append(u.variants, variant{v.name, v.typ, n})
		u.names = append(u.names, v.name)
	}
}

// discriminate makes a struct one variant of a union: its tag member is
// required and has exactly one value. In arguments the tag need not be a field
// of the struct. In results it must be one, because encoding/json would not
// write it otherwise.
func discriminate(c *compiler, sh *shape, tag, name string) {
	i, ok := sh.byName[tag]
	sh.skip, sh.variant = tag, name
	if !ok {
		if c.opts.Output {
			c.report("", fmt.Sprintf("as a variant it needs a field for %q to say which one it is", tag), "add Kind string `json:\""+tag+"\"`")
		}
		return
	}
	f := &sh.fields[i]
	if f.node.kind != nodeString || len(f.node.ptrs) > 0 {
		c.report("", fmt.Sprintf("the member %q tells variants apart and must be a string", tag), "")
		return
	}
	v := reflect.New(f.node.typ).Elem()
	v.SetString(name)
	f.required, f.def = true, nil
	f.node.checks = append([]rules.Check{rules.SetCheck(tag, "const", []reflect.Value{v})}, f.node.checks...)
}

// readUnion reads an object as the variant that its tag names, so that only
// issues of that variant are reported.
func readUnion(d *decoder, n *node, p slot, k jsonx.Kind) bool {
	if k != jsonx.Object {
		return d.fromText(n, p, k, jsonx.Object)
	}
	name, got, ok := discriminator(d, n.union.decl.tag)
	if !ok {
		return false
	}
	for i := range n.union.variants {
		v := &n.union.variants[i]
		if got == "" || v.name != name {
			continue
		}
		value := reflect.New(v.node.typ)
		if !d.object(v.node, v.node.object, slotOf(value), k) {
			return false
		}
		if v.typ.Kind() != reflect.Pointer {
			value = value.Elem()
		}
		p.value(n.typ).Set(value)
		return true
	}
	d.push(n.union.decl.tag)
	is := Issue{Path: wording.Pointer(d.path), Rule: wording.RuleUnion, Expected: wording.OneOf(rules.AnySlice(n.union.names)), Got: got}
	if got != "" {
		if d.hides(n) {
			is.Got = ""
		}
		is.Message = wording.MustBe(is.Expected, is.Got)
	} else {
		is.Rule = "required"
		is.Message = "is required (" + is.Expected + ")"
	}
	d.add(n, is)
	d.pop()
	return d.skip()
}

// discriminator looks ahead for the tag member of the object at the scanner and
// then returns to its start. It reports nothing, because the object is read
// again. got describes the member's value and is "" if there is no such member;
// ok is false if the text is not JSON.
func discriminator(d *decoder, tag string) (name, got string, ok bool) {
	pos, depth := d.s.Pos, d.s.Depth()
	more, err := d.s.ObjectStart()
	for more && err == nil {
		var b []byte
		if b, err = d.s.Name(); err != nil {
			break
		}
		if string(b) == tag {
			isText := d.s.Peek() == jsonx.String
			start := d.s.Pos
			if isText {
				if b, err = d.s.Str(); err == nil {
					name = string(b)
				}
			} else {
				_, err = d.s.Skip()
			}
			got = wording.Got(d.s.Buf[start:d.s.Pos], !isText)
		} else {
			_, err = d.s.Skip()
		}
		if _, dup := err.(*jsonx.DuplicateError); dup {
			err = nil // reported when the variant is read
			break
		}
		if err != nil || got != "" {
			break
		}
		more, err = d.s.ObjectNext()
	}
	if err != nil {
		return "", "", d.stop(err)
	}
	d.s.Pos = pos
	d.s.SetDepth(depth)
	return name, got, true
}
