package main

import (
	"context"
	"log"
	"net/http"

	"github.com/talaria-go/mcp"
)

type SplitInput struct {
	Total  float64 `json:"total" validate:"gt=0" jsonschema_description:"the bill, in any currency"`
	People int     `json:"people" validate:"min=1,max=100"`
	Tip    int     `json:"tip,omitempty" validate:"min=0,max=50" jsonschema:"default=10" jsonschema_description:"percent"`
}

type SplitOutput struct {
	Each float64 `json:"each"`
}

func split(ctx context.Context, in SplitInput) (SplitOutput, error) {
	return SplitOutput{Each: in.Total * float64(100+in.Tip) / 100 / float64(in.People)}, nil
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "bills", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("split_bill", split, mcp.Doc("Splits a bill"), mcp.ReadOnly()))
	http.Handle("/mcp", s.Handler())
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
