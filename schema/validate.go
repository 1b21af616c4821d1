package schema

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

// shapeTags are the names without a parameter that parseValidate handles
// itself.
var shapeTags = map[string]bool{
	tagDive: true, tagKeys: true, tagEndKeys: true, "-": true,
	"omitempty": true, "omitnil": true, "omitzero": true,
	"required": true, "isdefault": true, "structonly": true, "nostructlevel": true,
}

// conditionalTags are presence rules that look at other fields. The value
// tells whether their parameter is pairs of field and value.
var conditionalTags = map[string]bool{
	"required_if": true, "required_unless": true, "skip_unless": true,
	"excluded_if": true, "excluded_unless": true,
	"required_with": false, "required_with_all": false,
	"required_without": false, "required_without_all": false,
	"excluded_with": false, "excluded_with_all": false,
	"excluded_without": false, "excluded_without_all": false,
}

// crossTags compare a field with another one.
var crossTags = map[string]bool{
	"eqfield": true, "nefield": true, "gtfield": true, "gtefield": true,
	"ltfield": true, "ltefield": true, "eqcsfield": true, "necsfield": true,
	"gtcsfield": true, "gtecsfield": true, "ltcsfield": true, "ltecsfield": true,
	"fieldcontains": true, "fieldexcludes": true,
	"postcode_iso3166_alpha2_field": true,
}

// tagProblem makes a problem about one element of a validate tag.
func tagProblem(written, msg, fix string) problem {
	return problem{tag: fmt.Sprintf("validate:%q", written), msg: msg, fix: fix}
}

// parseValidate reads a validate tag in go-playground's grammar: ',' splits
// first, then '|', then the first '='; 0x2C and 0x7C in a parameter stand for
// ',' and '|'. What that grammar would only find out at run time, or would
// take for something else than it looks, is a problem here.
func parseValidate(tag string, aliases map[string]string) (*tagRules, []problem) {
	p := &tagParser{aliases: aliases}
	top := &tagRules{}
	switch tag {
	case "":
		return top, nil
	case "-":
		top.skip = true
		return top, nil
	}
	p.elements = p.expand(nil, tag, nil)
	p.level(top, "")
	return top, p.problems
}

// tagParser holds what parseValidate knows while it walks the elements.
type tagParser struct {
	aliases  map[string]string
	elements []string
	pos      int
	problems []problem
}

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
		case isKnownTag(e):
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
func (p *tagParser) level(to *tagRules, end string) {
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
		case shapeTags[e]:
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
func (p *tagParser) dive(to *tagRules) {
	p.contradictions(to)
	if p.pos < len(p.elements) && p.elements[p.pos] == tagKeys {
		p.pos++
		to.keys = &tagRules{}
		p.level(to.keys, tagEndKeys)
	}
	to.elem = &tagRules{}
	p.level(to.elem, "")
}

// shape takes an element that is a bare word of the grammar.
func (p *tagParser) shape(to *tagRules, e string, ruled bool) {
	switch e {
	case "required":
		to.required = true
	case "isdefault":
		to.isDefault = true
	case "structonly", "nostructlevel":
		to.structOnly = e
	case "-":
		p.fault(e, `"-" switches validation off and must be the whole tag`, `write validate:"-" alone, or remove the "-"`)
	default: // omitempty, omitnil, omitzero
		if ruled {
			p.fault(e, e+" must come before the rules: those in front of it run on empty values too", "move "+e+" to the front")
		}
		if to.omit == "" {
			to.omit = e
		}
	}
}

// place files a rule under what it is about, and reports whether it is a rule
// on the value itself.
func (p *tagParser) place(to *tagRules, r rule) bool {
	pairs, conditional := conditionalTags[r.name]
	switch {
	case conditional:
		if to.omit != "" {
			p.fault(r.written, fmt.Sprintf("%s after %s never runs", r.name, to.omit), "remove "+to.omit+": a field with a condition is optional already")
		}
		p.checkCondition(r, pairs)
		to.conditionals = append(to.conditionals, r)
		return false
	case crossTags[r.name]:
		if fields := strings.Fields(r.param); len(fields) != 1 {
			p.fault(r.written, r.name+" needs the name of one field", "write "+r.name+"=Field")
		}
		to.cross = append(to.cross, r)
	default:
		to.own = append(to.own, r)
	}
	return true
}

// checkCondition checks the shape of a conditional's parameter; whether the
// fields exist is for the walk over the type.
func (p *tagParser) checkCondition(r rule, pairs bool) {
	words, odd := splitWords(r.param)
	switch {
	case odd:
		p.fault(r.written, "a quote inside a value is dropped by the tag grammar", "quote whole values only, as in 'a b'")
	case len(words) == 0 && pairs:
		p.fault(r.written, r.name+" needs a field and a value", "write "+r.name+"=Field value")
	case len(words) == 0:
		p.fault(r.written, r.name+" needs the name of a field", "write "+r.name+"=Field")
	case pairs && len(words)%2 != 0:
		p.fault(r.written, r.name+" needs pairs of a field and a value", "write "+r.name+"=Field value, with quotes around a value with spaces")
	}
	seen := map[string]bool{}
	for i, w := range words {
		if pairs && i%2 != 0 {
			continue
		}
		if seen[w] {
			p.fault(r.written, fmt.Sprintf("%s names %s twice", r.name, w), "name each field once")
		}
		seen[w] = true
	}
}

// rule reads one element that is a rule or alternatives of rules.
func (p *tagParser) rule(e string) (rule, bool) {
	if !strings.Contains(e, "|") {
		return p.single(e, e)
	}
	r := rule{written: e}
	ok := true
	for _, alt := range p.alternatives(e, nil) {
		one, good := p.single(alt, e)
		if good && (shapeTags[one.name] || isConditional(one.name) || crossTags[one.name]) {
			p.fault(e, one.name+" cannot be one of several alternatives", "take "+one.name+" out of the '|' list")
			good = false
		}
		ok = ok && good
		r.or = append(r.or, one)
	}
	return r, ok
}

func isConditional(name string) bool {
	_, ok := conditionalTags[name]
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
func (p *tagParser) single(s, written string) (rule, bool) {
	name, param, hasParam := strings.Cut(s, "=")
	switch trimmed := strings.TrimSpace(name); {
	case trimmed == "" && hasParam:
		p.fault(written, "a rule has no name", "write name=value")
		return rule{}, false
	case trimmed == "":
		p.fault(written, "an empty rule: a ',' or '|' too many", "remove the extra separator")
		return rule{}, false
	case trimmed != name:
		p.fault(written, fmt.Sprintf("the space around %q counts as part of its name", trimmed), "remove the space")
		return rule{}, false
	}
	if hasParam && shapeTags[name] {
		p.fault(written, name+" takes no parameter", "write "+name)
		return rule{}, false
	}
	if _, ok := p.aliases[name]; ok && hasParam {
		p.fault(written, fmt.Sprintf("alias %q takes no parameter", name), "write "+name)
		return rule{}, false
	}
	if hasParam {
		param = strings.ReplaceAll(strings.ReplaceAll(param, "0x2C", ","), "0x7C", "|")
	}
	return rule{name: name, param: param, hasParam: hasParam, written: s}, true
}

// contradictions reports what cannot hold together on one level.
func (p *tagParser) contradictions(to *tagRules) {
	if to.required && to.omit != "" {
		p.fault("required,"+to.omit, "required and "+to.omit+" contradict each other", "keep one of them")
	}
	if to.required && to.isDefault {
		p.fault("required,isdefault", "required and isdefault contradict each other", "keep one of them")
	}
	if !to.required {
		return
	}
	for _, r := range to.conditionals {
		if strings.HasPrefix(r.name, "required") || r.name == "skip_unless" {
			p.fault(r.written, r.name+" says nothing beside required", "keep one of them")
		}
	}
}

// splitWords splits a parameter as oneof and the conditionals do: at white
// space, with single quotes around words that contain it. odd reports a quote
// in the middle of a word or an open one: the grammar drops those silently.
func splitWords(s string) (words []string, odd bool) {
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
