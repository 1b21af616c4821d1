package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
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
		if !rules.IsKnownTag(name) {
			t.Errorf("tag %q has no class", name)
		}
	}
	for name := range rules.Table() {
		if !slices.Contains(names, name) {
			t.Errorf("the table has %q, which go-playground has not", name)
		}
	}
}

func TestEveryRuleHasSamples(t *testing.T) {
	for name, def := range rules.Table() {
		if !def.Kinds.Has(rules.KindText) || def.Class == rules.ClassRefused {
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
		class := rules.Table()[name].Class
		switch {
		case (class == rules.ClassNecessary || class == rules.ClassDescribed) && !residual(checks):
			t.Errorf("%s is not exact and has no note", tag)
		case class == rules.ClassExact && name != "datetime" && residual(checks):
			t.Errorf("%s is exact and has the note %q", tag, checks[0].Note)
		}
		for _, c := range checks {
			if c.Want == "" || c.Code == "" || c.Tag != tag {
				t.Errorf("%s: incomplete check %+v", tag, c)
			}
			if c.Note != "" && !(strings.HasSuffix(c.Note, ".") && strings.ToUpper(c.Note[:1]) == c.Note[:1]) {
				t.Errorf("%s: note %q is no sentence", tag, c.Note)
			}
		}
	}
}

var sampleTargets = map[rules.Kind]reflect.Type{
	rules.KindText: reflect.TypeFor[string](), rules.KindInt: reflect.TypeFor[int](), rules.KindUint: reflect.TypeFor[uint8](),
	rules.KindFloat: reflect.TypeFor[float64](), rules.KindBool: reflect.TypeFor[bool](), rules.KindList: reflect.TypeFor[[]string](),
	rules.KindMap: reflect.TypeFor[map[string]int](), rules.KindObject: reflect.TypeFor[struct{ A int }](), rules.KindAny: reflect.TypeFor[any](),
	rules.KindTime: reflect.TypeFor[time.Time](), rules.KindDate: reflect.TypeFor[civil.Date](), rules.KindDuration: reflect.TypeFor[time.Duration](),
	rules.KindBytes: reflect.TypeFor[[]byte](), rules.KindOpaque: reflect.TypeFor[[4]int](),
}

// TestKindSafety tries every rule on every kind: it must be refused with a
// fix, or give checks of the one function that belongs to the kind.
func TestKindSafety(t *testing.T) {
	for name, def := range rules.Table() {
		for kind, typ := range sampleTargets {
			r := tags.Rule{Name: name, Written: name}
			if def.Param == rules.ParamNeeded {
				r.Param, r.HasParam = def.Example, true
			}
			checks, p := rules.Compile(r, rules.Target{Kind: kind, Type: typ, ServerState: true, Validator: playground})
			if !def.Kinds.Has(kind) {
				if p == nil || p.Fix == "" {
					t.Errorf("%s on %s: want a problem with a fix, got %v, %+v", name, typ, checks, p)
				}
				continue
			}
			if p != nil {
				continue
			}
			for _, c := range checks {
				if !fitting(c, kind) {
					t.Errorf("%s on %s: the test is a %T", name, typ, c.Test)
				}
			}
		}
	}
}

func fitting(c rules.Check, kind rules.Kind) (ok bool) {
	switch c.Test.(type) {
	case rules.TextTest:
		return kind == rules.KindText
	case rules.NumberTest:
		return kind == rules.KindInt || kind == rules.KindUint || kind == rules.KindFloat || kind == rules.KindDuration
	case rules.BoolTest:
		return kind == rules.KindBool
	case rules.CountTest:
		return kind == rules.KindList || kind == rules.KindMap || kind == rules.KindBytes
	case *rules.UniqueRule:
		return kind == rules.KindList || kind == rules.KindMap
	case rules.ValueTest:
		return kind != rules.KindText && kind != rules.KindInt && kind != rules.KindUint && kind != rules.KindFloat && kind != rules.KindBool
	}
	return false
}

func TestRefusedRules(t *testing.T) {
	for name, def := range rules.Table() {
		if def.Class != rules.ClassRefused {
			continue
		}
		r := tags.Rule{Name: name, Written: name}
		if def.Param == rules.ParamNeeded {
			r.Param, r.HasParam = def.Example, true
		}
		if _, p := rules.Compile(r, textTarget); p == nil || p.Fix == "" {
			t.Errorf("%s: want a problem with a fix, got %+v", name, p)
		}
	}
	dir := t.TempDir()
	allow := textTarget
	allow.ServerState = true
	if !textPasses(compileTag(t, "dir", allow), dir) || textPasses(compileTag(t, "dir", allow), dir+"/none") {
		t.Error("dir with AllowServerState does not look at the disk")
	}
}
