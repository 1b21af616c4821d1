package schema

import (
	"reflect"
	"strings"
	"testing"
)

var testAliases = map[string]string{
	"short": "max=3,alpha", "yesno": "eq=yes|eq=no", "one": "alpha", "loop": "pool", "pool": "loop", "email": "alpha", "deep": "one,max=5",
}

func names(rs []rule) string {
	var out []string
	for _, r := range rs {
		out = append(out, r.written)
	}
	return strings.Join(out, " ")
}

func TestParseValidate(t *testing.T) {
	tests := []struct {
		tag   string
		check func(*tagRules) bool
	}{
		{"", func(r *tagRules) bool { return reflect.DeepEqual(r, &tagRules{}) }},
		{"-", func(r *tagRules) bool { return r.skip }},
		{"structonly", func(r *tagRules) bool { return r.structOnly == "structonly" && r.skipsFields() }},
		{"dive,nostructlevel", func(r *tagRules) bool { return r.structOnly == "" && r.skipsFields() }},
		{"required,min=3,max=5", func(r *tagRules) bool { return r.required && names(r.own) == "min=3 max=5" }},
		{"omitempty,min=5", func(r *tagRules) bool { return r.omit == "omitempty" && names(r.own) == "min=5" }},
		{"omitzero,isdefault", func(r *tagRules) bool { return r.omit == "omitzero" && r.isDefault }},
		{"required_if=K x,omitempty,min=3", func(r *tagRules) bool {
			return len(r.conditionals) == 1 && r.conditionals[0].param == "K x" && r.omit == "omitempty"
		}},
		{"eqfield=A,alpha", func(r *tagRules) bool { return names(r.cross) == "eqfield=A" && names(r.own) == "alpha" }},
		{"contains=a0x2Cb0x7Cc=d", func(r *tagRules) bool { return r.own[0].param == "a,b|c=d" }},
		{"eq=", func(r *tagRules) bool { return r.own[0].hasParam && r.own[0].param == "" }},
		{"alpha|numeric|len=3", func(r *tagRules) bool { return len(r.own) == 1 && names(r.own[0].or) == "alpha numeric len=3" }},
		{"short", func(r *tagRules) bool { return names(r.own) == "max=3 alpha" }},
		{"deep,min=1", func(r *tagRules) bool { return names(r.own) == "alpha max=5 min=1" }},
		{"yesno|numeric", func(r *tagRules) bool { return names(r.own[0].or) == "eq=yes eq=no numeric" }},
		{"min=1,dive,min=2,dive,alpha", func(r *tagRules) bool {
			return names(r.own) == "min=1" && names(r.elem.own) == "min=2" && names(r.elem.elem.own) == "alpha"
		}},
		{"dive", func(r *tagRules) bool { return r.elem != nil && r.keys == nil }},
		{"dive,keys,alpha,min=2,endkeys,omitempty,min=3", func(r *tagRules) bool {
			return names(r.keys.own) == "alpha min=2" && names(r.elem.own) == "min=3" && r.elem.omit == "omitempty"
		}},
		{"dive,keys,alpha,endkeys,dive,keys,len=1,endkeys,max=2", func(r *tagRules) bool {
			return names(r.keys.own) == "alpha" && names(r.elem.keys.own) == "len=1" && names(r.elem.elem.own) == "max=2"
		}},
	}
	for _, tt := range tests {
		got, problems := parseValidate(tt.tag, testAliases)
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
		_, problems := parseValidate(tt.tag, testAliases)
		found := false
		for _, p := range problems {
			if p.fix == "" || !strings.HasPrefix(p.tag, "validate:") {
				t.Errorf("%q: no fix or tag in %+v", tt.tag, p)
			}
			found = found || strings.Contains(p.msg, tt.want)
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
		got, odd := splitWords(tt.in)
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
		rules, problems := parseValidate(tag, testAliases)
		for level := rules; level != nil; level = level.elem {
			for kind, typ := range sampleTargets {
				target := target{kind: kind, typ: typ, opts: &Options{}}
				sound := true
				for _, r := range level.own {
					checks, p := compileRule(r, target)
					if p != nil {
						problems = append(problems, *p)
						sound = false
					}
					for _, c := range checks {
						if c.text != nil {
							c.text("x")
						}
					}
				}
				if sound {
					problems = append(problems, checkConsistency(level.own, target)...)
				}
			}
		}
		for _, p := range problems {
			if p.msg == "" || p.fix == "" || p.tag == "" {
				t.Fatalf("%q: incomplete problem %+v", tag, p)
			}
		}
	})
}
