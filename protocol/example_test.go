package protocol_test

import (
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

func ExampleScan() {
	var m protocol.Message
	fault := protocol.Scan([]byte(`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`), protocol.Limits{}, &m)
	fmt.Println(m.Method, m.ID, fault == nil)
	fault = protocol.Scan([]byte(`{"jsonrpc":"2.0","id":7,"method":`), protocol.Limits{}, &m)
	fmt.Println(string(protocol.AppendErrorResponse(nil, m.ID, fault, protocol.Latest)))
	// Output:
	// ping 9007199254740993 true
	// {"jsonrpc":"2.0","id":7,"error":{"code":-32700,"message":"Parse error: unexpected end of JSON, want a value at byte 33"}}
}

func ExampleRevision_Has() {
	for _, r := range protocol.Revisions() {
		fmt.Println(r, r.Modern(), r.Has(protocol.StructuredContent))
	}
	// Output:
	// 2026-07-28 true true
	// 2025-11-25 false true
	// 2025-06-18 false true
	// 2025-03-26 false false
	// 2024-11-05 false false
}

func ExampleEncodeHeaderValue() {
	fmt.Println(protocol.EncodeHeaderValue("us-west1"))
	fmt.Println(protocol.EncodeHeaderValue("Hello, 世界"))
	// Output:
	// us-west1
	// =?base64?SGVsbG8sIOS4lueVjA==?=
}
