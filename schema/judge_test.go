package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/wording"
	"github.com/talaria-go/mcp/schema/raw"
)

// judge checks documents with a JSON Schema by two validators: Raw, and an
// independent one. It fails the test where they disagree.
type judge struct {
	tb     testing.TB
	raw    *raw.Schema
	oracle *oracle.Schema
}

func newJudge(tb testing.TB, schema []byte) (*judge, error) {
	raw, err := raw.Compile(schema)
	if err != nil {
		return nil, err
	}
	doc, err := oracle.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := oracle.NewCompiler()
	c.AssertFormat()
	for name, in := range map[string]func(any) error{"int64": within(math.MinInt64, math.MaxInt64), "uint64": within(0, math.MaxUint64)} {
		c.RegisterFormat(&oracle.Format{Name: name, Validate: in})
	}
	if err := c.AddResource("mem:///s", doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile("mem:///s")
	return &judge{tb, raw, compiled}, err
}

// Check tells what both say. What is no document at all, or has numbers that
// Raw does not compare, is left to Raw; so are formats that it refuses, because
// the independent one takes any character for one of a URI.
func (j *judge) Check(data []byte) error {
	err := j.raw.Check(data)
	var e *Error
	if errors.As(err, &e) && slices.ContainsFunc(e.Issues, func(is Issue) bool {
		return slices.Contains([]string{wording.RuleSyntax, wording.RuleDepth, wording.RuleSize, wording.RuleDuplicate, wording.RuleRange, "format"}, is.Rule)
	}) {
		return err
	}
	doc, broken := oracle.UnmarshalJSON(bytes.NewReader(data))
	if broken != nil {
		j.tb.Errorf("%s is no JSON: %v", data, broken)
		return broken
	}
	if other := j.oracle.Validate(doc); (other == nil) != (err == nil) {
		j.tb.Errorf("document %s\nRaw says %v\nthe independent validator %v\nschema %s", data, err, other, j.raw.JSON())
	}
	return err
}

// within makes the check of a format for what lies between two numbers, or
// numbers in a string. Other values are not its matter.
func within(low int64, high uint64) func(any) error {
	return func(v any) error {
		text, isText := v.(string)
		if n, ok := v.(json.Number); ok {
			text, isText = n.String(), true
		}
		if !isText || !lexical.IsNumber(text) {
			return nil
		}
		n, ok := lexical.Decimal(text)
		if !ok || n.Cmp(new(big.Rat).SetInt64(low)) < 0 || n.Cmp(new(big.Rat).SetUint64(high)) > 0 {
			return errors.New("does not fit 64 bits")
		}
		return nil
	}
}
