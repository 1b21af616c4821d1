package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// Hosts hand the schema of a tool to models through validators and grammars that have
// less than JSON Schema, and one keyword too many can cost all tools of a request. The
// functions of this file write the narrow schema of arguments: what all of them take.
// It accepts whatever the exact schema accepts. An omitted keyword is a sentence of the
// description, and the decoder checks it as before.

// fewest is the length from which on grammars do not take a limit of a text or a list.
const fewest = 2000

// formats are those that every host takes.
var formats = []string{"date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"}

// narrower narrows what stands at a position of one type.
type narrower struct {
	typ     string // of JSON Schema
	integer bool   // no value there has a fraction
}

// narrowerOf returns the narrower for a node.
func narrowerOf(n *node) narrower {
	return narrower{n.name, n.kind == nodeInt || n.kind == nodeUint || n.kind == nodeDuration}
}

// narrow leaves in s what every host takes. It reports whether s says less then, so
// that words are needed. Schemas below items and properties are not looked at.
func (w narrower) narrow(s *jsonschema.Schema) (less bool) {
	if s.ExclusiveMinimum != "" {
		less = w.inclusive(&s.Minimum, s.ExclusiveMinimum, 1) || less
		s.ExclusiveMinimum = ""
	}
	if s.ExclusiveMaximum != "" {
		less = w.inclusive(&s.Maximum, s.ExclusiveMaximum, -1) || less
		s.ExclusiveMaximum = ""
	}
	if s.Pattern != "" {
		plain, ok := regex.Plain(s.Pattern)
		if !ok {
			plain = ""
		}
		s.Pattern, less = plain, less || !ok
	}
	for _, at := range []**uint64{&s.MaxLength, &s.MinLength, &s.MaxItems, &s.MinItems} {
		if *at != nil && **at >= fewest {
			*at, less = nil, true
		}
	}
	if s.Const != nil {
		s.Enum = append(s.Enum, s.Const)
		s.Const = nil
	}
	if s.Enum != nil {
		less = w.values(s) || less
	}
	if s.Format != "" && !slices.Contains(formats, s.Format) {
		less = less || s.Format != "int64" && s.Format != "uint64"
		s.Format = ""
	}
	if s.AnyOf != nil {
		less = w.alternatives(s) || less
	}
	return drop(s) || less
}

// drop removes the keywords that some host refuses wherever they stand.
func drop(s *jsonschema.Schema) (less bool) {
	if s.Not == nil && s.AllOf == nil && s.OneOf == nil && s.If == nil && s.Then == nil && s.Else == nil &&
		s.DependentRequired == nil && s.DependentSchemas == nil && s.PatternProperties == nil && s.PropertyNames == nil &&
		!s.UniqueItems && s.Contains == nil && s.MinContains == nil && s.MaxContains == nil && s.PrefixItems == nil && s.MultipleOf == "" {
		return false
	}
	s.Not, s.AllOf, s.OneOf, s.If, s.Then, s.Else = nil, nil, nil, nil, nil, nil
	s.DependentRequired, s.DependentSchemas, s.PatternProperties, s.PropertyNames = nil, nil, nil, nil
	s.UniqueItems, s.Contains, s.MinContains, s.MaxContains, s.PrefixItems, s.MultipleOf = false, nil, nil, nil, nil, ""
	return true
}

// inclusive turns an exclusive bound into an inclusive one, the next integer where
// there are no fractions.
func (w narrower) inclusive(at *json.Number, bound json.Number, step int64) (less bool) {
	n, err := bound.Int64()
	exact := err == nil && w.integer && (n+step > n) == (step > 0) // else it is beyond 64 bits
	if exact {
		bound = json.Number(strconv.FormatInt(n+step, 10))
	}
	if step > 0 {
		schemadoc.RaiseNumber(at, bound)
	} else {
		schemadoc.LowerNumber(at, bound)
	}
	return !exact
}

// values narrows an enumeration: of texts to those that are not empty, of numbers
// to the least and the greatest.
func (w narrower) values(s *jsonschema.Schema) (less bool) {
	list := s.Enum
	s.Enum = nil
	texts, empty, yes, no := true, -1, false, false
	for i, v := range list {
		_, text := v.(string)
		texts = texts && text
		switch v {
		case "":
			empty = i
		case true:
			yes = true
		case false:
			no = true
		}
	}
	switch {
	case texts && empty < 0:
		s.Enum = list
		return false
	case texts && len(list) == 1:
		schemadoc.Lower(&s.MaxLength, 0)
		return false
	case texts && s.AnyOf == nil && w.typ == "string":
		zero := uint64(0)
		s.AnyOf = []*jsonschema.Schema{{Type: w.typ, Enum: append(list[:empty:empty], list[empty+1:]...)}, {Type: w.typ, MaxLength: &zero}}
		return false
	case yes && no:
		return len(list) > 2 // both of them, which is what the type says
	}
	low, high, gaps, ok := ends(list)
	if !ok {
		return true
	}
	schemadoc.RaiseNumber(&s.Minimum, low)
	schemadoc.LowerNumber(&s.Maximum, high)
	return gaps || low != high && !w.integer
}

// ends returns the least and the greatest of numbers. gaps is set unless the numbers are
// all integers between them. ok is false if something else is among them.
func ends(list []any) (low, high json.Number, gaps, ok bool) {
	seen := map[int64]bool{}
	for _, v := range list {
		text := json.Number(wording.AppendJSON(nil, v))
		if _, err := text.Float64(); err != nil {
			return "", "", false, false
		}
		n, err := text.Int64()
		seen[n], gaps = true, gaps || err != nil
		schemadoc.LowerNumber(&low, text)
		schemadoc.RaiseNumber(&high, text)
	}
	least, _ := low.Int64()
	most, _ := high.Int64()
	return low, high, low != high && (gaps || most-least+1 != int64(len(seen))), low != ""
}

// alternatives narrows each branch of an anyOf and gives it the type. If a branch says
// nothing then, neither does the anyOf, and it goes.
func (w narrower) alternatives(s *jsonschema.Schema) (less bool) {
	branches := make([]*jsonschema.Schema, 0, len(s.AnyOf))
	for _, b := range s.AnyOf {
		own := schemadoc.Clone(b) // alternatives of a tag share theirs
		less = w.narrow(own) || less
		if schemadoc.IsEmpty(own) || schemadoc.IsOnly(own, &jsonschema.Schema{Type: w.typ}) {
			s.AnyOf = nil
			return true
		}
		if own.Type == "" {
			own.Type = w.typ
		}
		branches = append(branches, own)
	}
	s.AnyOf = branches
	return less
}

// add adds to s what a check writes, narrowed. It reports whether words are needed for
// the check, also because s has another value of a keyword already. one is room to work
// in, which is overwritten.
func (w narrower) add(one, s *jsonschema.Schema, emit func(*jsonschema.Schema)) (less bool) {
	*one = jsonschema.Schema{}
	emit(one)
	less = w.narrow(one)
	for _, side := range [][2]**uint64{{&s.MinLength, &one.MinLength}, {&s.MinItems, &one.MinItems}, {&s.MinProperties, &one.MinProperties}} {
		if *side[1] != nil {
			schemadoc.Raise(side[0], **side[1])
			*side[1] = nil
		}
	}
	for _, side := range [][2]**uint64{{&s.MaxLength, &one.MaxLength}, {&s.MaxItems, &one.MaxItems}, {&s.MaxProperties, &one.MaxProperties}} {
		if *side[1] != nil {
			schemadoc.Lower(side[0], **side[1])
			*side[1] = nil
		}
	}
	if one.Minimum != "" {
		schemadoc.RaiseNumber(&s.Minimum, one.Minimum)
	}
	if one.Maximum != "" {
		schemadoc.LowerNumber(&s.Maximum, one.Maximum)
	}
	one.Minimum, one.Maximum = "", ""
	if s.Examples != nil {
		one.Examples = nil
	}
	own := s.AllOf // of an author
	s.AllOf = nil
	schemadoc.AddAll(s, one)
	less = less || s.AllOf != nil
	s.AllOf = own
	return less
}

// orZero adds the zero value as an alternative to limits.
func (w narrower) orZero(s, limits *jsonschema.Schema, zero any) {
	first := &jsonschema.Schema{Type: w.typ, Const: zero}
	if w.narrow(first) {
		return
	}
	if limits.Type == "" {
		limits.Type = w.typ
	}
	s.AnyOf = append(s.AnyOf, first, limits)
}

// orNull makes a schema accept null by an anyOf. What describes stays outside.
func orNull(s *jsonschema.Schema) {
	null := &jsonschema.Schema{Type: "null"}
	one := *s
	one.Title, one.Description, one.Default, one.Examples = "", "", nil, nil
	one.Deprecated, one.ReadOnly, one.WriteOnly = false, false, false
	outer := jsonschema.Schema{Title: s.Title, Description: s.Description, Default: s.Default, Examples: s.Examples,
		Deprecated: s.Deprecated, ReadOnly: s.ReadOnly, WriteOnly: s.WriteOnly}
	switch branches := one.AnyOf; {
	case schemadoc.IsEmpty(&one):
		return // any value
	case branches != nil && schemadoc.IsOnly(&one, &jsonschema.Schema{Type: one.Type, AnyOf: branches}):
		outer.AnyOf = append(slices.Clone(branches), null)
	default:
		outer.AnyOf = []*jsonschema.Schema{&one, null}
	}
	*s = outer
}

// narrowType narrows what the type of a node writes and returns the sentences that
// are needed then. A schema that an author wrote stays unchanged.
func (e *emitter) narrowType(n *node, s *jsonschema.Schema) (words []string) {
	switch n.kind {
	case nodeObject, nodeUnion, nodeNull, nodeRef, nodeOpaque, nodeAny, nodeRaw:
		return nil
	case nodeMap:
		names := s.PropertyNames
		if names == nil || n.key.hookedKey || n.key.extend != nil {
			return nil
		}
		words = append(words, "Each name must be "+n.key.describe()+".")
		for _, k := range n.key.checks {
			if rest, ok := strings.CutPrefix(k.Note, "Must "); ok && k.Note != "Must be "+k.Want+"." {
				words = append(words, "Each name must "+rest)
			}
		}
		s.PropertyNames = nil
		return words
	}
	if n.hookedKey {
		return nil
	}
	if narrowerOf(n).narrow(s) {
		own := *n
		own.checks, own.nullable, own.inNull = nil, false, false
		words = append(words, "Must be "+own.describe()+".")
	}
	return words
}

// sentence says a check that the narrow schema does not.
func sentence(n *node, k *rules.Check) string {
	text := wording.MustBe(n.wanted(k), "")
	if n.orZero {
		switch zero, ok := zeroJSON(n); {
		case ok && zero == "":
			text += ", or empty"
		case ok:
			text += ", or " + string(wording.AppendJSON(nil, zero))
		}
	}
	return "M" + text[1:] + "."
}

// keep puts into s what differs between two schemas, at every level of properties.
func (e *emitter) keep(s, before, after *jsonschema.Schema) {
	to, old, now := reflect.ValueOf(s).Elem(), reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	members := s.Properties != nil && before.Properties != nil && after.Properties != nil
	for i := range now.NumField() {
		name := now.Type().Field(i).Name
		if name == "Properties" && members || !to.Field(i).CanSet() || reflect.DeepEqual(old.Field(i).Interface(), now.Field(i).Interface()) {
			continue
		}
		to.Field(i).Set(now.Field(i))
		if name == "Description" {
			for _, words := range e.said[s] {
				s.Description = joinSentences(s.Description, words)
			}
		}
	}
	if !members {
		return
	}
	for p := before.Properties.Oldest(); p != nil; p = p.Next() {
		if _, left := after.Properties.Get(p.Key); !left {
			s.Properties.Delete(p.Key)
		}
	}
	for p := after.Properties.Oldest(); p != nil; p = p.Next() {
		own, has := s.Properties.Get(p.Key)
		was, had := before.Properties.Get(p.Key)
		if has && had {
			e.keep(own, was, p.Value)
		} else {
			s.Properties.Set(p.Key, p.Value)
		}
	}
}
