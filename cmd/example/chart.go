package main

import (
	"bytes"
	"fmt"
	"image/png"
	"strings"

	"github.com/talaria-go/mcp"
)

// ChartIn are numbers to draw.
type ChartIn struct {
	Title  string `json:"title,omitempty" validate:"max=100" jsonschema_description:"what the chart shows; stands in the text beside the image"`
	Bars   []Bar  `json:"bars" validate:"min=1,max=40" jsonschema_description:"the bars, from left to right"`
	Width  int    `json:"width,omitempty" validate:"min=200,max=2000" jsonschema:"default=640" jsonschema_description:"width of the image in pixels"`
	Height int    `json:"height,omitempty" validate:"min=120,max=2000" jsonschema:"default=360" jsonschema_description:"height of the image in pixels"`
}

// Bar is one bar of a chart.
type Bar struct {
	Label string  `json:"label" validate:"required,max=80"`
	Value float64 `json:"value" validate:"min=-1e15,max=1e15" jsonschema_description:"its height; below zero it hangs down"`
}

func chartTool() mcp.Component {
	return mcp.Tool("draw_bar_chart", drawChart, mcp.Title("Bar chart"),
		mcp.Doc("Draws a bar chart as a PNG image. Bars carry their number and value; a text beside the image has the labels"),
		mcp.ReadOnly(), mcp.Idempotent(), mcp.OpenWorld(false))
}

// drawChart returns an image with a text that names the bars, for clients that
// show no images.
func drawChart(_ *mcp.Frame, in ChartIn) (*mcp.Result, error) {
	values := make([]float64, len(in.Bars))
	var legend strings.Builder
	if in.Title != "" {
		legend.WriteString(in.Title + "\n")
	}
	for i, bar := range in.Bars {
		values[i] = bar.Value
		fmt.Fprintf(&legend, "%d. %s: %v\n", i+1, bar.Label, bar.Value)
	}
	var data bytes.Buffer
	if err := png.Encode(&data, plot(values, in.Width, in.Height)); err != nil {
		return nil, err
	}
	return mcp.NewResult().Image(data.Bytes(), "image/png").Text(strings.TrimSuffix(legend.String(), "\n")), nil
}
