package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
)

func targetOf[T any](kind valueKind) target {
	return target{kind: kind, typ: reflect.TypeFor[T](), opts: &Options{}}
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
	tags := strings.Fields(`min=2 max=2 gt=2 gte=2 lt=2 lte=2 len=2 eq=2 ne=2 min=0x2 min=-1 eq=true ne=false min=0.1 max=1.5 eq=0.1 max=1e2
		oneof=1|oneof=3 port latitude longitude iso4217_numeric luhn_checksum iso3166_1_alpha_numeric numeric number boolean unique min=1|eq=0`)
	tags = append(tags, "oneof=1 3 578", "noneof=1 3")
	playground := validator.New()
	tried := 0
	for _, tag := range tags {
		for _, v := range samples {
			value := reflect.ValueOf(v)
			target := target{kind: kindOf(value.Type()), typ: value.Type(), opts: &Options{}}
			rules, problems := parseValidate(tag, nil)
			if len(problems) > 0 {
				t.Fatal(tag, problems)
			}
			checks, p := compileRule(rules.own[0], target)
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

func kindOf(typ reflect.Type) valueKind {
	switch typ.Kind() {
	case reflect.Int:
		return kindInt
	case reflect.Uint, reflect.Uint64:
		return kindUint
	case reflect.Float64:
		return kindFloat
	case reflect.Bool:
		return kindBool
	case reflect.Map:
		return kindMap
	}
	return kindList
}

func passesValue(checks []check, v reflect.Value) bool {
	for _, c := range checks {
		ok := false
		switch {
		case c.integer != nil:
			ok = c.integer(v.Int())
		case c.unsigned != nil:
			ok = c.unsigned(v.Uint())
		case c.float != nil:
			ok = c.float(v.Float())
		case c.boolean != nil:
			ok = c.boolean(v.Bool())
		case c.count != nil:
			ok = c.count(v.Len())
		case c.value != nil:
			ok = c.value(v)
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
		target target
		want   string // in the message or the fix
	}{
		{"min=010", targetOf[int](kindInt), "octal"},
		{"min=-010", targetOf[int](kindInt), "octal"},
		{"min=0x2C", targetOf[int](kindInt), "stand for"},
		{"min=1.5", targetOf[int](kindInt), "did you mean gt=1 or a float64 field?"},
		{"max=1.5", targetOf[int](kindInt), "did you mean lt=2"},
		{"min=abc", targetOf[int](kindInt), "not an integer"},
		{"min=", targetOf[int](kindInt), "needs a number"},
		{"min", targetOf[int](kindInt), "needs a parameter"},
		{"min=5 ", targetOf[int](kindInt), "remove the space"},
		{"min=99999999999999999999", targetOf[int](kindInt), "64 bits"},
		{"min=-1", targetOf[uint](kindUint), "never negative"},
		{"lt=0", targetOf[uint](kindUint), "satisfy"},
		{"min=200", targetOf[int8](kindInt), "int8"},
		{"eq=300", targetOf[uint8](kindUint), "uint8"},
		{"min=NaN", targetOf[float64](kindFloat), "finite"},
		{"max=Inf", targetOf[float32](kindFloat), "finite"},
		{"min=01.5", targetOf[float64](kindFloat), "ambiguous"},
		{"min=-1", targetOf[string](kindText), "never negative"},
		{"lt=0", targetOf[string](kindText), "less than 0"},
		{"len=1.5", targetOf[[]int](kindList), "whole number"},
		{"min=1", targetOf[bool](kindBool), "does not apply"},
		{"eq=1", targetOf[bool](kindBool), "true or false"},
		{"min=3", targetOf[any](kindAny), "concrete type"},
		{"min=abc", targetOf[time.Duration](kindDuration), "30s"},
		{"oneof=1s", targetOf[time.Duration](kindDuration), "does not apply"},
		{"len=3", targetOf[time.Time](kindTime), "does not apply"},
		{"gt=5", targetOf[time.Time](kindTime), "no parameter"},
		{"gt", targetOf[Date](kindDate), "needs a parameter"},
		{"gt=10:00", targetOf[Date](kindDate), "not a date"},
		{"gt=2024-01-01", targetOf[TimeOfDay](kindDate), "09:30"},
		{"gt=x", targetOf[NaiveDateTime](kindDate), "2024-01-31T09:30:00"},
		{"alpha=3", targetOf[string](kindText), "takes no parameter"},
		{"alhpa", targetOf[string](kindText), "did you mean alpha?"},
		{"oneof=a,b", targetOf[string](kindText), "separate values with spaces"},
		{"zzzzzz", targetOf[string](kindText), "schema.Rule"},
		{"oneof=1 02", targetOf[int](kindInt), `compared as "2"`},
		{"oneof=1 x", targetOf[int](kindInt), "not an integer"},
		{"oneof=1 300", targetOf[uint8](kindUint), "uint8"},
		{"oneof=", targetOf[string](kindText), "no values"},
		{"oneof=a a", targetOf[string](kindText), "twice"},
		{"oneof=it's", targetOf[string](kindText), "quote"},
		{"oneof=1.5", targetOf[float64](kindFloat), "does not apply"},
		{"contains=", targetOf[string](kindText), "empty"},
		{"contains=b", targetOf[bool](kindBool), "does not apply"},
		{"containsrune=ab", targetOf[string](kindText), "first character"},
		{"html", targetOf[int](kindInt), "does not apply"},
		{"port", targetOf[string](kindText), "hostname_port"},
		{"uuid", targetOf[[4]int](kindOpaque), "String method"},
		{"unique", targetOf[[][]string](kindList), "=="},
		{"unique", targetOf[[]any](kindList), "anything"},
		{"unique", targetOf[[]struct{ P *int }](kindList), "pointer"},
		{"unique=X", targetOf[[]struct{ A int }](kindList), "no field"},
		{"unique=A", targetOf[[]string](kindList), "slice of structs"},
		{"datetime=YYYY-MM-DD", targetOf[string](kindText), "reference time"},
		{"datetime", targetOf[string](kindText), "needs a parameter"},
		{"spicedb=x", targetOf[string](kindText), "spicedb=type"},
		{"postcode_iso3166_alpha2=us", targetOf[string](kindText), "upper case"},
		{"file", targetOf[string](kindText), "AllowServerState"},
		{"unix_addr", targetOf[string](kindText), "every text"},
		{"validateFn", targetOf[int](kindInt), "schema.NewRule"},
		{"numeric|min=3", targetOf[int](kindInt), "holds for every value"},
		{"alpha|nosuch", targetOf[string](kindText), "unknown rule"},
	}
	for _, tt := range tests {
		rules, problems := parseValidate(tt.tag, nil)
		for _, r := range rules.own {
			if _, p := compileRule(r, tt.target); p != nil {
				problems = append(problems, *p)
			}
		}
		text := ""
		for _, p := range problems {
			text += p.msg + "; " + p.fix + "\n"
			if p.fix == "" || p.tag == "" {
				t.Errorf("%s: incomplete problem %+v", tt.tag, p)
			}
		}
		if !strings.Contains(text, tt.want) {
			t.Errorf("%s on %s: got %q, want %q", tt.tag, tt.target.typ, text, tt.want)
		}
	}
}

func TestConsistency(t *testing.T) {
	tests := []struct {
		tag    string
		target target
		want   string // "" for no problem
	}{
		{"min=2,max=5", targetOf[string](kindText), ""},
		{"min=5,max=2", targetOf[string](kindText), "no value"},
		{"gt=2,lt=3", targetOf[int](kindInt), "no value"},
		{"gt=2,lt=3", targetOf[float64](kindFloat), ""},
		{"gt=2,lt=4", targetOf[uint](kindUint), ""},
		{"gt=2,max=2", targetOf[float64](kindFloat), "no value"},
		{"len=3,max=2", targetOf[[]int](kindList), "no value"},
		{"len=3,min=2", targetOf[map[string]int](kindMap), ""},
		{"min=1h,max=30m", targetOf[time.Duration](kindDuration), "no value"},
		{"min=1,gte=2", targetOf[int](kindInt), "twice"},
		{"eq=ab,min=3", targetOf[string](kindText), "can never be used"},
		{"oneof=a bcd,max=2", targetOf[string](kindText), `"bcd"`},
		{"oneof=1 5,max=4", targetOf[int](kindInt), "value 5"},
		{"eq=a,oneof=b c", targetOf[string](kindText), "can never be used"},
		{"oneof=a b,ne=a", targetOf[string](kindText), "value a"},
		{"oneof=aa bb,alpha", targetOf[string](kindText), ""},
		{"oneof=aa b1,alpha", targetOf[string](kindText), "value b1"},
		{"eq=3,min=5", targetOf[uint](kindUint), "no value"},
		{"eq=true,ne=true", targetOf[bool](kindBool), "can never be used"},
		{"alpha|numeric,max=3", targetOf[string](kindText), ""},
		{"gte=2024-01-01", targetOf[Date](kindDate), ""},
	}
	for _, tt := range tests {
		rules, problems := parseValidate(tt.tag, nil)
		problems = append(problems, checkConsistency(rules.own, tt.target)...)
		text := ""
		for _, p := range problems {
			text += p.tag + ": " + p.msg + "; " + p.fix + "\n"
		}
		if tt.want == "" && text != "" || !strings.Contains(text, tt.want) && !strings.Contains(text, strings.ReplaceAll(tt.want, `"`, "")) {
			t.Errorf("%s on %s: got %q, want %q", tt.tag, tt.target.typ, text, tt.want)
		}
	}
}
