package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

func targetOf[T any](kind rules.Kind) rules.Target {
	return rules.Target{Kind: kind, Type: reflect.TypeFor[T]()}
}

// TestNumberRulesAgree compares rules on numbers, lists and maps with the
// oracle and with go-playground.
func TestNumberRulesAgree(t *testing.T) {
	var samples []any
	for _, n := range []int{-128, -91, -90, -1, 0, 1, 2, 3, 10, 90, 100, 127} {
		samples = append(samples, n, float64(n)+0.5)
	}
	for _, n := range []uint{0, 1, 2, 3, 90, 91, 180, 181, 578, 978, 65535, 65536} {
		samples = append(samples, n)
	}
	samples = append(samples, true, false, 1e300, math.MaxInt64, uint64(math.MaxUint64), 181, -180, 181.5, 0.1, 8, 276)
	for n := range 5 {
		list, m := make([]int, n), map[string]int{}
		for i := range n {
			list[i], m[strconv.Itoa(i)] = i, i
		}
		samples = append(samples, list, m, make([]int, n))
	}
	tagList := strings.Fields(`min=2 max=2 gt=2 gte=2 lt=2 lte=2 len=2 eq=2 ne=2 min=0x2 min=-1 eq=true ne=false min=0.1 max=1.5 eq=0.1 max=1e2
		oneof=1|oneof=3 port latitude longitude iso4217_numeric luhn_checksum iso3166_1_alpha_numeric numeric number boolean unique min=1|eq=0`)
	tagList = append(tagList, "oneof=1 3 578", "noneof=1 3")
	tried := 0
	for _, tag := range tagList {
		for _, v := range samples {
			value := reflect.ValueOf(v)
			target := rules.Target{Kind: kindOf(value.Type()), Type: value.Type()}
			parsed, problems := tags.Parse(tag, nil, rules.IsKnownTag)
			if len(problems) > 0 {
				t.Fatal(tag, problems)
			}
			checks, p := rules.Compile(parsed.Own[0], target)
			if p != nil {
				continue
			}
			tried++
			ours := passesValue(checks, value)
			text, _ := json.Marshal(v)
			var doc any = json.Number(text)
			if json.Unmarshal(text, &doc); doc == nil {
				t.Fatal("no document")
			}
			valid := compileOracle(t, emitted(checks)).Validate(doc) == nil
			if ours && !valid || valid && !ours && !residual(checks) {
				t.Errorf("%s on %s: we say %v, the oracle %v", tag, text, ours, valid)
			}
			if theirs := playground.Var(v, tag) == nil; theirs != ours {
				t.Errorf("%s on %T %s: we say %v, go-playground %v", tag, v, text, ours, theirs)
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d pairs of rule and value compiled", tried)
	}
}

func kindOf(typ reflect.Type) rules.Kind {
	switch typ.Kind() {
	case reflect.Int:
		return rules.KindInt
	case reflect.Uint, reflect.Uint64:
		return rules.KindUint
	case reflect.Float64:
		return rules.KindFloat
	case reflect.Bool:
		return rules.KindBool
	case reflect.Map:
		return rules.KindMap
	}
	return rules.KindList
}

func passesValue(checks []rules.Check, v reflect.Value) bool {
	for _, c := range checks {
		ok := false
		switch test := c.Test.(type) {
		case rules.NumberTest:
			ok = test(rules.NumberOf(v))
		case rules.BoolTest:
			ok = test(v.Bool())
		case rules.CountTest:
			ok = test(v.Len())
		case *rules.UniqueRule:
			ok = test.Holds(v)
		case rules.ValueTest:
			ok = test(v)
		}
		if !ok {
			return false
		}
	}
	return true
}

func TestRuleProblems(t *testing.T) {
	tests := []struct {
		tag    string
		target rules.Target
		want   string // in the message or the fix
	}{
		{"min=010", targetOf[int](rules.KindInt), "octal"},
		{"min=-010", targetOf[int](rules.KindInt), "octal"},
		{"min=0x2C", targetOf[int](rules.KindInt), "stand for"},
		{"min=1.5", targetOf[int](rules.KindInt), "did you mean gt=1 or a float64 field?"},
		{"max=1.5", targetOf[int](rules.KindInt), "did you mean lt=2"},
		{"min=abc", targetOf[int](rules.KindInt), "not an integer"},
		{"min=", targetOf[int](rules.KindInt), "needs a number"},
		{"min", targetOf[int](rules.KindInt), "needs a parameter"},
		{"min=5 ", targetOf[int](rules.KindInt), "remove the space"},
		{"min=99999999999999999999", targetOf[int](rules.KindInt), "64 bits"},
		{"min=-1", targetOf[uint](rules.KindUint), "never negative"},
		{"lt=0", targetOf[uint](rules.KindUint), "satisfy"},
		{"min=200", targetOf[int8](rules.KindInt), "int8"},
		{"eq=300", targetOf[uint8](rules.KindUint), "uint8"},
		{"min=NaN", targetOf[float64](rules.KindFloat), "finite"},
		{"max=Inf", targetOf[float32](rules.KindFloat), "finite"},
		{"min=01.5", targetOf[float64](rules.KindFloat), "ambiguous"},
		{"min=-1", targetOf[string](rules.KindText), "never negative"},
		{"lt=0", targetOf[string](rules.KindText), "less than 0"},
		{"len=1.5", targetOf[[]int](rules.KindList), "whole number"},
		{"min=1", targetOf[bool](rules.KindBool), "does not apply"},
		{"eq=1", targetOf[bool](rules.KindBool), "true or false"},
		{"min=3", targetOf[any](rules.KindAny), "concrete type"},
		{"min=abc", targetOf[time.Duration](rules.KindDuration), "30s"},
		{"oneof=1s", targetOf[time.Duration](rules.KindDuration), "does not apply"},
		{"len=3", targetOf[time.Time](rules.KindTime), "does not apply"},
		{"gt=5", targetOf[time.Time](rules.KindTime), "no parameter"},
		{"gt", targetOf[civil.Date](rules.KindDate), "needs a parameter"},
		{"gt=10:00", targetOf[civil.Date](rules.KindDate), "not a date"},
		{"gt=2024-01-01", targetOf[civil.TimeOfDay](rules.KindDate), "09:30"},
		{"gt=x", targetOf[civil.NaiveDateTime](rules.KindDate), "2024-01-31T09:30:00"},
		{"alpha=3", targetOf[string](rules.KindText), "takes no parameter"},
		{"alhpa", targetOf[string](rules.KindText), "did you mean alpha?"},
		{"oneof=a,b", targetOf[string](rules.KindText), "separate values with spaces"},
		{"zzzzzz", targetOf[string](rules.KindText), "schema.Rule"},
		{"oneof=1 02", targetOf[int](rules.KindInt), `compared as "2"`},
		{"oneof=1 x", targetOf[int](rules.KindInt), "not an integer"},
		{"oneof=1 300", targetOf[uint8](rules.KindUint), "uint8"},
		{"oneof=", targetOf[string](rules.KindText), "no values"},
		{"oneof=a a", targetOf[string](rules.KindText), "twice"},
		{"oneof=it's", targetOf[string](rules.KindText), "quote"},
		{"oneof=1.5", targetOf[float64](rules.KindFloat), "does not apply"},
		{"contains=", targetOf[string](rules.KindText), "empty"},
		{"contains=b", targetOf[bool](rules.KindBool), "does not apply"},
		{"containsrune=ab", targetOf[string](rules.KindText), "first character"},
		{"html", targetOf[int](rules.KindInt), "does not apply"},
		{"port", targetOf[string](rules.KindText), "hostname_port"},
		{"uuid", targetOf[[4]int](rules.KindOpaque), "String method"},
		{"unique", targetOf[[][]string](rules.KindList), "=="},
		{"unique", targetOf[[]any](rules.KindList), "anything"},
		{"unique", targetOf[[]struct{ P *int }](rules.KindList), "pointer"},
		{"unique=X", targetOf[[]struct{ A int }](rules.KindList), "no field"},
		{"unique=A", targetOf[[]string](rules.KindList), "slice of structs"},
		{"datetime=YYYY-MM-DD", targetOf[string](rules.KindText), "reference time"},
		{"datetime", targetOf[string](rules.KindText), "needs a parameter"},
		{"spicedb=x", targetOf[string](rules.KindText), "spicedb=type"},
		{"postcode_iso3166_alpha2=us", targetOf[string](rules.KindText), "upper case"},
		{"file", targetOf[string](rules.KindText), "AllowServerState"},
		{"unix_addr", targetOf[string](rules.KindText), "every text"},
		{"validateFn", targetOf[int](rules.KindInt), "schema.NewRule"},
		{"numeric|min=3", targetOf[int](rules.KindInt), "holds for every value"},
		{"alpha|nosuch", targetOf[string](rules.KindText), "unknown rule"},
	}
	for _, tt := range tests {
		parsed, problems := tags.Parse(tt.tag, nil, rules.IsKnownTag)
		for _, r := range parsed.Own {
			if _, p := rules.Compile(r, tt.target); p != nil {
				problems = append(problems, *p)
			}
		}
		text := ""
		for _, p := range problems {
			text += p.Msg + "; " + p.Fix + "\n"
			if p.Fix == "" || p.Tag == "" {
				t.Errorf("%s: incomplete problem %+v", tt.tag, p)
			}
		}
		if !strings.Contains(text, tt.want) {
			t.Errorf("%s on %s: got %q, want %q", tt.tag, tt.target.Type, text, tt.want)
		}
	}
}

func TestConsistency(t *testing.T) {
	tests := []struct {
		tag    string
		target rules.Target
		want   string // "" for no problem
	}{
		{"min=2,max=5", targetOf[string](rules.KindText), ""},
		{"min=5,max=2", targetOf[string](rules.KindText), "no value"},
		{"gt=2,lt=3", targetOf[int](rules.KindInt), "no value"},
		{"gt=2,lt=3", targetOf[float64](rules.KindFloat), ""},
		{"gt=2,lt=4", targetOf[uint](rules.KindUint), ""},
		{"gt=2,max=2", targetOf[float64](rules.KindFloat), "no value"},
		{"len=3,max=2", targetOf[[]int](rules.KindList), "no value"},
		{"len=3,min=2", targetOf[map[string]int](rules.KindMap), ""},
		{"min=1h,max=30m", targetOf[time.Duration](rules.KindDuration), "no value"},
		{"min=1,gte=2", targetOf[int](rules.KindInt), "twice"},
		{"eq=ab,min=3", targetOf[string](rules.KindText), "can never be used"},
		{"oneof=a bcd,max=2", targetOf[string](rules.KindText), `"bcd"`},
		{"oneof=1 5,max=4", targetOf[int](rules.KindInt), "value 5"},
		{"eq=a,oneof=b c", targetOf[string](rules.KindText), "can never be used"},
		{"oneof=a b,ne=a", targetOf[string](rules.KindText), "value a"},
		{"oneof=aa bb,alpha", targetOf[string](rules.KindText), ""},
		{"oneof=aa b1,alpha", targetOf[string](rules.KindText), "value b1"},
		{"eq=3,min=5", targetOf[uint](rules.KindUint), "no value"},
		{"eq=true,ne=true", targetOf[bool](rules.KindBool), "can never be used"},
		{"alpha|numeric,max=3", targetOf[string](rules.KindText), ""},
		{"gte=2024-01-01", targetOf[civil.Date](rules.KindDate), ""},
	}
	for _, tt := range tests {
		parsed, problems := tags.Parse(tt.tag, nil, rules.IsKnownTag)
		problems = append(problems, rules.Consistency(parsed.Own, tt.target)...)
		text := ""
		for _, p := range problems {
			text += p.Tag + ": " + p.Msg + "; " + p.Fix + "\n"
		}
		if tt.want == "" && text != "" || !strings.Contains(text, tt.want) && !strings.Contains(text, strings.ReplaceAll(tt.want, `"`, "")) {
			t.Errorf("%s on %s: got %q, want %q", tt.tag, tt.target.Type, text, tt.want)
		}
	}
}
