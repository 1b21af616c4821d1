package form

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
)

// What has parts can be asked for part by part, and still be typed whole.
func TestParts(t *testing.T) {
	object, err := arguments.ReadObject(json.RawMessage(`{"required":["to","shape"],"properties":{
		"to":{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"street":{"type":"string"}}},
		"shape":{"oneOf":[
			{"title":"Circle","type":"object","required":["kind","radius"],"properties":{"kind":{"const":"circle"},"radius":{"type":"number"}}},
			{"type":"object","required":["side"],"properties":{"side":{"type":"integer"}}}]},
		"people":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ typed, want string }{
		{`n|{"city":"Ulm"}|{"side":2}`, `{"to":{"city":"Ulm"},"shape":{"side":2}}`},
		{`n|+|y|Ulm|Main St|+|3|1|circle|2.5`, `{"to":{"city":"Ulm","street":"Main St"},"shape":{"kind":"circle","radius":2.5}}`},
		{`y|+|n|Ulm|+|2|x|4|+|Ann|y|Bob|n`, `{"to":{"city":"Ulm"},"shape":{"side":4},"people":[{"name":"Ann"},{"name":"Bob"}]}`},
	} {
		s := &script{lines: strings.Split(test.typed, "|")}
		got, err := Fill(s, object, nil, false)
		if err != nil || string(got) != test.want || len(s.lines) > 0 {
			t.Errorf("%s: got %s, %v; left %q\n%s", test.typed, got, err, s.lines, s.screen.String())
		}
	}
}
