package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// tree and page exercise recursion and generics.
type tree struct {
	Name     string          `json:"name" validate:"min=1"`
	Children []*tree         `json:"children,omitempty" validate:"max=3"`
	Named    map[string]tree `json:"named,omitempty"`
}

type page[T any] struct {
	Items []T    `json:"items" validate:"max=5"`
	Next  string `json:"next,omitempty"`
}

type base struct {
	ID   int    `json:"id" validate:"gt=0"`
	Note string `json:"note,omitempty"`
}

type conditions struct {
	K string  `json:"k,omitempty"`
	N int     `json:"n,omitempty"`
	B *bool   `json:"b"`
	A string  `json:"a,omitempty" validate:"required_if=K x"`
	C *int    `json:"c" validate:"required_with=K N"`
	D []int   `json:"d,omitempty" validate:"required_without_all=K B"`
	E *string `json:"e" jsonschema:"nullable" validate:"excluded_with=N"`
	F string  `json:"f,omitempty" validate:"excluded_unless=N 0 K x"`
	G string  `json:"g,omitempty" validate:"required_with_all=N B"`
	H int     `json:"h,omitempty" validate:"required_unless=K x"`
	I int     `json:"i,omitempty" validate:"excluded_if=N 7"`
	J int     `json:"j,omitempty" validate:"excluded_without=B"`
}

type oneCondition struct {
	K int `json:"k,omitempty"`
	A int `json:"a,omitempty" validate:"required_with=K"`
}

type sink struct {
	base
	Text     string               `json:"text" validate:"min=2,max=5"`
	Alpha    string               `json:"alpha,omitempty" validate:"alpha,ne=abc"`
	Mail     string               `json:"mail,omitempty" validate:"email"`
	UUID     string               `json:"uuid,omitempty" validate:"uuid"`
	Either   string               `json:"either,omitempty" validate:"numeric|oneof=one two"`
	Count    int8                 `json:"count" validate:"min=-3"`
	Big      uint64               `json:"big,omitempty" validate:"lt=1000"`
	Port     uint16               `json:"port,omitempty"`
	Ratio    float64              `json:"ratio,omitempty" validate:"gte=0,lt=1"`
	Half     float32              `json:"half,omitempty" jsonschema:"multipleOf=0.5"`
	Flag     bool                 `json:"flag,omitempty"`
	Level    *int                 `json:"level" jsonschema:"nullable,enum=1,enum=2"`
	Tags     []string             `json:"tags,omitempty" validate:"min=1,unique,dive,min=1"`
	Loose    []string             `json:"loose,omitempty" validate:"dive,omitempty,len=3"`
	Grid     [2]int               `json:"grid,omitempty"`
	Dict     map[string]int       `json:"dict,omitempty" validate:"max=3,dive,keys,lowercase,endkeys,min=0"`
	ByID     map[int]string       `json:"byId,omitempty"`
	When     *time.Time           `json:"when"`
	Day      *civil.Date          `json:"day"`
	Clock    *civil.TimeOfDay     `json:"clock"`
	Naive    *civil.NaiveDateTime `json:"naive"`
	Wait     time.Duration        `json:"wait,omitempty" validate:"max=2h"`
	InUnits  time.Duration        `json:"seconds,omitempty" mcp:"unit=s" validate:"min=1s"`
	ISO      time.Duration        `json:"iso,omitempty" jsonschema:"format=duration"`
	Waits    []time.Duration      `json:"waits,omitempty" validate:"dive,omitempty,min=1s"`
	ISOs     []time.Duration      `json:"isos,omitempty" jsonschema:"format=duration"`
	Quoted   int                  `json:"quoted,string,omitempty"`
	Maybe    Null[string]         `json:"maybe,omitzero"`
	Pattern  string               `json:"pattern,omitempty" jsonschema:"pattern=^[a-c]+$"`
	Format   string               `json:"format,omitempty" jsonschema:"format=ipv4"`
	Anything any                  `json:"anything,omitempty"`
	Raw      json.RawMessage      `json:"raw,omitempty"`
	Blob     []byte               `json:"blob,omitempty" validate:"max=4"`
	Shape    figure               `json:"shape,omitempty"`
	Unused   int                  `json:"unused,omitempty" validate:"isdefault"`
	Free     map[string]string    `json:"free,omitempty"`
}

// corners has the keywords and kinds that sink leaves out.
type corners struct {
	U      uint16                 `json:"u,omitempty" jsonschema:"enum=1,enum=100"`
	F      float64                `json:"f,omitempty" jsonschema:"enum=0.5,enum=1e2"`
	F32    float32                `json:"f32,omitempty" jsonschema:"enum=0.1"`
	Yes    bool                   `json:"yes,omitempty" jsonschema:"const=true"`
	NotNil *string                `json:"notNil" jsonschema:"nullable" validate:"ne=abc"`
	NoneOf *int                   `json:"noneOf" jsonschema:"nullable" validate:"ne=3"`
	Two    *string                `json:"two" jsonschema:"nullable,pattern=^a" validate:"startswith=ab,endswith=c"`
	Const  *string                `json:"const" jsonschema:"nullable,const=x"`
	ZeroI  int                    `json:"zeroI,omitempty" validate:"isdefault"`
	ZeroU  uint                   `json:"zeroU,omitempty" validate:"isdefault"`
	ZeroF  float64                `json:"zeroF,omitempty" validate:"isdefault"`
	ZeroB  bool                   `json:"zeroB,omitempty" validate:"isdefault"`
	ZeroS  string                 `json:"zeroS,omitempty" validate:"isdefault"`
	ZeroL  []int                  `json:"zeroL,omitempty" validate:"isdefault"`
	ZeroM  map[string]int         `json:"zeroM,omitempty" validate:"isdefault"`
	Ints   []int                  `json:"ints,omitempty" validate:"dive,omitempty,min=3" jsonschema:"minItems=1,uniqueItems"`
	Bools  []bool                 `json:"bools,omitempty" validate:"dive,omitempty,eq=true"`
	Multi  int                    `json:"multi,omitempty" jsonschema:"multipleOf=5,exclusiveMinimum=0,maximum=100"`
	MultiU uint                   `json:"multiU,omitempty" jsonschema:"multipleOf=3,exclusiveMaximum=128"`
	Props  map[string]bool        `json:"props,omitempty" jsonschema:"minProperties=1,maxProperties=2"`
	Time   string                 `json:"time,omitempty" jsonschema:"format=date-time"`
	Path   string                 `json:"path,omitempty" jsonschema:"format=json-pointer"`
	Many   []string               `json:"many,omitempty" jsonschema:"enum=a,enum=ab,minItems=1"`
	IPs    map[netip.Addr]int     `json:"ips,omitempty"`
	Octets map[uint8]int          `json:"octets,omitempty"`
	FStr   float64                `json:"fstr,string,omitempty"`
	UStr   uint                   `json:"ustr,string,omitempty"`
	BStr   bool                   `json:"bstr,string,omitempty"`
	Nested []map[string][]*string `json:"nested,omitempty"`
	Objs   []*base                `json:"objs,omitempty" jsonschema:"maxItems=2"`
	ByWait map[time.Duration]int  `json:"byWait,omitempty"`
	MaybeD Null[time.Duration]    `json:"maybeD,omitzero" jsonschema:"format=duration"`
	MaybeN Null[int]              `json:"maybeN,omitzero" validate:"min=2"`
	URL    *url.URL               `json:"url"`
	Num    json.Number            `json:"num,omitempty"`
	Huge   *big.Int               `json:"huge"`
	Rune   int32                  `json:"rune,omitempty" validate:"gt=-4,lt=4"`
	Dated  string                 `json:"dated,omitempty" validate:"datetime=2006-01-02"`
	Size   []byte                 `json:"size,omitempty"`
}

type nonZeroFields struct {
	I int     `json:"i" validate:"required"`
	U uint8   `json:"u" validate:"required"`
	F float64 `json:"f" validate:"required"`
	B bool    `json:"b" validate:"required"`
	S string  `json:"s" validate:"required"`
}

// oracleTypes are compared with the oracle on random documents.
var oracleTypes = []any{searchArgs{}, tree{}, page[base]{}, page[*tree]{}, conditions{}, oneCondition{}, sink{}, drawing{}, requiredWithout{}, map[string]base{}, corners{}, nonZeroFields{}}

// TestAgainstOracle compares plans with an independent implementation of JSON
// Schema on the schema that they advertise. The only differences allowed are
// those in residual: the plan may refuse a document that the schema accepts
// for a rule that JSON Schema cannot say, and that the description states.
func TestAgainstOracle(t *testing.T) {
	documents := testdep.Rounds(300, 3000)
	for _, v := range oracleTypes {
		typ := reflect.TypeOf(v)
		t.Run(typ.String(), func(t *testing.T) {
			p, err := Compile(typ, &Options{Strict: true, RequiredNonZero: typ == reflect.TypeFor[nonZeroFields](), Unions: []UnionType{figures}})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := newJudge(t, p.JSON())
			if err != nil {
				t.Fatalf("schema does not compile: %v\n%s", err, p.JSON())
			}
			g := newGenerator(t, p.JSON())
			valid := 0
			for range documents {
				doc := g.document()
				planErr, rawErr := p.Check(doc), raw.Check(doc)
				if planErr == nil {
					valid++
				}
				if (planErr == nil) != (rawErr == nil) && !stricterByRule(planErr, rawErr) {
					t.Fatalf("the plan says %v\nthe oracle says %v\ndocument %s\nschema %s", planErr, rawErr, doc, p.JSON())
				}
			}
			t.Logf("%d of %d valid", valid, documents)
			if valid < documents/50 || valid == documents {
				t.Errorf("%d of %d documents were valid: the generator is one-sided", valid, documents)
			}
		})
	}
}

// residualRules are the rules that only the server enforces.
var residualRules = []string{
	"email",           // the grammar of mail addresses is wider and narrower than format email
	"lowercase",       // Unicode case
	"max=2h",          // the value of a duration in text form
	"min=1s",          // the value of a duration in text form
	"max=4",           // the number of bytes in base64 text
	"custom",          // a type's own text form
	wording.RuleRange, // 64 bits
}

// stricterByRule tells whether the plan refuses more than the schema only for
// reasons that are listed.
func stricterByRule(planErr, rawErr error) bool {
	var e *Error
	if rawErr != nil || !errors.As(planErr, &e) {
		return false
	}
	for _, is := range e.Issues {
		known := slices.ContainsFunc(residualRules, func(r string) bool {
			name, _, _ := strings.Cut(r, "=")
			return is.Rule == r || is.Rule == name
		})
		if !known && !(is.Rule == "propertyNames") {
			return false
		}
	}
	return true
}

// generator makes documents that are nearly valid.
type generator struct {
	r        *rand.Rand
	root     map[string]any
	tb       testing.TB
	compiled map[string]*judge
}

func newGenerator(t *testing.T, schema []byte) *generator {
	g := &generator{r: rand.New(rand.NewPCG(1, 2)), tb: t, compiled: map[string]*judge{}}
	if err := json.Unmarshal(schema, &g.root); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *generator) document() []byte {
	b, err := json.Marshal(g.value(g.root, 0))
	if err != nil {
		panic(fmt.Sprint("a generated value is no JSON: ", err))
	}
	return b
}

var sampleTexts = []string{"", "a", "ab", "abc", "abcd", "abcdef", "x", "one", "two", "12", "-1.5", "a@example.com", "é", "👍👍",
	"123e4567-e89b-12d3-a456-426614174000", "2026-01-31", "2026-02-30", "2026-01-31T10:00:00Z", "2026-01-31t10:00:00.5+02:00", "2026-01-31T10:00:00",
	"10:00", "24:00:00", "10:00:59.123", "1h30m", "3h", "-5s", "PT5M", "P2D", "PT", "192.0.2.1", "1.2.3.400", "aGk=", "aGVsbG8=", "aGk", "en", "asc", "desc", "x1", "5", "05", "true"}

var sampleNumbers = []any{0, 1, 2, 3, -1, -3, -4, 5, 7, 10, 100, 101, 127, 128, -128, -129, 999, 1000, 65535, 65536, 0.5, 0.25, 0.999, 1.5,
	json.Number("1.0"), json.Number("1e2"), json.Number("1e30"), json.Number("-0"), json.Number("0.1")}

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

// value makes a value for a schema, and now and then for no schema at all.
func (g *generator) value(s map[string]any, depth int) any {
	if g.r.IntN(120) == 0 || depth > 6 {
		return pick(g, []any{nil, true, "x", 1, []any{}, map[string]any{}, []any{"a", "a"}, 1.5})
	}
	if ref, ok := s["$ref"].(string); ok {
		defs, _ := g.root["$defs"].(map[string]any)
		def, _ := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return g.value(def, depth+1)
	}
	if enum, ok := s["enum"].([]any); ok && g.r.IntN(6) > 0 {
		return pick(g, enum)
	}
	if c, ok := s["const"]; ok && g.r.IntN(6) > 0 {
		return c
	}
	typ := s["type"]
	if list, ok := typ.([]any); ok {
		typ = pick(g, list)
	}
	if branches, ok := s["anyOf"].([]any); ok && typ == nil {
		branch, _ := pick(g, branches).(map[string]any)
		return g.value(branch, depth+1)
	}
	switch typ {
	case "object":
		return g.object(s, depth)
	case "array":
		items, _ := s["items"].(map[string]any)
		list := []any{}
		for range g.r.IntN(4) {
			list = append(list, g.value(items, depth+1))
		}
		return list
	case "string":
		return g.fitting(s, func() any { return pick(g, sampleTexts) })
	case "integer", "number":
		return g.fitting(s, func() any { return pick(g, sampleNumbers) })
	case "boolean":
		return g.r.IntN(2) == 0
	case "null":
		return nil
	}
	return pick(g, []any{nil, true, "x", 1, []any{1}, map[string]any{"a": nil}})
}

// fitting draws values until one fits a schema, most of the time.
func (g *generator) fitting(s map[string]any, draw func() any) any {
	v := draw()
	if g.r.IntN(30) == 0 {
		return v
	}
	key := fmt.Sprint(s)
	if g.compiled[key] == nil {
		text, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		if g.compiled[key], err = newJudge(g.tb, text); err != nil {
			panic(err)
		}
	}
	for range 100 {
		if text, _ := json.Marshal(v); g.compiled[key].Check(text) == nil {
			break
		}
		v = draw()
	}
	return v
}

func (g *generator) object(s map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) { // in order, so that a seed repeats
		ps, _ := properties[name].(map[string]any)
		keep := 3
		if slices.Contains(required, any(name)) {
			keep = 60
		}
		if g.r.IntN(keep) > 0 && (keep == 60 || g.r.IntN(4) == 0 || len(properties) < 15) {
			out[name] = g.value(ps, depth+1)
		}
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok {
		for range g.r.IntN(3) {
			out[pick(g, sampleTexts)] = g.value(more, depth+1)
		}
	} else if g.r.IntN(25) == 0 {
		out["unknown"] = 1
	}
	return out
}
