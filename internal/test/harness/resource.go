package harness

import (
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
)

// Bare returns a server without components.
func Bare(opts mcp.Options) *mcp.Server {
	quiet := zerolog.Nop()
	opts.Logger = &quiet
	return mcp.NewServer(mcp.Info{Name: "bare", Version: "1"}, &opts)
}

func Text(*mcp.Frame, struct{}) (string, error) { return "text", nil }

func ReadText(*mcp.Frame) (string, error) { return "text", nil }
