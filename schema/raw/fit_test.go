package raw

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func fitterOf(t testing.TB, schema string) *Fitter {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	f, _ := NewFitter(s)
	return f
}

// members returns the schema of an object with some properties.
func members(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }

// pydantic is the form of schemas that Pydantic writes.
const pydantic = `{"$defs":{"Sort":{"type":"string","enum":["date","title"]},"Page":{"type":"object","properties":{
	"size":{"type":"integer","default":10},"sort":{"$ref":"#/$defs/Sort","default":"date"}}}},
	"type":"object","properties":{"page":{"$ref":"#/$defs/Page"},"limit":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},
	"flags":{"anyOf":[{"type":"array","items":{"type":"boolean"}},{"type":"null"}]},"all":{"allOf":[{"$ref":"#/$defs/Sort"}],"default":"title"}}}`

const shapes = `{"type":"object","properties":{"shape":{"oneOf":[
	{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"},"unit":{"type":"string","default":"mm"}},"required":["kind","r"]},
	{"type":"object","properties":{"kind":{"const":"box"},"sides":{"type":"array","items":{"type":"integer"}}},"required":["kind","sides"]}]}}}`

var fitRows = []struct{ name, schema, doc, want string }{ // want is "" if the document is refused
	{"nothing to do", members(`"n":{"type":"integer"}`), ` { "n" : 7 } `, ` { "n" : 7 } `},
	{"integer", members(`"n":{"type":"integer"}`), `{"n":"7"}`, `{"n":7}`},
	{"integer with a fraction of zero", members(`"n":{"type":"integer"}`), `{"n":7.0}`, `{"n":7}`},
	{"integer with an exponent", members(`"n":{"type":"integer"}`), `{"n":"7e1"}`, `{"n":70}`},
	{"beyond 53 bits", members(`"n":{"type":"integer"}`), `{"n":"9007199254740993"}`, `{"n":9007199254740993}`},
	{"no integer", members(`"n":{"type":"integer"}`), `{"n":"7.5"}`, ``},
	{"no number", members(`"n":{"type":"number"}`), `{"n":"7px"}`, ``},
	{"no unbounded number", members(`"n":{"type":"number"}`), `{"n":"1e999999999"}`, ``},
	{"bounds hold", members(`"n":{"type":"integer","maximum":5}`), `{"n":"7"}`, ``},
	{"number keeps its digits", members(`"n":{"type":"number"}`), `{"n":"7.50"}`, `{"n":7.50}`},
	{"boolean", members(`"b":{"type":"boolean"}`), `{"b":"True"}`, `{"b":true}`},
	{"not yes", members(`"b":{"type":"boolean"}`), `{"b":"yes"}`, ``},
	{"text", members(`"s":{"type":"string"}`), `{"s":7}`, `{"s":"7"}`},
	{"no text with a format", members(`"s":{"type":"string","format":"email"}`), `{"s":7}`, ``},
	{"a text stays text", members(`"s":{"type":["string","integer"]}`), `{"s":"7"}`, `{"s":"7"}`},
	{"two types that it can be", members(`"s":{"type":["integer","array"],"items":{"type":"string"}}`), `{"s":"7"}`, ``},
	{"null among the types", members(`"n":{"type":["integer","null"]}`), `{"n":"7"}`, `{"n":7}`},
	{"null of an optional member", members(`"n":{"type":"integer"},"m":{}`), `{"m":1,"n":null}`, `{"m":1}`},
	{"null of a required member", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"n":null}`, ``},
	{"empty text for a number", members(`"n":{"type":"integer"}`), `{"n":""}`, `{}`},
	{"empty text for an enum", members(`"s":{"type":"string","enum":["a"]}`), `{"s":""}`, `{}`},
	{"empty text is text", members(`"s":{"type":"string","minLength":1}`), `{"s":""}`, ``},
	{"space around an enum", members(`"s":{"type":"string","enum":["a","b"]}`), `{"s":" b\n"}`, `{"s":"b"}`},
	{"list in text", members(`"l":{"type":"array","items":{"type":"integer"}}`), `{"l":"[1,\"2\"]"}`, `{"l":[1,2]}`},
	{"object in text", members(`"o":{"type":"object","properties":{"n":{"type":"integer"}}}`), `{"o":"{\"n\":\"1\"}"}`, `{"o":{"n":1}}`},
	{"text in text once", members(`"l":{"type":"array","items":{"type":"array"}}`), `{"l":"[\"[1]\"]"}`, ``},
	{"duplicates in text", members(`"o":{"type":"object"}`), `{"o":"{\"a\":1,\"a\":2}"}`, ``},
	{"one item", members(`"l":{"type":"array","items":{"type":"string"}}`), `{"l":"a"}`, `{"l":["a"]}`},
	{"one item in quotes", members(`"l":{"type":"array","items":{"type":"integer"}}`), `{"l":"7"}`, `{"l":[7]}`},
	{"one object", members(`"l":{"type":"array","items":{"type":"object","required":["a"]}}`), `{"l":{"a":1}}`, `{"l":[{"a":1}]}`},
	{"one object in text", members(`"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}}}}`), `{"l":" {\"a\":\"1\"}"}`, `{"l":[{"a":1}]}`},
	{"one text that looks like an object", members(`"l":{"type":"array","items":{"type":"string"}}`), `{"l":"{\"a\":1}"}`, ``},
	{"an object in text, or a text", members(`"l":{"type":"array","items":{}}`), `{"l":"{\"a\":1}"}`, ``},
	{"one broken object in text", members(`"l":{"type":"array","items":{"type":"object"}}`), `{"l":"{\"a\":"}`, ``},
	{"one object in text in text", members(`"l":{"type":"array","items":{"type":"object","properties":{"o":{"type":"object"}}}}`), `{"l":"{\"o\":\"{}\"}"}`, ``},
	{"one number for texts", members(`"l":{"type":"array","items":{"type":"string"}}`), `{"l":5}`, `{"l":["5"]}`},
	{"one item of another type", members(`"l":{"type":"array","items":{"type":"integer"}}`), `{"l":"a"}`, ``},
	{"too few items", members(`"l":{"type":"array","minItems":2}`), `{"l":"a"}`, ``},
	{"a list of lists", members(`"l":{"type":"array","items":{"type":"array","items":{"type":"string"}}}`), `{"l":["a","b"]}`, ``},
	{"list in a map", `{"type":"object","additionalProperties":{"type":"array","items":{"type":"boolean"}}}`, `{"a":"true"}`, `{"a":[true]}`},
	{"patternProperties", `{"type":"object","patternProperties":{"^n":{"type":"integer"}}}`, `{"n1":"7","m":"7"}`, `{"m":"7","n1":7}`},
	{"prefixItems", members(`"p":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":{"type":"boolean"}}`), `{"p":[1,"2","true"]}`, `{"p":["1",2,true]}`},
	{"items of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"type":"array","items":[{"type":"integer"}]}}}`, `{"p":["2"]}`, `{"p":[2]}`},
	{"default", members(`"n":{"type":"integer","default":3},"s":{"type":"string"}`), `{}`, `{"n":3}`},
	{"default of false, 0, list, object", members(`"a":{"default":false},"b":{"default":0},"c":{"default":[]},"d":{"default":{}}`), `{}`, `{"a":false,"b":0,"c":[],"d":{}}`},
	{"default in place of null", members(`"n":{"type":"integer","default":3}`), `{"n":null}`, `{"n":3}`},
	{"default of a required member", `{"type":"object","properties":{"n":{"type":"integer","default":3}},"required":["n"]}`, `{}`, `{"n":3}`},
	{"default in an object that is there", members(`"o":{"type":"object","properties":{"n":{"default":3}}},"p":{"properties":{"n":{"default":3}}}`), `{"o":{}}`, `{"o":{"n":3}}`},
	{"defaults of items", members(`"l":{"type":"array","items":{"type":"object","properties":{"n":{"default":3}}}}`), `{"l":[{},{"n":4}]}`, `{"l":[{"n":3},{"n":4}]}`},
	{"default that is not valid", members(`"n":{"type":"integer","default":"x"},"m":{"default":1}`), `{}`, `{"m":1}`},
	{"default beside a condition", `{"type":"object","properties":{"a":{"default":1},"b":{}},"dependentRequired":{"a":["b"]}}`, `{}`, `{}`},
	{"default in then", `{"type":"object","properties":{"k":{"type":"string"}},"if":{"properties":{"k":{"const":"x"}}},"then":{"properties":{"n":{"type":"integer","default":3}}}}`, `{"k":"x"}`, `{"k":"x","n":3}`},
	{"references and alternatives", pydantic, `{"page":{"size":"5"},"limit":"7","flags":"true","all":" date "}`, `{"all":"date","flags":[true],"limit":7,"page":{"size":5,"sort":"date"}}`},
	{"defaults of references", pydantic, `{}`, `{"all":"title","limit":null}`},
	{"null stays where it is a value", pydantic, `{"limit":null,"all":"date"}`, `{"limit":null,"all":"date"}`},
	{"the variant that is meant", shapes, `{"shape":{"kind":"circle","r":"2"}}`, `{"shape":{"kind":"circle","r":2,"unit":"mm"}}`},
	{"the other variant", shapes, `{"shape":{"kind":"box","sides":["1",2]}}`, `{"shape":{"kind":"box","sides":[1,2]}}`},
	{"a variant in text", shapes, `{"shape":"{\"kind\":\"box\",\"sides\":[1]}"}`, `{"shape":{"kind":"box","sides":[1]}}`},
	{"no variant", shapes, `{"shape":{"kind":"ball"}}`, ``},
	{"two variants that it can be", members(`"v":{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"integer"}}]}`), `{"v":"7"}`, ``},
	{"a valid variant is not changed", members(`"v":{"anyOf":[{"type":"integer"},{"type":"string"}]}`), `{"v":"7"}`, `{"v":"7"}`},
	{"recursion", `{"type":"object","properties":{"n":{"type":"integer","default":1},"next":{"$ref":"#"}}}`, `{"next":{"next":{"n":"2"}}}`, `{"n":1,"next":{"n":1,"next":{"n":2}}}`},
	{"recursive alternatives", `{"type":"object","properties":{"v":{"$ref":"#/$defs/v"}},"$defs":{"v":{"anyOf":[{"$ref":"#/$defs/v"},{"type":"integer"}]}}}`, `{"v":"x"}`, ``},
	{"dynamic references", `{"$id":"https://example.org/t","$dynamicAnchor":"node","type":"object","properties":{"n":{"type":"integer"},"next":{"$dynamicRef":"#node"}}}`, `{"next":{"n":"2"}}`, `{"next":{"n":2}}`},
	{"false", members(`"n":false,"m":{"type":"integer"}`), `{"m":"1"}`, `{"m":1}`},
	{"not JSON", members(``), `{`, ``},
	{"a member twice", members(``), `{"a":1,"a":2}`, ``},
}

func TestFit(t *testing.T) {
	for _, row := range fitRows {
		t.Run(row.name, func(t *testing.T) {
			f := fitterOf(t, row.schema)
			in := []byte(row.doc)
			got, err := f.Fit(in)
			switch {
			case row.want == "" && err == nil:
				t.Errorf("got %s, want an error", got)
			case row.want == "":
				if !bytes.Equal(got, in) {
					t.Errorf("what is refused has changed: %s", got)
				}
			case err != nil:
				t.Errorf("got %v, want %s", err, row.want)
			case compact(got) != compact([]byte(row.want)):
				t.Errorf("got %s, want %s", got, row.want)
			case row.want == row.doc && &got[0] != &in[0]:
				t.Error("a document with nothing to change was copied")
			}
			if string(in) != row.doc {
				t.Errorf("the document itself has changed: %s", in)
			}
		})
	}
}

// compact returns JSON without spaces.
func compact(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// A document that fits already is not touched: what Fit makes, it makes once, and it is
// valid.
func FuzzFit(f *testing.F) {
	for _, row := range fitRows {
		f.Add(row.schema, row.doc)
	}
	f.Fuzz(func(t *testing.T, schema, doc string) {
		if len(schema) > 1000 || len(doc) > 500 {
			return
		}
		s, err := Compile([]byte(schema))
		if err != nil {
			return
		}
		fitter, _ := NewFitter(s)
		got, err := fitter.Fit([]byte(doc))
		if valid := s.Check([]byte(doc)) == nil; valid && err != nil {
			t.Fatalf("%s refuses the valid %s: %v", schema, doc, err)
		}
		if err != nil {
			return
		}
		if err := s.Check(got); err != nil {
			t.Fatalf("%s makes of %s the invalid %s: %v", schema, doc, got, err)
		}
		before, err1 := document([]byte(doc))
		after, err2 := document(got)
		if s.Check([]byte(doc)) == nil && len(fitter.defaults) == 0 && (err1 != nil || err2 != nil || !equal(before, after)) {
			t.Fatalf("%s makes of the valid %s %s", schema, doc, got)
		}
	})
}

func TestFitterIssues(t *testing.T) {
	s, err := Compile([]byte(members(`"n":{"type":"integer","default":"x"},"o":{"properties":{"m":{"type":"object","required":["a"],"default":{}}}},"good":{"default":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	_, issues := NewFitter(s)
	var places []string
	for _, is := range issues {
		places = append(places, is.Path+" "+is.Rule)
	}
	if got := strings.Join(places, ", "); got != "/properties/n/default type, /properties/o/properties/m/default/a required" {
		t.Errorf("got %s", got)
	}
}

// Alternatives within alternatives do not take time that grows exponentially: this
// would not end.
func TestFitIsBounded(t *testing.T) {
	deep := `{"type":"integer","minimum":100}`
	for range 30 {
		deep = `{"type":"object","properties":{"a":{"anyOf":[` + deep + `,{"type":"object","properties":{"a":{"type":"object","maxProperties":0}}},{"type":"boolean","default":true}]}}}`
	}
	nodes := `{"type":"object","properties":{"v":{"$ref":"#/$defs/v"}},"$defs":{"v":{"anyOf":[
		{"type":"object","properties":{"a":{"$ref":"#/$defs/v"},"x":{"const":1}},"required":["x"]},
		{"type":"object","properties":{"a":{"$ref":"#/$defs/v"},"x":{"const":2}},"required":["x"]},
		{"type":"array","items":{"$ref":"#/$defs/v"}}, {"type":"integer"}]}}}`
	doc := strings.Repeat(`{"a":`, 30) + `"x"` + strings.Repeat(`}`, 30)
	for _, schema := range []string{deep, nodes} {
		f := fitterOf(t, schema)
		if _, err := f.Fit([]byte(`{"v":` + doc + `,"a":` + doc + `}`)); err == nil {
			t.Error("an invalid document passes")
		}
	}
}
