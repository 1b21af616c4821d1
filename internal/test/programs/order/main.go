// Command order checks given orders, and fills in missing ones.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema/civil"
)

type Item struct {
	SKU   string `json:"sku" validate:"len=8"`
	Count int    `json:"count,omitempty" validate:"min=1" jsonschema:"default=1"`
}

type OrderIn struct {
	Items    []Item        `json:"items" validate:"min=1,max=20,unique=SKU"`
	Speed    string        `json:"speed,omitempty" validate:"oneof=normal fast" jsonschema:"default=normal"`
	Email    string        `json:"email" validate:"email" mcp:"secret"`
	Delivery *civil.Date   `json:"delivery,omitempty" jsonschema_description:"not before"`
	Hold     time.Duration `json:"hold,omitempty" mcp:"unit=s" jsonschema:"default=3600"`
}

type OrderOut struct {
	ID    string `json:"id"`
	Items int    `json:"items"`
}

func order(ctx context.Context, in OrderIn) (OrderOut, error) {
	return OrderOut{ID: fmt.Sprintf("%s-%v", in.Speed, in.Hold), Items: len(in.Items)}, nil
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("order", order, mcp.Doc("Places an order"), mcp.Destructive(false)))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
