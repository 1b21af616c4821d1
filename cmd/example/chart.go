package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"slices"
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
		mcp.Doc("Draws a bar chart as a PNG image; a text beside it has the number, label and value of each bar"),
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

var (
	paper = color.RGBA{255, 255, 255, 255}
	ink   = color.RGBA{40, 44, 52, 255}
	fills = []color.RGBA{{66, 114, 196, 255}, {230, 126, 52, 255}, {90, 160, 90, 255}, {180, 84, 148, 255}, {120, 120, 128, 255}}
)

const margin = 24 // pixels around the bars

// plot draws a bar for each value, and the axis. width and height are in pixels.
func plot(values []float64, width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	fill := func(r image.Rectangle, c color.Color) {
		draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(img.Bounds(), paper)
	area := img.Bounds().Inset(margin)
	low, high := min(0, slices.Min(values)), max(0, slices.Max(values))
	if low == high {
		high = low + 1
	}
	y := func(v float64) int { return area.Max.Y - int(math.Round((v-low)/(high-low)*float64(area.Dy()))) }
	for i, v := range values {
		left, right := area.Min.X+area.Dx()*i/len(values), area.Min.X+area.Dx()*(i+1)/len(values)
		gap := max(1, (right-left)/6)
		fill(image.Rect(left+gap, y(v), max(right-gap, left+gap+1), y(0)).Canon(), fills[i%len(fills)])
	}
	fill(image.Rect(area.Min.X, y(0), area.Max.X, y(0)+1), ink)
	return img
}
