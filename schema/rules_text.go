package schema

import (
	"regexp"
	"unicode/utf8"

	"github.com/invopop/jsonschema"
)

// textRule is a rule on text without a parameter.
type textRule struct {
	class    ruleClass
	pattern  string
	format   string
	min, max uint64            // characters; 0 for no limit
	enum     []string          // all the texts there are
	match    func(string) bool // in place of the pattern or format, and equal to it
	residual bool              // the schema does not say all: residue decides, or else go-playground
	residue  func(string) bool // only for what matches
	want     string            // what a value must be
	note     string            // for the description; from want if there is more than the schema says
	example  []string
	why      func(string) string // says what is wrong with a text
}

// addTextRules adds the rules of the text tables.
func addTextRules(table map[string]ruleDef) {
	for _, group := range []map[string]textRule{charRules, encodingRules, codeRules, webRules, hostRules, colorRules} {
		for name, def := range group {
			table[name] = ruleDef{
				class: def.class, kinds: kinds(kindText),
				compile: func(r rule, t target) ([]check, *problem) { return compileText(r, def), nil },
			}
		}
	}
}

// compileText makes the one check of a text rule.
func compileText(r rule, def textRule) []check {
	c := check{tag: r.written, code: def.code(r.name), want: def.want, note: def.note, why: def.why}
	if c.note == "" && def.residual {
		c.note = "Must be " + def.want + "."
	}
	c.emit = def.emit
	c.text = def.test(r.name)
	return []check{c}
}

// code is the keyword that says the rule, or its name if none says all.
func (def textRule) code(name string) string {
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

func (def textRule) emit(s *jsonschema.Schema) {
	if def.format != "" {
		addFormat(s, def.format)
	}
	if def.pattern != "" {
		addPattern(s, def.pattern)
	}
	if def.enum != nil {
		addEnum(s, anySlice(def.enum))
	}
	if def.min > 0 {
		raise(&s.MinLength, def.min)
	}
	if def.max > 0 {
		lower(&s.MaxLength, def.max)
	}
	if def.example != nil {
		addExamples(s, anySlice(def.example)...)
	}
}

func anySlice[T any](in []T) []any {
	out := make([]any, len(in))
	for i, v := range in {
		out[i] = v
	}
	return out
}

// test makes the function that checks a text: first what the schema says,
// then what it does not.
func (def textRule) test(tag string) func(string) bool {
	match := def.match
	if match == nil {
		match = def.defaultMatch()
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
	decide := playground(tag)
	return func(s string) bool { return match(s) && decide(s) }
}

func (def textRule) fits(s string) bool {
	n := uint64(utf8.RuneCountInString(s))
	return n >= def.min && (def.max == 0 || n <= def.max)
}

func (def textRule) defaultMatch() func(string) bool {
	switch {
	case def.pattern != "":
		return regexp.MustCompile(def.pattern).MatchString
	case def.enum != nil:
		set := map[string]bool{}
		for _, s := range def.enum {
			set[s] = true
		}
		return func(s string) bool { return set[s] }
	}
	return func(string) bool { return true }
}

// charRules are rules on the characters of a text.
var charRules = map[string]textRule{
	"alpha":           {class: classExact, pattern: patternAlpha, match: all(letters), want: "text made of the letters a-z and A-Z only"},
	"alphaspace":      {class: classExact, pattern: patternAlphaSpace, match: all(letters | blank), want: "text made of the letters a-z and A-Z and spaces only"},
	"alphanum":        {class: classExact, pattern: patternAlphanum, match: all(letters | digits), want: "text made of the letters a-z and A-Z and digits only"},
	"alphanumspace":   {class: classExact, pattern: patternAlphanumSpace, match: all(letters | digits | blank), want: "text made of the letters a-z and A-Z, digits and spaces only"},
	"alphaunicode":    {class: classExact, pattern: patternAlphaUnicode, want: "text made of letters only"},
	"alphanumunicode": {class: classExact, pattern: patternAlphanumUnicode, want: "text made of letters and digits only"},
	"hexadecimal":     {class: classExact, pattern: patternHexadecimal, match: matchHexadecimal, want: "a hexadecimal number"},
	"ascii":           {class: classExact, pattern: patternASCII, match: matchASCII, want: "text made of ASCII characters only"},
	"printascii":      {class: classExact, pattern: patternPrintASCII, match: matchPrintASCII, want: "text made of printable ASCII characters only"},
	"multibyte":       {class: classExact, pattern: patternMultibyte, want: "empty, or text with a character outside ASCII"},
	"lowercase":       {class: classNecessary, pattern: `^[^A-Z]+$`, residual: true, want: "non-empty text in lower case"},
	"uppercase":       {class: classNecessary, pattern: `^[^a-z]+$`, residual: true, want: "non-empty text in upper case"},
	"html":            {class: classExact, pattern: patternHTML, want: "text with an HTML tag"},
	"html_encoded":    {class: classExact, pattern: patternHTMLEncoded, want: "text with an HTML entity, as in a &gt; b"},
	"url_encoded":     {class: classExact, pattern: patternURLEncoded, want: "URL-encoded text: % only before two hexadecimal digits"},
}

// encodingRules are rules on encoded data.
var encodingRules = map[string]textRule{
	"base32":       {class: classExact, pattern: patternBase32, want: "base32 text with padding"},
	"base64":       {class: classExact, pattern: patternBase64, want: "base64 text with padding"},
	"base64url":    {class: classExact, pattern: patternBase64URL, want: "base64url text with padding"},
	"base64rawurl": {class: classExact, pattern: patternBase64RawURL, want: "base64url text without padding"},
	"datauri":      {class: classExact, pattern: patternDataURI, want: "a data: URI with base64 data"},
	"jwt":          {class: classExact, pattern: patternJWT, want: "a JSON Web Token"},
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

func hexRule(pattern string, n int, want string) textRule {
	return textRule{
		class: classExact, pattern: pattern, want: want + " in lower-case hexadecimal",
		match: func(s string) bool { return len(s) == n && allBytes(s, lowerHex) },
	}
}

// colorRules are the notations of CSS colours.
var colorRules = map[string]textRule{
	"hexcolor": {class: classExact, pattern: patternHexColor, want: "a hex color such as #1e90ff"},
	"rgb":      {class: classExact, pattern: patternRGB, want: "a color such as rgb(30,144,255)"},
	"rgba":     {class: classExact, pattern: patternRGBA, want: "a color such as rgba(30,144,255,0.5)"},
	"hsl":      {class: classExact, pattern: patternHSL, want: "a color such as hsl(210,100%,56%)"},
	"hsla":     {class: classExact, pattern: patternHSLA, want: "a color such as hsla(210,100%,56%,0.5)"},
	"cmyk":     {class: classExact, pattern: patternCMYK, want: "a color such as cmyk(88%,44%,0%,0%)"},
	"iscolor":  {class: classExact, pattern: patternColor, want: "a color in hex, rgb, rgba, hsl, hsla or cmyk notation, such as #1e90ff"},
}
