package harness

import (
	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Traced is middleware that notes what passes it.
func Traced(who string, trace *[]string) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if req := f.Request(); req.Params.Name != "" || req.Method == protocol.MethodComplete {
				*trace = append(*trace, who+":"+req.Params.Name)
			}
			return next(f)
		}
	}
}

// Weather returns a server that is to be mounted.
func Weather(opts mcp.Options) *mcp.Server {
	s := Bare(opts)
	s.MustAdd(
		mcp.Tool("forecast", func(f *mcp.Frame, in struct {
			City string `json:"city"`
		}) (string, error) {
			return f.Request().Params.Name + " for " + in.City, nil
		}),
		mcp.Prompt("describe", func(_ *mcp.Frame, in IDIn) (string, error) { return "describe " + in.ID, nil }),
		mcp.Resource("weather://now", ReadText),
		mcp.Template("weather://{id}/day", func(_ *mcp.Frame, in IDIn) (string, error) { return in.ID, nil }),
	)
	return s
}
