// Unchecked offers the tools on this module without authorization, to requests
// that carry tokens nevertheless. It tells what net/http takes for reading them.
package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/talaria-go/mcp"

	"github.com/talaria-go/mcp/bench/internal/serve"
	"github.com/talaria-go/mcp/bench/tools"
)

// tokenSize is that of the tokens of servers/protected, in bytes.
const tokenSize = 458

func handler() (http.Handler, error) {
	s := mcp.NewServer(mcp.Info{Name: "bench", Version: "1.0.0"}, nil)
	return s.Handler(), s.Add(
		mcp.Tool("add", func(_ *mcp.Frame, in tools.AddIn) (tools.AddOut, error) { return tools.Add(in), nil }),
		mcp.Tool("search", func(_ *mcp.Frame, in tools.SearchIn) (tools.SearchOut, error) { return tools.Search(in), nil }),
	)
}

func main() {
	serve.Main(serve.Server{
		HTTP:   handler,
		Tokens: func() ([]string, error) { return []string{strings.Repeat("x", tokenSize)}, nil },
		Stdio:  func(context.Context) error { return errors.New("tokens are for HTTP") },
	})
}
