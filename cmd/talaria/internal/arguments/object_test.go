package arguments

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["city", "days"],
  "properties": {
    "city":  {"type": "string", "maxLength": 10, "description": "where"},
    "days":  {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
    "ratio": {"type": "number"},
    "units": {"enum": ["metric", "imperial"]},
    "level": {"type": "string", "oneOf": [{"const": "lo", "title": "Low"}, {"const": "hi", "title": "High"}]},
    "exact": {"type": "boolean"},
    "tags":  {"type": "array", "items": {"type": "string"}},
    "nums":  {"type": "array", "items": {"type": "integer"}},
    "either": {"type": ["integer", "string"]},
    "maybe": {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]},
    "place": {"$ref": "#/$defs/place"},
    "any":   {},
    "data":  {"type": "string", "contentEncoding": "base64", "pattern": "^x*$"},
    "files": {"type": "array", "items": {"type": "string", "contentEncoding": "base64"}},
    "true":  true,
    "points": {"type": "array", "items": {"$ref": "#/$defs/place"}}
  },
  "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}, "name": {"type": "string"}}}}
}`

func object(t *testing.T, schema string) *Object {
	t.Helper()
	o, err := ReadObject(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text, whole := write("text", "from a file"), write("whole.json", `{"city": "Rome", "days": 2}`)
	marked := write("marked.json", "\ufeff{\"city\": \"Rome\", \"days\": 2}")
	o := object(t, sample)
	for _, test := range []struct{ args, want string }{
		{"", `{}`},
		{"city=Oslo|days=3", `{"city":"Oslo","days":3}`},
		{"city=", `{"city":""}`},
		{"city=a=b", `{"city":"a=b"}`},
		{"city=5", `{"city":"5"}`},
		{"city=@" + text, `{"city":"from a file"}`},
		{"data=@" + text, `{"data":"ZnJvbSBhIGZpbGU="}`},
		{"data=aGk=", `{"data":"aGk="}`},
		{"files=@" + text + "|files=aGk=", `{"files":["ZnJvbSBhIGZpbGU=","aGk="]}`},
		{`city=\@home`, `{"city":"@home"}`},
		{`city=<"&>`, `{"city":"<\"&>"}`},
		{"days=+4", `{"days":4}`},
		{"days=3.0", `{"days":3.0}`},
		{"ratio=-1.5e3", `{"ratio":-1.5e3}`},
		{"units=metric|level=High", `{"units":"metric","level":"hi"}`},
		{"level=hi", `{"level":"hi"}`},
		{"exact=yes", `{"exact":true}`},
		{"exact=off", `{"exact":false}`},
		{"tags=a,b|tags=c", `{"tags":["a","b","c"]}`},
		{`tags=["x","y, z"]`, `{"tags":["x","y, z"]}`},
		{"tags=", `{"tags":[]}`},
		{"nums=1, 2", `{"nums":[1,2]}`},
		{"either=5", `{"either":5}`},
		{"either=five", `{"either":"five"}`},
		{"maybe=null", `{"maybe":null}`},
		{"maybe=7", `{"maybe":7}`},
		{"any=1.0", `{"any":1.0}`},
		{"any=word", `{"any":"word"}`},
		{`any="5"`, `{"any":"\"5\""}`},
		{"true=[1]", `{"true":[1]}`},
		{"place.lat=59.9|place.name=Oslo", `{"place":{"lat":59.9,"name":"Oslo"}}`},
		{`place={"lat":1}|place.name=x`, `{"place":{"lat":1,"name":"x"}}`},
		{`points={"lat":1,"name":"x"}`, `{"points":[{"lat":1,"name":"x"}]}`},
		{"days:=12|any:={\"x\": [1]}", `{"days":12,"any":{"x": [1]}}`},
		{"any:=@" + whole, `{"any":{"city": "Rome", "days": 2}}`},
		{"any:=@" + marked, `{"any":{"city": "Rome", "days": 2}}`},
		{"@" + marked + "|exact=true", `{"city":"Rome","days":2,"exact":true}`},
		{"@" + whole + "|exact=true", `{"city":"Rome","days":2,"exact":true}`},
		{`{"city": "Bonn"}|days=1`, `{"city":"Bonn","days":1}`},
	} {
		var args []string
		if test.args != "" {
			args = strings.Split(test.args, "|")
		}
		got, err := o.Parse(args)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, %v, want %s", test.args, got, err, test.want)
		}
	}
}

func TestParseFaults(t *testing.T) {
	o := object(t, sample)
	for _, test := range []struct{ args, want string }{
		{"Oslo", "write name=value"},
		{"=x", "write name=value"},
		{":=1", "write name=value"},
		{"ctiy=Oslo", "did you mean city?"},
		{"zebra=1", "there are: city, days"},
		{"days=many", "days: must be an integer; got \"many\""},
		{"days=1.5", "must be an integer"},
		{"days=null", "must be an integer"},
		{"days=", "must be an integer"},
		{"ratio=\"1\"", "must be a number"},
		{"exact=maybe", "must be true or false"},
		{"units=stone", "must be one of metric | imperial"},
		{"level=medium", "lo (Low) | hi (High)"},
		{"nums=1,x", "each item must be an integer"},
		{"nums=[1,", "must be a JSON list"},
		{"place=here", "must be a JSON object"},
		{"place.lat=north", "place.lat: must be a number"},
		{"city=a|city=b", "city is given twice"},
		{`place.lat=1|place={"lat":2}`, "both whole and in parts"},
		{"days:=many", "is not valid JSON; write days="},
		{"city=@/no/such/file", "file not found: /no/such/file"},
		{"@/no/such/file", "file not found"},
		{"city=@/", "city: open /: it is a directory"},
		{"{city}", "invalid JSON"},
		{"{\"a\":1", "invalid JSON"},
	} {
		got, err := o.Parse(strings.Split(test.args, "|"))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %s, %v, want an error with %q", test.args, got, err, test.want)
		}
	}
	if _, err := o.Parse([]string{"days=x", "exact=y!", "nope=1"}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want all three faults", err)
	}
}

func TestCheck(t *testing.T) {
	o := object(t, sample)
	for _, test := range []struct{ object, want string }{
		{`{"city":"Oslo","days":3}`, ""},
		{`{"city":"Oslo","days":15}`, "days: "},
		{`{"days":1}`, "city"},
		{`{"city":"a city with a long name","days":1}`, "city: "},
	} {
		err := o.Check(json.RawMessage(test.object))
		if test.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.object, err, test.want)
		}
	}
	days, _ := o.Field("days")
	if err := days.Check(json.RawMessage("0")); err == nil {
		t.Error("0 days passed")
	}
	if err := object(t, `{"properties":{"a":{"type":"nonsense"}}}`).Check(json.RawMessage(`{}`)); err != nil {
		t.Errorf("a schema that does not compile: got %v, want no check", err)
	}
}

// What cannot be read hides nothing else that is wrong, and nothing is told twice.
func TestArguments(t *testing.T) {
	o := object(t, `{"type":"object","additionalProperties":false,"required":["total","people"],"properties":{
		"total":{"type":"number","exclusiveMinimum":0},"people":{"type":"integer","minimum":1},"tip":{"type":"integer","maximum":50},
		"in":{"type":"object","required":["a"],"properties":{"a/b":{"type":"integer"},"a":{}}},"l":{"type":"array","items":{"type":"integer"}}}}`)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"total=1|people=2", nil},
		{"total=a lot|peple=4|tip=60", []string{"total: must be a number", "peple: unknown argument; did you mean people?", "people: is required", "tip: must be at most 50"}},
		{"total=a lot|people=0|in.a/b=x|l=y", []string{"total: must be a number", "in.a/b: must be an integer", "l: each item must be an integer", "in/a: is required", "people: must be at least 1"}},
		{"total=1|people=0|tip=99", []string{"people: must be at least 1", "tip: must be at most 50"}},
		{"total=x|people", []string{"total: must be a number", `"people" is not an argument`}},
		{"total=x|total=y|people=1", []string{"total: must be a number", "total: must be a number", "total is given twice"}},
	} {
		_, err := o.Arguments(strings.Split(test.args, "|"))
		var got []string
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		ok := len(got) == len(test.want)
		for i := range min(len(got), len(test.want)) {
			ok = ok && strings.Contains(got[i], test.want[i])
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", test.args, got, test.want)
		}
	}
}

func TestFields(t *testing.T) {
	o := object(t, sample)
	for _, test := range []struct{ name, want string }{
		{"city", "string, at most 10 characters"},
		{"days", "integer, 1..14, default 3"},
		{"units", "string, metric | imperial, optional"},
		{"level", "string, lo (Low) | hi (High), optional"},
		{"tags", "list of string, optional"},
		{"either", "integer or string, optional"},
		{"maybe", "integer or null, 5 or more, optional"},
		{"place", "object, optional"},
		{"any", "any, optional"},
		{"points", "list of object, optional"},
	} {
		f, ok := o.Field(test.name)
		if got := f.Hint(); !ok || got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if got := strings.Join(o.Names()[:3], " "); got != "city days ratio" {
		t.Errorf("got the order %s", got)
	}
}

func TestCounts(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{"type":"string","minLength":1}`, "string, at least 1 character"},
		{`{"type":"string","minLength":0}`, "string"},
		{`{"type":"string","minLength":3,"maxLength":3}`, "string, exactly 3 characters"},
		{`{"type":"string","minLength":1,"maxLength":9}`, "string, 1..9 characters"},
		{`{"type":"array","minItems":1}`, "list, at least 1 item"},
		{`{"type":"array","minItems":2}`, "list, at least 2 items"},
		{`{"type":"array","maxItems":1}`, "list, at most 1 item"},
		{`{"type":"array","minItems":0,"maxItems":5}`, "list, at most 5 items"},
		{`{"type":"number","minimum":1}`, "number, 1 or more"},
		{`{"type":"integer","minimum":1,"maximum":9007199254740991}`, "integer, 1 or more"},
		{`{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`, "integer"},
	} {
		f, _ := object(t, `{"required":["a"],"properties":{"a":`+test.schema+`}}`).Field("a")
		if got := f.Hint(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.schema, got, test.want)
		}
	}
}

func TestVariants(t *testing.T) {
	circle := `{"type":"object","properties":{"kind":{"type":"string","const":"circle"},"radius":{"type":"number"}},"required":["kind","radius"]}`
	square := `{"type":"object","properties":{"kind":{"enum":["square"]},"side":{},"color":{}},"required":["kind","side"]}`
	for _, test := range []struct{ schema, want string }{
		{`{"oneOf":[` + circle + `,` + square + `]}`, "object, {kind: circle, radius} | {kind: square, side, color?}"},
		{`{"type":"array","items":{"type":"object","oneOf":[` + circle + `,{"$ref":"#/$defs/square"}]}}`,
			"list of object, {kind: circle, radius} | {kind: square, side, color?}"},
		{`{"anyOf":[` + circle + `,{"type":"null"}]}`, "object or null"},
		{`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(circle+",", 8), ",") + `]}`,
			"object, " + strings.Repeat("{kind: circle, radius} | ", 6) + "… 2 more"},
	} {
		f, _ := object(t, `{"required":["a"],"properties":{"a":`+test.schema+`},"$defs":{"square":`+square+`}}`).Field("a")
		if got := f.Hint(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.schema, got, test.want)
		}
	}
}

// Schemas come from servers, so anything may be in them.
func TestHostileSchemas(t *testing.T) {
	for _, text := range []string{`[]`, `"x"`, `{`} {
		if _, err := ReadObject(json.RawMessage(text)); err == nil {
			t.Errorf("%s passed", text)
		}
	}
	for _, text := range []string{
		``, `{}`, `{"properties":[]}`, `{"properties":{"a":5}}`, `{"properties":{"a":{"type":7,"enum":3}},"required":"a"}`,
		`{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"properties":{"a":{"$ref":"https://example.com/x"}}}`,
		`{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"$ref":"#/properties/a"}]}}}`,
		`{"properties":{"a":{"items":{"$ref":"#/properties/a"},"type":"array"}}}`,
	} {
		o := object(t, text)
		for _, f := range o.Fields {
			_ = f.Hint()
			_, _ = f.Value("x")
		}
		if _, err := o.Parse([]string{"b=1"}); err != nil {
			t.Errorf("%s: got %v, want b=1 to pass", text, err)
		}
	}
}

// A schema that refers to itself a hundred times must not take forever.
func TestSelfReference(t *testing.T) {
	ref := `{"$ref":"#/properties/a"}`
	o := object(t, `{"properties":{"a":{"anyOf":[`+ref+strings.Repeat(","+ref, 99)+`]}}}`)
	if f, ok := o.Field("a"); !ok || len(f.Types) > 0 {
		t.Errorf("got %+v, %v", f, ok)
	}
}

// The tree of a schema, as far down as it is read.
func TestNested(t *testing.T) {
	var outline func(f Field, indent string, b *strings.Builder)
	outline = func(f Field, indent string, b *strings.Builder) {
		fmt.Fprintf(b, "%s%s %s", indent, f.Name, f.Type())
		for mark, set := range map[string]bool{" required": f.Required} {
			if set {
				b.WriteString(mark)
			}
		}
		if f.Closed {
			b.WriteString(" closed")
		}
		if f.Cut {
			b.WriteString(" cut")
		}
		b.WriteString("\n")
		for _, inner := range f.Fields {
			outline(inner, indent+"  ", b)
		}
		for _, v := range f.Variants {
			outline(v.Field, indent+"| ", b)
		}
		for _, v := range f.First {
			outline(v, indent+"# ", b)
		}
		if f.Item != nil && len(f.Item.Fields) > 0 {
			outline(*f.Item, indent+"- ", b)
		}
		if f.Rest != nil {
			outline(*f.Rest, indent+"* ", b)
		}
	}
	for _, test := range []struct{ name, schema, want string }{
		{"objects in lists in objects", `{"properties":{"a":{"type":"object","required":["b"],"additionalProperties":false,"properties":{"b":{"type":"array",
			"items":{"type":"object","properties":{"c":{"type":"integer"}}}}}}}}`,
			" object\n  a object closed\n    b list of object required\n    - b object\n    -   c integer\n"},
		{"a union, at the root, too", `{"oneOf":[{"properties":{"a":{"const":1}}},{"title":"two","properties":{"b":{}}},{"type":"null"}]}`,
			" object or null\n|  object\n|   a number\n|  object\n|   b any\n"},
		{"or null is no union", `{"properties":{"a":{"anyOf":[{"type":"object","properties":{"b":{"type":"string"}}},{"type":"null"}]}}}`,
			" object\n  a object or null\n    b string\n"},
		{"allOf is one", `{"allOf":[{"properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{}},"required":["b"]}],"required":["a"]}`,
			" object\n  a string required\n  b any required\n"},
		{"a schema within itself", `{"$defs":{"n":{"type":"object","title":"Node","properties":{"left":{"$ref":"#/$defs/n"},"v":{"type":"integer"}}}},"$ref":"#/$defs/n"}`,
			" object\n  left object cut\n  v integer\n"},
		{"further members", `{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`, " object\n*  list of string\n"},
		{"items with a place", `{"properties":{"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false}}}`,
			" object\n  a list\n  # 1 string\n  # 2 number\n"},
	} {
		f, err := ReadField(json.RawMessage(test.schema))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var b strings.Builder
		outline(f, "", &b)
		if b.String() != test.want {
			t.Errorf("%s: got\n%swant\n%s", test.name, b.String(), test.want)
		}
	}
}

// A default that breaks its schema is told, and is no value.
func TestDefaults(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","default":{"a":1}}`:                                      "is no string",
		`{"type":"integer","default":"3"}`:                                         "is no integer",
		`{"type":"integer","maximum":2,"default":3}`:                               "does not fit it",
		`{"enum":["a"],"default":"b"}`:                                             "does not fit it",
		`{"type":"array","items":{},"default":[1,[2]]}`:                            "",
		`{"default":null}`:                                                         "",
		`{"type":["string","null"],"default":null}`:                                "",
		`{"anyOf":[{"type":"number"},{"type":"null"}],"default":9007199254740993}`: "",
	} {
		f, _ := object(t, `{"properties":{"a":`+schema+`}}`).Field("a")
		if (len(f.Default) > 0) != (want == "") || !strings.Contains(f.Wrong, want) || want == "" && f.Wrong != "" {
			t.Errorf("%s: default %s, wrong %q", schema, f.Default, f.Wrong)
		}
	}
}

// TestBudget: what a hostile server sends is read within bounds. Each reference
// in it is to another place, whose text is long.
func TestBudget(t *testing.T) {
	var props, defs strings.Builder
	for i := range 1900 {
		fmt.Fprintf(&props, `,"p%d":{"$ref":"#/$defs/d%d"}`, i, i)
		fmt.Fprintf(&defs, `,"d%d":{"type":"string","description":"%s"}`, i, strings.Repeat("x", 1000))
	}
	schema := json.RawMessage(`{"properties":{` + props.String()[1:] + `},"$defs":{` + defs.String()[1:] + `}}`)
	r := newReader(schema)
	f := r.field("", schema, maxNesting+1)
	if len(r.parts) > 2 {
		t.Errorf("%d places were decoded", len(r.parts)) // the root and $defs
	}
	if r.left < 0 || r.bytes < 0 || len(f.Fields) != 1900 || f.Fields[0].Type() != "string" || !f.Fields[1899].Cut {
		t.Errorf("%d schemas and %d bytes are left, %d fields", r.left, r.bytes, len(f.Fields))
	}
	wide := `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"},"b":{"$ref":"#/$defs/a"}}}`
	deep := `{"$defs":{"a":` + strings.Repeat(`{"properties":{"x":{"type":"integer"},"y":{"items":`, 60) + wide + strings.Repeat(`}}}`, 60) + `},"properties":{"p":{"$ref":"#/$defs/a"},"q":{"type":"string"}}}`
	f, err := ReadField(json.RawMessage(deep))
	if err != nil || len(f.Fields) != 2 || f.Fields[1].Type() != "string" {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := ReadField(append([]byte(`{"description":"`+strings.Repeat("x", maxBytes)), `"}`...)); err != nil || !f.Cut {
		t.Errorf("cut %v, %v", f.Cut, err)
	}
}
