// Bundle is a server that people install with a click: manifest.json tells hosts
// how to start it, and which setting they ask their user for.
//
//	talaria pack ./examples/bundle examples/bundle/terms.json
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/talaria-go/mcp"
)

type definition struct {
	Term string `json:"term" validate:"required,max=80" jsonschema_description:"the word to explain"`
}

// newServer explains the terms of a file, in one of its languages.
func newServer(file, language string) (*mcp.Server, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var terms map[string]map[string]string // by language and term
	if err := json.Unmarshal(data, &terms); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if terms[language] == nil {
		return nil, fmt.Errorf("%s has no language %q", file, language)
	}
	s := mcp.NewServer(mcp.Info{Name: "glossary", Version: "1.0.0"}, nil)
	return s, s.Add(mcp.Tool("define", func(_ context.Context, in definition) (string, error) {
		if text, ok := terms[language][in.Term]; ok {
			return text, nil
		}
		return "", fmt.Errorf("there is no term %q", in.Term)
	}, mcp.Doc("Explains a term of the house")))
}

func main() {
	s, err := newServer(os.Getenv("GLOSSARY_TERMS"), os.Getenv("GLOSSARY_LANGUAGE"))
	if err != nil {
		log.Fatal(err)
	}
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
