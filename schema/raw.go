package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	jsonschemav6 "github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Raw is a JSON Schema that came as text. It checks documents; it does not
// decode them. A Raw is safe for concurrent use.
type Raw struct {
	text   json.RawMessage
	schema *jsonschemav6.Schema
}

// rawURL names a schema inside the compiler; nothing is ever fetched from it.
const rawURL = "mem:///schema.json"

// CompileRaw prepares a JSON Schema, of draft 2020-12 unless it names another.
// References to other documents are refused, and formats are asserted.
func CompileRaw(raw []byte) (*Raw, error) {
	doc, err := jsonschemav6.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("schema: not valid JSON: %w", err)
	}
	if issues := unwieldy(doc, nil, nil); len(issues) > 0 {
		return nil, fmt.Errorf("schema: %s", issues[0].line())
	}
	c := jsonschemav6.NewCompiler()
	c.DefaultDraft(jsonschemav6.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(rawURL, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s, err := c.Compile(rawURL)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Raw{text: b.Bytes(), schema: s}, nil
}

// noLoader refuses to fetch schemas: a schema that names an address must not
// make this process connect to it.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %s: schemas are not loaded from elsewhere; put it under $defs", url)
}

// JSON returns the schema as compact JSON. It must not be modified.
func (r *Raw) JSON() json.RawMessage { return r.text }

// Check tells whether data is valid. It returns nil or an *Error.
func (r *Raw) Check(data []byte) error {
	s := jsonx.Scanner{Buf: data}
	_, err := s.Skip()
	if err == nil {
		err = s.End()
	}
	if err != nil {
		d := decoder{s: s}
		d.stop(err)
		return &Error{Issues: d.issues}
	}
	if issues := r.issues(data); len(issues) > 0 {
		return &Error{Issues: issues}
	}
	return nil
}

// issues validates text that is known to be JSON.
func (r *Raw) issues(text []byte) []Issue {
	doc, err := jsonschemav6.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return []Issue{{Rule: ruleSyntax, Expected: "valid JSON", Message: "is not valid JSON: " + err.Error()}}
	}
	if issues := unwieldy(doc, nil, nil); len(issues) > 0 {
		return issues
	}
	err = r.schema.Validate(doc)
	if err == nil {
		return nil
	}
	var bad *jsonschemav6.ValidationError
	if !errors.As(err, &bad) {
		return []Issue{{Rule: ruleCustom, Message: err.Error()}}
	}
	var issues []Issue
	flatten(bad, message.NewPrinter(language.English), &issues)
	slices.SortStableFunc(issues, func(a, b Issue) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return slices.CompactFunc(issues, func(a, b Issue) bool { return a == b })
}

// maxExponent and maxDigits bound the numbers that are compared exactly. A
// number such as 1e999999999 is short, and its exact value fills the memory.
const (
	maxExponent = 400
	maxDigits   = 1000
)

// unwieldy finds the numbers of a document that are past those bounds.
func unwieldy(doc any, path []step, issues []Issue) []Issue {
	switch v := doc.(type) {
	case json.Number:
		text := string(v)
		digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
		e, err := strconv.Atoi(cmp.Or(exponent, "0"))
		if err != nil || e > maxExponent || e < -maxExponent || len(digits) > maxDigits {
			want := "a number of at most " + strconv.Itoa(maxDigits) + " digits and an exponent of at most " + strconv.Itoa(maxExponent)
			issues = append(issues, Issue{Path: pointer(path), Rule: ruleRange, Expected: want, Got: cut(text), Message: mustBe(want, cut(text))})
		}
	case []any:
		for i, e := range v {
			issues = unwieldy(e, append(path, step{"", i}), issues)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			issues = unwieldy(v[name], append(path, step{name, -1}), issues)
		}
	}
	return issues
}

// formatNames are the formats that a string can be held to.
var formatNames = []string{"date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6",
	"uri", "uri-reference", "uri-template", "iri", "iri-reference", "uuid", "json-pointer", "relative-json-pointer", "regex"}

// formatCheck returns the check of a format, or nil if it is not known.
func formatCheck(name string) func(string) bool {
	if !slices.Contains(formatNames, name) {
		return nil
	}
	r, err := CompileRaw(encodeFormat(name))
	if err != nil {
		return nil
	}
	return func(s string) bool { return r.schema.Validate(s) == nil }
}

func encodeFormat(name string) []byte {
	return append(jsonx.AppendString([]byte(`{"format":`), name), '}')
}
