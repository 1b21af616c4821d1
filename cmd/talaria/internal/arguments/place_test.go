package arguments

import (
	"encoding/json"
	"strings"
	"testing"
)

// defs are definitions that the schemas of TestPlaces refer to.
const defs = `"$defs":{
  "Leaf":{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"}}},
  "Ref":{"type":"object","properties":{"r":{"$ref":"#/$defs/Leaf"},"list":{"type":"array","items":{"$ref":"#/$defs/Leaf"}}}},
  "Closed":{"type":"object","additionalProperties":false,"properties":{"s":{"type":"string"}}},
  "Tree":{"type":"object","properties":{"v":{"type":"string"},"left":{"$ref":"#/$defs/Tree"},"kids":{"type":"array","items":{"$ref":"#/$defs/Tree"}}}},
  "Json":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/Json"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/Json"}}]},
  "My Type[int]":{"$anchor":"mine","type":"object","properties":{"s":{"type":"string"}}},
  "Circle":{"type":"object","properties":{"kind":{"const":"circle"},"size":{"type":"number"}},"required":["kind"]},
  "Label":{"type":"object","properties":{"kind":{"const":"label"},"size":{"type":"string"},"font":{"$ref":"#/$defs/Leaf"}},"required":["kind"]}}`

// Names lead by dots and indexes to the places that the schema describes, and what is
// typed there is read as the schema of that place says.
func TestPlaces(t *testing.T) {
	for _, test := range []struct{ name, schema, args, want string }{
		{"a reference behind a reference", `{"properties":{"ref":{"$ref":"#/$defs/Ref"}},` + defs + `}`, `ref.r.s=5|ref.r.n=5`, `{"ref":{"r":{"s":"5","n":5}}}`},
		{"at the root", `{"$ref":"#/$defs/Ref",` + defs + `}`, `r.s=5`, `{"r":{"s":"5"}}`},
		{"anyOf with null", `{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/Ref"},{"type":"null"}]}},` + defs + `}`, `a.r.s=5`, `{"a":{"r":{"s":"5"}}}`},
		{"allOf", `{"properties":{"a":{"allOf":[{"$ref":"#/$defs/Ref"},{"properties":{"more":{"$ref":"#/$defs/Leaf"}}}]}},` + defs + `}`,
			`a.r.s=5|a.more.s=6`, `{"a":{"r":{"s":"5"},"more":{"s":"6"}}}`},
		{"allOf about one member", `{"allOf":[{"properties":{"a":{"description":"x"}}},{"properties":{"a":{"$ref":"#/$defs/Leaf"}}}],` + defs + `}`, `a.s=5`, `{"a":{"s":"5"}}`},
		{"beside a reference", `{"properties":{"a":{"$ref":"#/$defs/Ref","properties":{"own":{"$ref":"#/$defs/Leaf"}}}},` + defs + `}`,
			`a.r.s=5|a.own.s=6`, `{"a":{"r":{"s":"5"},"own":{"s":"6"}}}`},
		{"oneOf, by the discriminator", `{"properties":{"a":{"oneOf":[{"$ref":"#/$defs/Circle"},{"$ref":"#/$defs/Label"}]}},` + defs + `}`,
			`a.size=5|a.kind=label`, `{"a":{"size":"5","kind":"label"}}`},
		{"oneOf, the other one", `{"properties":{"a":{"oneOf":[{"$ref":"#/$defs/Label"},{"$ref":"#/$defs/Circle"}]}},` + defs + `}`,
			`a.kind=circle|a.size=5`, `{"a":{"kind":"circle","size":5}}`},
		{"below one of oneOf", `{"properties":{"a":{"oneOf":[{"$ref":"#/$defs/Circle"},{"$ref":"#/$defs/Label"}]}},` + defs + `}`,
			`a.kind=label|a.font.s=5`, `{"a":{"kind":"label","font":{"s":"5"}}}`},
		{"a union at the root", `{"anyOf":[{"$ref":"#/$defs/Circle"},{"$ref":"#/$defs/Label"}],` + defs + `}`, `kind=label|size=5`, `{"kind":"label","size":"5"}`},
		{"oneOf beside properties", `{"properties":{"a":{"type":"object","properties":{"id":{"type":"string"}},"oneOf":[{"$ref":"#/$defs/Circle"},{"$ref":"#/$defs/Label"}]}},` + defs + `}`,
			`a.id=1|a.kind=label|a.size=2`, `{"a":{"id":"1","kind":"label","size":"2"}}`},
		{"a map", `{"properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`, `m.x=5|m.app.example.com/name=6`, `{"m":{"x":"5","app.example.com/name":"6"}}`},
		{"a map at the root", `{"type":"object","additionalProperties":{"type":"string"}}`, `x=5|a.b=6`, `{"x":"5","a.b":"6"}`},
		{"a map of objects", `{"properties":{"m":{"additionalProperties":{"$ref":"#/$defs/Leaf"}}},` + defs + `}`, `m.k.s=5|m.a.b.s=6`, `{"m":{"k":{"s":"5"},"a.b":{"s":"6"}}}`},
		{"a map of maps", `{"properties":{"m":{"additionalProperties":{"additionalProperties":{"type":"string"}}}}}`, `m.a.b=5|m.a.c.d=6`, `{"m":{"a":{"b":"5","c.d":"6"}}}`},
		{"a map of lists", `{"properties":{"m":{"additionalProperties":{"type":"array","items":{"type":"string"}}}}}`, `m.a=1,2|m.b[0]=3|m.b[1]=4`, `{"m":{"a":["1","2"],"b":["3","4"]}}`},
		{"a map behind null", `{"properties":{"m":{"anyOf":[{"type":"object","additionalProperties":{"$ref":"#/$defs/Leaf"}},{"type":"null"}]}},` + defs + `}`, `m.k.s=5`, `{"m":{"k":{"s":"5"}}}`},
		{"a member and a map", `{"properties":{"m":{"properties":{"id":{"type":"integer"}},"additionalProperties":{"type":"string"}}}}`, `m.id=5|m.ie=6`, `{"m":{"id":5,"ie":"6"}}`},
		{"patterns", `{"properties":{"m":{"patternProperties":{"^s_":{"type":"string"},"^o_":{"$ref":"#/$defs/Leaf"}},"additionalProperties":false}},` + defs + `}`,
			`m.s_1=5|m.o_1.s=6`, `{"m":{"s_1":"5","o_1":{"s":"6"}}}`},
		{"patterns at the root", `{"patternProperties":{"^s_":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, `s_x=5|x=6`, `{"s_x":"5","x":6}`},
		{"a pattern of another language", `{"properties":{"m":{"patternProperties":{"^(?!x)":{"type":"string"}},"additionalProperties":false}}}`, `m.s=5`, `{"m":{"s":5}}`},
		{"lists of objects", `{"properties":{"l":{"type":"array","items":{"$ref":"#/$defs/Ref"}}},` + defs + `}`,
			`l[1].r.s=6|l[0].r.s=5|l[0].list[0].s=7`, `{"l":[{"r":{"s":"5"},"list":[{"s":"7"}]},{"r":{"s":"6"}}]}`},
		{"lists of maps", `{"properties":{"l":{"type":"array","items":{"type":"object","additionalProperties":{"type":"string"}}}}}`, `l[0].a=1|l[0].b=2`, `{"l":[{"a":"1","b":"2"}]}`},
		{"lists of lists", `{"properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}}`, `l[0]=1|l[1][0]=2|l[0]=3`, `{"l":[["1","3"],["2"]]}`},
		{"lists of a union", `{"properties":{"l":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/Circle"},{"$ref":"#/$defs/Label"}]}}},` + defs + `}`,
			`l[0].kind=circle|l[0].size=1|l[1].kind=label|l[1].size=1`, `{"l":[{"kind":"circle","size":1},{"kind":"label","size":"1"}]}`},
		{"a list or one of it", `{"properties":{"l":{"anyOf":[{"$ref":"#/$defs/Leaf"},{"type":"array","items":{"$ref":"#/$defs/Leaf"}}]}},` + defs + `}`,
			`l[0].s=5`, `{"l":[{"s":"5"}]}`},
		{"items with a place", `{"properties":{"l":{"prefixItems":[{"type":"string"},{"$ref":"#/$defs/Leaf"}],"items":{"type":"integer"}}},` + defs + `}`,
			`l[0]=5|l[1].s=6|l[2]=7`, `{"l":["5",{"s":"6"},7]}`},
		{"a list of JSON is taken apart", `{"properties":{"l":{"type":"array","items":{"$ref":"#/$defs/Leaf"}}},` + defs + `}`, `l:=[{"n":1},{"n":2}]|l[1].s=5`, `{"l":[{"n":1},{"n":2,"s":"5"}]}`},
		{"a schema within itself", `{"$ref":"#/$defs/Tree",` + defs + `}`,
			`left.left.left.v=1|kids[0].kids[0].kids[0].left.v=2`, `{"left":{"left":{"left":{"v":"1"}}},"kids":[{"kids":[{"kids":[{"left":{"v":"2"}}]}]}]}`},
		{"any JSON by references", `{"properties":{"j":{"$ref":"#/$defs/Json"}},` + defs + `}`, `j.a.b[0].c=5`, `{"j":{"a":{"b":[{"c":"5"}]}}}`},
		{"names with dots", `{"properties":{"a.b":{"$ref":"#/$defs/Leaf"},"a":{"properties":{"b":{"type":"object","properties":{"x.y":{"type":"string"}}}}}},` + defs + `}`,
			`a.b.s=5|a.b.x.y=6`, `{"a.b":{"s":"5"},"a":{"b":{"x.y":"6"}}}`},
		{"names with brackets", `{"properties":{"uids[]":{"type":"array","items":{"type":"string"}},"f[0]":{"type":"string"},"f":{"type":"array","items":{"type":"integer"}}}}`,
			`uids[]=1|f[0]=5`, `{"uids[]":["1"],"f[0]":"5"}`},
		{"names with brackets, or an index", `{"properties":{"f[0]":{"type":"string"},"f":{"type":"array","items":{"type":"integer"}}}}`, `f[0]=5|f[1]=6`, `{"f":[5,6]}`},
		{"a reference with escapes", `{"properties":{"a":{"$ref":"#/$defs/My%20Type%5Bint%5D"}},` + defs + `}`, `a.s=5`, `{"a":{"s":"5"}}`},
		{"a reference to an anchor", `{"properties":{"a":{"$ref":"#mine"}},` + defs + `}`, `a.s=5`, `{"a":{"s":"5"}}`},
		{"a reference into a list", `{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"object","properties":{"s":{"type":"string"}}}]},"b":{"$ref":"#/properties/a/anyOf/1"}}}`, `b.s=5`, `{"b":{"s":"5"}}`},
		{"a member that another one brings", `{"properties":{"kind":{"enum":["a","b"]}},"if":{"properties":{"kind":{"const":"a"}}},"then":{"properties":{"zip":{"type":"string"},"at":{"$ref":"#/$defs/Ref"}},"required":["zip"]},"else":{"properties":{"no":{"type":"string"}}},` + defs + `}`,
			`kind=a|zip=01234|at.r.s=5`, `{"kind":"a","zip":"01234","at":{"r":{"s":"5"}}}`},
		{"a member of the other case", `{"properties":{"kind":{"enum":["a","b"]}},"if":{"properties":{"kind":{"const":"a"}}},"else":{"properties":{"no":{"type":"string"}}}}`, `kind=b|no=7`, `{"kind":"b","no":"7"}`},
		{"conditions in allOf", `{"properties":{"a":{"allOf":[{"if":{"required":["x"]},"then":{"properties":{"y":{"type":"string"}}}},{"if":{},"then":{"properties":{"z":{"$ref":"#/$defs/Leaf"}}}}]}},` + defs + `}`, `a.y=1|a.z.s=2`, `{"a":{"y":"1","z":{"s":"2"}}}`},
		{"dependent schemas", `{"properties":{"card":{"type":"integer"}},"dependentSchemas":{"card":{"properties":{"address":{"$ref":"#/$defs/Leaf"}}}},` + defs + `}`, `card=1|address.s=2`, `{"card":1,"address":{"s":"2"}}`},
		{"beside a reference, on a condition", `{"properties":{"a":{"$ref":"#/$defs/Leaf","if":{},"then":{"properties":{"more":{"type":"string"}}}}},` + defs + `}`, `a.s=1|a.more=2`, `{"a":{"s":"1","more":"2"}}`},
		{"unevaluated members", `{"properties":{"m":{"properties":{"n":{"type":"integer"}},"unevaluatedProperties":{"type":"string"}}}}`, `m.n=1|m.x=2`, `{"m":{"n":1,"x":"2"}}`},
		{"items of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{"type":"string"},{"$ref":"#/definitions/A"}],"additionalItems":{"type":"integer"}}},"definitions":{"A":{"properties":{"s":{"type":"string"}}}}}`,
			`l[0]=5|l[1].s=6|l[2]=7`, `{"l":["5",{"s":"6"},7]}`},
		{"definitions of draft 7", `{"properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"properties":{"b":{"$ref":"#/definitions/B"}}},"B":{"properties":{"s":{"type":"string"}}}}}`, `a.b.s=5`, `{"a":{"b":{"s":"5"}}}`},
		{"a list of types", `{"properties":{"a":{"type":["object","null"],"properties":{"s":{"type":["null","string"]},"l":{"type":["array","null"],"items":{"type":"string"}}}}}}`, `a.s=5|a.l[0]=6`, `{"a":{"s":"5","l":["6"]}}`},
		{"names in other scripts", `{"properties":{"größe":{"properties":{"日本 語":{"type":"string"}}}}}`, `größe.日本 語=5`, `{"größe":{"日本 語":"5"}}`},
		{"a value with signs", `{"properties":{"a":{"properties":{"b":{"type":"string"}}}}}`, `a.b==c=[0].d`, `{"a":{"b":"=c=[0].d"}}`},
		{"an empty value", `{"properties":{"a":{"properties":{"b":{"type":"string"},"c":{"type":["integer","null"]}}}}}`, `a.b=|a.c=`, `{"a":{"b":"","c":null}}`},
		{"JSON at a place", `{"properties":{"a":{"properties":{"b":{"$ref":"#/$defs/Leaf"}}}},` + defs + `}`, `a.b:={"n":1}|a.b.s=5`, `{"a":{"b":{"n":1,"s":"5"}}}`},
		{"large numbers", `{"properties":{"a":{"properties":{"n":{"type":"integer"},"s":{"type":"string"},"f":{"type":"number"}}}}}`, `a.n=9223372036854775807|a.s=9223372036854775807|a.f=1e400`, `{"a":{"n":9223372036854775807,"s":"9223372036854775807","f":1e400}}`},
		{"an enum below", `{"properties":{"a":{"properties":{"e":{"enum":["1",2,"true",true]}}}}}`, `a.e=1|b=1`, `{"a":{"e":"1"},"b":1}`},
		{"a map of unions", `{"properties":{"m":{"additionalProperties":{"oneOf":[{"$ref":"#/$defs/Circle"},{"$ref":"#/$defs/Label"}]}}},` + defs + `}`, `m.x.kind=label|m.x.size=5|m.y.kind=circle|m.y.size=5`, `{"m":{"x":{"kind":"label","size":"5"},"y":{"kind":"circle","size":5}}}`},
		{"allOf in a list in a map", `{"properties":{"m":{"additionalProperties":{"type":"array","items":{"allOf":[{"$ref":"#/$defs/Leaf"},{"properties":{"o":{"$ref":"#/$defs/Ref"}}}]}}}},` + defs + `}`, `m.k[0].s=1|m.k[0].o.r.s=2`, `{"m":{"k":[{"s":"1","o":{"r":{"s":"2"}}}]}}`},
		{"an object of any members", `{"properties":{"o":{"type":"object"}}}`, `o.a=5|o.b.c=6`, `{"o":{"a":5,"b.c":6}}`},
		{"nothing is known", `{}`, `a.b=5|c[0]=6`, `{"a.b":5,"c[0]":6}`},
	} {
		got, err := object(t, test.schema).Parse(strings.Split(test.args, "|"))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.name, got, err, test.want)
		}
	}
}

// A path that leads nowhere says where it ends, and what there is.
func TestPlaceFaults(t *testing.T) {
	o := object(t, `{"additionalProperties":false,"properties":{"ref":{"$ref":"#/$defs/Ref"},"c":{"$ref":"#/$defs/Closed"},"t":{"type":"string"},
		"l":{"type":"array","items":{"$ref":"#/$defs/Closed"}},"u":{"anyOf":[{"$ref":"#/$defs/Closed"},{"type":"object","additionalProperties":false,"properties":{"size":{}}}]}},`+defs+`}`)
	for _, test := range []struct{ args, want string }{
		{"c.z=1", "c.z: unknown argument; there are: c.s"},
		{"u.sise=1", "u.sise: unknown argument; did you mean u.size?"},
		{"t.x=1", "t.x: t is a string, which has no members"},
		{"t[0]=1", "t[0]: t is a string, which has no items"},
		{"ref.r.s.x=1", "ref.r.s.x: ref.r.s is a string, which has no members"},
		{"l.s=1", "l.s: l is a list; write l[0].s"},
		{"l[0].z=1", "l[0].z: unknown argument; there are: l[0].s"},
		{"l[x].s=1", "l[x].s: write an index after l as [0]"},
		{"l[-1].s=1", "write an index after l as [0]"},
		{"l[99999999999999999999].s=1", "write an index after l as [0]"},
		{"l[1].s=1", "l[1] is given, and l[0] is not"},
		{"l[4000000000].s=1", "l[4000000000] is given, and l[0] is not"},
		{`l={"s":"1"}|l[0].s=2`, "l[0].s is given twice"},
		{`l[0].s=2|l={"s":"1"}`, "l is given both whole and in parts"},
		{`ref:=[]|ref.r.s=1`, "ref is given both whole and in parts"},
		{"ref.r.n=x", "ref.r.n: must be an integer"},
	} {
		got, err := o.Parse(strings.Split(test.args, "|"))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %s, %v, want an error with %q", test.args, got, err, test.want)
		}
	}
}

// A long name and a schema of many ways need not take long.
func TestPlaceBounds(t *testing.T) {
	o := object(t, `{"anyOf":[{"additionalProperties":{"$ref":"#"}},{"additionalProperties":{"$ref":"#"}},{"additionalProperties":{"$ref":"#"}}],"type":"object"}`)
	got, err := o.Parse([]string{strings.Repeat("a.", 200) + "a=1"})
	if err == nil && !json.Valid(got) {
		t.Errorf("got %s", got)
	}
	var args []string
	for range 40 {
		args = append(args, "a=1", "a=2")
	}
	o = object(t, `{"anyOf":[{"properties":{"a":{"type":"array","items":{"type":"string"}}}},{"properties":{"a":{"type":"array","items":{"type":"integer"}}}}]}`)
	if got, err := o.Parse(args); err != nil || !json.Valid(got) {
		t.Errorf("got %s, %v", got, err)
	}
}
