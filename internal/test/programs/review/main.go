// Command review has a prompt.
package main

import (
	"context"
	"log"

	"github.com/talaria-go/mcp"
)

type ReviewIn struct {
	Lang string `json:"lang" validate:"oneof=go python" jsonschema_description:"language of the code"`
	Code string `json:"code" validate:"required"`
}

func review(ctx context.Context, in ReviewIn) (*mcp.Messages, error) {
	return mcp.NewMessages().Userf("Review this %s code:\n%s", in.Lang, in.Code).Assistant("I will look for bugs first."), nil
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "review", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Prompt("review", review, mcp.Doc("Reviews code")))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
