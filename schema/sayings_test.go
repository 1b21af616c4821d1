package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// sayings are documents that break what is no rule of a tag.
var sayings = []struct {
	name   string
	typ    any
	inputs []string
}{
	{"dates", struct {
		V civil.Date `json:"v"`
	}{}, []string{`"2024-02-30"`, `"2023-02-29"`, `"2024-04-31"`, `"2024-13-01"`, `"2024-00-01"`, `"2024-01-00"`, `"2024-1-1"`, `"01/02/2024"`, `"tomorrow"`, `""`, `"2024-02-01T00:00:00Z"`, `20240101`, `null`}},
	{"times of day", struct {
		V civil.TimeOfDay `json:"v"`
	}{}, []string{`"24:00"`, `"9:30"`, `"09:60"`, `"09:30:60"`, `"09:30Z"`, `"09:30+02:00"`, `"09:30:00,5"`, `"09:30:00.1234567890"`, `"noon"`, `"9:30 pm"`, `930`}},
	{"local dates and times", struct {
		V civil.NaiveDateTime `json:"v"`
	}{}, []string{`"2024-02-30T10:00"`, `"2024-02-01T10:00Z"`, `"2024-02-01T10:00+01:00"`, `"2024-02-01 10:00"`, `"2024-02-01"`, `"2024-02-01T25:00"`, `"x"`, `5`}},
	{"time.Time", struct {
		V time.Time `json:"v"`
	}{}, []string{`"2024-02-30T10:00:00Z"`, `"2024-02-01T10:00:00"`, `"2024-02-01 10:00:00Z"`, `"2024-02-01"`, `"2024-02-01T24:00:00Z"`, `"2024-02-01T10:00Z"`, `"2024-02-01T10:00:60Z"`, `"2024-02-01T10:00:00,5Z"`, `"2024-02-01T10:00:00+2"`, `"2024-02-01T10:00:00+24:00"`, `"yesterday"`, `1700000000`}},
	{"durations", struct {
		V time.Duration `json:"v"`
	}{}, []string{`"90"`, `"1 h"`, `"PT1H"`, `"2d"`, `"1y"`, `"300000000h"`, `""`, `90`}},
	{"ISO durations", struct {
		V time.Duration `json:"v" jsonschema:"format=duration"`
	}{}, []string{`"1h"`, `"P1Y"`, `"P1M"`, `"PT1.5S"`, `"P1DT1S30M"`, `"P99999999W"`, `90`}},
	{"seconds", struct {
		V time.Duration `json:"v" mcp:"unit=s"`
	}{}, []string{`"1h"`, `1.5`, `99999999999`, `-99999999999`}},
	{"datetime tags", struct {
		V string `json:"v" validate:"datetime=2006-01-02"`
	}{}, []string{`"2024-02-30"`, `"x"`, `5.5`}},
	{"datetime tags with offset", struct {
		V string `json:"v" validate:"datetime=2006-01-02T15:04:05Z07:00"`
	}{}, []string{`"2024-02-30T10:00:00Z"`, `"2024-02-01T10:00:00"`}},
	{"other layouts", struct {
		V string `json:"v" validate:"datetime=02.01.2006"`
	}{}, []string{`"30.02.2024"`, `"x"`}},
	{"duration tags", struct {
		V string `json:"v" validate:"duration"`
	}{}, []string{`"90"`, `"300000000h"`}},
	{"built-in types", builtins{}, []string{`{"ip":"x","net":"1","big":1.5,"blob":"a\nGk=","raw":null,"num":"x","when":1,"day":1,"wait":1}`, `{}`, `{"ip":1,"net":1,"big":"x","blob":1,"raw":1,"num":[],"when":[],"day":{},"wait":[]}`}},
	{"integers", struct {
		V int     `json:"v"`
		W int8    `json:"w,omitempty"`
		X uint    `json:"x,omitempty"`
		Y uint8   `json:"y,omitempty"`
		Z float32 `json:"z,omitempty"`
	}{}, []string{`{"v":1.5,"w":300,"x":-1,"y":300,"z":1e39}`, `{"v":1e30,"w":1.5,"x":1e30,"y":"a","z":"a"}`, `{"v":"ten","w":true,"x":null,"y":{},"z":[]}`}},
	{"quoted", struct {
		V int     `json:"v,string"`
		W bool    `json:"w,string"`
		X float64 `json:"x,string"`
	}{}, []string{`{"v":"x","w":"x","x":"x"}`, `{}`}},
	{"lists", struct {
		V [2]int              `json:"v"`
		W []int               `json:"w" validate:"min=1,max=3,unique,dive,min=1"`
		X []uint8             `json:"x,omitempty"`
		Y map[int]string      `json:"y,omitempty" validate:"dive,keys,min=3,endkeys,min=2"`
		Z map[civil.Date]bool `json:"z,omitempty"`
	}{}, []string{`{"v":[1],"w":[]}`, `{"v":[1,2,3],"w":[0,0,1]}`, `{"v":5,"w":{},"x":5,"y":[],"z":5}`, `{"v":[1,2],"w":[1,2,3,4],"y":{"1":"x","a":"xx"},"z":{"2024-02-30":true}}`, `{}`}},
	{"unions", drawing{}, []string{`{"shape":{"kind":"cube"}}`, `{"shape":{"r":1}}`, `{"shape":{"kind":5}}`, `{"shape":[]}`, `{}`, `{"shape":{"kind":"circle","rr":2}}`}},
	{"unknown members", struct {
		Sort string `json:"sort,omitempty"`
		In   struct {
			Limit int `json:"limit,omitempty"`
		} `json:"in,omitzero"`
		None struct{} `json:"none,omitzero"`
	}{}, []string{`{"sortt":1}`, `{"zzz":1}`, `{"in":{"Limit":1}}`, `{"in":{"zzz":1}}`, `{"none":{"x":1}}`}},
	{"documents", intPlain{}, []string{`{"n":1,"n":2}`, `{"n":1}}`, `{"n":`, `[1]`, `null`, `"x"`, `{"n":null}`, `{"n":"` + strings.Repeat("9", 120) + `"}`}},
	{"null and raw", struct {
		V Null[string]    `json:"v"`
		W *int            `json:"w" jsonschema:"nullable,required"`
		X json.RawMessage `json:"x"`
		Y any             `json:"y"`
		Z Null[[]int]     `json:"z,omitzero" validate:"min=1"`
	}{}, []string{`{}`, `{"v":5,"w":[],"x":1,"y":1,"z":[]}`, `{"v":null,"w":null,"x":null,"y":null,"z":{}}`}},
	{"keywords", struct {
		V string   `json:"v" jsonschema:"pattern=^[a-z]+$"`
		W string   `json:"w" jsonschema:"format=hostname"`
		X int      `json:"x" jsonschema:"multipleOf=5"`
		Y string   `json:"y" jsonschema:"const=yes"`
		Z int      `json:"z" jsonschema:"enum=1,enum=2"`
		A float64  `json:"a" jsonschema:"exclusiveMinimum=0,maximum=1"`
		B []string `json:"b" jsonschema:"minLength=2,minItems=1"`
	}{}, []string{`{"v":"A","w":"-","x":3,"y":"no","z":3,"a":0,"b":["x"]}`, `{"v":[],"w":[],"x":[],"y":[],"z":[],"a":[],"b":"x"}`, `{}`}},
	{"hooks", struct {
		V vowel    `json:"v"`
		W pointed  `json:"w"`
		X wordText `json:"x"`
		Y picky    `json:"y"`
	}{}, []string{`{"v":"x","w":"X","x":5,"y":"no"}`, `{"v":5,"w":5,"x":[],"y":[]}`, `{}`}},
}

// picky is a type whose text form refuses everything.
type picky struct{}

func (*picky) UnmarshalText(b []byte) error         { return fmt.Errorf("no colour is named %q", b) }
func (picky) JSONSchemaExtend(s *jsonschema.Schema) {}

// TestSayings is TestWording for everything that is no rule of a tag.
func TestSayings(t *testing.T) {
	var b strings.Builder
	for _, c := range sayings {
		p, err := Compile(reflect.TypeOf(c.typ), &Options{Strict: true, Unions: []UnionType{figures}})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		fmt.Fprintf(&b, "%s\n", c.name)
		for _, in := range c.inputs {
			doc := in
			if reflect.TypeOf(c.typ).NumField() == 1 && c.name != "unions" && c.name != "documents" {
				doc = `{"v":` + in + `}`
			}
			fmt.Fprintf(&b, "  %s\n%s\n", wording.Cut(in), issueLines(p.Check([]byte(doc))))
		}
	}
	compareText(t, "sayings.txt", b.String())
}
