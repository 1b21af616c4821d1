// Gateway offers two servers as one: files, of which clients may only read, and notes, a
// server in the same process whose search is always in one folder.
//
//	talaria tools "go run ./examples/gateway DIRECTORY"
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/gateway"
)

// SearchIn is what the tool search of the notes takes.
type SearchIn struct {
	Query  string `json:"query"`
	Folder string `json:"folder"`
}

func newNotes() *mcp.Server {
	notes := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	notes.MustAdd(mcp.Tool("search", func(_ *mcp.Frame, in SearchIn) (string, error) {
		return in.Folder + ": nothing about " + in.Query, nil
	}, mcp.Doc("Searches the notes in a folder.")))
	return notes
}

// newGateway returns a server with the tools of files and of the notes. The caller closes
// the Gateway.
func newGateway(files client.Transport) (*mcp.Server, *gateway.Gateway, error) {
	s := mcp.NewServer(mcp.Info{Name: "office", Version: "1.0.0"}, nil)
	g := gateway.New(s, nil)
	err := g.Set("files", gateway.Upstream{Transport: files, Only: []string{"read_*", "list_*"}})
	if err != nil {
		return nil, g, err
	}
	return s, g, g.Set("notes", gateway.Upstream{Transport: client.Local(newNotes().ServeConn), Rules: []gateway.Rule{
		{Tool: "search", Name: "find", Fixed: map[string]json.RawMessage{"folder": json.RawMessage(`"work"`)}},
	}})
}

func main() {
	s, g, err := newGateway(client.Command("npx", append([]string{"-y", "@modelcontextprotocol/server-filesystem"}, os.Args[1:]...)...))
	if err != nil {
		log.Fatal(err)
	}
	err = s.ServeStdio(context.Background())
	_ = g.Close() // it returns no error
	if err != nil {
		log.Fatal(err)
	}
}
