package schema

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

func TestDurationRules(t *testing.T) {
	const s = int64(time.Second)
	tests := []struct {
		tag    string
		unit   int64
		schema string
		yes    []time.Duration
		no     []time.Duration
	}{
		{"min=90s", 0, `{}`, []time.Duration{90 * time.Second}, []time.Duration{89 * time.Second}},
		{"max=1000", 0, `{}`, []time.Duration{1000}, []time.Duration{1001}},
		{"min=90s", s, `{"minimum":90}`, []time.Duration{90 * time.Second}, []time.Duration{89 * time.Second}},
		{"min=1500ms", s, `{"minimum":2}`, []time.Duration{2 * time.Second}, []time.Duration{time.Second}},
		{"max=1500ms", s, `{"maximum":1}`, []time.Duration{time.Second}, []time.Duration{2 * time.Second}},
		{"gt=1500ms", s, `{"exclusiveMinimum":1}`, []time.Duration{2 * time.Second}, []time.Duration{time.Second}},
		{"lt=1500ms", s, `{"exclusiveMaximum":2}`, []time.Duration{time.Second}, []time.Duration{2 * time.Second}},
		{"min=-1500ms", s, `{"minimum":-1}`, []time.Duration{-time.Second}, []time.Duration{-2 * time.Second}},
		{"max=-1500ms", s, `{"maximum":-2}`, []time.Duration{-2 * time.Second}, []time.Duration{-time.Second}},
		{"eq=2s", s, `{"const":2}`, []time.Duration{2 * time.Second}, []time.Duration{time.Second}},
		{"ne=2s", s, `{"not":{"const":2}}`, []time.Duration{time.Second}, []time.Duration{2 * time.Second}},
		{"min=5", 1, `{"minimum":5}`, []time.Duration{5}, []time.Duration{4}},
	}
	for _, tt := range tests {
		target := targetOf[time.Duration](rules.KindDuration)
		target.IntegerUnit = tt.unit
		checks := compileTag(t, tt.tag, target)
		if text, _ := json.Marshal(emitted(checks)); string(text) != tt.schema && !(tt.schema == "{}" && string(text) == "true") {
			t.Errorf("%s unit %d: schema %s, want %s", tt.tag, tt.unit, text, tt.schema)
		}
		if residual(checks) != (tt.unit == 0) {
			t.Errorf("%s unit %d: note %q", tt.tag, tt.unit, checks[0].Note)
		}
		for _, d := range tt.yes {
			if !passesValue(checks, reflect.ValueOf(d)) {
				t.Errorf("%s refuses %s", tt.tag, d)
			}
		}
		for _, d := range tt.no {
			if passesValue(checks, reflect.ValueOf(d)) {
				t.Errorf("%s accepts %s", tt.tag, d)
			}
		}
	}
	target := targetOf[time.Duration](rules.KindDuration)
	target.IntegerUnit = s
	for _, param := range []string{"5", "1500ms"} {
		if _, p := rules.Compile(tags.Rule{Name: "eq", Param: param, HasParam: true, Written: "eq=" + param}, target); p == nil || p.Fix == "" {
			t.Errorf("eq=%s with unit s: want a problem, got %+v", param, p)
		}
	}
}

func TestTimeRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		tests := []struct {
			tag   string
			value any
			want  bool
		}{
			{"gt", now, false}, {"gte", now, true}, {"lt", now, false}, {"lte", now, true},
			{"gt", now.Add(1), true}, {"lt", now.Add(-1), true}, {"min", now.Add(-1), false}, {"max", now.Add(1), false},
			{"gte=2024-01-31", time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC), true},
			{"gte=2024-01-31", time.Date(2024, 1, 31, 0, 0, 0, 0, time.FixedZone("", 60)), false},
			{"lt=2024-01-31T10:00:00+01:00", time.Date(2024, 1, 31, 8, 59, 59, 0, time.UTC), true},
			{"lt=2024-01-31T10:00:00+01:00", time.Date(2024, 1, 31, 9, 0, 0, 0, time.UTC), false},
			{"min=2024-01-31", civil.NewDate(2024, 1, 31), true}, {"gt=2024-01-31", civil.NewDate(2024, 1, 31), false},
			{"max=09:30", civil.NewTimeOfDay(9 * time.Hour), true}, {"lt=09:00", civil.NewTimeOfDay(9 * time.Hour), false},
			{"gt=2024-01-31T09:30:00", civil.NewDate(2024, 2, 1).At(civil.TimeOfDay{}), true},
		}
		for _, tt := range tests {
			kind := rules.KindDate
			if _, ok := tt.value.(time.Time); ok {
				kind = rules.KindTime
			}
			value := reflect.ValueOf(tt.value)
			checks := compileTag(t, tt.tag, rules.Target{Kind: kind, Type: value.Type()})
			if got := passesValue(checks, value); got != tt.want {
				t.Errorf("%s on %v: got %v", tt.tag, tt.value, got)
			}
			if checks[0].Note == "" || checks[0].Emit != nil {
				t.Errorf("%s: must be described, not emitted", tt.tag)
			}
		}
	})
}

func TestUniqueRule(t *testing.T) {
	type item struct {
		A int `json:"a"`
		B string
	}
	one, same, other := 1, 1, 2
	oslo := time.FixedZone("", 3600)
	at := time.Date(2024, 1, 1, 1, 0, 0, 0, oslo)
	tests := []struct {
		tag  string
		list any
		want bool
	}{
		{"unique", []string{"a", "b"}, true}, {"unique", []string{"a", "a"}, false},
		{"unique", [2]int{1, 1}, false}, {"unique", []float64{0.5, 1.5}, true},
		{"unique", []*int{&one, &same}, false}, {"unique", []*int{&one, &other, nil}, true}, {"unique", []*int{nil, nil}, false},
		{"unique", []item{{1, "x"}, {1, "y"}}, true}, {"unique", []item{{1, "x"}, {1, "x"}}, false},
		{"unique=A", []item{{1, "x"}, {1, "y"}}, false}, {"unique=a", []*item{{1, "x"}, {2, "x"}}, true},
		{"unique=B", []*item{nil, nil}, false},
		{"unique", []time.Time{at, at.UTC()}, false}, {"unique", []time.Time{at, at.Add(1)}, true},
		{"unique", []civil.Date{civil.NewDate(2024, 1, 1), civil.NewDate(2024, 1, 1)}, false},
		{"unique", []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("::1")}, false},
		{"unique", map[string]int{"a": 1, "b": 1}, false}, {"unique", map[string]int{"a": 1, "b": 2}, true},
	}
	for _, tt := range tests {
		v := reflect.ValueOf(tt.list)
		kind := rules.KindList
		if v.Kind() == reflect.Map {
			kind = rules.KindMap
		}
		checks := compileTag(t, tt.tag, rules.Target{Kind: kind, Type: v.Type()})
		if got := passesValue(checks, v); got != tt.want {
			t.Errorf("%s on %T %v: got %v", tt.tag, tt.list, tt.list, got)
		}
		// What is accepted must also be unique as JSON.
		text, _ := json.Marshal(tt.list)
		var doc any
		if json.Unmarshal(text, &doc) == nil && tt.want && compileOracle(t, emitted(checks)).Validate(doc) != nil {
			t.Errorf("%s: %s is accepted, but invalid by the schema", tt.tag, text)
		}
	}
}

func TestBytesRules(t *testing.T) {
	target := targetOf[[]byte](rules.KindBytes)
	for n := range 9 {
		for _, tag := range []string{"min", "max", "len", "gt", "lt", "eq", "ne"} {
			tag = fmt.Sprintf("%s=%d", tag, max(n, 1))
			checks := compileTag(t, tag, target)
			sch := compileOracle(t, emitted(checks))
			for size := range 12 {
				text, _ := json.Marshal(make([]byte, size))
				var doc any
				_ = json.Unmarshal(text, &doc)
				if passesValue(checks, reflect.ValueOf(make([]byte, size))) && sch.Validate(doc) != nil {
					t.Errorf("%s: %d bytes are accepted, but invalid by the schema", tag, size)
				}
			}
		}
	}
	checks := compileTag(t, "json", target)
	if !passesValue(checks, reflect.ValueOf([]byte(`{"a":1}`))) || passesValue(checks, reflect.ValueOf([]byte(`{`))) {
		t.Error("json on []byte does not look at the bytes")
	}
}

func TestAlternativesMerge(t *testing.T) {
	tests := []struct {
		tag    string
		target rules.Target
		want   string
	}{
		{"oneof=a b|eq=c|eq=a", textTarget, `{"enum":["a","b","c"]}`},
		{"alpha|number", textTarget, `{"pattern":"(?:^[a-zA-Z]+$)|(?:^[0-9]+$)"}`},
		{"len=2|eq=abc", textTarget, `{"anyOf":[{"maxLength":2,"minLength":2},{"const":"abc"}]}`},
		{"json|alpha", textTarget, `{"anyOf":[{"contentMediaType":"application/json"},{"pattern":"^[a-zA-Z]+$"}]}`},
		{"tcp_addr|alpha", textTarget, `true`},
		{"eq=1|min=5", targetOf[int](rules.KindInt), `{"anyOf":[{"const":1},{"minimum":5}]}`},
	}
	for _, tt := range tests {
		checks := compileTag(t, tt.tag, tt.target)
		text, _ := json.Marshal(emitted(checks))
		if string(text) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.tag, text, tt.want)
		}
	}
}
