package behavior_test

import (
	"encoding/json"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/tooling/toollock"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

type (
	kindTree struct {
		Name string      `json:"name" validate:"required,ne=root"`
		Kids []*kindTree `json:"kids,omitempty" validate:"max=2000"`
	}
	kindFolder struct {
		Files []kindFile `json:"files,omitempty"`
	}
	kindFile struct {
		In   *kindFolder `json:"in,omitempty"`
		Size uint64      `json:"size"`
	}
	kindList[T any] struct {
		Value T            `json:"value"`
		Next  *kindList[T] `json:"next,omitempty"`
	}
	kindPair[K, V any] struct {
		First  K `json:"first"`
		Second V `json:"second"`
	}
	kindPage[T any] struct {
		Items []T `json:"items"`
		Total int `json:"total" validate:"gte=0"`
	}
	kindNest  map[string]kindNest
	kindLines []kindLines

	KindBase struct {
		ID string `json:"id" validate:"required,alphanum"`
	}
	kindEmbeds struct {
		*KindBase
		kindPage[int8]
		Note string `json:"note,omitempty" validate:"excluded_with=Total"`
	}
	kindShadow struct {
		KindBase `json:"base"`
		ID       int `json:"id,omitempty"`
	}

	kindLevel  int8
	kindWeight float64
	kindEnums  struct {
		Level  kindLevel          `json:"level"`
		Weight *kindWeight        `json:"weight,omitempty"`
		By     map[kindLevel]int  `json:"by,omitempty"`
		All    []kindLevel        `json:"all,omitempty" validate:"unique"`
		Null   *kindLevel         `json:"null" jsonschema:"nullable"`
		Some   schema.Null[int16] `json:"some,omitzero" jsonschema:"enum=3,enum=4"`
	}
	kindOneof struct {
		Sort  string   `json:"sort,omitempty" validate:"omitempty,oneof=name 'last change'"`
		Port  int      `json:"port,omitempty" validate:"omitempty,oneof=80 443"`
		Ratio *int64   `json:"ratio,omitempty" validate:"omitempty,oneof=5 20"`
		Case  string   `json:"case,omitempty" validate:"omitempty,oneofci=yes no"`
		Each  []string `json:"each,omitempty" validate:"dive,oneof=a b"`
	}

	kindPlace struct {
		At   netip.Addr    `json:"at"`
		Wait time.Duration `json:"wait,omitempty" validate:"max=1h"`
	}
	kindMaps struct {
		Places map[string]kindPlace                  `json:"places,omitempty" validate:"dive,keys,hostname,endkeys"`
		Pages  map[uint8][]*kindPlace                `json:"pages,omitempty"`
		Deep   map[string]map[string]*kindList[bool] `json:"deep,omitempty"`
	}

	// kindKeywords has names of members that are keywords of JSON Schema.
	kindKeywords struct {
		Ref        string   `json:"$ref,omitempty" jsonschema:"enum=#/x"`
		Required   []string `json:"required,omitempty" jsonschema:"default=b,default=a"`
		Properties *struct {
			Type string `json:"type" validate:"required_with=Enum"`
			Enum []int  `json:"enum,omitempty"`
		} `json:"properties,omitempty"`
		Const   string `json:"const,omitempty" validate:"excluded_with=Pattern"`
		Pattern string `json:"pattern,omitempty"`
	}
	kindNames struct {
		Slash string `json:"a/b,omitempty" validate:"required_with=Tilde"`
		Tilde string `json:"~1,omitempty"`
		Quote string `json:"größe,omitempty"`
		Long  string `json:"n234567890123456789012345678901234567890123456789012345678901234,omitempty"`
		Over  string `json:"o2345678901234567890123456789012345678901234567890123456789012345,omitempty"`
	}
	kindHidden struct {
		Zero   string `json:"zero,omitempty" jsonschema_description:"Be\u200bgin"`
		Bidi   string `json:"bidi,omitempty" jsonschema:"title=a\u202eb"`
		Tagged string `json:"tagged,omitempty" jsonschema:"enum=a\U000e0041,enum=b"`
	}
	kindDeep struct {
		A struct {
			B struct {
				C []map[string]struct {
					D [2][2]float32 `json:"d"`
					E **int         `json:"e,omitempty" validate:"omitempty,gt=1,lt=9"`
				} `json:"c"`
			} `json:"b"`
		} `json:"a"`
		None *struct{}   `json:"none,omitempty"`
		List *[]*string  `json:"list,omitempty" validate:"omitempty,min=1"`
		Any  []any       `json:"any,omitempty" jsonschema_description:"Anything."`
		Num  json.Number `json:"num,omitempty"`
		When *time.Time  `json:"when,omitempty"`
		Raw  [][]byte    `json:"raw,omitempty"`
	}
	kindLimits struct {
		Most  uint64  `json:"most,omitempty" validate:"max=18446744073709551615"`
		Least int64   `json:"least,omitempty" validate:"gt=-9223372036854775808"`
		Huge  float64 `json:"huge,omitempty" validate:"lt=1e308"`
		Text  string  `json:"text,omitempty" validate:"max=1999"`
		Long  string  `json:"long,omitempty" validate:"max=2000"`
		Exact string  `json:"exact,omitempty" validate:"len=2001"`
	}
	kindWide struct {
		A0, A1, A2, A3, A4, A5, A6, A7, A8, A9 string `validate:"omitempty,email"`
		B0, B1, B2, B3, B4, B5, B6, B7, B8, B9 *int   `validate:"omitempty,lt=100"`
		C0, C1, C2, C3, C4, C5, C6, C7, C8, C9 *bool
		D0, D1, D2, D3, D4, D5, D6, D7, D8, D9 *[]string `validate:"omitempty,max=3,unique"`
	}
	kindWidest struct {
		V kindWide `json:"v"`
		W kindWide `json:"w,omitzero"`
		X kindWide `json:"x,omitzero"`
		Y kindWide `json:"y,omitzero"`
		Z kindWide `json:"z,omitzero"`
	}
)

func (kindLevel) Enum() []kindLevel   { return []kindLevel{-2, 0, 5} }
func (kindWeight) Enum() []kindWeight { return []kindWeight{0.25, 1.5} }

// schemaKind is a tool that returns its arguments.
type schemaKind struct {
	tool      mcp.Component
	name      string
	good, bad string // documents, one a line
	rules     string // that lint fails with
}

func kindOf[T any](name, good, bad, rules string) schemaKind {
	return schemaKind{mcp.Tool(name, func(_ *mcp.Frame, in T) (T, error) { return in, nil }, mcp.Doc("Returns its arguments.")), name, good, bad, rules}
}

var schemaKinds = []schemaKind{
	kindOf[kindTree]("tree", `{"name":"a","kids":[{"name":"b","kids":[]}]}`, `{"name":"root"}
{"name":"a","kids":[{"name":"root"}]}
{"name":"a","kids":[{}]}
{"name":""}`, "ref"),
	kindOf[kindFolder]("folder", `{}
{"files":[{"size":18446744073709551615,"in":{"files":[]}}]}`, `{"files":[{"size":-1}]}
{"files":[{"size":1,"in":{"files":[{"size":18446744073709551616}]}}]}`, "ref"),
	kindOf[kindList[string]]("list", `{"value":"a","next":{"value":"b"}}`, `{"value":"a","next":{"value":{}}}
{"next":{"value":"b"}}`, "ref"),
	kindOf[kindList[kindList[int]]]("lists", `{"value":{"value":1,"next":{"value":2}}}`, `{"value":{"value":1,"next":{"value":{"value":2}}}}`, "ref"),
	kindOf[kindPage[kindPair[string, kindPair[int, bool]]]]("pairs", `{"items":[{"first":"a","second":{"first":1,"second":true}}],"total":1}`, `{"items":[{"first":"a","second":{"first":"1a","second":true}}],"total":1}
{"items":[],"total":-1}`, ""),
	kindOf[kindNest]("nest", `{}
{"a":{"b":{}}}`, `{"a":{"b":1}}`, "ref"),
	kindOf[struct {
		Lines kindLines `json:"lines"`
	}]("lines", `{"lines":[[],[[]]]}`, `{"lines":[[],[[1]]]}`, "ref"),
	kindOf[kindEmbeds]("embeds", `{"id":"a1","items":[-128],"total":0}
{"id":"a1","items":[],"total":2}`, `{"id":"a b","items":[],"total":0}
{"items":[],"total":0}
{"id":"a1","items":[128],"total":0}
{"id":"a1","items":[],"total":2,"note":"n"}`, ""),
	kindOf[kindShadow]("shadow", `{"base":{"id":"a"},"id":1}`, `{"base":{},"id":1}
{"id":1}
{"base":{"id":"a"},"id":"b"}`, ""),
	kindOf[kindEnums]("enums", `{"level":-2,"weight":0.25,"by":{"5":1},"all":[0,5],"null":null,"some":null}
{"level":0,"null":5,"some":3}`, `{"level":1,"null":null}
{"level":0,"weight":1,"null":null}
{"level":0,"by":{"1":1},"null":null}
{"level":0,"all":[0,0],"null":null}
{"level":0,"null":3}
{"level":0,"null":null,"some":5}`, ""),
	kindOf[kindOneof]("oneof", `{}
{"sort":"last change","port":443,"ratio":5,"case":"YES","each":["a"]}`, `{"sort":"last"}
{"port":81}
{"ratio":1}
{"case":"maybe"}
{"each":["c"]}`, ""),
	kindOf[kindMaps]("maps", `{"places":{"a.example":{"at":"::1","wait":"1m"}},"pages":{"255":[{"at":"192.0.2.1"}]},"deep":{"a":{"b":{"value":true,"next":{"value":false}}}}}`, `{"places":{"a b":{"at":"::1"}}}
{"pages":{"256":[]}}
{"deep":{"a":{"b":{"value":1}}}}`, "ref"),
	kindOf[kindKeywords]("keywords", `{"$ref":"#/x","required":["z"],"properties":{"type":"t","enum":[1]},"pattern":"("}
{"const":"c"}`, `{"$ref":"#/y"}
{"required":{}}
{"properties":{"type":"","enum":[1]}}
{"const":"c","pattern":"p"}`, "member"),
	kindOf[kindNames]("names", `{"a/b":"x","~1":"y","größe":"w"}`, `{"~1":"y"}`, "member"),
	kindOf[kindHidden]("hidden", `{"zero":"a","tagged":"b"}`, `{"tagged":"a"}`, "text-hidden"),
	kindOf[kindDeep]("deep", `{"a":{"b":{"c":[{"k":{"d":[[1,2],[3,4]],"e":2}}]}},"none":{},"list":["a"],"any":[1,null],"num":1e2,"when":"2026-01-31T09:30:00Z","raw":["YWI="]}`, `{"a":{"b":{"c":[{"k":{"d":[[1,2],[3]]}}]}}}
{"a":{"b":{"c":[{"k":{"d":[[1,2],[3,4]],"e":9}}]}}}
{"a":{"b":{"c":[]}},"list":[]}
{"a":{"b":{"c":[]}},"when":"today"}
{"a":{"b":{"c":[]}},"raw":["!"]}`, "type-none"),
	kindOf[kindLimits]("limits", `{"most":18446744073709551615,"least":-9223372036854775807,"huge":-1e307,"text":"a"}`, `{"least":-9223372036854775808}
{"huge":1e308}
{"exact":"a"}
{"text":"`+strings.Repeat("a", 2000)+`"}`, ""),
	kindOf[kindWidest]("wide", `{"v":{"A0":"a@example.com","B0":1,"C0":true,"D0":["a"]}}`, `{"v":{"A9":"a"}}
{"v":{"B9":100}}
{"v":{"C9":1}}
{"v":{},"z":{"D9":["a","a"]}}
{"v":{"E":1}}`, ""),
	kindOf[struct{}]("n234567890123456789012345678901234567890123456789012345678901234", `{}`, `{"a":1}`, ""),
	kindOf[struct{}]("o2345678901234567890123456789012345678901234567890123456789012345", `{}`, ``, "name-long"),
}

// schemaKindServer has all of them.
func schemaKindServer(t *testing.T, exact bool) *mcp.Server {
	s := harness.Bare(mcp.Options{ExactSchemas: exact})
	for _, k := range schemaKinds {
		if err := s.Add(k.tool); err != nil {
			t.Error(err)
		}
	}
	return s
}

// TestSchemaKinds takes kinds of arguments through everything that reads their schema: the
// exact schema and the narrow one, calls in every revision, lint, locks and pins.
func TestSchemaKinds(t *testing.T) {
	exact := map[string]*raw.Schema{}
	for _, tool := range mcptest.New(t, schemaKindServer(t, true)).Tools() {
		var err error
		if exact[tool.Name], err = raw.Compile(tool.InputSchema); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
	}
	s := schemaKindServer(t, false)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		file := filepath.Join(t.TempDir(), "mcp.lock")
		t.Setenv("MCPTEST_UPDATE", "1")
		c.Golden(file)
		t.Setenv("MCPTEST_UPDATE", "")
		c.Golden(file)
		pin, err := client.ReadLock(file)
		if err != nil {
			t.Fatal(err)
		}
		pinned, err := client.Connect(t.Context(), client.Local(s.ServeConn), &client.Options{Pin: pin, Revisions: []protocol.Revision{rev}})
		if err != nil {
			t.Fatal(err)
		}
		defer pinned.Close()
		tools := map[string]protocol.Tool{}
		for _, tool := range c.Tools() {
			tools[tool.Name] = tool
		}
		for _, k := range schemaKinds {
			tool := tools[k.name]
			sent, err := raw.Compile(tool.InputSchema)
			if err != nil {
				t.Fatalf("%s: %v\n%s", k.name, err, tool.InputSchema)
			}
			var rules []string
			for _, f := range hostrules.Check("", []protocol.Tool{tool}) {
				if f.Rule.Fails && !slices.Contains(rules, f.Rule.ID) {
					rules = append(rules, f.Rule.ID)
				}
			}
			if got := strings.Join(rules, " "); got != k.rules {
				t.Errorf("%s: lint finds %q, want %q\n%s", k.name, got, k.rules, tool.InputSchema)
			}
			for text := range strings.Lines(k.good) {
				text = strings.TrimSpace(text)
				if err := exact[k.name].Check([]byte(text)); err != nil {
					t.Errorf("%s: the exact schema refuses %s: %v", k.name, text, err)
				}
				if err := sent.Check([]byte(text)); err != nil {
					t.Errorf("%s: the schema refuses %s: %v\n%s", k.name, text, err, tool.InputSchema)
				}
				r, err := pinned.Call(t.Context(), k.name, json.RawMessage(text))
				if err != nil || r.IsError {
					t.Errorf("%s refuses %s: %v", k.name, text, err)
				}
			}
			for text := range strings.Lines(k.bad) {
				text = strings.TrimSpace(text)
				if exact[k.name].Check([]byte(text)) == nil {
					t.Errorf("%s: the exact schema takes %s", k.name, text)
				}
				if r, err := c.TryCall(k.name, json.RawMessage(text)); err == nil && !r.IsError {
					t.Errorf("%s takes %s", k.name, text)
				}
			}
		}
	})
}

// A lock takes a narrow schema in place of the exact one for a breaking difference only where
// a keyword went of which it says nothing, or a pattern is spelled in another way.
func TestLocksOfSchemaKinds(t *testing.T) {
	lock := func(exact bool) *toollock.Lock {
		l, err := toollock.New("bare", "", mcptest.New(t, schemaKindServer(t, exact)).Tools())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	unknown := regexp.MustCompile(`\((not|pattern|propertyNames|dependentSchemas|if|then)\)$`)
	for _, d := range toollock.Compare(lock(true), lock(false)) {
		if d.Class == toollock.Breaking && !unknown.MatchString(d.Text) {
			t.Error(d)
		}
	}
}
