package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

func slowServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "slow", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("count", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := 1; i <= 2; i++ {
				if err := f.Progress(float64(i), 2, "counting"); err != nil {
					return "", err
				}
			}
			return "counted", nil
		}),
		mcp.Tool("sleep", func(f *mcp.Frame, _ struct{}) (string, error) {
			<-f.Done()
			return "", context.Cause(f)
		}),
	)
	return s
}

// A call reports its progress and has a time limit; errors tell what went wrong.
func ExampleClient_Call() {
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Local(slowServer().ServeConn), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	result, err := c.Call(ctx, "count", nil, client.OnProgress(func(p client.Progress) {
		fmt.Println(p.Message, p.Progress, "of", p.Total)
	}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
	_, err = c.Call(ctx, "sleep", nil, client.Timeout(10*time.Millisecond))
	fmt.Println(errors.Is(err, client.ErrTimeout), client.Retriable(err))
	_, err = c.Read(ctx, "file:///etc/motd")
	fmt.Println(errors.Is(err, client.ErrUnsupported))
	// Output:
	// counting 1 of 2
	// counting 2 of 2
	// counted
	// true true
	// true
}

// Changes are told in every revision.
func ExampleClient_Listen() {
	ctx := context.Background()
	server := slowServer()
	c, err := client.Connect(ctx, client.Local(server.ServeConn), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	told := make(chan client.Notification)
	changes, err := c.Listen(ctx, client.Filter{ToolsListChanged: true}, func(n client.Notification) { told <- n })
	if err != nil {
		log.Fatal(err)
	}
	server.Remove(mcp.KindTool, "sleep")
	fmt.Println((<-told).Method)
	fmt.Println(changes.Close())
	// Output:
	// notifications/tools/list_changed
	// <nil>
}
