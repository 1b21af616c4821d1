package schema

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
	oracle "github.com/santhosh-tekuri/jsonschema/v6"
)

// mutantsPerRule keeps the whole package test at a few seconds.
const mutantsPerRule = 1000

var textTarget = target{kind: kindText, typ: reflect.TypeFor[string](), opts: &Options{}}

// compileTag parses and compiles a tag of one rule.
func compileTag(tb testing.TB, tag string, t target) []check {
	tb.Helper()
	rules, problems := parseValidate(tag, nil)
	if len(problems) > 0 {
		tb.Fatalf("%s: %v", tag, problems)
	}
	var checks []check
	for _, r := range rules.own {
		cs, p := compileRule(r, t)
		if p != nil {
			tb.Fatalf("%s: %+v", tag, *p)
		}
		checks = append(checks, cs...)
	}
	return checks
}

// emitted is the schema that checks add up to.
func emitted(checks []check) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, c := range checks {
		if c.emit != nil {
			c.emit(s)
		}
	}
	return s
}

// compileOracle compiles a schema with an independent validator, formats
// asserted.
func compileOracle(tb testing.TB, s *jsonschema.Schema) *oracle.Schema {
	tb.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	doc, err := oracle.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		tb.Fatal(err)
	}
	c := oracle.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///s", doc); err != nil {
		tb.Fatal(err)
	}
	compiled, err := c.Compile("mem:///s")
	if err != nil {
		tb.Fatalf("schema %s: %v", text, err)
	}
	return compiled
}

func textPasses(checks []check, s string) bool {
	for _, c := range checks {
		if !c.text(s) {
			return false
		}
	}
	return true
}

// residual reports whether the checks say more than the schema.
func residual(checks []check) bool {
	return slices.ContainsFunc(checks, func(c check) bool { return c.note != "" })
}

// stricter names the texts that go-playground takes and the rule does not.
var stricter = map[string]func(string) bool{
	"ulid":     func(s string) bool { return strings.ContainsAny(s, "ſK") },
	"ipv4":     func(s string) bool { return strings.Contains(s, ":") },
	"ip4_addr": func(s string) bool { return strings.Contains(s, ":") },
	"email": func(s string) bool { // other scripts, quotes, ~ or a trailing dot in the domain
		return !matchASCII(s) || strings.ContainsAny(s, `"~`) || strings.HasSuffix(s, ".") || strings.Contains(s, "-.") || strings.Contains(s, ".-")
	},
	"email|oneof=none": func(s string) bool { return !matchASCII(s) || strings.ContainsAny(s, `"~.-`) },
	"url":              func(s string) bool { return !matchURI(s) },
	"http_url":         func(s string) bool { return !matchURI(s) },
	"https_url":        func(s string) bool { return !matchURI(s) },
	"uri":              func(s string) bool { return !matchURIReference(s) }, // it cuts off the fragment before looking
	"fqdn":             func(s string) bool { return len(s) > 254 },
	"datetime=2006-01-02T15:04:05Z07:00": func(s string) bool { // one-digit hours, commas, offsets of 24 hours
		_, fault := parseRFC3339([]byte(s))
		return fault != ""
	},
}

// looser names the texts that the rule takes and go-playground does not.
var looser = map[string]func(string) bool{
	"datetime=2006-01-02T15:04:05Z07:00": func(s string) bool { return strings.ContainsAny(s, "tz") },
	"fqdn":                               func(s string) bool { return len(s) == 254 && !strings.HasSuffix(s, ".") },
}

func TestTextRulesAgree(t *testing.T) {
	playground := validator.New(validator.WithRequiredStructEnabled())
	for _, tag := range slices.Sorted(maps.Keys(ruleSamples)) {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			checks := compileTag(t, tag, textTarget)
			sch := compileOracle(t, emitted(checks))
			partial := residual(checks)
			rng := rand.New(rand.NewPCG(1, uint64(len(tag))))
			accepted, refused := 0, 0
			for i := range mutantsPerRule {
				samples := ruleSamples[tag]
				s := samples[i%len(samples)]
				if i >= len(samples) {
					s = mutate(rng, s)
				}
				ours, valid := textPasses(checks, s), sch.Validate(s) == nil
				if ours {
					accepted++
				} else {
					refused++
				}
				if ours && !valid {
					t.Errorf("%q: accepted, but invalid by the schema", s)
				}
				if !partial && valid && !ours {
					t.Errorf("%q: valid by the schema, but refused", s)
				}
				if s != "" || !strings.Contains(tag, "|") { // go-playground takes no "" for an unset text in an OR
					comparePlayground(t, playground, tag, s, ours)
				}
			}
			if accepted == 0 || refused == 0 && !alwaysTrue[tag] {
				t.Errorf("%d accepted, %d refused: the samples test nothing", accepted, refused)
			}
		})
	}
}

// alwaysTrue are rules that no mutant of their samples breaks.
var alwaysTrue = map[string]bool{}

func comparePlayground(t *testing.T, v *validator.Validate, tag, s string, ours bool) {
	t.Helper()
	theirs := v.Var(s, tag) == nil
	if ours == theirs {
		return
	}
	allowed := stricter[tag]
	if ours {
		allowed = looser[tag]
	}
	if allowed == nil || !allowed(s) {
		t.Errorf("%q: we say %v, go-playground %v", s, ours, theirs)
	}
}

func TestPostcodesAgree(t *testing.T) {
	playground := validator.New()
	samples := []string{"1234", "12345", "123456", "12 345", "123 45", "1234 AB", "123-4567", "12345-678", "12345-6789", "12-345", "1234-567", "K1A 0B1", "K1A0B1"}
	for country, pattern := range postcodes {
		if pattern == "" {
			continue
		}
		tag := "postcode_iso3166_alpha2=" + country
		checks := compileTag(t, tag, textTarget)
		rng := rand.New(rand.NewPCG(2, 3))
		accepted := 0
		for i := range 8 * len(samples) {
			s := samples[i%len(samples)]
			if i >= len(samples) {
				s = mutate(rng, s)
			}
			ours := textPasses(checks, s)
			if ours {
				accepted++
			}
			comparePlayground(t, playground, tag, s, ours)
		}
		if accepted == 0 {
			t.Errorf("%s: no sample matches %s", country, pattern)
		}
	}
}

// TestMatchersEqualPatterns holds the hand-written matchers to the patterns
// that are advertised for them.
func TestMatchersEqualPatterns(t *testing.T) {
	for _, group := range []map[string]textRule{charRules, encodingRules, codeRules, hostRules, colorRules} {
		for name, def := range group {
			if def.match == nil || def.pattern == "" {
				continue
			}
			byPattern := textRule{pattern: def.pattern}.defaultMatch()
			rng := rand.New(rand.NewPCG(4, uint64(len(name))))
			for range 2 * mutantsPerRule {
				samples := ruleSamples[name]
				s := mutate(rng, samples[rng.IntN(len(samples))])
				if got, want := def.match(s), byPattern(s); got != want {
					t.Errorf("%s %q: matcher %v, pattern %v", name, s, got, want)
				}
			}
		}
	}
}

func BenchmarkTextRules(b *testing.B) {
	for _, tag := range []string{"alpha", "uuid", "email", "url", "hostname", "ip", "oneof=a 'b c' 5", "min=2", "semver", "iso4217"} {
		checks := compileTag(b, tag, textTarget)
		text := ruleSamples[tag][0]
		b.Run(tag, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !textPasses(checks, text) {
					b.Fatal(text)
				}
			}
		})
	}
}
