package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp"
)

// A method of the user's own stands beside those of the specification; its
// params are checked as the arguments of a tool are.
func ExampleMethod() {
	type stock struct {
		SKU string `json:"sku" validate:"required,len=4"`
	}
	type left struct {
		Left int `json:"left"`
	}
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Method("shop/stock", func(_ *mcp.Frame, in stock) (left, error) { return left{12}, nil }))

	send(s, "shop/stock", "", `"sku":"A100"`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","left":12
}

// Without types, the params are there as they came.
func ExampleMethod_raw() {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	echo := func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil }
	fmt.Println(s.Add(mcp.Method("shop/echo", echo)), s.Add(mcp.Method("tools/echo", echo)))

	send(s, "shop/echo", "", `"echo":[1,2]`)
	// Output:
	// <nil> mcp: method "tools/echo": the specification owns names that begin with "tools/"; put a name of your own before it, as in "acme/tools/echo"
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","echo":[1,2]
}

// One server offers what another one has, under a prefix.
func ExampleServer_Mount() {
	weather := mcp.NewServer(mcp.Info{Name: "weather", Version: "1.0.0"}, nil)
	weather.MustAdd(mcp.Tool("forecast", func(*mcp.Frame, struct{}) (string, error) { return "sunny", nil }))

	s := mcp.NewServer(mcp.Info{Name: "portal", Version: "1.0.0"}, nil)
	if err := s.Mount("weather", weather); err != nil {
		fmt.Println(err)
	}
	send(s, "tools/call", "weather_forecast", `"name":"weather_forecast"`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"sunny"}]
}

// A tool that is hidden is in no list and answers as one that does not exist.
func ExampleVisibleTo() {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("refund", func(*mcp.Frame, struct{}) (string, error) { return "done", nil },
		mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Principal() == "manager" })))

	send(s, "tools/list", "", `"acme":1`)
	send(s, "tools/call", "refund", `"name":"refund"`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"
	// {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: refund"}}
}
