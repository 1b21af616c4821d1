// Openapi offers an HTTP API to models at http://127.0.0.1:8080/mcp, with the key that
// each caller has at the API: openapi https://api.example.com api.yaml callers.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/openapi"
)

// Callers has the name of the caller with each token, and the key of each name at the API.
type Callers struct{ Tokens, Keys map[string]string }

// newHandler serves an API to callers.
func newHandler(api string, doc []byte, callers Callers) (http.Handler, error) {
	tools, problems, err := openapi.Tools(doc, &openapi.Options{
		Server: api,
		Auth: func(f *mcp.Frame, _ openapi.Operation, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+callers.Keys[f.Identity().Subject])
			return nil
		},
	})
	for _, p := range problems {
		log.Print(p)
	}
	s := mcp.NewServer(mcp.Info{Name: "api", Version: "1.0.0"}, nil)
	tokens := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		if name, ok := callers.Tokens[token]; ok {
			return &auth.Identity{Subject: name}, nil
		}
		return nil, auth.Invalid("no caller has this token")
	})
	resource, authErr := auth.New("http://127.0.0.1:8080/mcp", tokens, nil)
	if err := errors.Join(err, authErr, s.Add(tools...)); err != nil {
		return nil, err
	}
	return resource.Bearer(s.Handler()), nil
}

func main() {
	doc, docErr := os.ReadFile(os.Args[2])
	text, err := os.ReadFile(os.Args[3])
	var callers Callers
	if err := errors.Join(docErr, err, json.Unmarshal(text, &callers)); err != nil {
		log.Fatal(err)
	}
	handler, err := newHandler(os.Args[1], doc, callers)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", handler))
}
