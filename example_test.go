package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/transport"
)

type divideIn struct {
	A float64 `json:"a" jsonschema_description:"what is divided"`
	B float64 `json:"b" validate:"ne=0" jsonschema_description:"what it is divided by"`
}

func divide(_ *mcp.Frame, in divideIn) (float64, error) { return in.A / in.B, nil }

// A server mounted into a router, and a request of revision 2026-07-28.
func ExampleServer_Handler() {
	s := mcp.NewServer(mcp.Info{Name: "calculator", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("divide", divide, mcp.Doc("Divides two numbers"), mcp.ReadOnly()))
	r := chi.NewRouter()
	r.Mount("/mcp", s.Handler())
	server := httptest.NewServer(r)
	defer server.Close()

	req, err := http.NewRequest(http.MethodPost, server.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
		"name":"divide","arguments":{"a":1,"b":0},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", "divide")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	fmt.Println(res.Status, strings.Contains(string(answer), "Invalid arguments for tool"))
	// Output: 200 OK true
}

// Faults of tools are found when they are added, all at once.
func ExampleServer_Add() {
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	type in struct {
		Limit int `json:"limit" validate:"min=1.5"`
	}
	err := s.Add(mcp.Tool("my tool", func(*mcp.Frame, in) (string, error) { return "", nil }))
	fmt.Println(strings.Contains(err.Error(), `mcp: tool "my tool"`), strings.Contains(err.Error(), "min=1.5"))
	// Output: true true
}

// The same server over a pair of streams, as over standard input and output.
func ExampleServer_ServeConn() {
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	var out strings.Builder
	if err := s.ServeConn(context.Background(), transport.NewStream(in, &out, nil)); err != nil {
		fmt.Println(err)
	}
	fmt.Print(out.String())
	// Output: {"jsonrpc":"2.0","id":1,"result":{}}
}

// A handler may take a context.Context; what it calls finds the Frame there.
func ExampleFromContext() {
	principal := func(ctx context.Context) string {
		if f, ok := mcp.FromContext(ctx); ok {
			return f.Principal()
		}
		return ""
	}
	greet := func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name + principal(ctx) + "!", nil
	}
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("greet", greet)))
	// Output: <nil>
}

// Options that belong together are one option: a Bundle fits every kind of
// component, ToolOptions fit tools.
func ExampleBundle() {
	internal := func(doc string) mcp.Option {
		return mcp.Bundle{mcp.Doc(doc), mcp.Scopes("ops"), mcp.Timeout(time.Minute)}
	}
	lookup := mcp.ToolOptions{internal("Looks into the stock"), mcp.ReadOnly(), mcp.Idempotent()}
	stock := func(context.Context, struct{}) (int, error) { return 12, nil }
	motd := func(context.Context) (string, error) { return "Closed on Monday", nil }

	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("stock", stock, lookup), mcp.Resource("shop://motd", motd, internal("Message of the day"))))
	// Output: <nil>
}

// A question to the user, the same in every revision: the handler passes the
// error up, and runs again when the answer is there.
func ExampleElicit() {
	type confirm struct {
		Really bool `json:"really" jsonschema_description:"there is no way back"`
	}
	remove := func(f *mcp.Frame, in struct {
		File string `json:"file"`
	}) (string, error) {
		answer, err := mcp.Elicit[confirm](f, "confirm", "Delete "+in.File+"?")
		if err != nil {
			return "", err
		}
		if !answer.Accepted() || !answer.Value.Really {
			return "kept " + in.File, nil
		}
		return "deleted " + in.File, nil
	}
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("remove", remove, mcp.Destructive(true))))
	// Output: <nil>
}

// A result that a Go type cannot say is built by hand.
func ExampleResult() {
	chart := func(*mcp.Frame, struct{}) (*mcp.Result, error) {
		return mcp.NewResult().Text("Sales of the year").Image([]byte("PNG…"), "image/png"), nil
	}
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("chart", chart)))
	// Output: <nil>
}
