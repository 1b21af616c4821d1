package pool_test

import (
	"context"
	"fmt"
	"log"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/pool"
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
	p := pool.New(client.Local(weatherServer().ServeConn), &pool.Options{Size: 3, Strategy: pool.LeastBusy})
	defer p.Close()
	if err := p.Warm(ctx); err != nil {
		log.Fatal(err)
	}
	forecast, err := client.Call[weather](ctx, p, "forecast", place{City: "Rome"})
	fmt.Println(forecast.Degrees, err)

	// Several calls on one connection.
	err = p.Do(ctx, func(c *client.Client) error {
		for _, city := range []string{"Oslo", "Tokyo"} {
			forecast, err := client.Call[weather](ctx, c, "forecast", place{City: city})
			if err != nil {
				return err
			}
			fmt.Println(city, forecast.Degrees)
		}
		return nil
	})
	fmt.Println(err, p.Stats().Requests)
	// Output:
	// 12 <nil>
	// Oslo 12
	// Tokyo 15
	// <nil> 2
}
