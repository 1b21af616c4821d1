package main

import (
	"bytes"
	_ "embed"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/app"
)

// Bar is one bar of a chart.
type Bar struct {
	Label string  `json:"label" validate:"required,max=80"`
	Value float64 `json:"value" validate:"min=0,max=1e15" jsonschema_description:"its height"`
}

// Chart is what a chart shows.
type Chart struct {
	Title string `json:"title,omitempty" validate:"max=100"`
	Bars  []Bar  `json:"bars" validate:"min=1,max=40" jsonschema_description:"the bars, from left to right"`
}

// ChartIn is a chart to draw.
type ChartIn struct {
	Chart
	Width  int `json:"width,omitempty" validate:"min=200,max=2000" jsonschema:"default=640" jsonschema_description:"width of the image in pixels"`
	Height int `json:"height,omitempty" validate:"min=120,max=2000" jsonschema:"default=360" jsonschema_description:"height of the image in pixels"`
}

// chartPage is what hosts show that have views. It draws the data itself, and calls
// the tool again to sort it.
//
//go:embed chart.html
var chartPage string

const chartView = "ui://workbench/bar-chart"

func chartTools() []mcp.Component {
	return []mcp.Component{
		app.View(chartView, chartPage, &app.ViewOptions{Title: "Bar chart"}),
		mcp.Tool("draw_bar_chart", drawChart, app.Show(chartView), mcp.Title("Bar chart"),
			mcp.Doc("Draws a bar chart as a PNG image, which has no text; the result beside it names the bars"),
			mcp.ReadOnly(), mcp.Idempotent(), mcp.OpenWorld(false)),
	}
}

// drawChart returns the data for models and the view, and an image for hosts
// without views: always both, as a server cannot know what will be shown.
func drawChart(_ *mcp.Frame, in ChartIn) (*mcp.ResultOf[Chart], error) {
	var data bytes.Buffer
	err := png.Encode(&data, plot(in.Bars, in.Width, in.Height))
	r := &mcp.ResultOf[Chart]{Value: in.Chart}
	r.Image(data.Bytes(), "image/png")
	return r, err
}

var (
	paper = color.RGBA{255, 255, 255, 255}
	fills = []color.RGBA{{66, 114, 196, 255}, {230, 126, 52, 255}, {90, 160, 90, 255}, {180, 84, 148, 255}, {120, 120, 128, 255}}
)

const margin = 24 // pixels around the bars

// plot draws the bars. width and height are in pixels.
func plot(bars []Bar, width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	fill := func(r image.Rectangle, c color.Color) {
		draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(img.Bounds(), paper)
	area := img.Bounds().Inset(margin)
	highest := math.SmallestNonzeroFloat64
	for _, bar := range bars {
		highest = max(highest, bar.Value)
	}
	for i, bar := range bars {
		left, right := area.Min.X+area.Dx()*i/len(bars), area.Min.X+area.Dx()*(i+1)/len(bars)
		gap := max(1, (right-left)/6)
		top := area.Max.Y - int(bar.Value/highest*float64(area.Dy()))
		fill(image.Rect(left+gap, top, max(right-gap, left+gap+1), area.Max.Y), fills[i%len(fills)])
	}
	return img
}
