package protocol_test

import (
	"fmt"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

func ExampleDecode() {
	m, err := protocol.Decode([]byte(`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`))
	fmt.Println(m.Kind(), m.ID, m.Method, err)
	m, err = protocol.Decode([]byte(`{"jsonrpc":"2.0","id":7,"method":`))
	fmt.Println(m.ID, err)
	// Output:
	// request 9007199254740993 ping <nil>
	// 7 Parse error: unexpected end of JSON, want a value at byte 33
}

func ExampleDecodeLines() {
	stream := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}
no message
[{"jsonrpc":"2.0","id":1,"result":{"tools":[]}},{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}]
`
	for m, err := range protocol.DecodeLines(strings.NewReader(stream)) {
		if err != nil {
			fmt.Println("invalid:", err)
			continue
		}
		fmt.Printf("%s %q%s\n", m.Kind(), m.Method, m.Result)
	}
	// Output:
	// request "tools/list"
	// invalid: Parse error: unexpected 'n', want null at byte 0
	// response ""{"tools":[]}
	// notification "notifications/tools/list_changed"
}

func ExampleDecodeBatch() {
	batch := []byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1.5,"method":"ping"}]`)
	for m, err := range protocol.DecodeBatch(batch, protocol.V20250326) {
		fmt.Println(m.Kind(), err)
	}
	for _, err := range protocol.DecodeBatch(batch, protocol.Latest) {
		fmt.Println(err)
	}
	// Output:
	// request <nil>
	// notification Invalid request: id must be a string or an integer, got 1.5
	// Invalid request: batches are only for sessions of revision 2025-03-26: send one message at a time
}

func ExampleMessage_Validate() {
	m, _ := protocol.NewRequest(protocol.NewID(1), protocol.MethodPing, nil)
	fmt.Println(m.Validate(protocol.V20250618))
	fmt.Println(m.Validate(protocol.V20260728))
	m, _ = protocol.NewResponse(protocol.NewID(1), struct{}{})
	fmt.Println(m.Validate(protocol.V20260728))
	// Output:
	// <nil>
	// Method not found: ping is not in revision 2026-07-28
	// Invalid request: result.resultType is missing; every result of revision 2026-07-28 has it
}

func ExampleMessage_DecodeParams() {
	m, _ := protocol.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a","_meta":{"progressToken":7}}}`))
	var p protocol.Params
	err := m.DecodeParams(&p)
	fmt.Println(p.Name, string(p.Meta.ProgressToken), err)
	// Output: file:///a 7 <nil>
}

func ExampleNewRequest() {
	m, err := protocol.NewRequest(protocol.NewID("a"), protocol.MethodToolsCall, map[string]any{"name": "add", "arguments": map[string]int{"a": 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := m.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"arguments":{"a":1},"name":"add"}}
}

// The params of a request have types of their own where they have several members.
func ExampleNewRequest_params() {
	for method, params := range map[string]any{
		protocol.MethodInitialize: protocol.InitializeParams{
			ProtocolVersion: protocol.V20250618.String(), ClientInfo: protocol.Implementation{Name: "me", Version: "1"}},
		protocol.MethodToolsCall: protocol.CallToolParams{Name: "add", Arguments: map[string]int{"a": 1}},
		protocol.MethodComplete: protocol.CompleteParams{
			Ref: protocol.CompletionReference{Type: "ref/prompt", Name: "greet"}, Argument: protocol.CompletionArgument{Name: "who", Value: "A"}},
	} {
		m, err := protocol.NewRequest(protocol.NewID(1), method, params)
		fmt.Println(m.Method, string(m.Params), err)
	}
	// Unordered output:
	// initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"me","version":"1"}} <nil>
	// tools/call {"name":"add","arguments":{"a":1}} <nil>
	// completion/complete {"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"}} <nil>
}

func ExampleNewLog() {
	m, _ := protocol.NewLog(protocol.LevelWarning, "storage", map[string]any{"free": "2 %"})
	text, _ := m.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"storage","data":{"free":"2 %"}}}
}

func ExampleNewNotification() {
	m, _ := protocol.NewNotification(protocol.MethodRootsChanged, nil)
	text, _ := m.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
}

func ExampleNewProgress() {
	m, _ := protocol.NewProgress([]byte(`"token"`), 1, 4, "reading")
	text, _ := m.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"token","progress":1,"total":4,"message":"reading"}}
}

func ExampleNewResponse() {
	m, _ := protocol.NewResponse(protocol.NewID(1), map[string]any{"tools": []any{}})
	text, _ := m.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
}

func ExampleNewErrorResponse() {
	m := protocol.NewErrorResponse(protocol.NewID(1), protocol.Errorf(protocol.CodeInvalidParams, "Unknown tool: %s", "x"))
	text, _ := m.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: x"}}
}

func ExampleRevisions() {
	for _, r := range protocol.Revisions() {
		fmt.Println(r, r.Modern())
	}
	// Output:
	// 2026-07-28 true
	// 2025-11-25 false
	// 2025-06-18 false
	// 2025-03-26 false
	// 2024-11-05 false
}
