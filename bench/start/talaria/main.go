// Talaria is a stdio server with two tools.
package main

import (
	"context"
	"log"

	"github.com/talaria-go/mcp"
)

type pair struct {
	A int `json:"a" jsonschema_description:"the first number"`
	B int `json:"b" jsonschema_description:"the second number"`
}

type sum struct {
	Sum int `json:"sum"`
}

func add(_ *mcp.Frame, in pair) (sum, error)      { return sum{in.A + in.B}, nil }
func subtract(_ *mcp.Frame, in pair) (sum, error) { return sum{in.A - in.B}, nil }

func main() {
	s := mcp.NewServer(mcp.Info{Name: "start", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("add", add, mcp.Doc("Adds two numbers")),
		mcp.Tool("subtract", subtract, mcp.Doc("Subtracts two numbers")))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
