package registry_test

import (
	"context"
	"fmt"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/internal/upcall"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

func ExampleCatalog() {
	catalog := registry.New(registry.Config{})
	stop := catalog.Watch(func(changed []*registry.Entry) { fmt.Println("changed:", changed[0].Key()) })
	defer stop()
	err := catalog.Add(&registry.Entry{Definition: &protocol.Tool{Name: "add", InputSchema: []byte(`{"type":"object"}`)}})
	if err != nil {
		fmt.Println(err)
	}
	f := frame.Internal(call.Private{}).New(context.Background(), upcall.Config{Revision: protocol.V20250618})
	page, err := catalog.View(f, nil).Page(registry.KindTool, nil)
	fmt.Println(string(page), err)
	// Output:
	// changed: add
	// {"tools":[{"name":"add","inputSchema":{"type":"object"}}]} <nil>
}
