package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

// mutantsPerRule keeps the whole package test at a few seconds.
const mutantsPerRule = 1000

// playground is go-playground's validator, the judge of every rule that has its
// name, and what decides those that are left to it.
var playground = validator.New(validator.WithRequiredStructEnabled())

var textTarget = rules.Target{Kind: rules.KindText, Type: reflect.TypeFor[string](), Validator: playground}

// compileTag parses and compiles a tag of one rule.
func compileTag(tb testing.TB, tag string, t rules.Target) []rules.Check {
	tb.Helper()
	parsed, problems := tags.Parse(tag, nil, rules.IsKnownTag)
	if len(problems) > 0 {
		tb.Fatalf("%s: %v", tag, problems)
	}
	var checks []rules.Check
	for _, r := range parsed.Own {
		cs, p := rules.Compile(r, t)
		if p != nil {
			tb.Fatalf("%s: %+v", tag, *p)
		}
		checks = append(checks, cs...)
	}
	return checks
}

// emitted is the schema that checks add up to.
func emitted(checks []rules.Check) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, c := range checks {
		if c.Emit != nil {
			c.Emit(s)
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

func textPasses(checks []rules.Check, s string) bool {
	for _, c := range checks {
		if !c.Test.(rules.TextTest)(s) {
			return false
		}
	}
	return true
}

// residual reports whether the checks say more than the schema.
func residual(checks []rules.Check) bool {
	return slices.ContainsFunc(checks, func(c rules.Check) bool { return c.Note != "" })
}

// stricter names the texts that go-playground takes and the rule does not.
var stricter = map[string]func(string) bool{
	"ulid":     func(s string) bool { return strings.ContainsAny(s, "ſK") },
	"ipv4":     func(s string) bool { return strings.Contains(s, ":") },
	"ip4_addr": func(s string) bool { return strings.Contains(s, ":") },
	"email": func(s string) bool { // other scripts, quotes, ~ or a trailing dot in the domain
		return !rules.MatchASCII(s) || strings.ContainsAny(s, `"~`) || strings.HasSuffix(s, ".") || strings.Contains(s, "-.") || strings.Contains(s, ".-")
	},
	"email|oneof=none": func(s string) bool { return !rules.MatchASCII(s) || strings.ContainsAny(s, `"~.-`) },
	"url":              func(s string) bool { return !rules.MatchURI(s) },
	"http_url":         func(s string) bool { return !rules.MatchURI(s) },
	"https_url":        func(s string) bool { return !rules.MatchURI(s) },
	"uri":              func(s string) bool { return !rules.MatchURIReference(s) }, // it cuts off the fragment before looking
	"fqdn":             func(s string) bool { return len(s) > 254 },
	"datetime=2006-01-02T15:04:05Z07:00": func(s string) bool { // one-digit hours, commas, offsets of 24 hours
		_, fault := lexical.ParseRFC3339([]byte(s))
		return fault != ""
	},
}

// looser names the texts that the rule takes and go-playground does not.
var looser = map[string]func(string) bool{
	"datetime=2006-01-02T15:04:05Z07:00": func(s string) bool { return strings.ContainsAny(s, "tz") },
	"fqdn":                               func(s string) bool { return len(s) == 254 && !strings.HasSuffix(s, ".") },
}

func TestTextRulesAgree(t *testing.T) {
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

// The registers of codes are whole: every text of that length is judged.
func TestCodesAgree(t *testing.T) {
	var letters, numbers []string
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			letters = append(letters, string([]rune{a, b}))
			for c := 'A'; c <= 'Z'; c++ {
				letters = append(letters, string([]rune{a, b, c}))
			}
		}
	}
	for n := range 1100 {
		numbers = append(numbers, strconv.Itoa(n), fmt.Sprintf("%03d", n))
	}
	for tag, texts := range map[string][]string{
		"iso3166_1_alpha2": letters, "iso3166_1_alpha3": letters, "iso4217": letters,
		"iso3166_1_alpha_numeric": numbers, "iso3166_1_alpha_numeric_eu": numbers,
		"country_code": slices.Concat(letters, numbers), "eu_country_code": slices.Concat(letters, numbers),
	} {
		checks := compileTag(t, tag, textTarget)
		known := 0
		for _, s := range texts {
			ours := textPasses(checks, s)
			if ours {
				known++
			}
			comparePlayground(t, playground, tag, s, ours)
		}
		if known == 0 || known == len(texts) {
			t.Errorf("%s: %d of %d are known", tag, known, len(texts))
		}
	}
}

// What only go-playground decides is refused where it is not there, and the
// problem says how to have it.
func TestWithoutValidator(t *testing.T) {
	type address struct {
		Land string `json:"land" validate:"iso3166_1_alpha2"`
		Code string `json:"code" validate:"postcode_iso3166_alpha2_field=Land"`
		Area string `json:"area" validate:"iso3166_2"`
		Home string `json:"home" validate:"postcode_iso3166_alpha2=GB"`
		Work string `json:"work" validate:"postcode_iso3166_alpha2=NO"`
	}
	_, err := Compile(reflect.TypeFor[address](), nil)
	failed, ok := errors.AsType[*RegistrationError](err)
	if !ok || len(failed.Problems) != 3 {
		t.Fatalf("want three problems, got %v", err)
	}
	for _, p := range failed.Problems {
		if !strings.Contains(p.Fix, "schema.Options.Validator") {
			t.Errorf("no way out: %+v", p)
		}
	}
	p, err := Compile(reflect.TypeFor[address](), &Options{Validator: playground})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]int{
		`{"land":"GB","code":"SW1A 1AA","area":"GB-LND","home":"SW1A 1AA","work":"0150"}`: 0,
		`{"land":"GB","code":"0150","area":"GB-XXX","home":"0150","work":"SW1A 1AA"}`:     4,
	} {
		failed, _ := errors.AsType[*Error](p.Check([]byte(in)))
		got := 0
		if failed != nil {
			got = len(failed.Issues)
		}
		if got != want {
			t.Errorf("%s: %d issues, want %d: %v", in, got, want, failed)
		}
	}
}

func TestPostcodesAgree(t *testing.T) {
	samples := []string{"1234", "12345", "123456", "12 345", "123 45", "1234 AB", "123-4567", "12345-678", "12345-6789", "12-345", "1234-567", "K1A 0B1", "K1A0B1"}
	for country, pattern := range rules.Postcodes() {
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
	for _, group := range []map[string]rules.TextRule{rules.CharRules(), rules.EncodingRules(), rules.CodeRules(), rules.HostRules(), rules.ColorRules()} {
		for name, def := range group {
			if def.Match == nil || def.Pattern == "" {
				continue
			}
			byPattern := rules.TextRule{Pattern: def.Pattern}.DefaultMatch()
			rng := rand.New(rand.NewPCG(4, uint64(len(name))))
			for range 2 * mutantsPerRule {
				samples := ruleSamples[name]
				s := mutate(rng, samples[rng.IntN(len(samples))])
				if got, want := def.Match(s), byPattern(s); got != want {
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
