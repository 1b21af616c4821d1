package hostrules_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

// inputs are lists of tools that break one rule each, by its ID.
var inputs = map[string]func() []protocol.Tool{
	"name":          one(`{"name":"weather.now"}`),
	"name-long":     func() []protocol.Tool { return []protocol.Tool{good(strings.Repeat("x", 65))} },
	"name-alike":    func() []protocol.Tool { return []protocol.Tool{good("get_user"), good("getUser")} },
	"member":        one(`{"inputSchema":{"type":"object","properties":{"ids[]":{"type":"string"}}}}`),
	"properties":    one(`{"inputSchema":{"type":"object"}}`),
	"root-type":     one(`{"inputSchema":{"type":"string","properties":{}}}`),
	"root-union":    one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"anyOf":[{"required":["q"]}]}}`),
	"root-if":       one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"dependentRequired":{"q":[]}}}`),
	"keyword":       one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"integer","exclusiveMinimum":0}}}}`),
	"pattern":       one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string","pattern":"^\\p{L}+$"}}}}`),
	"pattern-look":  one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string","pattern":"^(?!x).*$"}}}}`),
	"pattern-plain": one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string","pattern":"^\\d+$"}}}}`),
	"repeat":        one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string","maxLength":5000}}}}`),
	"enum-number":   one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"integer","enum":[1,2]}}}}`),
	"enum-blank":    one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string","enum":["a",""]}}}}`),
	"items":         one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"array"}}}}`),
	"type-list":     one(`{"inputSchema":{"type":"object","properties":{"q":{"type":["string","null"]}}}}`),
	"type-none":     one(`{"inputSchema":{"type":"object","properties":{"q":{}}}}`),
	"ref":           one(`{"inputSchema":{"type":"object","properties":{"q":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}}}}`),
	"required":      one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["p"]}}`),
	"format":        one(`{"inputSchema":{"type":"object","properties":{"q":{"type":"integer","format":"uint64"}}}}`),
	"dialect":       one(`{"outputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}}`),
	"text-none":     one(`{"description":" "}`),
	"text-2048":     func() []protocol.Tool { return many(1, 2049) },
	"text-long":     func() []protocol.Tool { return many(1, 1025) },
	"text-hidden":   one(`{"description":"Searches\u200b the notes."}`),
	"hints":         one(`{"annotations":{"readOnlyHint":null}}`),
	"tools":         func() []protocol.Tool { return many(101, 20) },
	"tokens":        func() []protocol.Tool { return many(90, 500) },
	"unchecked": func() []protocol.Tool {
		t := good("search")
		t.InputSchema = json.RawMessage(strings.Repeat(`{"type":"object","properties":{"q":`, 65) + `{"type":"string"}` + strings.Repeat("}}", 65))
		return []protocol.Tool{t}
	},
}

// one is a list with a good tool, except for what text has.
func one(text string) func() []protocol.Tool {
	return func() []protocol.Tool {
		t := good("search")
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			panic(err)
		}
		return []protocol.Tool{t}
	}
}

// good returns a tool that breaks no rule.
func good(name string) protocol.Tool {
	yes := true
	return protocol.Tool{
		Name: name, Description: "Searches the notes.", Annotations: &protocol.ToolAnnotations{ReadOnlyHint: &yes},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`),
	}
}

// many returns n good tools with a description of that length.
func many(n, description int) (list []protocol.Tool) {
	for i := range n {
		t := good(fmt.Sprint("tool", i))
		t.Description = strings.Repeat("x", description)
		list = append(list, t)
	}
	return list
}
