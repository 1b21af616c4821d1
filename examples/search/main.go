// Search offers a large HTTP API on standard input and output, as three tools: one finds
// what the API can do, and two call it.
//
//	API_TOKEN=… talaria call "go run ./examples/search https://api.github.com api.github.com.json" search_tools query="open a ticket"
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/openapi"
	"github.com/talaria-go/mcp/toolsearch"
)

// words are what users say, and what the API says.
var words = map[string]string{"ticket": "issue", "bug": "issue", "pr": "pull request", "ci": "workflow run, check"}

// newServer returns a server with a tool for each operation of a document, which clients
// search for. Claude Code searches itself, and has the whole list.
func newServer(api string, doc []byte, token string) (*mcp.Server, error) {
	tools, problems, err := openapi.Tools(doc, &openapi.Options{
		Server: api,
		Auth: func(_ *mcp.Frame, _ openapi.Operation, r *http.Request) error {
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			return nil
		},
	})
	for _, p := range problems {
		log.Print(p)
	}
	s := mcp.NewServer(mcp.Info{Name: "search", Version: "1.0.0"}, nil)
	return s, errors.Join(err, s.Add(tools...), toolsearch.Add(s, &toolsearch.Options{
		Words: words,
		When:  func(f *mcp.Frame) bool { return f.ClientInfo().Name != "claude-code" },
	}))
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: search URL DOCUMENT")
	}
	doc, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	s, err := newServer(os.Args[1], doc, os.Getenv("API_TOKEN"))
	if err != nil {
		log.Fatal(err)
	}
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
