package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// A method of a program's own lists what a Catalog of its own has.
func ExampleCatalog() {
	catalog := registry.New(registry.Config{})
	err := catalog.Add(&registry.Entry{Definition: &protocol.Tool{Name: "add", InputSchema: []byte(`{"type":"object"}`)}})
	if err != nil {
		log.Fatal(err)
	}
	s := mcp.NewServer(mcp.Info{Name: "archive", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Method("archive/tools", func(f *mcp.Frame, _ json.RawMessage) (json.RawMessage, error) {
		page, err := catalog.View(f, nil).Page(registry.KindTool, nil)
		return json.RawMessage(page), err
	}))

	opts := &client.Options{Revisions: []protocol.Revision{protocol.V20251125}}
	c, err := client.Connect(context.Background(), client.Local(s.ServeConn), opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var list json.RawMessage
	err = c.Request(context.Background(), "archive/tools", nil, &list)
	fmt.Println(string(list), err)
	// Output: {"tools":[{"name":"add","inputSchema":{"type":"object"}}]} <nil>
}
