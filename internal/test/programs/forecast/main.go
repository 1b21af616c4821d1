// Command forecast asks a server for a typed result, again if that fails for
// now.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/talaria-go/mcp/client"
)

type Place struct {
	City string `json:"city"`
}

type Forecast struct {
	Celsius float64 `json:"celsius"`
}

func main() {
	ctx := context.Background()
	c, err := client.Connect(ctx, client.HTTP("http://127.0.0.1:8080/mcp", nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	out, err := client.Call[Forecast](ctx, c, "forecast", Place{"Oslo"}, client.Timeout(5*time.Second), client.Retry(3), client.Idempotent())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Celsius)
}
