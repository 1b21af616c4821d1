package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestHeaderParams(t *testing.T) {
	tests := []struct {
		name, schema string
		want         string // the params, or the error
	}{
		{"none", `{"type":"object"}`, "[]"},
		{"one", `{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`, "[{Region [region]}]"},
		{"nested", `{"properties":{"a":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"A-B"}}}}}`, "[{A-B [a b]}]"},
		{"nullable", `{"properties":{"a":{"type":["boolean","null"],"x-mcp-header":"A"}}}`, "[{A [a]}]"},
		{"an argument of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, "[]"},
		{"in data", `{"properties":{"a":{"type":"object","default":{"x-mcp-header":"A"}}}}`, "[]"},
		{"empty", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, "token"},
		{"no token", `{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`, "token"},
		{"line feed", `{"properties":{"a":{"type":"string","x-mcp-header":"a\nb"}}}`, "token"},
		{"no string", `{"properties":{"a":{"type":"string","x-mcp-header":5}}}`, "token"},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, "twice"},
		{"number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, "type number"},
		{"object", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, "type object"},
		{"no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`, "type"},
		{"in items", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, "more than properties"},
		{"in anyOf", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "more than properties"},
		{"in if", `{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "more than properties"},
		{"in $defs", `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, "more than properties"},
		{"at the root", `{"type":"string","x-mcp-header":"A"}`, "more than properties"},
	}
	for _, tt := range tests {
		params, err := HeaderParams(json.RawMessage(tt.schema))
		if got := fmt.Sprint(params); err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}
