package schema

import (
	"reflect"
	"strings"
	"testing"
)

type (
	forest   []forest
	dirs     map[string]dirs
	quad     [2]*quad
	linked   struct{ Next *linked }
	ping     struct{ Pong *pong }
	pong     struct{ Ping []ping }
	pointer2 *pointer2
	group    struct {
		Parts []figure `json:"parts"`
	}
)

func (group) area() float64 { return 0 }

// TestRecursiveTypes checks that types inside themselves end in a $ref, and
// are decoded.
func TestRecursiveTypes(t *testing.T) {
	nested := Union[figure]("kind", Variant("circle", circle{}), Variant("group", group{}))
	tests := []struct {
		typ    any
		def    string
		input  string
		issues []string
	}{
		{struct{ F forest }{}, "forest", `{"F":[[],[[]]]}`, nil},
		{struct{ F forest }{}, "forest", `{"F":[[],[1]]}`, []string{"/F/1/0 type"}},
		{struct{ D dirs }{}, "dirs", `{"D":{"a":{"b":{}}}}`, nil},
		{struct{ Q quad }{}, "quad", `{"Q":[[null],[]]}`, []string{"/Q/0/0 type", "/Q/0 minItems", "/Q/1 minItems"}},
		{linked{}, "linked", `{"Next":{"Next":{}}}`, nil},
		{ping{}, "ping", `{"Pong":{"Ping":[{},{"Pong":{}}]}}`, []string{"/Pong/Ping/1/Pong/Ping required"}},
		{drawing{}, "group", `{"shape":{"kind":"group","parts":[{"kind":"circle","r":1},{"kind":"group","parts":[{"kind":"circle","r":0}]}]}}`,
			[]string{"/shape/parts/1/parts/0/r exclusiveMinimum"}},
		{page[*tree]{}, "tree", `{"items":[{"name":"a","children":[{"name":""}]}]}`, []string{"/items/0/children/0/name minLength"}},
	}
	for _, c := range tests {
		p, err := Compile(reflect.TypeOf(c.typ), &Options{Strict: true, Unions: []UnionType{nested}})
		if err != nil {
			t.Errorf("%T: %v", c.typ, err)
			continue
		}
		if !strings.Contains(string(p.JSON()), `"$ref":"#/$defs/`+c.def+`"`) {
			t.Errorf("%T: no reference to %s in %s", c.typ, c.def, p.JSON())
		}
		if _, err := newJudge(t, p.JSON()); err != nil {
			t.Errorf("%T: %v", c.typ, err)
		}
		if got := listed(t, p.Check([]byte(c.input))); !reflect.DeepEqual(got, c.issues) {
			t.Errorf("%T: %s has issues %q, want %q", c.typ, c.input, got, c.issues)
		}
	}
	if _, err := Compile(reflect.TypeFor[struct{ P pointer2 }](), nil); err == nil {
		t.Error("a pointer to itself compiles")
	}
}

func firstNode() reflect.Type {
	type node struct {
		A    int   `json:"a,omitempty"`
		Next *node `json:"next"`
	}
	return reflect.TypeFor[node]()
}

func secondNode() reflect.Type {
	type node struct {
		B    int   `json:"b,omitempty"`
		Next *node `json:"next"`
	}
	return reflect.TypeFor[node]()
}

// TestDefNamesCollide has two recursive types of one name.
func TestDefNamesCollide(t *testing.T) {
	p, err := Compile(reflect.StructOf([]reflect.StructField{
		{Name: "X", Type: firstNode(), Tag: `json:"x,omitempty"`}, {Name: "Y", Type: secondNode(), Tag: `json:"y,omitempty"`},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Schema().Definitions); n != 2 {
		t.Errorf("%d definitions: %s", n, p.JSON())
	}
	raw, err := newJudge(t, p.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for doc, valid := range map[string]bool{
		`{"x":{"next":{"a":1}},"y":{"next":{"b":1}}}`: true, `{"x":{"next":{"b":1}}}`: false, `{"y":{"next":{"a":1}}}`: false,
	} {
		if (p.Check([]byte(doc)) == nil) != valid || (raw.Check([]byte(doc)) == nil) != valid {
			t.Errorf("%s: plan says %v, schema %v", doc, p.Check([]byte(doc)), raw.Check([]byte(doc)))
		}
	}
}

func TestDefNames(t *testing.T) {
	for name, want := range map[string]string{
		"Page[github.com/a/b.Address]":       "Page_of_Address",
		"Pair[string,main.Page[*main.Item]]": "Pair_of_string_Page_of_Item",
		"Plain":                              "Plain",
		"Größe":                              "Gr__e",
	} {
		if got := typeWord(name); got != want {
			t.Errorf("the name of %s is %s, want %s", name, got, want)
		}
	}
}
