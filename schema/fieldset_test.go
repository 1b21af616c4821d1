package schema

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/talaria-go/mcp/schema/internal/wording"
)

type Inner struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

type Deep struct {
	Inner
	Name  string `json:"name,omitempty"`
	Extra int    `json:"extra,omitempty"`
}

type Plain struct {
	A, B *int
}

type Plainer struct {
	Plain
	B *int
	C *int
}

type left struct {
	Same string
	L    int `json:"l,omitempty"`
}

type right struct {
	Same string
	R    int `json:"r,omitempty"`
}

type tagged struct {
	Other string `json:"Same,omitempty"`
}

type untagged struct {
	Same string
}

type Text string

// embeddings are struct types whose members encoding/json works out by rules
// that are easy to get wrong.
var embeddings = []any{
	struct {
		Name string `json:"name,omitempty"`
		Inner
	}{},
	struct {
		Inner
		Name string `json:"name,omitempty"`
	}{},
	struct {
		left
		right
	}{},
	struct {
		*Deep
		Own int `json:"own,omitempty"`
	}{},
	struct {
		tagged
		untagged
	}{},
	struct {
		Inner `json:"inner,omitempty"`
		Text  `json:",omitempty"`
	}{},
	reflect.New(reflect.StructOf([]reflect.StructField{ // a member named "-"
		{Name: "Dash", Type: reflect.TypeFor[int](), Tag: `json:"-,omitempty"`},
	})).Elem().Interface(),
	struct {
		Hidden int `json:"-"`
		hidden int
		Plain  int `json:",omitempty"`
	}{},
	struct {
		Plainer
		Plain
	}{},
}

// TestEmbedding compares the decoder with encoding/json, one member at a time.
func TestEmbedding(t *testing.T) {
	members := map[string]string{"id": `"i"`, "name": `"n"`, "extra": "1", "same": `"s"`, "Same": `"S"`, "l": "1", "r": "2", "own": "3",
		"inner": `{"id":"x"}`, "Text": `"t"`, "-": "4", "Plain": "5", "A": "1", "B": "2", "C": "3", "Hidden": "6", "hidden": "7"}
	for _, v := range embeddings {
		typ := reflect.TypeOf(v)
		p, err := Compile(typ, nil)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		for name, value := range members {
			doc := []byte(`{"` + name + `":` + value + `}`)
			want, got := reflect.New(typ), reflect.New(typ)
			if err := json.Unmarshal(doc, want.Interface()); err != nil {
				t.Fatal(err)
			}
			_, known := p.root.object.byName[name]
			err := p.Decode(context.Background(), doc, got.Interface())
			if known != (err == nil) {
				t.Errorf("%s: %s gives %v", typ, doc, err)
			}
			if err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%s: %s decodes to %+v, encoding/json says %+v", typ, doc, got.Elem(), want.Elem())
			}
			if !known && !want.Elem().IsZero() && !caseFolded(p, name) {
				t.Errorf("%s: encoding/json knows %q, the plan does not", typ, name)
			}
		}
	}
}

// caseFolded tells whether encoding/json takes name for another one.
func caseFolded(p *Plan, name string) bool {
	return wording.Nearest(name, p.root.object.names) != ""
}

// TestManyMembers has more members than the decoder keeps marks for at hand.
func TestManyMembers(t *testing.T) {
	var fields []reflect.StructField
	doc := []byte{'{'}
	for i := range 300 {
		name := "F" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		fields = append(fields, reflect.StructField{Name: name, Type: reflect.TypeFor[int](), Tag: reflect.StructTag(`json:"` + name + `"`)})
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, `"`+name+`":1`...)
	}
	doc = append(doc, '}')
	p, err := Compile(reflect.StructOf(fields), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(doc); err != nil {
		t.Error(err)
	}
	if err := p.Check([]byte(`{}`)); err == nil || len(err.(*Error).Issues) != len(fields) {
		t.Errorf("missing members: %v", err)
	}
}
