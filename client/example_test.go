package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// inProcess leads to a server of this process; client.Command, client.HTTP and
// the like lead to others.
func inProcess(s *mcp.Server) client.Transport {
	return client.Conn(func(context.Context) (transport.Conn, error) {
		near, far := transport.Pipe()
		go func() { _ = s.ServeConn(context.Background(), far) }() // ends with the connection
		return near, nil
	})
}

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
	c, err := client.Connect(ctx, inProcess(weatherServer()), &client.Options{
		Elicit: func(_ context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
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

func ExamplePool() {
	ctx := context.Background()
	pool := client.NewPool(inProcess(weatherServer()), &client.PoolOptions{Size: 3, Strategy: client.LeastBusy})
	defer pool.Close()
	if err := pool.Warm(ctx); err != nil {
		log.Fatal(err)
	}
	forecast, err := client.Call[weather](ctx, pool, "forecast", place{City: "Rome"})
	fmt.Println(forecast.Degrees, err)

	// Several calls on one connection.
	err = pool.Do(ctx, func(c *client.Client) error {
		for _, city := range []string{"Oslo", "Tokyo"} {
			forecast, err := client.Call[weather](ctx, c, "forecast", place{City: city})
			if err != nil {
				return err
			}
			fmt.Println(city, forecast.Degrees)
		}
		return nil
	})
	fmt.Println(err, pool.Stats().Requests)
	// Output:
	// 12 <nil>
	// Oslo 12
	// Tokyo 15
	// <nil> 2
}

func ExampleMany() {
	ctx := context.Background()
	many := client.NewMany(nil)
	defer many.Close()
	for _, name := range []string{"north", "south"} {
		if err := many.Add(name, inProcess(weatherServer()), nil); err != nil {
			log.Fatal(err)
		}
	}
	for tool, err := range many.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name)
	}
	forecast, err := client.Call[weather](ctx, many, "south.forecast", place{City: "Rome"})
	fmt.Println(forecast.Degrees, err)
	// Output:
	// north.forecast
	// north.make_rain
	// south.forecast
	// south.make_rain
	// 12 <nil>
}

func ExampleParseConfig() {
	config, err := client.ParseConfig("mcp.json", []byte(`{
		"mcpServers": {
			"files":   {"command": "mcp-server-files", "args": ["${workspaceFolder}"]},
			"tickets": {"url": "https://tickets.example.com/mcp", "headers": {"Authorization": "Bearer ${env:TICKETS_TOKEN}"}},
			"old":     {"command": "mcp-server-old", "disabled": true}
		}
	}`), &client.ConfigOptions{
		Workspace: "/home/ada/project",
		Env:       func(string) (string, bool) { return "", false },
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range config.Servers {
		fmt.Println(s.Name, s.Type, s.Args, s.Disabled)
	}
	fmt.Println(config.Err())
	// Output:
	// files stdio [/home/ada/project] false
	// tickets http [] false
	// old  [] true
	// mcp.json: server "tickets": headers.Authorization: the environment has no TICKETS_TOKEN; set it, or write ${env:TICKETS_TOKEN:-default}
}
