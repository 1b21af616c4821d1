package registry_test

import (
	"fmt"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

func ExampleList() {
	tools := registry.NewList[*registry.Tool](registry.Config{Member: "tools"})
	stop := tools.Watch(func() { fmt.Println("changed") })
	defer stop()
	err := tools.Add(&registry.Tool{Definition: protocol.Tool{Name: "add", InputSchema: []byte(`{"type":"object"}`)}})
	if err != nil {
		fmt.Println(err)
	}
	page, err := tools.Page(nil, protocol.V20250618)
	fmt.Println(string(page), err)
	// Output:
	// changed
	// {"tools":[{"name":"add","inputSchema":{"type":"object"}}]} <nil>
}
