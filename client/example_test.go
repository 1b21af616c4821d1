package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

type place struct {
	City string `json:"city"`
}

type weather struct {
	Degrees int `json:"degrees"`
}

// weatherServer has a forecast, and a tool that asks before it acts.
func weatherServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "weather", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("forecast", func(_ *mcp.Frame, in place) (weather, error) { return weather{Degrees: 3 * len(in.City)}, nil }),
		mcp.Tool("make_rain", func(f *mcp.Frame, in place) (string, error) {
			sure, err := mcp.Elicit[struct {
				Sure bool `json:"sure"`
			}](f, "sure", "Rain over "+in.City+"?")
			if err != nil || !sure.Value.Sure {
				return "it stays dry", err
			}
			return "it rains", nil
		}),
	)
	return s
}

func Example() {
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Local(weatherServer().ServeConn), &client.Options{
		Elicit: func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			fmt.Println("the server asks:", q.Message)
			return client.Accept(map[string]bool{"sure": true})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for tool, err := range c.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("tool:", tool.Name)
	}
	forecast, err := client.Call[weather](ctx, c, "forecast", place{City: "Oslo"})
	fmt.Println(forecast.Degrees, err)
	result, err := c.Call(ctx, "make_rain", place{City: "Oslo"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
	// Output:
	// tool: forecast
	// tool: make_rain
	// 12 <nil>
	// the server asks: Rain over Oslo?
	// it rains
}
