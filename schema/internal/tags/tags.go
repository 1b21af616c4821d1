// Package tags reads the grammar of struct tags. It knows the shape of a tag and
// nothing of what its rules mean.
package tags

import (
	"fmt"
	"slices"
	"strings"
)

// The names that shape a validate tag. They are no rules of their own and
// may not stand among alternatives.
const (
	tagDive    = "dive"
	tagKeys    = "keys"
	tagEndKeys = "endkeys"
)

// ShapeTags are the names without a parameter that Parse handles
// itself.
var ShapeTags = map[string]bool{
	tagDive: true, tagKeys: true, tagEndKeys: true, "-": true,
	"omitempty": true, "omitnil": true, "omitzero": true,
	"required": true, "isdefault": true, "structonly": true, "nostructlevel": true,
}

// ConditionalTags are presence rules that look at other fields. The value
// tells whether their parameter is pairs of field and value.
var ConditionalTags = map[string]bool{
	"required_if": true, "required_unless": true, "skip_unless": true,
	"excluded_if": true, "excluded_unless": true,
	"required_with": false, "required_with_all": false,
	"required_without": false, "required_without_all": false,
	"excluded_with": false, "excluded_with_all": false,
	"excluded_without": false, "excluded_without_all": false,
}

// CrossTags compare a field with another one.
var CrossTags = map[string]bool{
	"eqfield": true, "nefield": true, "gtfield": true, "gtefield": true,
	"ltfield": true, "ltefield": true, "eqcsfield": true, "necsfield": true,
	"gtcsfield": true, "gtecsfield": true, "ltcsfield": true, "ltecsfield": true,
	"fieldcontains": true, "fieldexcludes": true,
	"postcode_iso3166_alpha2_field": true,
}

// tagProblem makes a problem about one element of a validate tag.
func tagProblem(written, msg, fix string) Problem {
	return Problem{Tag: fmt.Sprintf("validate:%q", written), Msg: msg, Fix: fix}
}

// Parse reads a validate tag in go-playground's grammar: ',' splits
// first, then '|', then the first '='; 0x2C and 0x7C in a parameter stand for
// ',' and '|'. What that grammar would only find out at run time, or would
// take for something else than it looks, is a problem here.
func Parse(tag string, aliases map[string]string, known func(name string) bool) (*Rules, []Problem) {
	p := &tagParser{aliases: aliases, known: known}
	top := &Rules{}
	switch tag {
	case "":
		return top, nil
	case "-":
		top.Skip = true
		return top, nil
	}
	p.elements = p.expand(nil, tag, nil)
	p.level(top, "")
	return top, p.problems
}

// tagParser holds what Parse knows while it walks the elements.
type tagParser struct {
	aliases  map[string]string
	known    func(name string) bool
	elements []string
	pos      int
	problems []Problem
}

// fault adds a problem about an element as it is written.
func (p *tagParser) fault(written, msg, fix string) {
	p.problems = append(p.problems, tagProblem(written, msg, fix))
}

// expand splits tag at its commas and puts aliases in place of their names.
// within are the aliases being expanded, so that a cycle ends.
func (p *tagParser) expand(out []string, tag string, within []string) []string {
	for _, e := range strings.Split(tag, ",") {
		body, ok := p.aliases[e]
		switch {
		case !ok:
			out = append(out, e)
		case p.known(e):
			p.fault(e, fmt.Sprintf("alias %q hides the built-in rule of that name", e), "choose another name for the alias")
		case slices.Contains(within, e):
			p.fault(e, fmt.Sprintf("alias %q refers to itself", e), "remove the cycle from the aliases")
		default:
			out = p.expand(out, body, append(within[:len(within):len(within)], e))
		}
	}
	return out
}

// level reads the elements of one level into to, until the end or, inside
// keys, until endkeys.
func (p *tagParser) level(to *Rules, end string) {
	ruled := false // a rule has been seen on this level
	for p.pos < len(p.elements) {
		e := p.elements[p.pos]
		p.pos++
		switch {
		case e == tagEndKeys:
			if end == tagEndKeys {
				p.contradictions(to)
				return
			}
			p.fault(e, "endkeys without keys", "write dive,keys,…,endkeys,…")
		case e == tagKeys:
			p.fault(e, "keys must come directly after dive", "write dive,keys,…,endkeys,…")
		case e == tagDive:
			if end == tagEndKeys {
				p.fault(e, "dive inside keys: map keys have no elements", "close keys with endkeys first")
				continue
			}
			p.dive(to)
			return
		case ShapeTags[e]:
			p.shape(to, e, ruled)
		default:
			r, ok := p.rule(e)
			if !ok {
				continue
			}
			ruled = p.place(to, r) || ruled
		}
	}
	if end == tagEndKeys {
		p.fault(tagKeys, "keys without endkeys", "write dive,keys,…,endkeys,…")
	}
	p.contradictions(to)
}

// dive reads what follows dive: the rules of keys, if any, and of elements.
func (p *tagParser) dive(to *Rules) {
	p.contradictions(to)
	if p.pos < len(p.elements) && p.elements[p.pos] == tagKeys {
		p.pos++
		to.Keys = &Rules{}
		p.level(to.Keys, tagEndKeys)
	}
	to.Elem = &Rules{}
	p.level(to.Elem, "")
}

// shape takes an element that is a bare word of the grammar.
func (p *tagParser) shape(to *Rules, e string, ruled bool) {
	switch e {
	case "required":
		to.Required = true
	case "isdefault":
		to.IsDefault = true
	case "structonly", "nostructlevel":
		to.StructOnly = e
	case "-":
		p.fault(e, `"-" switches validation off and must be the whole tag`, `write validate:"-" alone, or remove the "-"`)
	default: // omitempty, omitnil, omitzero
		if ruled {
			p.fault(e, e+" must come before the rules: those in front of it run on empty values too", "move "+e+" to the front")
		}
		if to.Omit == "" {
			to.Omit = e
		}
	}
}

// place files a rule under what it is about, and reports whether it is a rule
// on the value itself.
func (p *tagParser) place(to *Rules, r Rule) bool {
	pairs, conditional := ConditionalTags[r.Name]
	switch {
	case conditional:
		if to.Omit != "" {
			p.fault(r.Written, fmt.Sprintf("%s after %s never runs", r.Name, to.Omit), "remove "+to.Omit+": a field with a condition is optional already")
		}
		p.checkCondition(r, pairs)
		to.Conditionals = append(to.Conditionals, r)
		return false
	case CrossTags[r.Name]:
		if fields := strings.Fields(r.Param); len(fields) != 1 {
			p.fault(r.Written, r.Name+" needs the name of one field", "write "+r.Name+"=Field")
		}
		to.Cross = append(to.Cross, r)
	default:
		to.Own = append(to.Own, r)
	}
	return true
}

// checkCondition checks the shape of a conditional's parameter; whether the
// fields exist is for the walk over the type.
func (p *tagParser) checkCondition(r Rule, pairs bool) {
	words, odd := Words(r.Param)
	switch {
	case odd:
		p.fault(r.Written, "a quote inside a value is dropped by the tag grammar", "quote whole values only, as in 'a b'")
	case len(words) == 0 && pairs:
		p.fault(r.Written, r.Name+" needs a field and a value", "write "+r.Name+"=Field value")
	case len(words) == 0:
		p.fault(r.Written, r.Name+" needs the name of a field", "write "+r.Name+"=Field")
	case pairs && len(words)%2 != 0:
		p.fault(r.Written, r.Name+" needs pairs of a field and a value", "write "+r.Name+"=Field value, with quotes around a value with spaces")
	}
	seen := map[string]bool{}
	for i, w := range words {
		if pairs && i%2 != 0 {
			continue
		}
		if seen[w] {
			p.fault(r.Written, fmt.Sprintf("%s names %s twice", r.Name, w), "name each field once")
		}
		seen[w] = true
	}
}

// rule reads one element that is a rule or alternatives of rules.
func (p *tagParser) rule(e string) (Rule, bool) {
	if !strings.Contains(e, "|") {
		return p.single(e, e)
	}
	r := Rule{Written: e}
	ok := true
	for _, alt := range p.alternatives(e, nil) {
		one, good := p.single(alt, e)
		if good && (ShapeTags[one.Name] || IsConditional(one.Name) || CrossTags[one.Name]) {
			p.fault(e, one.Name+" cannot be one of several alternatives", "take "+one.Name+" out of the '|' list")
			good = false
		}
		ok = ok && good
		r.Or = append(r.Or, one)
	}
	return r, ok
}

// IsConditional reports whether a name is that of a rule on presence that looks
// at other fields.
func IsConditional(name string) bool {
	_, ok := ConditionalTags[name]
	return ok
}

// alternatives splits e at '|' and expands aliases among the parts. An alias
// of several rules cannot be one alternative: the grammar has no brackets.
func (p *tagParser) alternatives(e string, within []string) []string {
	var out []string
	for _, alt := range strings.Split(e, "|") {
		body, ok := p.aliases[alt]
		switch {
		case !ok:
			out = append(out, alt)
		case slices.Contains(within, alt):
			p.fault(e, fmt.Sprintf("alias %q refers to itself", alt), "remove the cycle from the aliases")
		case strings.Contains(body, ","):
			p.fault(e, fmt.Sprintf("alias %q stands for several rules (%s), which '|' would tear apart", alt, body), "use an alias of one rule, or of alternatives, inside '|'")
		default:
			out = append(out, p.alternatives(body, append(within[:len(within):len(within)], alt))...)
		}
	}
	return out
}

// single reads one rule without alternatives. written is the whole element.
func (p *tagParser) single(s, written string) (Rule, bool) {
	name, param, hasParam := strings.Cut(s, "=")
	switch trimmed := strings.TrimSpace(name); {
	case trimmed == "" && hasParam:
		p.fault(written, "a rule has no name", "write name=value")
		return Rule{}, false
	case trimmed == "":
		p.fault(written, "an empty rule: a ',' or '|' too many", "remove the extra separator")
		return Rule{}, false
	case trimmed != name:
		p.fault(written, fmt.Sprintf("the space around %q counts as part of its name", trimmed), "remove the space")
		return Rule{}, false
	}
	if hasParam && ShapeTags[name] {
		p.fault(written, name+" takes no parameter", "write "+name)
		return Rule{}, false
	}
	if _, ok := p.aliases[name]; ok && hasParam {
		p.fault(written, fmt.Sprintf("alias %q takes no parameter", name), "write "+name)
		return Rule{}, false
	}
	if hasParam {
		param = strings.ReplaceAll(strings.ReplaceAll(param, "0x2C", ","), "0x7C", "|")
	}
	return Rule{Name: name, Param: param, HasParam: hasParam, Written: s}, true
}

// contradictions reports what cannot hold together on one level.
func (p *tagParser) contradictions(to *Rules) {
	if to.Required && to.Omit != "" {
		p.fault("required,"+to.Omit, "required and "+to.Omit+" contradict each other", "keep one of them")
	}
	if to.Required && to.IsDefault {
		p.fault("required,isdefault", "required and isdefault contradict each other", "keep one of them")
	}
	if !to.Required {
		return
	}
	for _, r := range to.Conditionals {
		if strings.HasPrefix(r.Name, "required") || r.Name == "skip_unless" {
			p.fault(r.Written, r.Name+" says nothing beside required", "keep one of them")
		}
	}
}

// Words splits a parameter as oneof and the conditionals do: at white
// space, with single quotes around words that contain it. odd reports a quote
// in the middle of a word or an open one: the grammar drops those silently.
func Words(s string) (words []string, odd bool) {
	for {
		s = strings.TrimLeft(s, " \t\n\f\r")
		if s == "" {
			return words, odd
		}
		if s[0] == '\'' {
			if end := strings.IndexByte(s[1:], '\''); end >= 0 {
				words = append(words, s[1:1+end])
				s = s[end+2:]
				odd = odd || s != "" && !strings.ContainsRune(" \t\n\f\r", rune(s[0]))
				continue
			}
		}
		end := strings.IndexAny(s, " \t\n\f\r")
		if end < 0 {
			end = len(s)
		}
		odd = odd || strings.Contains(s[:end], "'")
		words = append(words, s[:end])
		s = s[end:]
	}
}

// Rule is one element of a validate tag: a name with its parameter, or
// alternatives joined by '|'.
type Rule struct {
	Name, Param string
	HasParam    bool
	Or          []Rule // alternatives; name is "" then
	Written     string // as the user wrote it, for messages
	Keyword     bool   // of the jsonschema tag
}

// Tag is the rule with the tag that it stands in.
func (r Rule) Tag() string {
	if r.Keyword {
		return `jsonschema:"` + r.Written + `"`
	}
	return fmt.Sprintf("validate:%q", r.Written)
}

// Fault makes a problem about r.
func (r Rule) Fault(msg, fix string) *Problem {
	return &Problem{Tag: r.Tag(), Msg: msg, Fix: fix}
}

// Rules is a parsed validate tag: what one field says about itself, and
// below dive about its elements and keys.
type Rules struct {
	Skip         bool   // "-": no rules below
	StructOnly   string // structonly or nostructlevel: no rules on the fields of the struct
	Required     bool   // required
	Omit         string // omitempty, omitnil or omitzero; "" for none
	IsDefault    bool
	Conditionals []Rule // required_if … excluded_without_all, skip_unless
	Cross        []Rule // eqfield … fieldexcludes, postcode_iso3166_alpha2_field
	Own          []Rule // everything else, in the order written
	Keys         *Rules
	Elem         *Rules // after dive
}

// Problem is a fault in a tag, found at registration.
type Problem struct {
	Tag string // the tag with its key: `validate:"min=1.5"`
	Msg string // what is wrong
	Fix string // what to write instead; "" if there is nothing to suggest
}

// SkipsFields tells whether the structs at a position are taken without the
// rules of their fields.
func (tr *Rules) SkipsFields() bool {
	return tr != nil && (tr.Skip || tr.StructOnly != "" || tr.Elem.SkipsFields())
}

// Split splits at commas that no backslash precedes and that are not inside
// a JSON array or object after '='.
func Split(tag string) []string {
	if tag == "" {
		return nil
	}
	var pieces []string
	var b strings.Builder
	level, inText := 0, false
	for i := 0; i < len(tag); i++ {
		switch ch := tag[i]; {
		case ch == '\\' && i+1 < len(tag) && tag[i+1] == ',':
			b.WriteByte(',')
			i++
			continue
		case level > 0 && ch == '"' && tag[i-1] != '\\':
			inText = !inText
		case inText:
		case (ch == '[' || ch == '{') && (level > 0 || jsonStart(b.String())):
			level++
		case (ch == ']' || ch == '}') && level > 0:
			level--
		case ch == ',' && level == 0:
			pieces = append(pieces, b.String())
			b.Reset()
			continue
		}
		b.WriteByte(tag[i])
	}
	return append(pieces, b.String())
}

// jsonStart tells whether what follows is a JSON value: after default= and the
// like, not inside a pattern.
func jsonStart(s string) bool {
	return s == "default=" || s == "example="
}
