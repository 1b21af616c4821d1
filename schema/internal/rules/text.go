package rules

import (
	"regexp"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

// TextRule is a rule on text without a parameter. The schema gets Pattern,
// format, enum and the limits of the length. Match decides faster than the
// pattern or the format and must accept the same texts; nil means DefaultMatch.
type TextRule struct {
	class    ruleClass
	Pattern  string
	format   string
	min, max uint64            // characters; 0 for no limit
	enum     []string          // all the texts there are
	Match    func(string) bool // in place of the pattern or format, and equal to it
	residual bool              // the schema does not say all: residue decides, or a decider, or a Validator
	residue  func(string) bool // only for what matches
	want     string            // what a value must be
	note     string            // for the description; from want if there is more than the schema says
	example  []string
	why      func(string) string // says what is wrong with a text
}

// addTextRules adds the rules of all tables.
func addTextRules(table map[string]ruleDef) {
	for _, group := range []map[string]TextRule{CharRules(), EncodingRules(), CodeRules(), webRules(), HostRules(), ColorRules()} {
		for name, def := range group {
			table[name] = ruleDef{
				Class: def.class, Kinds: kinds(KindText),
				compile: func(r tags.Rule, t Target) ([]Check, *tags.Problem) { return compileText(r, def), nil },
			}
		}
	}
}

// compileText returns the single check of a text rule.
func compileText(r tags.Rule, def TextRule) []Check {
	c := Check{Tag: r.Written, Code: def.code(r.Name), Want: def.want, Note: def.note, Why: def.why}
	if c.Note == "" && def.residual {
		c.Note = "Must be " + def.want + "."
	}
	c.Emit = def.emit
	c.Test = def.test(r.Name)
	return []Check{c}
}

// code returns the keyword that expresses the rule, or the rule's name if none
// expresses all of it.
func (def TextRule) code(name string) string {
	switch {
	case def.residual:
		return name
	case def.enum != nil:
		return "enum"
	case def.format != "":
		return "format"
	}
	return "pattern"
}

// emit adds the keywords of the rule.
func (def TextRule) emit(s *jsonschema.Schema) {
	if def.format != "" {
		schemadoc.AddFormat(s, def.format)
	}
	if def.Pattern != "" {
		schemadoc.AddPattern(s, def.Pattern)
	}
	if def.enum != nil {
		schemadoc.AddEnum(s, AnySlice(def.enum))
	}
	if def.min > 0 {
		schemadoc.Raise(&s.MinLength, def.min)
	}
	if def.max > 0 {
		schemadoc.Lower(&s.MaxLength, def.max)
	}
	if def.example != nil {
		schemadoc.AddExamples(s, AnySlice(def.example)...)
	}
}

// AnySlice returns the elements as values of any type.
func AnySlice[T any](in []T) []any {
	out := make([]any, len(in))
	for i, v := range in {
		out[i] = v
	}
	return out
}

// test returns the function that checks a text: first what the schema says,
// then what it does not. tag is the name of the rule.
func (def TextRule) test(tag string) TextTest {
	match := def.Match
	if match == nil {
		match = def.DefaultMatch()
	}
	if def.min > 0 || def.max > 0 {
		inner := match
		match = func(s string) bool { return def.fits(s) && inner(s) }
	}
	if !def.residual {
		return match
	}
	if residue := def.residue; residue != nil {
		return func(s string) bool { return match(s) && residue(s) }
	}
	if decide := deciders()[tag]; decide != nil {
		return func(s string) bool { return match(s) && decide(s) }
	}
	return match // and what Compile adds
}

// fits reports whether the number of characters is within the limits.
func (def TextRule) fits(s string) bool {
	n := uint64(utf8.RuneCountInString(s))
	return n >= def.min && (def.max == 0 || n <= def.max)
}

// DefaultMatch returns the matcher that the schema describes.
func (def TextRule) DefaultMatch() func(string) bool {
	switch {
	case def.Pattern != "":
		return regexp.MustCompile(def.Pattern).MatchString
	case def.enum != nil:
		set := map[string]bool{}
		for _, s := range def.enum {
			set[s] = true
		}
		return func(s string) bool { return set[s] }
	}
	return func(string) bool { return true }
}

// CharRules returns the rules on the characters of a text.
func CharRules() map[string]TextRule {
	return map[string]TextRule{
		"alpha":           {class: ClassExact, Pattern: patternAlpha, Match: all(letters), want: "text made of the letters a-z and A-Z only"},
		"alphaspace":      {class: ClassExact, Pattern: patternAlphaSpace, Match: all(letters | blank), want: "text made of the letters a-z and A-Z and spaces only"},
		"alphanum":        {class: ClassExact, Pattern: patternAlphanum, Match: all(letters | digits), want: "text made of the letters a-z and A-Z and digits only"},
		"alphanumspace":   {class: ClassExact, Pattern: patternAlphanumSpace, Match: all(letters | digits | blank), want: "text made of the letters a-z and A-Z, digits and spaces only"},
		"alphaunicode":    {class: ClassExact, Pattern: patternAlphaUnicode, want: "text made of letters only"},
		"alphanumunicode": {class: ClassExact, Pattern: patternAlphanumUnicode, want: "text made of letters and digits only"},
		"hexadecimal":     {class: ClassExact, Pattern: patternHexadecimal, Match: matchHexadecimal, want: "a hexadecimal number"},
		"ascii":           {class: ClassExact, Pattern: patternASCII, Match: MatchASCII, want: "text made of ASCII characters only"},
		"printascii":      {class: ClassExact, Pattern: patternPrintASCII, Match: matchPrintASCII, want: "text made of printable ASCII characters only"},
		"multibyte":       {class: ClassExact, Pattern: patternMultibyte, want: "empty, or text with a character outside ASCII"},
		"lowercase":       {class: ClassNecessary, Pattern: `^[^A-Z]+$`, residual: true, want: "non-empty text in lower case"},
		"uppercase":       {class: ClassNecessary, Pattern: `^[^a-z]+$`, residual: true, want: "non-empty text in upper case"},
		"html":            {class: ClassExact, Pattern: patternHTML, want: "text with an HTML tag"},
		"html_encoded":    {class: ClassExact, Pattern: patternHTMLEncoded, want: "text with an HTML entity, as in a &gt; b"},
		"url_encoded":     {class: ClassExact, Pattern: patternURLEncoded, want: "URL-encoded text: % only before two hexadecimal digits"},
	}
}

// EncodingRules returns the rules on encoded data.
func EncodingRules() map[string]TextRule {
	return map[string]TextRule{
		"base32":       {class: ClassExact, Pattern: patternBase32, want: "base32 text with padding"},
		"base64":       {class: ClassExact, Pattern: patternBase64, want: "base64 text with padding"},
		"base64url":    {class: ClassExact, Pattern: patternBase64URL, want: "base64url text with padding"},
		"base64rawurl": {class: ClassExact, Pattern: patternBase64RawURL, want: "base64url text without padding"},
		"datauri":      {class: ClassExact, Pattern: patternDataURI, want: "a data: URI with base64 data"},
		"jwt":          {class: ClassExact, Pattern: patternJWT, want: "a JSON Web Token"},
		"md4":          hexRule(patternHex32, 32, "an MD4 hash"),
		"md5":          hexRule(patternHex32, 32, "an MD5 hash"),
		"sha256":       hexRule(patternHex64, 64, "a SHA-256 hash"),
		"sha384":       hexRule(patternHex96, 96, "a SHA-384 hash"),
		"sha512":       hexRule(patternHex128, 128, "a SHA-512 hash"),
		"ripemd128":    hexRule(patternHex32, 32, "a RIPEMD-128 hash"),
		"ripemd160":    hexRule(patternHex40, 40, "a RIPEMD-160 hash"),
		"tiger128":     hexRule(patternHex32, 32, "a Tiger-128 hash"),
		"tiger160":     hexRule(patternHex40, 40, "a Tiger-160 hash"),
		"tiger192":     hexRule(patternHex48, 48, "a Tiger-192 hash"),
	}
}

// hexRule returns the rule of a hash with n hexadecimal digits, in lower case
// as in go-playground.
func hexRule(pattern string, n int, want string) TextRule {
	return TextRule{
		class: ClassExact, Pattern: pattern, want: want + " in lower-case hexadecimal",
		Match: func(s string) bool { return len(s) == n && allBytes(s, lowerHex) },
	}
}

// ColorRules returns the rules on notations of CSS colours.
func ColorRules() map[string]TextRule {
	return map[string]TextRule{
		"hexcolor": {class: ClassExact, Pattern: patternHexColor, want: "a hex color such as #1e90ff"},
		"rgb":      {class: ClassExact, Pattern: patternRGB, want: "a color such as rgb(30,144,255)"},
		"rgba":     {class: ClassExact, Pattern: patternRGBA, want: "a color such as rgba(30,144,255,0.5)"},
		"hsl":      {class: ClassExact, Pattern: patternHSL, want: "a color such as hsl(210,100%,56%)"},
		"hsla":     {class: ClassExact, Pattern: patternHSLA, want: "a color such as hsla(210,100%,56%,0.5)"},
		"cmyk":     {class: ClassExact, Pattern: patternCMYK, want: "a color such as cmyk(88%,44%,0%,0%)"},
		"iscolor":  {class: ClassExact, Pattern: patternColor, want: "a color in hex, rgb, rgba, hsl, hsla or cmyk notation, such as #1e90ff"},
	}
}
