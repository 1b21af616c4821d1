package wire

import (
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// Params that do not fit are refused by name, whatever they are.
func TestParseCompleteParamsRefused(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{`5`, "params must be an object, got number"},
		{`{"ref":7}`, "params.ref must be an object, got number"},
		{`{"ref":{"type":["ref/prompt"]}}`, "params.ref.type must be a string, got array"},
		{`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":5}}`, "params.argument.value must be a string, got number"},
		{`{"ref":{"type":"ref/prompt","name":"p"},"argument":"a"}`, "params.argument must be an object, got string"},
		{`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":true}}}`, "params.context.arguments must be an object of strings, got bool"},
		{`{"ref":null}`, `params.ref.type must be "ref/prompt" or "ref/resource", got ""`},
		{`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":null}}`, "params.argument.value is missing: it is what the user has typed, or the empty string"},
	} {
		p, fault := ParseCompleteParams([]byte(tt.raw))
		if fault == nil || fault.Message != tt.want || fault.Code != protocol.CodeInvalidParams {
			t.Errorf("%s: %v, %v, want %s", tt.raw, p, fault, tt.want)
		}
	}
}
