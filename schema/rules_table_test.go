package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
)

// bakedIn lists the tags and aliases that go-playground brings, read from a
// fresh instance, so that a new version with new tags fails the test below.
func bakedIn(t *testing.T) []string {
	t.Helper()
	v := reflect.ValueOf(validator.New()).Elem()
	var names []string
	for _, field := range []string{"validations", "aliases"} {
		m := v.FieldByName(field)
		if m.Kind() != reflect.Map || m.Len() == 0 {
			t.Fatalf("validator.Validate has no map %s any more", field)
		}
		for _, k := range m.MapKeys() {
			names = append(names, k.String())
		}
	}
	slices.Sort(names)
	return names
}

func TestEveryBakedInTagIsClassified(t *testing.T) {
	names := bakedIn(t)
	for _, name := range names {
		if !isKnownTag(name) {
			t.Errorf("tag %q has no class", name)
		}
	}
	for name := range ruleTable {
		if !slices.Contains(names, name) {
			t.Errorf("the table has %q, which go-playground has not", name)
		}
	}
}

func TestEveryRuleHasSamples(t *testing.T) {
	for name, def := range ruleTable {
		if !def.kinds.has(kindText) || def.class == classRefused {
			continue
		}
		found := false
		for tag := range ruleSamples {
			bare, _, _ := strings.Cut(tag, "=")
			found = found || bare == name
		}
		if !found {
			t.Errorf("rule %s on text has no samples", name)
		}
	}
}

// TestResidueIsDescribed holds each rule to its class: what the schema does
// not say has a sentence.
func TestResidueIsDescribed(t *testing.T) {
	for tag := range ruleSamples {
		if strings.ContainsAny(tag, "|") {
			continue
		}
		checks := compileTag(t, tag, textTarget)
		name, _, _ := strings.Cut(tag, "=")
		class := ruleTable[name].class
		switch {
		case (class == classNecessary || class == classDescribed) && !residual(checks):
			t.Errorf("%s is not exact and has no note", tag)
		case class == classExact && name != "datetime" && residual(checks):
			t.Errorf("%s is exact and has the note %q", tag, checks[0].note)
		}
		for _, c := range checks {
			if c.want == "" || c.code == "" || c.tag != tag {
				t.Errorf("%s: incomplete check %+v", tag, c)
			}
			if c.note != "" && !(strings.HasSuffix(c.note, ".") && strings.ToUpper(c.note[:1]) == c.note[:1]) {
				t.Errorf("%s: note %q is no sentence", tag, c.note)
			}
		}
	}
}

var sampleTargets = map[valueKind]reflect.Type{
	kindText: reflect.TypeFor[string](), kindInt: reflect.TypeFor[int](), kindUint: reflect.TypeFor[uint8](),
	kindFloat: reflect.TypeFor[float64](), kindBool: reflect.TypeFor[bool](), kindList: reflect.TypeFor[[]string](),
	kindMap: reflect.TypeFor[map[string]int](), kindObject: reflect.TypeFor[struct{ A int }](), kindAny: reflect.TypeFor[any](),
	kindTime: reflect.TypeFor[time.Time](), kindDate: reflect.TypeFor[Date](), kindDuration: reflect.TypeFor[time.Duration](),
	kindBytes: reflect.TypeFor[[]byte](), kindOpaque: reflect.TypeFor[[4]int](),
}

// TestKindSafety tries every rule on every kind: it must be refused with a
// fix, or give checks of the one function that belongs to the kind.
func TestKindSafety(t *testing.T) {
	for name, def := range ruleTable {
		for kind, typ := range sampleTargets {
			r := rule{name: name, written: name}
			if def.param == paramNeeded {
				r.param, r.hasParam = def.example, true
			}
			checks, p := compileRule(r, target{kind: kind, typ: typ, opts: &Options{AllowServerState: true}})
			if !def.kinds.has(kind) {
				if p == nil || p.fix == "" {
					t.Errorf("%s on %s: want a problem with a fix, got %v, %+v", name, typ, checks, p)
				}
				continue
			}
			if p != nil {
				continue
			}
			for _, c := range checks {
				if fitting(c, kind) != 1 || functions(c) != 1 {
					t.Errorf("%s on %s: wrong functions in %+v", name, typ, c)
				}
			}
		}
	}
}

func functions(c check) int {
	n := 0
	for _, set := range []bool{c.text != nil, c.integer != nil, c.unsigned != nil, c.float != nil, c.boolean != nil, c.count != nil, c.value != nil, c.custom != nil} {
		if set {
			n++
		}
	}
	return n
}

func fitting(c check, kind valueKind) int {
	ok := false
	switch kind {
	case kindText:
		ok = c.text != nil
	case kindInt, kindDuration:
		ok = c.integer != nil
	case kindUint:
		ok = c.unsigned != nil
	case kindFloat:
		ok = c.float != nil
	case kindBool:
		ok = c.boolean != nil
	case kindList, kindMap, kindBytes:
		ok = c.count != nil || c.value != nil
	default:
		ok = c.value != nil
	}
	if ok {
		return 1
	}
	return 0
}

func TestRefusedRules(t *testing.T) {
	for name, def := range ruleTable {
		if def.class != classRefused {
			continue
		}
		r := rule{name: name, written: name}
		if def.param == paramNeeded {
			r.param, r.hasParam = def.example, true
		}
		if _, p := compileRule(r, textTarget); p == nil || p.fix == "" {
			t.Errorf("%s: want a problem with a fix, got %+v", name, p)
		}
	}
	dir := t.TempDir()
	allow := textTarget
	allow.opts = &Options{AllowServerState: true}
	if !textPasses(compileTag(t, "dir", allow), dir) || textPasses(compileTag(t, "dir", allow), dir+"/none") {
		t.Error("dir with AllowServerState does not look at the disk")
	}
}
