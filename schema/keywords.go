package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// ruleOf names the validate rule that a keyword of the jsonschema tag equals,
// by what it limits.
var ruleOf = map[string]string{
	"minLength": "min", "maxLength": "max", "minItems": "min", "maxItems": "max",
	"minProperties": "min", "maxProperties": "max", "minimum": "min", "maximum": "max",
	"exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "uniqueItems": "unique",
}

// schemaRules turns the checking keywords of a jsonschema tag into rules, or
// into checks where validate has no rule for them. Those that speak about
// elements are put on the elements of a list at once.
func (c *compiler) schemaRules(n *node, st *schemaTag) []rule {
	if n.kind == nodeInvalid {
		return nil
	}
	if n.kind == nodeNull {
		return c.schemaRules(n.elem, st)
	}
	list := n.kind == nodeList || n.kind == nodeArray
	var own, below []rule
	for _, k := range st.keywords {
		at := n
		if list && checkingKeywords[k.name] {
			at = n.elem
		}
		r, ok := c.schemaRule(at, k)
		switch {
		case !ok:
		case at == n:
			own = append(own, r)
		default:
			below = append(below, r)
		}
	}
	at := n
	if list {
		at = n.elem
	}
	c.valueSets(at, st)
	if len(below) > 0 {
		c.ruleSet(n.elem, &tagRules{}, below)
	}
	return own
}

// schemaRule handles one keyword on the position it is about.
func (c *compiler) schemaRule(n *node, k keyword) (rule, bool) {
	kind := n.target(c.opts).kind
	wrong := func() (rule, bool) {
		c.report(k.tag(), fmt.Sprintf("%s does not apply to %s", k.name, n.typ), "remove it")
		return rule{}, false
	}
	switch k.name {
	case "minLength", "maxLength":
		if kind != kindText {
			return wrong()
		}
	case "minItems", "maxItems", "uniqueItems":
		if kind != kindList {
			return wrong()
		}
		if k.name == "uniqueItems" {
			return rule{name: "unique", written: k.String()}, k.value == "true"
		}
	case "minProperties", "maxProperties":
		if kind != kindMap {
			return wrong()
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if kind != kindInt && kind != kindUint && kind != kindFloat {
			return wrong()
		}
		return rule{name: ruleOf[k.name], param: k.value, hasParam: true, written: k.String()}, true
	case "multipleOf":
		return c.multipleOf(n, k, kind)
	case "pattern":
		if kind != kindText {
			return wrong()
		}
		c.pattern(n, k)
		return rule{}, false
	case "format":
		c.format(n, k, kind)
		return rule{}, false
	}
	if _, err := strconv.ParseUint(k.value, 10, 31); err != nil {
		c.report(k.tag(), fmt.Sprintf("%q is not a length", k.value), "write "+k.name+"=0 or more")
		return rule{}, false
	}
	return rule{name: ruleOf[k.name], param: k.value, hasParam: true, written: k.String()}, true
}

func (c *compiler) multipleOf(n *node, k keyword, kind valueKind) (rule, bool) {
	step, ok := new(big.Rat).SetString(k.value)
	if !ok || step.Sign() <= 0 || !json.Valid([]byte(k.value)) {
		c.report(k.tag(), "multipleOf needs a number greater than 0", "write multipleOf=5, say")
		return rule{}, false
	}
	ck := check{tag: k.String(), code: "multipleOf", want: "a multiple of " + k.value,
		emit: func(s *jsonschema.Schema) { s.MultipleOf = json.Number(k.value) }}
	multiple := func(x *big.Rat) bool { return x.Quo(x, step).IsInt() }
	switch kind {
	case kindInt:
		ck.integer = func(v int64) bool { return multiple(new(big.Rat).SetInt64(v)) }
	case kindUint:
		ck.unsigned = func(v uint64) bool { return multiple(new(big.Rat).SetUint64(v)) }
	case kindFloat:
		ck.float = func(v float64) bool {
			x, ok := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
			return ok && multiple(x)
		}
		ck.decimal = multiple
	default:
		c.report(k.tag(), fmt.Sprintf("multipleOf does not apply to %s", n.typ), "remove it")
		return rule{}, false
	}
	n.checks = append(n.checks, ck)
	return rule{}, false
}

func (c *compiler) pattern(n *node, k keyword) {
	re, emitted, p := lintPattern(k.value)
	if p != nil {
		p.tag = k.tag()
		c.add(*p)
		return
	}
	n.checks = append(n.checks, check{
		tag: k.String(), code: "pattern", want: "text that matches the pattern " + k.value,
		emit: func(s *jsonschema.Schema) { addPattern(s, emitted) },
		text: re.MatchString,
	})
}

// format makes a string keep to a format of JSON Schema, which is asserted
// here although the standard leaves that open.
func (c *compiler) format(n *node, k keyword, kind valueKind) {
	switch {
	case n.kind == nodeDuration && k.value == "duration" && n.unit == 0:
		n.iso = true
		return
	case n.kind == nodeTime && k.value == "date-time":
		return
	case kind == kindText && k.value == "password":
		// It says how to show the value, not what it may be.
		n.checks = append(n.checks, check{tag: k.String(), code: "format", want: "text", trait: true,
			emit: func(s *jsonschema.Schema) { s.Format = k.value }, text: func(string) bool { return true }})
		return
	case kind != kindText:
		c.report(k.tag(), fmt.Sprintf("format does not apply to %s", n.typ), "remove it")
		return
	}
	valid := formatCheck(k.value)
	if valid == nil {
		fix := "known are " + strings.Join(formatNames, ", ")
		if near := nearest(k.value, formatNames); near != "" {
			fix = "did you mean " + near + "?"
		}
		c.report(k.tag(), fmt.Sprintf("unknown format %q", k.value), fix)
		return
	}
	n.checks = append(n.checks, check{tag: k.String(), code: "format", want: "text in the format " + k.value,
		emit: func(s *jsonschema.Schema) { addFormat(s, k.value) }, text: valid})
}

// valueSets adds enum and const.
func (c *compiler) valueSets(n *node, st *schemaTag) {
	if len(st.enum) > 0 {
		c.valueSet(n, "enum", st.enum)
	}
	if len(st.consts) > 1 {
		c.report(`jsonschema:"const=`+st.consts[1]+`"`, "const has two values", "use enum=… for each")
	} else if len(st.consts) == 1 {
		c.valueSet(n, "const", st.consts)
	}
}

func (c *compiler) valueSet(n *node, code string, texts []string) {
	values := make([]reflect.Value, 0, len(texts))
	for _, text := range texts {
		tag := `jsonschema:"` + code + "=" + text + `"`
		v := reflect.New(n.typ).Elem()
		if !setText(v, n, text) {
			c.report(tag, fmt.Sprintf("%q is not a value of %s", text, n.typ), "write "+code+"= with a value of the field's type")
			return
		}
		for _, old := range values {
			if old.Interface() == v.Interface() {
				c.report(tag, "the value is there twice", "remove one")
				return
			}
		}
		values = append(values, v)
	}
	k := setCheck(code+"="+strings.Join(texts, ","), code, values)
	if code == "enum" && c.sameEnum(n, k) {
		return
	}
	n.checks = append(n.checks, k)
}

// setText puts a value written in a tag into v. It reports whether the text
// is one, of a kind that enum and const can list.
func setText(v reflect.Value, n *node, text string) bool {
	switch n.kind {
	case nodeString:
		v.SetString(text)
		return true
	case nodeInt:
		x, err := strconv.ParseInt(text, 10, int(n.bits))
		v.SetInt(x)
		return err == nil && json.Valid([]byte(text))
	case nodeUint:
		x, err := strconv.ParseUint(text, 10, int(n.bits))
		v.SetUint(x)
		return err == nil && json.Valid([]byte(text))
	case nodeFloat:
		x, err := strconv.ParseFloat(text, int(n.bits))
		v.SetFloat(x)
		return err == nil && json.Valid([]byte(text))
	case nodeBool:
		v.SetBool(text == "true")
		return text == "true" || text == "false"
	}
	return false
}

// setCheck makes the check that a value is one of a few.
func setCheck(tag, code string, values []reflect.Value) check {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = plainValue(v)
	}
	k := check{tag: tag, code: code, want: oneOf(list)}
	k.emit = func(s *jsonschema.Schema) {
		if code == "enum" {
			addEnum(s, append([]any(nil), list...))
		} else {
			addConst(s, list[0])
		}
	}
	in := make(map[any]bool, len(list))
	for _, v := range list {
		in[v] = true
	}
	switch values[0].Kind() {
	case reflect.String:
		k.text = func(s string) bool { return in[s] }
	case reflect.Bool:
		k.boolean = func(b bool) bool { return in[b] }
	case reflect.Float32, reflect.Float64:
		k.float = func(f float64) bool { return in[f] }
		exact := make([]*big.Rat, 0, len(list))
		for _, v := range list {
			if x, ok := exactNumber(string(appendAny(nil, v))); ok {
				exact = append(exact, x)
			}
		}
		k.decimal = func(x *big.Rat) bool {
			return slices.ContainsFunc(exact, func(y *big.Rat) bool { return x.Cmp(y) == 0 })
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		k.unsigned = func(u uint64) bool { return in[u] }
	default:
		k.integer = func(i int64) bool { return in[i] }
	}
	return k
}

// plainValue returns v as string, bool, int64, uint64 or float64.
func plainValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
		return f
	case reflect.Float64:
		return v.Float()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	}
	return v.Int()
}

// requiredText is what validate:"required" adds on text: it may not be empty.
func requiredText() check {
	c := lengthCheck(rule{written: "required"}, target{kind: kindText}, textCounter, "minLength", 1, -1)
	c.emit = func(s *jsonschema.Schema) { raise(&s.MinLength, 1) }
	c.text = func(s string) bool { return s != "" }
	return c
}

// requiredNonZero is what required adds with Options.RequiredNonZero.
func requiredNonZero(n *node) (check, bool) {
	k := check{tag: "required", code: "not", want: otherThan(n.target(nil).kind, json.Number("0")),
		emit: func(s *jsonschema.Schema) { addNot(s, &jsonschema.Schema{Const: json.Number("0")}) }}
	switch n.kind {
	case nodeInt:
		k.integer = func(v int64) bool { return v != 0 }
	case nodeUint:
		k.unsigned = func(v uint64) bool { return v != 0 }
	case nodeFloat:
		k.float = func(v float64) bool { return v != 0 }
		k.decimal = func(x *big.Rat) bool { return x.Sign() != 0 }
	case nodeBool:
		k.code, k.want = "const", "true"
		k.emit = func(s *jsonschema.Schema) { addConst(s, true) }
		k.boolean = func(v bool) bool { return v }
	default:
		return k, false
	}
	return k, true
}

// zeroCheck is validate:"isdefault": the value may be there, but only as zero.
func zeroCheck(n *node) check {
	k := check{tag: "isdefault", code: ruleExcluded, want: "left out or 0"}
	constant := func(v any) { k.emit = func(s *jsonschema.Schema) { addConst(s, v) } }
	switch n.kind {
	case nodeString:
		k.want = "left out or empty"
		constant("")
		k.text = func(s string) bool { return s == "" }
	case nodeInt:
		constant(json.Number("0"))
		k.integer = func(v int64) bool { return v == 0 }
	case nodeUint:
		constant(json.Number("0"))
		k.unsigned = func(v uint64) bool { return v == 0 }
	case nodeFloat:
		constant(json.Number("0"))
		k.float = func(v float64) bool { return v == 0 }
		k.decimal = func(x *big.Rat) bool { return x.Sign() == 0 }
	case nodeBool:
		k.want = "left out or false"
		constant(false)
		k.boolean = func(v bool) bool { return !v }
	case nodeList, nodeMap, nodeBytes:
		k.want = "left out or empty"
		k.emit = func(s *jsonschema.Schema) {
			switch n.kind {
			case nodeList:
				lower(&s.MaxItems, 0)
			case nodeMap:
				lower(&s.MaxProperties, 0)
			default:
				lower(&s.MaxLength, 0)
			}
		}
		k.count = func(c int) bool { return c == 0 }
	default:
		k.want, k.note = "left out or empty", "Must be left out or empty."
		k.value = func(v reflect.Value) bool { return v.IsZero() }
	}
	return k
}

// emittedBytes returns the schema that one check writes.
func emittedBytes(k check) []byte {
	s := &jsonschema.Schema{}
	if k.emit != nil {
		k.emit(s)
	}
	return encodeSchema(nil, s)
}
