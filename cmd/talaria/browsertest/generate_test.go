package browsertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// shape is what a schema allows, with its references followed: they are not followed
// into themselves. A leaf is a shape that has no other within it.
type shape struct {
	place  string
	schema map[string]any
	kind   string // a type of JSON Schema, "any", or "union"
	kinds  []*shape
	fields []field
	rest   *shape // of further members
	item   *shape
}

type field struct {
	key      string
	required bool
	*shape
}

// leaves adds those of a shape to all.
func (s *shape) leaves(all map[string]bool) {
	for _, k := range s.kinds {
		k.leaves(all)
	}
	for _, f := range s.fields {
		f.leaves(all)
	}
	for _, one := range []*shape{s.rest, s.item} {
		if one != nil {
			one.leaves(all)
		}
	}
	if len(s.kinds) == 0 && len(s.fields) == 0 && s.rest == nil && s.item == nil {
		all[s.place] = true
	}
}

// among tells whether a leaf of the shape is one of those.
func (s *shape) among(wanted map[string]bool) int {
	n, all := 0, map[string]bool{}
	s.leaves(all)
	for place := range all {
		if wanted[place] {
			n++
		}
	}
	return n
}

// shaper makes shapes of one schema.
type shaper struct{ root any }

// shape is nil for a schema that is being read already.
func (r shaper) shape(schema any, place string, open []string) *shape {
	s, _ := schema.(map[string]any) // true is any value
	s = maps.Clone(s)
	for ref, ok := s["$ref"].(string); ok; ref, ok = s["$ref"].(string) {
		if slices.Contains(open, ref) {
			return nil
		}
		open = append(slices.Clone(open), ref)
		delete(s, "$ref")
		s = joined(r.lookup(ref), s)
	}
	if all, ok := s["allOf"].([]any); ok {
		delete(s, "allOf")
		for _, part := range all {
			if p, ok := part.(map[string]any); ok {
				s = joined(s, p)
			}
		}
		return r.shape(s, place, open)
	}
	if s["enum"] == nil && s["const"] == nil {
		for _, word := range []string{"anyOf", "oneOf"} {
			if branches, ok := s[word].([]any); ok {
				return r.union(s, word, branches, place, open)
			}
		}
		if types, ok := s["type"].([]any); ok {
			return r.union(s, "type", types, place, open)
		}
	}
	out := &shape{place: place, schema: s, kind: kindOf(s)}
	switch out.kind {
	case "object":
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			needed := slices.Contains(required, any(key))
			if inner := r.shape(properties[key], place+"/"+key, open); inner != nil {
				out.fields = append(out.fields, field{key, needed, inner})
			} else if needed {
				return nil
			}
		}
		if additional, ok := s["additionalProperties"].(map[string]any); ok || len(out.fields) == 0 && s["additionalProperties"] != false {
			out.rest = r.shape(additional, place+"/*", open)
		}
	case "array":
		out.item = r.shape(s["items"], place+"/[]", open)
	}
	return out
}

func (r shaper) union(s map[string]any, word string, branches []any, place string, open []string) *shape {
	s = maps.Clone(s)
	delete(s, word)
	out := &shape{place: place, schema: s, kind: "union"}
	for i, branch := range branches {
		b, ok := branch.(map[string]any)
		if !ok {
			b = map[string]any{word: branch} // a type
		}
		one := b
		if b["$ref"] == nil {
			one = joined(s, b)
		} else if len(s) > 0 {
			one = map[string]any{"allOf": []any{s, b}}
		}
		inner := r.shape(one, fmt.Sprintf("%s|%d", place, i), open)
		switch {
		case inner == nil:
		case inner.kind == "union":
			out.kinds = append(out.kinds, inner.kinds...)
		default:
			out.kinds = append(out.kinds, inner)
		}
	}
	switch len(out.kinds) {
	case 0:
		return nil
	case 1:
		return out.kinds[0]
	}
	return out
}

func (r shaper) lookup(ref string) map[string]any {
	at := r.root
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch in := at.(type) {
		case map[string]any:
			at = in[step]
		case []any:
			i, _ := strconv.Atoi(step) // else the first, which the validator will not like
			at = in[i]
		}
	}
	out, _ := at.(map[string]any)
	return maps.Clone(out)
}

// joined has what both schemas say.
func joined(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for word, v := range b {
		switch have := out[word].(type) {
		case map[string]any:
			if more, ok := v.(map[string]any); ok && word == "properties" {
				v = joined(have, more)
			}
		case []any:
			if more, ok := v.([]any); ok && word == "required" {
				v = slices.Concat(have, more)
			}
		}
		out[word] = v
	}
	return out
}

func kindOf(s map[string]any) string {
	if name, ok := s["type"].(string); ok {
		return name
	}
	switch {
	case s["enum"] != nil || s["const"] != nil:
		return "string" // or whatever those are
	case s["properties"] != nil:
		return "object"
	case s["items"] != nil:
		return "array"
	}
	return "any"
}

// value is JSON, with the shape of each part.
type value struct {
	*shape
	text    string  // of what is neither a list nor an object
	key     string  // of a member
	free    bool    // that has no name in the schema
	inner   []value // members or items
	among   *shape  // the union that the shape was chosen from
	written string  // "list" or "object", if it is one
}

func (v value) JSON() string {
	var parts []string
	for _, one := range v.inner {
		text := one.JSON()
		if v.written == "object" {
			text = quote(one.key) + ":" + text
		}
		parts = append(parts, text)
	}
	switch v.written {
	case "object":
		return "{" + strings.Join(parts, ",") + "}"
	case "list":
		return "[" + strings.Join(parts, ",") + "]"
	}
	return v.text
}

// generator makes values. Of the leaves that are wanted it takes as many as it can.
type generator struct {
	*rand.Rand
	wanted map[string]bool
	all    bool // each property, and not only those that are required or wanted
}

func (g *generator) value(s *shape) value {
	if s.kind == "union" {
		best, most := s.kinds[g.IntN(len(s.kinds))], 0
		for _, k := range s.kinds {
			if n := k.among(g.wanted); n > most {
				best, most = k, n
			}
		}
		v := g.value(best)
		v.among = s
		return v
	}
	v := value{shape: s}
	if len(s.fields) == 0 && s.rest == nil && s.item == nil {
		delete(g.wanted, s.place)
	}
	if fixed, ok := s.schema["const"]; ok {
		v.text = encoded(fixed)
		return v
	}
	if list, ok := s.schema["enum"].([]any); ok {
		v.text = encoded(list[g.IntN(len(list))])
		return v
	}
	switch s.kind {
	case "object":
		g.object(&v)
	case "array":
		g.list(&v)
	case "any":
		g.any(&v)
	case "boolean":
		v.text = strconv.FormatBool(g.IntN(2) == 0)
	case "null":
		v.text = "null"
	case "integer", "number":
		v.text = g.number(s.schema, s.kind == "integer")
	default:
		v.text = quote(g.string(s.schema))
	}
	return v
}

func (g *generator) object(v *value) {
	v.written = "object"
	for _, f := range v.fields {
		if f.required || g.all || f.among(g.wanted) > 0 {
			inner := g.value(f.shape)
			inner.key = f.key
			v.inner = append(v.inner, inner)
		}
	}
	if v.rest == nil {
		return
	}
	least, _ := limit(v.schema, "minProperties")
	for i := range max(1+g.IntN(2), int(least)) {
		inner := g.value(v.rest)
		inner.key, inner.free = fmt.Sprintf("%s_%d", g.word(), i), true
		v.inner = append(v.inner, inner)
	}
}

func (g *generator) list(v *value) {
	v.written = "list"
	if v.item == nil {
		return
	}
	n := 1 + g.IntN(2)
	if least, ok := limit(v.schema, "minItems"); ok {
		n = max(n, int(least))
	}
	if most, ok := limit(v.schema, "maxItems"); ok {
		n = min(n, int(most))
	}
	for range n {
		v.inner = append(v.inner, g.value(v.item))
	}
}

// any makes a value of which the schema says nothing.
func (g *generator) any(v *value) {
	free := &shape{place: v.place, kind: "any"}
	switch g.IntN(6) {
	case 0:
		v.text = g.number(nil, false)
	case 1:
		v.text = strconv.FormatBool(g.IntN(2) == 0)
	case 2:
		v.written = "object"
		v.inner = []value{{shape: free, key: g.word(), free: true, text: quote(g.string(nil))}}
	case 3:
		v.written = "list"
		v.inner = []value{{shape: free, text: g.number(nil, false)}, {shape: free, text: "null"}}
	default:
		v.text = quote(g.string(nil))
	}
}

func limit(schema map[string]any, word string) (float64, bool) {
	n, ok := schema[word].(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func (g *generator) number(schema map[string]any, integer bool) string {
	low, bounded := limit(schema, "minimum")
	if n, ok := limit(schema, "exclusiveMinimum"); ok {
		low, bounded = math.Floor(n)+1, true
	}
	high, capped := limit(schema, "maximum")
	if n, ok := limit(schema, "exclusiveMaximum"); ok {
		high, capped = math.Ceil(n)-1, true
	}
	switch {
	case !bounded && !capped:
		some := []string{"0", "-7", "42", "1" + strconv.Itoa(g.IntN(1000))}
		if schema["format"] == nil {
			some = append(some, "9007199254740993")
		}
		if !integer {
			some = append(some, "1.10", "-0.5", "2e3", "6.02E+23")
		}
		return some[g.IntN(len(some))]
	case !capped:
		high = low + 1000
	case !bounded:
		low = high - 1000
	}
	if !integer && g.IntN(2) == 0 {
		return strconv.FormatFloat(low+(high-low)*g.Float64(), 'f', 3, 64)
	}
	low, high = math.Ceil(low), min(math.Floor(high), math.Ceil(low)+1e6)
	return strconv.Itoa(int(low) + g.IntN(int(high-low)+1))
}

func (g *generator) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	out := make([]byte, 4+g.IntN(4))
	for i := range out {
		out[i] = letters[g.IntN(len(letters))]
	}
	return string(out)
}

// texts are easily taken for what they are not.
var texts = []string{"12", "1.0", "true", "null", `{"a":1}`, "[]", ` before and after `, `"quoted"`, `back\slash\n`, "Grüße 😀", "a/b~c", "<b>&amp;", "@file", "=x", "-"}

func (g *generator) string(schema map[string]any) string {
	if pattern, ok := schema["pattern"].(string); ok {
		if tree, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			return g.matching(tree.Simplify())
		}
	}
	digits := func() int { return g.IntN(10) }
	switch schema["format"] {
	case "uuid":
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", g.Uint32(), g.IntN(1<<16), g.IntN(1<<12), g.IntN(1<<12), g.IntN(1<<48))
	case "uri", "url":
		return "https://example.com/" + g.word() + "?q=" + g.word()
	case "email":
		return g.word() + "@example.com"
	case "date":
		return fmt.Sprintf("202%d-0%d-1%d", digits(), 1+g.IntN(9), digits())
	case "time":
		return fmt.Sprintf("1%d:2%d:3%d", digits(), digits(), digits())
	case "date-time":
		return fmt.Sprintf("202%d-0%d-1%dT1%d:2%d:00Z", digits(), 1+g.IntN(9), digits(), digits(), digits())
	}
	text := g.word() + " " + g.word()
	if g.IntN(2) == 0 {
		text = texts[g.IntN(len(texts))]
	}
	if least, ok := limit(schema, "minLength"); ok {
		text += strings.Repeat("x", max(0, int(least)-len([]rune(text))))
	}
	if most, ok := limit(schema, "maxLength"); ok && len([]rune(text)) > int(most) {
		text = string([]rune(text)[:int(most)])
	}
	return text
}

// matching makes a text that a pattern matches.
func (g *generator) matching(re *syntax.Regexp) string {
	var out strings.Builder
	times := func(low, high int) {
		for range low + g.IntN(high-low+1) {
			out.WriteString(g.matching(re.Sub[0]))
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		i := 2 * g.IntN(len(re.Rune)/2)
		low, high := re.Rune[i], min(re.Rune[i+1], re.Rune[i]+25)
		return string(low + rune(g.IntN(int(high-low)+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpStar:
		times(0, 3)
	case syntax.OpPlus:
		times(1, 4)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, max(re.Max, re.Min+2))
	case syntax.OpAlternate:
		return g.matching(re.Sub[g.IntN(len(re.Sub))])
	case syntax.OpConcat, syntax.OpCapture:
		for _, part := range re.Sub {
			out.WriteString(g.matching(part))
		}
	}
	return out.String()
}

func encoded(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was decoded always encodes
	return strings.TrimSpace(out.String())
}

// plan is how the arguments of a tool are made and judged.
type plan struct {
	name   string
	title  string // what is shown in its place
	shape  *shape
	leaves map[string]bool
	schema *jsonschema.Schema
}

func planOf(tool json.RawMessage) (*plan, error) {
	var d struct {
		Name, Title string
		Annotations struct{ Title string }
		InputSchema json.RawMessage
	}
	if err := json.Unmarshal(tool, &d); err != nil {
		return nil, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.InputSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("tool.json", root); err != nil {
		return nil, err
	}
	p := &plan{name: d.Name, title: cmp.Or(d.Title, d.Annotations.Title), leaves: map[string]bool{}}
	if p.schema, err = c.Compile("tool.json"); err != nil {
		return nil, err
	}
	p.shape = shaper{root}.shape(root, "", nil)
	p.shape.leaves(p.leaves)
	if p.shape.kind == "any" || p.shape.rest != nil && len(p.shape.fields) == 0 {
		p.shape, p.leaves = &shape{kind: "object"}, map[string]bool{} // a tool that names no argument
	}
	return p, nil
}

// arguments makes arguments that the schema allows.
func (p *plan) arguments(seed uint64, round int, wanted map[string]bool) (value, error) {
	var err error
	for try := range uint64(50) {
		g := &generator{rand.New(rand.NewPCG(seed, try)), maps.Clone(wanted), round < 2}
		v := g.value(p.shape)
		var read any
		if read, err = jsonschema.UnmarshalJSON(strings.NewReader(v.JSON())); err != nil {
			return value{}, fmt.Errorf("%s: %w", v.JSON(), err)
		}
		if err = p.schema.Validate(read); err == nil {
			return v, nil
		}
		err = fmt.Errorf("%s: %w", v.JSON(), err)
	}
	return value{}, err
}

// rounds makes arguments until each leaf was in some, two at least.
func (p *plan) rounds(most int) (all []value, left map[string]bool, err error) {
	left = maps.Clone(p.leaves)
	for round := 0; round < 2 || len(left) > 0 && round < most; round++ {
		wanted := left
		if round == 1 {
			wanted = p.leaves
		}
		v, err := p.arguments(uint64(round), round, wanted)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, v)
		v.each(func(v value) { delete(left, v.place) })
	}
	return all, left, nil
}

// each visits all parts of a value.
func (v value) each(visit func(value)) {
	visit(v)
	for _, inner := range v.inner {
		inner.each(visit)
	}
}

// TestGenerate: arguments are valid, and each leaf of a schema is in some.
func TestGenerate(t *testing.T) {
	t.Parallel()
	sets := map[string][]json.RawMessage{"kinds": kindsOfTools}
	if *pinned != "" {
		maps.Copy(sets, collected(t))
	}
	for name, tools := range sets {
		leaves, rounds := 0, 0
		for _, tool := range tools {
			p, err := planOf(tool)
			if err != nil {
				t.Errorf("%s: %v: %.200s", name, err, tool)
				continue
			}
			all, left, err := p.rounds(mostRounds)
			if err != nil {
				t.Errorf("%s: %s: %v", name, p.name, err)
				continue
			}
			leaves, rounds = leaves+len(p.leaves), rounds+len(all)
			if len(left) > 0 {
				t.Errorf("%s: %s: %d of %d leaves are in no arguments: %.300v", name, p.name, len(left), len(p.leaves), slices.Sorted(maps.Keys(left)))
			}
		}
		t.Logf("%-50s %3d tools, %5d leaves, %3d calls", name, len(tools), leaves, rounds)
	}
}

// differences are the places at which what arrived is not what was meant, and why.
func differences(want value, got any, tell func(place, why string)) {
	all := func(why string) { want.each(func(v value) { tell(v.place, why) }) }
	switch want.written {
	case "object":
		have, ok := got.(map[string]any)
		if !ok {
			all(fmt.Sprintf("arrived as %.60s", encoded(got)))
			return
		}
		for _, inner := range want.inner {
			arrived, ok := have[inner.key]
			if !ok {
				inner.each(func(v value) { tell(v.place, "did not arrive") })
				continue
			}
			differences(inner, arrived, tell)
		}
		for key := range have {
			if !slices.ContainsFunc(want.inner, func(v value) bool { return v.key == key }) {
				all(fmt.Sprintf("came with a member %q", key))
			}
		}
	case "list":
		have, ok := got.([]any)
		if !ok || len(have) != len(want.inner) {
			all(fmt.Sprintf("arrived as %.60s", encoded(got)))
			return
		}
		for i, inner := range want.inner {
			differences(inner, have[i], tell)
		}
	default:
		if text := encoded(got); text != canonical(want.text) {
			tell(want.place, fmt.Sprintf("arrived as %.60s, and not %.60s", cmp.Or(text, "nothing"), want.text))
		}
	}
}

// canonical is a JSON text as encoded writes it; numbers keep their digits.
func canonical(text string) string {
	read, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return text
	}
	return encoded(read)
}
