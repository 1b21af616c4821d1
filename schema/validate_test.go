package schema

import (
	"reflect"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

var testAliases = map[string]string{
	"short": "max=3,alpha", "yesno": "eq=yes|eq=no", "one": "alpha", "loop": "pool", "pool": "loop", "email": "alpha", "deep": "one,max=5",
}

func names(rs []tags.Rule) string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Written)
	}
	return strings.Join(out, " ")
}

func TestParseValidate(t *testing.T) {
	tests := []struct {
		tag   string
		check func(*tags.Rules) bool
	}{
		{"", func(r *tags.Rules) bool { return reflect.DeepEqual(r, &tags.Rules{}) }},
		{"-", func(r *tags.Rules) bool { return r.Skip }},
		{"structonly", func(r *tags.Rules) bool { return r.StructOnly == "structonly" && r.SkipsFields() }},
		{"dive,nostructlevel", func(r *tags.Rules) bool { return r.StructOnly == "" && r.SkipsFields() }},
		{"required,min=3,max=5", func(r *tags.Rules) bool { return r.Required && names(r.Own) == "min=3 max=5" }},
		{"omitempty,min=5", func(r *tags.Rules) bool { return r.Omit == "omitempty" && names(r.Own) == "min=5" }},
		{"omitzero,isdefault", func(r *tags.Rules) bool { return r.Omit == "omitzero" && r.IsDefault }},
		{"required_if=K x,omitempty,min=3", func(r *tags.Rules) bool {
			return len(r.Conditionals) == 1 && r.Conditionals[0].Param == "K x" && r.Omit == "omitempty"
		}},
		{"eqfield=A,alpha", func(r *tags.Rules) bool { return names(r.Cross) == "eqfield=A" && names(r.Own) == "alpha" }},
		{"contains=a0x2Cb0x7Cc=d", func(r *tags.Rules) bool { return r.Own[0].Param == "a,b|c=d" }},
		{"eq=", func(r *tags.Rules) bool { return r.Own[0].HasParam && r.Own[0].Param == "" }},
		{"alpha|numeric|len=3", func(r *tags.Rules) bool { return len(r.Own) == 1 && names(r.Own[0].Or) == "alpha numeric len=3" }},
		{"short", func(r *tags.Rules) bool { return names(r.Own) == "max=3 alpha" }},
		{"deep,min=1", func(r *tags.Rules) bool { return names(r.Own) == "alpha max=5 min=1" }},
		{"yesno|numeric", func(r *tags.Rules) bool { return names(r.Own[0].Or) == "eq=yes eq=no numeric" }},
		{"min=1,dive,min=2,dive,alpha", func(r *tags.Rules) bool {
			return names(r.Own) == "min=1" && names(r.Elem.Own) == "min=2" && names(r.Elem.Elem.Own) == "alpha"
		}},
		{"dive", func(r *tags.Rules) bool { return r.Elem != nil && r.Keys == nil }},
		{"dive,keys,alpha,min=2,endkeys,omitempty,min=3", func(r *tags.Rules) bool {
			return names(r.Keys.Own) == "alpha min=2" && names(r.Elem.Own) == "min=3" && r.Elem.Omit == "omitempty"
		}},
		{"dive,keys,alpha,endkeys,dive,keys,len=1,endkeys,max=2", func(r *tags.Rules) bool {
			return names(r.Keys.Own) == "alpha" && names(r.Elem.Keys.Own) == "len=1" && names(r.Elem.Elem.Own) == "max=2"
		}},
	}
	for _, tt := range tests {
		got, problems := tags.Parse(tt.tag, testAliases, rules.IsKnownTag)
		if len(problems) > 0 || !tt.check(got) {
			t.Errorf("%q: got %+v, problems %+v", tt.tag, got, problems)
		}
	}
}

func TestParseValidateProblems(t *testing.T) {
	tests := []struct{ tag, want string }{
		{"min=3, max=5", "space"},
		{"min =3", "space"},
		{"min=3,,max=5", "empty rule"},
		{"min=3,", "empty rule"},
		{"alpha|", "empty rule"},
		{"=3", "no name"},
		{"omitempty|alpha", "alternatives"},
		{"alpha|dive", "alternatives"},
		{"required|alpha", "alternatives"},
		{"eqfield=A|alpha", "alternatives"},
		{"required_if=A x|alpha", "alternatives"},
		{"required=true", "takes no parameter"},
		{"omitempty=1", "takes no parameter"},
		{"min=1,omitempty", "come before"},
		{"omitempty,required_if=K x", "never runs"},
		{"required,omitempty", "contradict"},
		{"required,isdefault", "contradict"},
		{"required,required_with=K", "beside required"},
		{"required_if=K", "pairs"},
		{"required_if=K x J", "pairs"},
		{"required_if=", "needs a field and a value"},
		{"required_if=K x K y", "twice"},
		{"required_if=K it's", "quote"},
		{"required_with=", "name of a field"},
		{"required_with=A A", "twice"},
		{"eqfield=", "name of one field"},
		{"gtfield=A B", "name of one field"},
		{"keys,alpha,endkeys", "directly after dive"},
		{"dive,alpha,keys,alpha,endkeys", "directly after dive"},
		{"dive,keys,alpha", "without endkeys"},
		{"dive,endkeys", "without keys"},
		{"dive,keys,dive,endkeys", "dive inside keys"},
		{"min=1,-", "whole tag"},
		{"short|numeric", "tear apart"},
		{"numeric|short", "tear apart"},
		{"short=3", "takes no parameter"},
		{"loop", "refers to itself"},
		{"loop|alpha", "refers to itself"},
		{"email", "hides the built-in"},
	}
	for _, tt := range tests {
		_, problems := tags.Parse(tt.tag, testAliases, rules.IsKnownTag)
		found := false
		for _, p := range problems {
			if p.Fix == "" || !strings.HasPrefix(p.Tag, "validate:") {
				t.Errorf("%q: no fix or tag in %+v", tt.tag, p)
			}
			found = found || strings.Contains(p.Msg, tt.want)
		}
		if !found {
			t.Errorf("%q: got %+v, want %q", tt.tag, problems, tt.want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	tests := []struct {
		in   string
		want []string
		odd  bool
	}{
		{"a b  c", []string{"a", "b", "c"}, false},
		{"'a b' c ''", []string{"a b", "c", ""}, false},
		{"it's", []string{"it's"}, true},
		{"'a", []string{"'a"}, true},
		{"'a'b", []string{"a", "b"}, true},
		{"", nil, false},
	}
	for _, tt := range tests {
		got, odd := tags.Words(tt.in)
		if !reflect.DeepEqual(got, tt.want) || odd != tt.odd {
			t.Errorf("%q: got %q %v, want %q %v", tt.in, got, odd, tt.want, tt.odd)
		}
	}
}

// FuzzParseValidate parses any tag and compiles what comes out, for every
// kind. Nothing may panic, and every problem says what to do.
func FuzzParseValidate(f *testing.F) {
	for tag := range ruleSamples {
		f.Add(tag)
	}
	for _, tag := range []string{"dive,keys,alpha,endkeys,min=1", "required_if=A 'b c'", "min=0x2C", "a|b|c", "short|yesno", "oneof='a", "min=010"} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		parsed, problems := tags.Parse(tag, testAliases, rules.IsKnownTag)
		for level := parsed; level != nil; level = level.Elem {
			for kind, typ := range sampleTargets {
				target := rules.Target{Kind: kind, Type: typ}
				sound := true
				for _, r := range level.Own {
					checks, p := rules.Compile(r, target)
					if p != nil {
						problems = append(problems, *p)
						sound = false
					}
					for _, c := range checks {
						if test, ok := c.Test.(rules.TextTest); ok {
							test("x")
						}
					}
				}
				if sound {
					problems = append(problems, rules.Consistency(level.Own, target)...)
				}
			}
		}
		for _, p := range problems {
			if p.Msg == "" || p.Fix == "" || p.Tag == "" {
				t.Fatalf("%q: incomplete problem %+v", tag, p)
			}
		}
	})
}
