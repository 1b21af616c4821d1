// Report is a server with a tool that calls another: each call has the checks, the rights
// and the observers that a call of the client has.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

type CityIn struct {
	City string `json:"city" jsonschema_description:"name of the city"`
}

type ReportIn struct {
	Cities []string `json:"cities" jsonschema:"maxItems=20" jsonschema_description:"names of the cities"`
}

// newServer returns the server; forecast is where its data come from.
func newServer(forecast func(city string) (string, error)) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "report", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("forecast", func(_ *mcp.Frame, in CityIn) (string, error) { return forecast(in.City) },
			mcp.Doc("Returns the weather of tomorrow in one city."), mcp.ReadOnly()),
		mcp.Tool("report", func(f *mcp.Frame, in ReportIn) (string, error) {
			var b strings.Builder
			for _, city := range in.Cities {
				result, err := s.Call(f, "forecast", CityIn{city})
				if err != nil {
					fmt.Fprintf(&b, "%s: not known: %v\n", city, err)
					continue
				}
				for _, item := range result.(*protocol.CallToolResult).Content {
					fmt.Fprintf(&b, "%s: %s\n", city, item.(protocol.TextContent).Text)
				}
			}
			return b.String(), nil
		}, mcp.Doc("Returns the weather of tomorrow in several cities."), mcp.ReadOnly()))
	return s
}

func main() {
	s := newServer(func(city string) (string, error) { return "rain, as ever", nil })
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
