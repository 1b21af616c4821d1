// Command hello greets.
package main

import (
	"context"
	"log"

	"github.com/talaria-go/mcp"
)

type HelloIn struct {
	Name string `json:"name" validate:"required" jsonschema_description:"whom to greet"`
}

func hello(ctx context.Context, in HelloIn) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "hello", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("hello", hello, mcp.Doc("Greets somebody"), mcp.ReadOnly()))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
