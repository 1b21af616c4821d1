package group_test

import (
	"context"
	"fmt"
	"log"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
)

type place struct {
	City string `json:"city"`
}

type weather struct {
	Degrees int `json:"degrees"`
}

func weatherServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "weather", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("forecast", func(_ context.Context, in place) (weather, error) { return weather{Degrees: 3 * len(in.City)}, nil }))
	return s
}

func Example() {
	ctx := context.Background()
	servers := group.New(nil)
	defer servers.Close()
	for _, name := range []string{"north", "south"} {
		if err := servers.Add(name, client.Local(weatherServer().ServeConn), nil); err != nil {
			log.Fatal(err)
		}
	}
	for tool, err := range servers.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name)
	}
	forecast, err := client.Call[weather](ctx, servers, "south_forecast", place{City: "Rome"})
	fmt.Println(forecast.Degrees, err)
	// Output:
	// north_forecast
	// south_forecast
	// 12 <nil>
}
