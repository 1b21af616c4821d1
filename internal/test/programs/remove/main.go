// Command remove asks its user first, in every revision.
package main

import (
	"context"
	"log"

	"github.com/talaria-go/mcp"
)

type RemoveIn struct {
	Name string `json:"name" validate:"required"`
}

type Confirm struct {
	Sure bool `json:"sure" jsonschema_description:"there is no way back"`
}

func remove(f *mcp.Frame, in RemoveIn) (string, error) {
	answer, err := mcp.Elicit[Confirm](f, "sure", "Delete "+in.Name+"?")
	if err != nil {
		return "", err
	}
	if !answer.Accepted() || !answer.Value.Sure {
		return "kept " + in.Name, nil
	}
	return "deleted " + in.Name, nil
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "files", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("remove", remove, mcp.Doc("Deletes a file")))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
