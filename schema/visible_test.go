package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// What cannot be seen, or looks like something else, is told in escapes and
// with what to do about it; names and texts of any length are told shortly.
func TestOddTextIsTold(t *testing.T) {
	type args struct {
		Mode string         `json:"mode,omitempty" validate:"oneof=café strict a"`
		N    int            `json:"n,omitempty"`
		Wait time.Duration  `json:"wait,omitempty"`
		M    map[string]int `json:"m,omitempty"`
		Date civil.Date     `json:"date,omitzero"`
	}
	p, err := Compile(reflect.TypeFor[args](), nil)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 900_000)
	tests := []struct {
		doc  string
		want []string
		not  string
	}{
		{"{\"mode\":\"cafe\u0301\"}", []string{`got "cafe\u0301"`, `\u0301 is a mark apart from its letter; write both as one character (NFC)`}, "\u0301"},
		{"{\"mode\":\"str\u200bict\"}", []string{`got "str\u200bict"`, `\u200b cannot be seen; leave it out`}, "\u200b"},
		{"{\"mode\":\"strict\u202e\"}", []string{`got "strict\u202e"`, `\u202e cannot be seen`}, "\u202e"},
		{"{\"mode\":\"strict\u00a0mode\"}", []string{`\u00a0 is a space of another kind`}, "\u00a0"},
		{"{\"mode\":\"strіct\"}", []string{`got "str\u0456ct"`, `\u0456 looks like a Latin letter and is another`}, "і"},
		{"{\"mode\":\"режим\"}", []string{`got "режим"`}, `\u`},
		{"{\"mode\":\"καφές ok\"}", []string{`got "καφές ok"`}, `\u`},
		{"{\"mode\":\"हिन्दी\"}", []string{`got "हिन्दी"`}, `\u`},
		{"{\"mode\":\"\U0001d41ab\"}", []string{`got "\ud835\udc1ab"`, "looks like a Latin letter"}, "\U0001d41a"},
		{"{\"mode\":\"\U000e0041x\"}", []string{`got "\udb40\udc41x"`}, "\U000e0041"},
		{"{\"n\":\"\u200b5\"}", []string{`got "\u200b5" (string)`, "cannot be seen"}, "\u200b"},
		{"{\"mod\u0435\":\"a\"}", []string{`/mod\u0435: unknown property`, `\u0435 looks like a Latin letter`, "allowed: mode"}, "\u0435"},
		{"{\"n\u200b\":1}", []string{`/n\u200b: unknown property`, `\u200b cannot be seen; leave it out`}, "\u200b"},
		{"{\"m\":{\"a\u202eb\":\"x\"}}", []string{`/m/a\u202eb: `}, "\u202e"},
		{"{\"date\":\"2026\u201001\u201031\"}", []string{"must be a date such as 2026-01-31"}, "nothing"},
		{`{"` + long + `":1}`, []string{"/" + long[:wording.GotRunes] + "…: unknown property"}, long[:300]},
		{`{"m":{"` + long + `":"x"}}`, []string{"/m/" + long[:wording.GotRunes] + "…: "}, long[:300]},
		{`{"m":{"` + long + `":1,"` + long + `":1}}`, []string{"there twice"}, long[:300]},
		{`{"mode":"` + long + `"}`, []string{"…"}, long[:300]},
		{`{"wait":"5 minutes"}`, []string{`write 5m; got "5 minutes"`}, "nothing"},
		{`{"wait":"1 hour and 30 minutes"}`, []string{"write 1h30m; got"}, "nothing"},
		{`{"wait":"90 sec"}`, []string{"write 90s; got"}, "nothing"},
		{`{"wait":"2 fortnights"}`, []string{"write it without spaces, with the units ns, us, ms, s, m and h"}, "nothing"},
	}
	for _, tt := range tests {
		err := p.Check([]byte(tt.doc))
		if err == nil {
			t.Errorf("%.80q is accepted", tt.doc)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.80q: got %.500q, want %s", tt.doc, err, want)
			}
		}
		if strings.Contains(err.Error(), tt.not) || len(err.Error()) > 2000 {
			t.Errorf("%.80q: %.500q has %.40q", tt.doc, err, tt.not)
		}
	}
}

// The advice about a duration is taken when it is followed.
func TestDurationAdviceWorks(t *testing.T) {
	for _, s := range []string{"5 minutes", "1 hour", "2 hrs 5 min", "1.5 hours", "10 seconds", "300 milliseconds", "1 hour, 2 minutes and 3 seconds", "5 M", "5 Minutes"} {
		_, err := lexical.ParseDuration(s)
		advice, ok := strings.CutPrefix(fmt.Sprint(err), "write ")
		if _, err := lexical.ParseDuration(advice); !ok || err != nil {
			t.Errorf("%q: advice %q, which gives %v", s, advice, err)
		}
		_, err = lexical.ParseISODuration(s)
		advice, ok = strings.CutPrefix(fmt.Sprint(err), "write ")
		if _, err := lexical.ParseISODuration(advice); err != nil && ok && strings.HasPrefix(advice, "P") {
			t.Errorf("%q: ISO advice %q, which gives %v", s, advice, err)
		}
	}
}

// A number of problems is the number there are, or said to be a part.
func TestCountsAreTrue(t *testing.T) {
	type args struct {
		L []int `json:"l"`
	}
	p, err := Compile(reflect.TypeFor[args](), &Options{MaxValues: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for count, want := range map[int]string{
		6000: "at least 1000 problems", 1001: "at least 1000 problems", 1000: "(1000 problems)", 999: "(999 problems)",
	} {
		err := p.Check([]byte(`{"l":["x"` + strings.Repeat(`,"x"`, count-1) + `]}`))
		e, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(e.Text("tool"), want) || e.More != (count > 1000) {
			t.Errorf("%d: %.200v", count, err)
			continue
		}
		if more := strings.Contains(e.Error(), "…and at least 980 more"); more != e.More {
			t.Errorf("%d: %v", count, e.Error()[len(e.Error())-100:])
		}
	}
}

// A problem names the tag that it is in.
func TestProblemsNameTheirTag(t *testing.T) {
	tests := []struct {
		typ       reflect.Type
		tag, want string
	}{
		{reflect.TypeFor[[]any](), `jsonschema:"uniqueItems"`, `jsonschema:"uniqueItems" - `},
		{reflect.TypeFor[[]any](), `jsonschema:"uniqueItems=true"`, `jsonschema:"uniqueItems" - `},
		{reflect.TypeFor[[]any](), `validate:"unique"`, `validate:"unique" - `},
		{reflect.TypeFor[int](), `jsonschema:"minimum=1.5"`, `jsonschema:"minimum=1.5" - `},
		{reflect.TypeFor[int](), `validate:"min=1.5"`, `validate:"min=1.5" - `},
		{reflect.TypeFor[int](), `jsonschema:"minimum=5" validate:"max=3"`, `jsonschema:"minimum=5" validate:"max=3" - `},
		{reflect.TypeFor[int](), `validate:"min=5,max=3"`, `validate:"min=5,max=3" - `},
		{reflect.TypeFor[int](), `jsonschema:"minimum=5,maximum=3"`, `jsonschema:"minimum=5" jsonschema:"maximum=3" - `},
	}
	for _, tt := range tests {
		_, err := Compile(reflect.TypeOf(fieldOf(tt.typ, tt.tag)), nil)
		if !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s %s: %v", tt.typ, tt.tag, err)
		}
	}
}
