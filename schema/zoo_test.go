package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/zoo"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/raw"
)

// zooCases are compiled once.
var zooCases = sync.OnceValue(zoo.Cases)

// narrow returns the schema of arguments that hosts get.
func narrow(p *schema.Plan) json.RawMessage { return p.Internal(facts.Private{}).Narrow }

func TestZooHasEveryRule(t *testing.T) {
	for name := range rules.Table() {
		if !slices.Contains(zoo.Rules, name) {
			t.Errorf("the zoo lacks the rule %s", name)
		}
	}
}

// members are values that a member of any type is tried with.
var members = strings.Split(`""|"a"|"b"|"A"|"ab"|"abc"|"abcd"|"x"|"red"|"-"|"."|"/"|"^"|"\\"|"["|"]"|"0"|"1"|"5"|"-1"|"1.5"|"+1"|"300"|"true"|"é"|"😀"|"ſ"|"a b"|" a"|"2026"|"aaaa"`+
	`|"2026-01-31"|"2026-01-31T09:30:00Z"|"2026-01-31T09:30:00"|"09:30"|"09:30:00"|"1h30m"|"5µs"|"-1.5h"|"0s"|"1h1"|"PT1H30M"|"P1D"|"ann@example.com"|"https://example.com/a"|"http://a"|"a/b?c#d"|"a b/c"`+
	`|"192.0.2.1"|"::1"|"192.0.2.0/24"|"192.0.2.1:80"|"2001:db8::/32"|"YWJj"|"YWI="|"YWI"|"00000000-0000-4000-8000-000000000000"|"#1e90ff"|"rgb(1,2,3)"|"DE"|"DEU"|"EUR"|"1.2.3"|"v1.2.3-a.b+c"|"example.com"|"example.com:80"`+
	`|"data:,YWJj"|"4111111111111111"|"978-3-16-148410-0"|"0x1F"|"<b>"|"&gt;"|"%20"|"a.b.c"|"{\"a\":1}"|"-90"|"180.0"|"one"|"TWO"|"K"|"k"`+
	`|0|1|2|3|4|5|9|10|11|60|100|255|256|978|1000|3600|65535|-1|-3|0.1|0.5|0.9|1.5|1e2|1.0|2.5|9007199254740993|9223372036854775807|-9223372036854775808|18446744073709551615|123456789012345678901234567890`+
	`|true|false|null|[]|[""]|["a"]|["a","b"]|["a","a"]|["ann@example.com"]|[0]|[1,2,3]|[1,1]|[0.5]|[5]|[null]|[true]|[[1]]|["1h"]|{}|{"a":1}|{"a":1,"b":1}|{"a":1,"b":2,"c":3}|{"1":2}|{"5":0}|{"300":1}|{"ann@example.com":0}|{"é":1}`+
	`|{"192.0.2.1":1}|{"1h":1}|{"2026-01-31":1}|{"red":1}|{"kind":"cat","lives":3}|{"kind":"dog","tricks":["a"]}|{"lives":1}|{"name":"a","kids":[{"name":"b"}]}|{"name":1}|{"e":{}}|[{"lives":1}]|{"a":{"lives":1}}|[{"kind":"cat","lives":1}]`, "|")

// documents are what each type of the zoo is tried with.
func documents() (list []string) {
	for _, v := range append(members, `"`+strings.Repeat("a", 2000)+`"`, "["+strings.Repeat("1,", 2499)+"1]") {
		list = append(list, `{"f":`+v+`}`)
	}
	for _, a := range []string{"", `"a":"x"`, `"a":""`, `"a":"y"`} {
		for _, b := range []string{"", `"b":"x"`, `"b":"axb"`} {
			for _, c := range []string{"", `"c":1`, `"c":0`} {
				all := slices.DeleteFunc([]string{a, b, c}, func(s string) bool { return s == "" })
				list = append(list, "{"+strings.Join(all, ",")+"}")
			}
		}
	}
	return append(list, `{"f":1,"g":2}`, `{"name":"a"}`, `{"name":"a","kids":[{"name":"b","kids":[]}]}`, `null`)
}

// TestNarrowAcceptsMore holds the schema that hosts get against the exact one: it
// accepts whatever that accepts, by this module's reading and by another's.
func TestNarrowAcceptsMore(t *testing.T) {
	all, tried, accepted := documents(), 0, 0
	for _, c := range zooCases() {
		exact, err := raw.Compile(c.Plan.JSON())
		if err != nil {
			t.Fatalf("%s %s: %v", c.Group, c.Name, err)
		}
		sent, err := raw.Compile(narrow(c.Plan))
		if err != nil {
			t.Fatalf("%s %s: %v", c.Group, c.Name, err)
		}
		other := independent(t, narrow(c.Plan))
		for _, text := range all {
			tried++
			if exact.Check([]byte(text)) != nil {
				continue
			}
			accepted++
			if err := sent.Check([]byte(text)); err != nil {
				t.Errorf("%s %s: %s is refused: %v\nexact  %s\nnarrow %s", c.Group, c.Name, text, err, c.Plan.JSON(), narrow(c.Plan))
			}
			doc, err := oracle.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Validate(doc); err != nil {
				t.Errorf("%s %s: another validator refuses %s: %v\nnarrow %s", c.Group, c.Name, text, err, narrow(c.Plan))
			}
		}
	}
	if accepted < tried/50 {
		t.Errorf("of %d documents, %d are valid", tried, accepted)
	}
	t.Logf("%d documents, of which %d are valid by the exact schema", tried, accepted)
}

// independent compiles a schema with another implementation.
func independent(t *testing.T, text []byte) *oracle.Schema {
	doc, err := oracle.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := oracle.NewCompiler()
	if err := c.AddResource("mem:///s", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///s")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNarrowJudgesAlike checks that the schema which hosts get plays no part in a call:
// what the decoder refuses, it refuses although the narrow schema accepts it.
func TestNarrowJudgesAlike(t *testing.T) {
	refused := 0
	for _, c := range zooCases() {
		sent, err := raw.Compile(narrow(c.Plan))
		if err != nil {
			t.Fatal(err)
		}
		before := string(c.Plan.JSON())
		for _, text := range []string{`{"f":5000000}`, `{"f":""}`, `{"f":["a","a"]}`, `{"f":"\u0001"}`, `{"f":4}`, `{"b":"x"}`, `{"f":{"é":1}}`, `{"f":0}`} {
			if sent.Check([]byte(text)) == nil && c.Plan.Check([]byte(text)) != nil {
				refused++
			}
		}
		if string(c.Plan.JSON()) != before {
			t.Errorf("%s %s: the exact schema has changed", c.Group, c.Name)
		}
	}
	if refused < 50 {
		t.Errorf("%d documents are refused by the decoder alone", refused)
	}
}

// TestNarrowSentences has for each keyword that the narrow schema leaves out or loosens
// the sentence that stands for it. Read testdata/narrow.txt when it changes.
func TestNarrowSentences(t *testing.T) {
	var lines bytes.Buffer
	for _, c := range zooCases() {
		var exact, sent any
		if err := errors.Join(json.Unmarshal(c.Plan.JSON(), &exact), json.Unmarshal(narrow(c.Plan), &sent)); err != nil {
			t.Fatal(err)
		}
		for _, l := range losses("", exact, sent) {
			keyword := l.keyword
			if len(keyword) > 120 {
				keyword = keyword[:120] + "…"
			}
			fmt.Fprintf(&lines, "%s %s\t%s\t%s\n", c.Group, c.Name, keyword, l.sentence)
			if l.sentence == "" {
				t.Errorf("%s %s: nothing stands for %s", c.Group, c.Name, l.keyword)
			}
		}
	}
	const file = "testdata/narrow.txt"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, lines.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, lines.Bytes()) {
		t.Errorf("%s is not what the schemas say; run go test ./schema -run TestNarrowSentences -update, and read the difference", file)
	}
}

// loss is a keyword of the exact schema of which the narrow one says less, with its
// place, and the description there.
type loss struct{ keyword, sentence string }

// losses compares what two schemas say at one place and below it.
func losses(at string, exact, sent any) (list []loss) {
	e, ok := exact.(map[string]any)
	if !ok {
		return nil
	}
	s, _ := sent.(map[string]any)
	described, _ := s["description"].(string)
	if options, has := s["anyOf"].([]any); has && e["anyOf"] == nil && len(options) >= 2 { // or null, or empty
		s, _ = options[0].(map[string]any)
	}
	for _, k := range slices.Sorted(maps.Keys(e)) {
		switch k {
		case "type", "title", "description", "default", "examples", "required", "$ref", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType":
		case "properties", "$defs":
			inner, _ := s[k].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(e[k].(map[string]any))) {
				list = append(list, losses(at+"/"+name, e[k].(map[string]any)[name], inner[name])...)
			}
		case "items", "additionalProperties":
			list = append(list, losses(at+"/"+k, e[k], s[k])...)
		case "if", "then", "else", "dependentRequired", "dependentSchemas":
			list = append(list, loss{at + "/" + k, conditions(s)})
		default:
			if what := lost(k, e, s); what != "" {
				list = append(list, loss{at + "/" + what, described})
			}
		}
	}
	return list
}

// conditions returns the sentences about rules among members.
func conditions(s map[string]any) string {
	var all []string
	inner, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		p, _ := inner[name].(map[string]any)
		if d, _ := p["description"].(string); strings.Contains(d, "Required ") || strings.Contains(d, "Not allowed ") {
			all = append(all, name+": "+d)
		}
	}
	return strings.Join(all, " ")
}

// lost returns the keyword with its value if s says less than e by it, and otherwise "".
func lost(k string, e, s map[string]any) string {
	value, _ := json.Marshal(e[k])
	whole := k + " " + string(value)
	number := func(v any) *big.Rat {
		r, _ := new(big.Rat).SetString(fmt.Sprint(v))
		return r
	}
	switch k {
	case "format":
		if f := e[k]; f == s[k] || f == "int64" || f == "uint64" {
			return ""
		}
	case "pattern":
		if s[k] != nil {
			return "" // respelt; package regex compares that
		}
	case "exclusiveMinimum", "exclusiveMaximum":
		if e["type"] == "integer" || fmt.Sprint(e["type"]) == "[integer null]" {
			return ""
		}
	case "enum", "const":
		list, _ := e[k].([]any)
		if k == "const" {
			list = []any{e[k]}
		}
		list = slices.DeleteFunc(list, func(v any) bool { return v == nil || v == "" })
		if len(list) == 0 || s["enum"] != nil && len(s["enum"].([]any)) == len(list) {
			return ""
		}
		if low, high := number(s["minimum"]), number(s["maximum"]); low != nil && high != nil {
			size := new(big.Rat).Sub(high, low)
			if size.Sign() == 0 || e["type"] != "number" && size.Cmp(big.NewRat(int64(len(list)-1), 1)) == 0 {
				return ""
			}
		}
		if len(list) == 2 && slices.Contains(list, any(true)) {
			return ""
		}
	case "anyOf":
		branches, _ := e[k].([]any)
		mine, _ := s[k].([]any)
		if len(mine) < len(branches) {
			break
		}
		for i := range branches {
			for _, l := range losses("", branches[i], mine[i]) {
				return "anyOf " + l.keyword
			}
		}
		return ""
	default:
		if fmt.Sprint(e[k]) == fmt.Sprint(s[k]) || strings.HasPrefix(k, "x-") {
			return ""
		}
		if low := number(s["minimum"]); k == "minimum" && low != nil && low.Cmp(number(e[k])) > 0 {
			return ""
		}
		if high := number(s["maximum"]); k == "maximum" && high != nil && high.Cmp(number(e[k])) < 0 {
			return ""
		}
	}
	return whole
}

// TestNarrowBytes limits what the definitions cost.
func TestNarrowBytes(t *testing.T) {
	size := 0
	for _, c := range zooCases() {
		if c.Group != zoo.Corner {
			size += len(narrow(c.Plan))
		}
	}
	if size > 108_000 {
		t.Errorf("the schemas of the zoo have %d bytes, more than 108,000", size)
	}
}
