package raw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"
)

func decode(tb testing.TB, text string) any {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return v
}

// The official test suite is run by a test of the module bench, which has it
// among its dependencies. These are the corners that matter here.
func TestValidate(t *testing.T) {
	const (
		draft7   = `"$schema":"http://json-schema.org/draft-07/schema#"`
		tree     = `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`
		items    = `{"prefixItems":[{"type":"integer"}],"items":false}`
		extended = `{"$ref":"#/$defs/open","unevaluatedProperties":false,"$defs":{"open":{"properties":{"a":true},"anyOf":[{"properties":{"b":{"const":1}},"required":["b"]},true]}}}`
		dynamic  = `{"$id":"urn:list:strings","$ref":"urn:list","$defs":{"text":{"$dynamicAnchor":"item","type":"string"},
			"list":{"$id":"urn:list","items":{"$dynamicRef":"#item"},"$defs":{"any":{"$dynamicAnchor":"item"}}}}}`
	)
	for _, c := range []struct {
		schema, doc string
		valid       bool
	}{
		{`true`, `1`, true}, {`false`, `1`, false}, {`{}`, `null`, true},
		{`{"type":"integer"}`, `1.0`, true}, {`{"type":"integer"}`, `1.5`, false}, {`{"type":"number"}`, `1`, true},
		{`{"exclusiveMaximum":3}`, `3`, false},
		{`{"const":1}`, `1.0`, true}, {`{"const":{"a":[1]}}`, `{"a":[1e0]}`, true}, {`{"enum":[0,null]}`, `false`, false},
		{`{"multipleOf":0.01}`, `4.35`, true}, {`{"multipleOf":0.01}`, `4.351`, false},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"uniqueItems":true}`, `[0,-0]`, false}, {`{"uniqueItems":true}`, `[1,"1",[1],{"a":1},{"a":2}]`, true},
		{`{"uniqueItems":true}`, `[{"a":1,"b":2},{"b":2.0,"a":1}]`, false},
		{`{"maxLength":2}`, `"👍👍"`, true}, {`{"minLength":3}`, `"👍👍"`, false},
		{tree, `{"next":{"next":{}}}`, true}, {tree, `{"next":{"other":1}}`, false},
		{items, `[1]`, true}, {items, `[1,2]`, false},
		{`{` + draft7 + `,"items":[{"type":"integer"}],"additionalItems":false}`, `[1,2]`, false},
		{`{` + draft7 + `,"$ref":"#/definitions/a","type":"string","definitions":{"a":{"type":"integer"}}}`, `1`, true},
		{`{` + draft7 + `,"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1}`, false},
		{`{"contains":{"const":1},"minContains":2,"maxContains":3}`, `[1,1]`, true}, {`{"contains":{"const":1},"minContains":0}`, `[]`, true},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, false},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, false}, {`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, false},
		{`{"dependentSchemas":{"a":{"maxProperties":1}}}`, `{"a":1,"b":2}`, false},
		{`{"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, `{"x1":1}`, true},
		{`{"if":{"const":1},"then":false,"else":{"type":"string"}}`, `1`, false}, {`{"if":{"const":1},"else":{"type":"string"}}`, `2`, false},
		{`{"not":{"type":"integer"}}`, `1`, false}, {`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`, false},
		{extended, `{"a":1,"b":1}`, true}, {extended, `{"a":1,"b":2}`, false}, {extended, `{"a":1,"c":2}`, false},
		{`{"prefixItems":[true],"contains":{"type":"string"},"unevaluatedItems":false}`, `[1,"a"]`, true},
		{`{"prefixItems":[true],"contains":{"type":"string"},"unevaluatedItems":false}`, `["b",1,"a"]`, false},
		{dynamic, `["a"]`, true}, {dynamic, `[1]`, false},
		{`{"$ref":"#/unknown/0","unknown":[{"type":"integer"}]}`, `"a"`, false},
		{`{"$ref":"#place","$defs":{"a":{"$anchor":"place","type":"integer"}}}`, `"a"`, false},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"integer"}`, true},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"minLength":-1}`, false},
		{`{"format":"date-time"}`, `"2016-12-31T23:59:60Z"`, true}, {`{"format":"date-time"}`, `"2016-12-31T22:59:60Z"`, false},
		{`{"format":"duration"}`, `"P1Y2D"`, false}, {`{"format":"duration"}`, `"P1Y2M3DT4H"`, true}, {`{"format":"duration"}`, `"PT"`, false},
		{`{"format":"uri"}`, `"//example.com"`, false}, {`{"format":"uri"}`, `"http://[::1]:80/a?b#c"`, true}, {`{"format":"uri"}`, `"a:b[c"`, false},
		{`{"format":"int64"}`, `9223372036854775807`, true}, {`{"format":"int64"}`, `9223372036854775808`, false},
		{`{"format":"uint64"}`, `"-1"`, false}, {`{"format":"uint64"}`, `"1e999999999"`, false}, {`{"format":"uint64"}`, `"1e-999999999"`, true},
		{`{"format":"uint64"}`, `"seven"`, true}, {`{"format":"int64"}`, `"0e999999999"`, true},
		{`{"format":"something"}`, `"a"`, true},
	} {
		s, err := Compile([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if f := s.validate(decode(t, c.doc)); (f == nil) != c.valid {
			t.Errorf("%s with %s: got %+v, want valid %v", c.schema, c.doc, f, c.valid)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for schema, want := range map[string]string{
		`[]`:                                    "(root): a schema is an object, true or false; got array",
		`{"properties":{"a":1}}`:                "/properties/a: a schema is an object",
		`{"type":"text"}`:                       "/type: must be one of array, boolean",
		`{"type":["null","null"]}`:              "/type: must be one of",
		`{"required":"a"}`:                      "/required: must be an array of different names",
		`{"minLength":-1}`:                      "/minLength: must be an integer, 0 or more",
		`{"multipleOf":0}`:                      "/multipleOf: must be a number above 0",
		`{"anyOf":[]}`:                          "/anyOf: must be an array of schemas",
		`{"pattern":"("}`:                       `/pattern: "(" is not a regular expression that this supports`,
		`{"patternProperties":{"(":{}}}`:        "/patternProperties/(: ",
		`{"exclusiveMaximum":true}`:             "/exclusiveMaximum: must be a number",
		`{"$schema":"https://example.com/own"}`: `/$schema: "https://example.com/own" is not supported`,
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:                           "is not supported; use draft 2020-12 or 7",
		`{"$schema":"http://json-schema.org/draft-06/schema#"}`:                           "is not supported; use draft 2020-12 or 7",
		`{"properties":{"a":{"$schema":"https://json-schema.org/draft/2019-09/schema"}}}`: `/properties/a/$schema: "https://json-schema.org/draft/2019-09/schema" is not supported; use draft 2020-12 or 7`,
		`{"$ref":"http://json-schema.org/draft-04/schema#"}`:                              "schemas are not loaded from elsewhere",
		`{"$ref":"https://example.com/s.json"}`:                                           "/$ref: reference to https://example.com/s.json: schemas are not loaded from elsewhere",
		`{"$ref":"#/$defs/none"}`:                                                         "/$ref: there is nothing at #/$defs/none",
		`{"$ref":"#none"}`:                                                                `/$ref: there is no anchor "none"`,
		`{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`:                                     "is used twice",
		`{"allOf":[{"$anchor":"x"},{"$anchor":"x"}]}`:                                     `the anchor "x" is used twice`,
		`{"dependentRequired":{"a":"b"}}`:                                                 "/dependentRequired/a: must be an array of different names",
		`{"$ref":"#/default","default":{"type":"no"}}`:                                    "/default/type: must be one of",
	} {
		if _, err := Compile([]byte(schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", schema, err, want)
		}
	}
}

// A schema of a peer must not hold up who checks with it. Below a "not", giving
// up would make the document valid.
func TestValidateEnds(t *testing.T) {
	branches := `{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}`
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"not":{"$ref":"#"}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`,
		`{"items":{"anyOf":[` + branches + `]},"maxItems":1,"type":"array"}`,
		`{"not":{"items":{"anyOf":[` + branches + `]},"type":"array"}}`,
	} {
		s, err := Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if f := s.validate(decode(t, strings.Repeat("[", 40)+"1"+strings.Repeat("]", 40))); f == nil {
			t.Errorf("%s: valid", schema)
		}
	}
}

// FuzzValidate compares with an independent validator.
func FuzzValidate(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer","maximum":5}},"required":["a"],"additionalProperties":false}`, `{"a":6}`},
		{`{"anyOf":[{"const":1},{"enum":["a",null]}],"not":{"multipleOf":2}}`, `"a"`},
		{`{"prefixItems":[{"$ref":"#/$defs/a"}],"items":{"minLength":2},"uniqueItems":true,"unevaluatedItems":false,"$defs":{"a":{"pattern":"^a"}}}`, `["a","bb"]`},
		{`{"if":{"required":["a"]},"then":{"properties":{"b":{"minItems":1}}},"else":{"maxProperties":1},"unevaluatedProperties":{"type":"null"}}`, `{"a":1,"b":[]}`},
		{`{"oneOf":[{"contains":{"type":"string"},"minContains":2},{"maxItems":1}],"dependentRequired":{"a":["b"]}}`, `["a","b"]`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"number"}],"additionalItems":{"$ref":"#/definitions/x"},"definitions":{"x":{"propertyNames":{"maxLength":1}}}}`, `[1,{"ab":1}]`},
		{`{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}},"patternProperties":{"^b":{"exclusiveMinimum":0.5}}}`, `{"a":{"b":0.5}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schema, doc string) {
		if len(schema) > 400 || len(doc) > 200 || strings.ContainsAny(schema+doc, "eE") && strings.ContainsAny(schema+doc, "0123456789") && exponents(schema+doc) {
			return
		}
		sv, err := oracle.UnmarshalJSON(strings.NewReader(schema))
		if err != nil || strings.Contains(schema, `"format"`) || strings.Contains(schema, `$schema`) && !strings.Contains(schema, "draft-07/schema#") {
			return
		}
		dv, err := oracle.UnmarshalJSON(strings.NewReader(doc))
		if err != nil {
			return
		}
		root, _, err := compile(sv)
		if err != nil {
			return
		}
		c := oracle.NewCompiler()
		if err := c.AddResource("mem:///s", sv); err != nil {
			return
		}
		theirs, err := c.Compile("mem:///s")
		if err != nil {
			return
		}
		f := (&Schema{root: root}).validate(dv)
		if f != nil && f.Keyword == "schema" {
			return
		}
		if other := theirs.Validate(dv); (f == nil) != (other == nil) {
			t.Errorf("schema %s\ndocument %s\ngot %+v\nthe independent validator %v", schema, doc, f, other)
		}
	})
}

// exponents reports whether a text may hold a number that takes much memory.
func exponents(text string) bool {
	text = strings.ToLower(text)
	for i := 1; i+1 < len(text); i++ {
		if text[i] == 'e' && text[i-1] >= '0' && text[i-1] <= '9' && bytes.IndexByte([]byte("+-0123456789"), text[i+1]) >= 0 {
			return true
		}
	}
	return false
}

// TestPatternsTooLarge: a schema whose regular expressions would take a minute to compile
// is none; one with many of the usual size is.
func TestPatternsTooLarge(t *testing.T) {
	for pattern, good := range map[string]bool{`^[A-Z]{2}[0-9]{4,30}(-[a-z]+)*$`: true, `^(a{1,100}){1,9}[a-z]{0,900}$`: false} {
		var text strings.Builder
		text.WriteString(`{"properties":{"a":{}`)
		for n := range 1000 {
			fmt.Fprintf(&text, `,"p%d":{"pattern":%q}`, n, pattern)
		}
		text.WriteString(`}}`)
		if _, err := Compile([]byte(text.String())); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestPatternsOfLetters: a class has hundreds of bounds, which are no steps each.
func TestPatternsOfLetters(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"name":{"pattern":"^\\p{L}{1,255}$"},"city":{"pattern":"^[\\p{L} -]{1,1000}$"}},"patternProperties":{"^[\\p{Lu}]{200}$":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	upper := strings.Repeat("Ä", 200)
	for text, want := range map[string]string{
		`{"name":"Zoë","city":"São Paulo"}`:             "",
		`{"name":"Zoë 2"}`:                              `^\p{L}{1,255}$`,
		`{"name":"` + strings.Repeat("ë", 256) + `"}`:   `^\p{L}{1,255}$`,
		`{"name":"` + strings.Repeat("ë", 255) + `\n"}`: `^\p{L}{1,255}$`,
		`{"` + upper + `":1}`:                           "must be left out",
		`{"` + upper + `Ä":1}`:                          "",
	} {
		if err := s.Check([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestPatternsOfOnePass: where all of many optional steps may be followed by a large
// class, nothing is multiplied by anything.
func TestPatternsOfOnePass(t *testing.T) {
	var one, all strings.Builder
	for n := range 480 {
		fmt.Fprintf(&one, "%c?", 0x4e00+n)
	}
	for n := range 100 {
		fmt.Fprintf(&all, `,"p%d":{"pattern":"^%s[\\p{Lu}%s]?$"}`, n, one.String(), strings.ReplaceAll(one.String(), "?", ""))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Compile([]byte(`{"properties":{"a":{}` + all.String() + `}}`)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 200 {
		t.Errorf("it has needed %d MiB", mib)
	}
}

// TestPatternsAsWritten: a pattern means what it does to the package regexp, whatever is
// put around it.
func TestPatternsAsWritten(t *testing.T) {
	texts := []string{"", "a", "b", "é", "É", "abc", "ABBC", "a.b", "axb", "ab-cd", "x\ny", "y\nx", "a\nb", "b\n", "xb", strings.Repeat("a", 64), strings.Repeat("a", 65)}
	for _, pattern := range []string{"", "^$", "x*", "a|^b$", "^b$|", "^[A-Za-z0-9_-]{1,64}$", "(?i)^a(?U)b*c$", `^\Qa.b\E$`, `^\Qa.b`, "(?m)^x$", "(?s)^.{3}$",
		`\bab\b`, `\Aa`, `b\z`, "(?m:^a$)b?", "[^a]", "(?i:É)"} {
		plain, ours := regexp.MustCompile(pattern), compiled(pattern)
		for _, text := range texts {
			if got, want := ours.MatchString(text), plain.MatchString(text); got != want {
				t.Errorf("%q matches %q: %v, want %v", pattern, text, got, want)
			}
		}
	}
}

// TestLongEnums: long lists are looked through as short ones are; of many long lists of
// what is no text the check is given up.
func TestLongEnums(t *testing.T) {
	list := `null,true,[1],{"a":1},7,8e400,-0`
	for n := range 20_000 {
		list += fmt.Sprintf(`,"t%d",%d`, n, n+100)
	}
	s, err := Compile([]byte(`{"enum":[` + list + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{`"t0"`: true, `"t19999"`: true, `"t20000"`: false, `100`: true, `"100"`: false, `1e2`: true, `20100`: false, `7.0`: true, `0`: true,
		`8`: false, `null`: true, `false`: false, `[1.0]`: true, `[]`: false, `{"a":1}`: true, `{"a":2}`: false, `"null"`: false} {
		if got := s.Check([]byte(value)) == nil; got != want {
			t.Errorf("%s is in the list: %v", value, got)
		}
	}
	many, values := `{"$defs":{"e":{"enum":[`+list+`]}},"properties":{"a":{}`, `{"a":1`
	for n := range 2000 {
		many += fmt.Sprintf(`,"p%d":{"$ref":"#/$defs/e"}`, n)
		values += fmt.Sprintf(`,"p%d":%%s`, n)
	}
	if s, err = Compile([]byte(many + "}}")); err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte(strings.ReplaceAll(values, "%s", `"t1"`) + "}")); err != nil {
		t.Error(err)
	}
	if err := s.Check([]byte(strings.ReplaceAll(values, "%s", `20099`) + "}")); err == nil || !strings.Contains(err.Error(), "simpler") {
		t.Errorf("%.200v", err)
	}
}
