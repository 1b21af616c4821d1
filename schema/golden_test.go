package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
)

var update = flag.Bool("update", false, "write the golden schemas anew")

type everyTag struct {
	_      struct{}          `jsonschema:"additionalProperties=true"`
	Title  string            `json:"title" jsonschema:"title=The title,description=What it is called\\, in short,example=Go,minLength=1" jsonschema_extras:"x-order=1,x-flag=true,x-list=a,x-list=b"`
	Old    string            `json:"old,omitempty" jsonschema:"deprecated,readOnly"`
	Token  string            `json:"token,omitempty" mcp:"secret"`
	Region string            `json:"region" mcp:"header=Region" jsonschema_description:"Where to run"`
	Shard  int               `json:"shard,omitempty" mcp:"header=Shard"`
	List   []int             `json:"list,omitempty" jsonschema:"default=[1,2],minimum=0,maxItems=9"`
	Names  []string          `json:"names,omitempty" jsonschema:"default=a,default=b"`
	Flags  map[string]bool   `json:"flags,omitempty" jsonschema:"maxProperties=2"`
	Wait   time.Duration     `json:"wait,omitempty" mcp:"unit=ms" validate:"min=10ms"`
	From   int               `json:"from"`
	To     int               `json:"to" validate:"gtfield=From"`
	Opts   map[string]string `json:"opts,omitempty" jsonschema:"default={}"`
}

func TestGoldenSchemas(t *testing.T) {
	types := map[string]any{
		"search": searchArgs{}, "tree": tree{}, "page": page[*tree]{}, "conditions": conditions{},
		"one_condition": oneCondition{}, "sink": sink{}, "drawing": drawing{}, "tags": everyTag{}, "map": map[string]base{},
	}
	for name, v := range types {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(reflect.TypeOf(v), &Options{Unions: []UnionType{figures}})
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, name, p.JSON())
		})
		t.Run(name+"_output", func(t *testing.T) {
			if name == "tags" {
				t.Skip("units are for arguments")
			}
			if name == "drawing" || name == "sink" {
				t.Skip("the variants do not write their kind")
			}
			p, err := Compile(reflect.TypeOf(v), &Options{Output: true})
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, name+"_output", p.JSON())
		})
	}
}

func checkGolden(t *testing.T, name string, schema []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, schema, "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("schema differs from %s; run go test ./schema -update if that is meant\n%s", file, got.Bytes())
	}
	if _, err := newJudge(t, schema); err != nil {
		t.Errorf("the schema is not valid: %v", err)
	}
}

// TestSchemaMarshals checks that what For returns says the same when it is
// marshalled by its own package.
func TestSchemaMarshals(t *testing.T) {
	for _, v := range oracleTypes {
		p, err := Compile(reflect.TypeOf(v), &Options{Unions: []UnionType{figures}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p.Schema())
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(":true,"), []byte(":{},")), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(bytes.ReplaceAll(p.JSON(), []byte(":true,"), []byte(":{},")), &b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%T: json.Marshal gives\n%s\nwant\n%s", v, text, p.JSON())
		}
	}
}

func TestSchemaIsACopy(t *testing.T) {
	p := compile[sink](t, &Options{Unions: []UnionType{figures}})
	before := string(p.JSON())
	s := p.Schema()
	s.Type = "array"
	first := s.Properties.Oldest()
	first.Value.Description = "changed"
	s.Required[0] = "changed"
	if got := string(schemadoc.Append(nil, p.Schema())); got != before {
		t.Errorf("a change to the copy changed the plan:\n%s", got)
	}
}

// anything and nothing are types whose schemas are just true and false, which
// the keywords of a field cannot change.
type (
	anything struct{}
	nothing  struct{}
)

func (anything) JSONSchema() *jsonschema.Schema { return jsonschema.TrueSchema }
func (nothing) JSONSchema() *jsonschema.Schema  { return jsonschema.FalseSchema }

func TestBooleanSchemas(t *testing.T) {
	type args struct {
		A anything `json:"a"`
		B nothing  `json:"b,omitempty" jsonschema:"description=Nothing fits."`
		C any      `json:"c" jsonschema:"description=Any."`
	}
	const want = `{"type":"object","properties":{"a":{},"b":false,"c":{"description":"Any."}},"additionalProperties":false,"required":["a","c"]}`
	p, err := Compile(reflect.TypeFor[args](), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := p.Check([]byte(`{"a":{},"b":1,"c":1}`)); err == nil {
		t.Error("a schema that is false accepts a value")
	}
}
