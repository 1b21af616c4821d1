// Package tags parses struct tags: the grammar of go-playground/validator for
// validate, and the grammar of invopop/jsonschema for jsonschema and mcp. It
// knows the form of a tag and nothing of what its rules mean; package rules
// compiles them.
//
// [Parse] is stricter than the original grammar. A tag that fails only at run
// time there, or that means something other than it seems, is a [Problem]
// here, with the fix.
//
//	validate:"omitempty,min=1,dive,keys,alpha,endkeys,required,email|e164"
//	         |--------| |---| |--| |-------------------| |------| |--------|
//	         shape      rule  shape keys of the map      shape    alternatives
//
// Everything is pure; there is no state.
package tags

import (
	"fmt"
	"slices"
	"strings"
)

// The names that give a validate tag its structure and take no parameter.
const (
	tagDive    = "dive"
	tagKeys    = "keys"
	tagEndKeys = "endkeys"
)

// ShapeTags are the names that Parse handles itself. They take no parameter and
// cannot be alternatives.
var ShapeTags = map[string]bool{
	tagDive: true, tagKeys: true, tagEndKeys: true, "-": true,
	"omitempty": true, "omitnil": true, "omitzero": true,
	"required": true, "isdefault": true, "structonly": true, "nostructlevel": true,
}

// ConditionalTags are the rules about presence that look at other fields. The
// value tells whether the parameter consists of pairs of a field and a value,
// or of fields.
var ConditionalTags = map[string]bool{
	"required_if": true, "required_unless": true, "skip_unless": true,
	"excluded_if": true, "excluded_unless": true,
	"required_with": false, "required_with_all": false,
	"required_without": false, "required_without_all": false,
	"excluded_with": false, "excluded_with_all": false,
	"excluded_without": false, "excluded_without_all": false,
}

// CrossTags are the rules that compare a field with another one.
var CrossTags = map[string]bool{
	"eqfield": true, "nefield": true, "gtfield": true, "gtefield": true,
	"ltfield": true, "ltefield": true, "eqcsfield": true, "necsfield": true,
	"gtcsfield": true, "gtecsfield": true, "ltcsfield": true, "ltecsfield": true,
	"fieldcontains": true, "fieldexcludes": true,
	"postcode_iso3166_alpha2_field": true,
}

// tagProblem returns a problem about one element of a validate tag.
func tagProblem(written, msg, fix string) Problem {
	return Problem{Tag: fmt.Sprintf("validate:%q", written), Msg: msg, Fix: fix}
}

// Parse parses a validate tag in go-playground's grammar: ',' separates first,
// then '|', then the first '='. 0x2C and 0x7C in a parameter stand for ',' and
// '|'. aliases are replaced first; known reports whether a name is a built-in
// rule, which an alias must not hide. The rules are never nil, and are
// incomplete if there are problems.
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

// tagParser is the state of Parse: the elements after aliases have been
// replaced, and the index of the next one.
type tagParser struct {
	aliases  map[string]string
	known    func(name string) bool
	elements []string
	pos      int
	problems []Problem
}

// fault adds a problem about an element, quoted as it is written.
func (p *tagParser) fault(written, msg, fix string) {
	p.problems = append(p.problems, tagProblem(written, msg, fix))
}

// expand splits a tag at its commas and replaces aliases. within holds the
// aliases that are being replaced, so that a cycle ends.
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

// level reads the elements of one level into to: up to the end of the tag, or
// up to endkeys if end is that. dive begins the next level.
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

// dive reads what follows dive: the rules of the keys, if any, and those of the
// elements.
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

// shape handles one of ShapeTags. ruled is set if a rule precedes it on its
// level.
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

// place adds a rule to the list for what it is about. It reports whether the
// rule runs on a value, so that omitempty may not follow it.
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

// checkCondition checks the form of the parameter of a conditional rule.
// Whether the fields exist is checked when the type is compiled.
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

// rule reads one element that is a rule, or alternatives of rules; ok is false
// after a problem.
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

// IsConditional reports whether name is one of ConditionalTags.
func IsConditional(name string) bool {
	_, ok := ConditionalTags[name]
	return ok
}

// alternatives splits an element at '|' and replaces aliases among the parts.
// An alias for several rules cannot be an alternative, because the grammar has
// no brackets.
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

// single reads one rule without alternatives; written is the whole element, for
// problems.
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

// contradictions reports elements of one level that contradict each other.
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

// Words splits a parameter as oneof and the conditional rules do: at white
// space, with single quotes around words that contain some. odd reports a quote
// inside of a word, or one that is not closed: go-playground silently drops
// those.
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
// alternatives joined by '|'. HasParam tells "min=" from "min".
type Rule struct {
	Name, Param string
	HasParam    bool
	Or          []Rule // alternatives; name is "" then
	Written     string // as the user wrote it, for messages
	Keyword     bool   // of the jsonschema tag
}

// Tag returns the rule in the tag that it is in, for messages.
func (r Rule) Tag() string {
	if r.Keyword {
		return `jsonschema:"` + r.Written + `"`
	}
	return fmt.Sprintf("validate:%q", r.Written)
}

// Fault returns a problem about the rule.
func (r Rule) Fault(msg, fix string) *Problem {
	return &Problem{Tag: r.Tag(), Msg: msg, Fix: fix}
}

// Rules is a parsed validate tag: what a field says about itself, and below
// dive about its elements and keys. Elem and Keys are nil without dive and
// keys.
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

// Problem is a fault in a tag. It is found when a type is compiled, and never
// while a document is read.
type Problem struct {
	Tag string // the tag with its key: `validate:"min=1.5"`
	Msg string // what is wrong
	Fix string // what to write instead; "" if there is nothing to suggest
}

// SkipsFields reports whether the structs at a position, or below its dive, are
// used without the rules of their fields. A nil *Rules has no rules.
func (tr *Rules) SkipsFields() bool {
	return tr != nil && (tr.Skip || tr.StructOnly != "" || tr.Elem.SkipsFields())
}

// Split splits a jsonschema or mcp tag at its commas. A comma behind a
// backslash does not separate, nor does one inside a JSON array or object
// behind default= or example=.
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

// jsonStart reports whether a JSON value may follow: after default= or
// example=, but not inside a pattern.
func jsonStart(s string) bool {
	return s == "default=" || s == "example="
}
