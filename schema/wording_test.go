package schema

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// wordingKind is a type of field and values of it, one of which should break
// any rule that can be broken.
type wordingKind struct {
	name   string
	typ    reflect.Type
	tag    string // further tags of the field
	values []string
}

var wordingKinds = []wordingKind{
	{"string", reflect.TypeFor[string](), "", []string{`"x"`, `""`, `"é!"`, `"xxxx"`}},
	{"int", reflect.TypeFor[int](), "", []string{"0", "1", "2", "3", "99999", "-7"}},
	{"uint8", reflect.TypeFor[uint8](), "", []string{"0", "1", "2", "3", "250"}},
	{"float64", reflect.TypeFor[float64](), "", []string{"0", "1.5", "2", "1e9", "-1000"}},
	{"bool", reflect.TypeFor[bool](), "", []string{"true", "false"}},
	{"[]string", reflect.TypeFor[[]string](), "", []string{`[]`, `["a"]`, `["a","b"]`, `["a","a","b"]`}},
	{"[]byte", reflect.TypeFor[[]byte](), "", []string{`""`, `"aA=="`, `"aGk="`, `"aGhoaA=="`}},
	{"map", reflect.TypeFor[map[string]int](), "", []string{`{}`, `{"a":1}`, `{"a":1,"b":2}`, `{"a":1,"b":1,"c":1}`}},
	{"time.Time", reflect.TypeFor[time.Time](), "", []string{`"1990-01-01T00:00:00Z"`, `"2990-01-01T00:00:00Z"`}},
	{"Date", reflect.TypeFor[civil.Date](), "", []string{`"1990-01-01"`, `"2990-01-01"`}},
	{"TimeOfDay", reflect.TypeFor[civil.TimeOfDay](), "", []string{`"00:01"`, `"23:00"`}},
	{"NaiveDateTime", reflect.TypeFor[civil.NaiveDateTime](), "", []string{`"1990-01-01T00:00"`, `"2990-01-01T00:00"`}},
	{"Duration", reflect.TypeFor[time.Duration](), "", []string{`"1s"`, `"2m"`, `"200h"`}},
	{"Duration unit=s", reflect.TypeFor[time.Duration](), ` mcp:"unit=s"`, []string{`1`, `120`, `720000`}},
	{"Duration ISO", reflect.TypeFor[time.Duration](), ` jsonschema:"format=duration"`, []string{`"PT1S"`, `"PT2M"`, `"P9D"`}},
	{"Null[int]", reflect.TypeFor[Null[int]](), "", []string{"0", "1", "2", "3", "-7"}},
	{"text form", reflect.TypeFor[wordText](), "", []string{`"x"`}},
}

// wordText is a type with a text form and a String method.
type wordText struct{ S string }

func (w *wordText) UnmarshalText(b []byte) error { w.S = string(b); return nil }
func (w wordText) String() string                { return w.S }

// wordingParam is a parameter that a rule takes on a kind.
func wordingParam(name string, k wordingKind) string {
	switch {
	case k.name == "bool":
		return "=true"
	case strings.HasPrefix(name, "postcode"):
		return "=GB"
	case name == "datetime":
		return "=2006-01-02"
	case name == "spicedb":
		return "=type"
	case name == "mimetype":
		return "=image/png"
	case name == "unique":
		return ""
	case strings.HasPrefix(k.name, "Duration"):
		return "=1m"
	}
	switch k.typ {
	case reflect.TypeFor[time.Time]():
		return "=2026-01-31T09:30:00Z"
	case reflect.TypeFor[civil.Date]():
		return "=2026-01-31"
	case reflect.TypeFor[civil.TimeOfDay]():
		return "=09:30"
	case reflect.TypeFor[civil.NaiveDateTime]():
		return "=2026-01-31T09:30:00"
	}
	switch rules.Table()[name].Param {
	case rules.ParamNone:
		return ""
	case rules.ParamOptional, rules.ParamNeeded:
		if k.name == "string" && !rules.IsBound(rules.Operator(name)) && name != "ne" && name != "noneof" {
			return "=x"
		}
		return "=2"
	}
	return ""
}

// worded compiles a struct with one field and returns what is said about it:
// a bad value, a value of a wrong type, its absence, and its description.
func worded(b *strings.Builder, tag string, k wordingKind) {
	typ := reflect.StructOf([]reflect.StructField{{Name: "V", Type: k.typ, Tag: reflect.StructTag(`json:"v" validate:"` + tag + `"` + k.tag)}})
	p, err := Compile(typ, &Options{AllowServerState: true, Validator: playground})
	if err != nil {
		return
	}
	fmt.Fprintf(b, "%s on %s\n", tag, k.name)
	values := k.values
	if _, param, ok := strings.Cut(tag, "="); ok && k.name == "string" {
		values = append([]string{string(wording.AppendJSON(nil, param)), `"excludes ` + param + ` it ` + param + `"`, `"` + param + `y"`}, values...)
	}
	broken := "(no value breaks it)"
	for _, v := range values {
		if err := p.Check([]byte(`{"v":` + v + `}`)); err != nil {
			broken = err.Error()
			break
		}
	}
	wrong := `{"v":[[]]}`
	if k.typ.Kind() == reflect.Slice {
		wrong = `{"v":7}`
	}
	fmt.Fprintf(b, "  bad:     %s\n", broken)
	fmt.Fprintf(b, "  type:    %v\n", p.Check([]byte(wrong)))
	fmt.Fprintf(b, "  missing: %v\n", p.Check(nil))
	if s, ok := p.Schema().Properties.Get("v"); ok && s.Description != "" {
		fmt.Fprintf(b, "  says:    %s\n", s.Description)
	}
}

// TestWording keeps every text about every rule on every kind of field in one
// file, so that a change of words is seen and read.
func TestWording(t *testing.T) {
	var names []string
	for name := range rules.Table() {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range append([]string{"required", "isdefault"}, names...) {
		for _, k := range wordingKinds {
			if name == "required" || name == "isdefault" {
				worded(&b, name, k)
				continue
			}
			worded(&b, name+wordingParam(name, k), k)
		}
	}
	for _, k := range wordingKinds {
		for _, pair := range [][2]string{{"min", "max"}, {"gt", "lt"}} {
			worded(&b, pair[0]+wordingParam(pair[0], k)+","+pair[1]+wordingMax(k), k)
		}
	}
	for _, tag := range []string{
		"alpha,min=2", "uuid,max=40", "email,max=20", "alpha|numeric", "email|oneof=none", "oneof=a b|eq=c", "min=2,max=5,alphanum,lowercase",
		"datetime=2006-01-02T15:04:05Z07:00", "datetime=15:04:05", "datetime=02.01.2006", "oneof=a 'b c'", "spicedb=id", "contains=a b,excludes=c",
		"required,email", "required,max=3", "oneof=a b,ne=a",
	} {
		worded(&b, tag, wordingKinds[0])
	}
	for _, tag := range []string{"min=3,unique", "unique,dive,min=2", "min=1,dive,oneof=a b"} {
		worded(&b, tag, wordingKinds[5])
	}
	worded(&b, "oneof=4 5", wordingKinds[1])
	worded(&b, "min=4|eq=-1", wordingKinds[1])
	compareText(t, "wording.txt", b.String())
}

func wordingMax(k wordingKind) string {
	switch {
	case strings.HasPrefix(k.name, "Duration"):
		return "=168h"
	case k.typ == reflect.TypeFor[time.Time]():
		return "=2027-01-31"
	case k.typ == reflect.TypeFor[civil.Date]():
		return "=2027-01-31"
	case k.typ == reflect.TypeFor[civil.TimeOfDay]():
		return "=19:30"
	case k.typ == reflect.TypeFor[civil.NaiveDateTime]():
		return "=2027-01-31T09:30:00"
	}
	return "=5"
}

// compareText compares with a file in testdata, or writes it with -update.
func compareText(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := "", ""
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Fatalf("line %d of %s is\n%s\nwant\n%s\nrun go test ./schema -update if that is meant", i+1, file, g, w)
		}
	}
}

// relationWording has two members and documents that break their relation.
var relationWording = []struct {
	name   string
	typ    any
	inputs []string
}{
	{"numbers", struct {
		From int `json:"from"`
		Gt   int `json:"gt,omitempty" validate:"gtfield=From"`
		Gte  int `json:"gte,omitempty" validate:"gtefield=From"`
		Lt   int `json:"lt,omitempty" validate:"ltfield=From"`
		Lte  int `json:"lte,omitempty" validate:"ltefield=From"`
		Eq   int `json:"eq,omitempty" validate:"eqfield=From"`
		Ne   int `json:"ne,omitempty" validate:"nefield=From"`
	}{}, []string{`{"from":5,"gt":5,"gte":4,"lt":5,"lte":6,"eq":4,"ne":5}`}},
	{"times", struct {
		From civil.Date `json:"from"`
		Gt   civil.Date `json:"gt,omitempty" validate:"gtfield=From"`
		Gte  civil.Date `json:"gte,omitempty" validate:"gtefield=From"`
		Lt   civil.Date `json:"lt,omitempty" validate:"ltfield=From"`
		Lte  civil.Date `json:"lte,omitempty" validate:"ltefield=From"`
		Eq   civil.Date `json:"eq,omitempty" validate:"eqfield=From"`
		Ne   civil.Date `json:"ne,omitempty" validate:"nefield=From"`
	}{}, []string{`{"from":"2026-01-31","gt":"2026-01-31","gte":"2026-01-30","lt":"2026-01-31","lte":"2026-02-01","eq":"2026-02-01","ne":"2026-01-31"}`}},
	{"time.Time", struct {
		From time.Time `json:"from"`
		Gt   time.Time `json:"gt,omitzero" validate:"gtfield=From"`
	}{}, []string{`{"from":"2026-01-31T09:30:00Z","gt":"2026-01-31T10:30:00+01:00"}`}},
	{"durations", struct {
		From time.Duration `json:"from"`
		Gt   time.Duration `json:"gt,omitempty" validate:"gtfield=From"`
		Gte  time.Duration `json:"gte,omitempty" validate:"gtefield=From"`
		Lt   time.Duration `json:"lt,omitempty" validate:"ltfield=From"`
		Lte  time.Duration `json:"lte,omitempty" validate:"ltefield=From"`
	}{}, []string{`{"from":"1m","gt":"60s","gte":"59s","lt":"1m","lte":"2m"}`}},
	{"units", struct {
		From time.Duration `json:"from" mcp:"unit=s"`
		Gt   time.Duration `json:"gt" mcp:"unit=ms" validate:"gtfield=From"`
	}{}, []string{`{"from":60,"gt":1000}`}},
	{"texts", struct {
		From string `json:"from"`
		Gt   string `json:"gt,omitempty" validate:"gtcsfield=From"`
		Gte  string `json:"gte,omitempty" validate:"gtecsfield=From"`
		Lt   string `json:"lt,omitempty" validate:"ltcsfield=From"`
		Lte  string `json:"lte,omitempty" validate:"ltecsfield=From"`
		Eq   string `json:"eq,omitempty" validate:"eqfield=From"`
		Ne   string `json:"ne,omitempty" validate:"nefield=From"`
		Has  string `json:"has,omitempty" validate:"fieldcontains=From"`
		Not  string `json:"not,omitempty" validate:"fieldexcludes=From"`
	}{}, []string{`{"from":"m","gt":"m","gte":"a","lt":"m","lte":"z","eq":"x","ne":"m","has":"x","not":"amb"}`}},
	{"postcode", struct {
		Country string `json:"country"`
		Code    string `json:"code" validate:"postcode_iso3166_alpha2_field=Country"`
	}{}, []string{`{"country":"US","code":"x"}`, `{"country":"x","code":"x"}`}},
	{"booleans", struct {
		A bool `json:"a"`
		B bool `json:"b" validate:"nefield=A"`
	}{}, []string{`{"a":true,"b":true}`}},
	{"secret", struct {
		Password string `json:"password" mcp:"secret"`
		Repeat   string `json:"repeat" validate:"eqfield=Password"`
	}{}, []string{`{"password":"hunter2","repeat":"hunter3"}`}},
	{"conditions", struct {
		Kind string `json:"kind,omitempty"`
		N    int    `json:"n,omitempty"`
		B    string `json:"b,omitempty"`
		If   string `json:"if" validate:"required_if=Kind mail N 3"`
		Unl  int    `json:"unless" validate:"required_unless=Kind mail N 3"`
		With string `json:"with" validate:"required_with=B N"`
		All  string `json:"with_all" validate:"required_with_all=B N"`
		Out  string `json:"without" validate:"required_without=B N"`
		OutA string `json:"without_all" validate:"required_without_all=B N"`
		XIf  string `json:"x_if" validate:"excluded_if=Kind mail"`
		XUnl string `json:"x_unless" validate:"excluded_unless=Kind mail"`
		XWi  string `json:"x_with" validate:"excluded_with=B"`
		XAl  string `json:"x_with_all" validate:"excluded_with_all=B N"`
		XOut string `json:"x_without" validate:"excluded_without=B"`
		XNo  string `json:"x_without_all" validate:"excluded_without_all=B N"`
	}{}, []string{`{}`, `{"kind":"mail","n":3,"b":"b"}`, `{"kind":"mail","x_if":"a"}`, `{"x_unless":"a","x_without":"a","x_without_all":"a"}`, `{"b":"b","n":1,"x_with":"a","x_with_all":"a","with":""}`}},
}

// TestRelationWording is TestWording for the rules among members.
func TestRelationWording(t *testing.T) {
	var b strings.Builder
	for _, c := range relationWording {
		p, err := Compile(reflect.TypeOf(c.typ), &Options{Strict: true, Validator: playground})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		fmt.Fprintf(&b, "%s\n", c.name)
		for _, in := range c.inputs {
			fmt.Fprintf(&b, "  %s\n%s\n", in, issueLines(p.Check([]byte(in))))
		}
		for s := p.Schema().Properties.Oldest(); s != nil; s = s.Next() {
			if s.Value.Description != "" {
				fmt.Fprintf(&b, "  %s says: %s\n", s.Key, s.Value.Description)
			}
		}
	}
	compareText(t, "relation_wording.txt", b.String())
}

func issueLines(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("    %v", err)
	}
	var lines []string
	for _, is := range e.Issues {
		lines = append(lines, "    "+(&Error{Issues: []Issue{is}}).Error())
	}
	return strings.Join(lines, "\n")
}
