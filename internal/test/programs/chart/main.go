// Command chart answers with structured content, its schema, and an image.
package main

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"log"

	"github.com/talaria-go/mcp"
)

type ChartIn struct {
	Values []float64 `json:"values" validate:"min=1"`
}

type Stats struct {
	Count int `json:"count"`
}

func draw(values []float64) []byte {
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, len(values), 1))); err != nil {
		log.Print(err)
	}
	return out.Bytes()
}

func chart(ctx context.Context, in ChartIn) (*mcp.ResultOf[Stats], error) {
	r := &mcp.ResultOf[Stats]{Value: Stats{len(in.Values)}}
	r.Image(draw(in.Values), "image/png")
	return r, nil
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "chart", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("chart", chart, mcp.Doc("Draws a chart"), mcp.ReadOnly()))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
