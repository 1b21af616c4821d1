package main

import (
	"bytes"
	"image/color"
	"image/png"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/mcptest"
)

// TestLint checks that every host accepts the tools, without an exception.
func TestLint(t *testing.T) {
	mcptest.New(t, newServer(newBench(t, t.TempDir()))).Lint()
}

func TestCalculate(t *testing.T) {
	c := connect(t, newBench(t, t.TempDir()))
	for _, test := range []struct {
		arguments string
		want      Calculation
	}{
		{`{"operation":"add","a":1,"b":2.5}`, Calculation{"1 + 2.5", 3.5}},
		{`{"operation":"subtract","a":1,"b":2}`, Calculation{"1 - 2", -1}},
		{`{"operation":"multiply","a":6,"b":7}`, Calculation{"6 * 7", 42}},
		{`{"operation":"divide","a":1,"b":4}`, Calculation{"1 / 4", 0.25}},
		{`{"operation":"modulo","a":7,"b":4}`, Calculation{"7 mod 4", 3}},
		{`{"operation":"power","a":2,"b":10}`, Calculation{"2 ^ 10", 1024}},
		{`{"operation":"add","a":"1","b":0}`, Calculation{"1 + 0", 1}}, // models do quote numbers
	} {
		if got := must[Calculation](c, "calculate", test.arguments); got != test.want {
			t.Errorf("%s: got %v, want %v", test.arguments, got, test.want)
		}
	}
}

func TestBadInput(t *testing.T) {
	c := connect(t, newBench(t, t.TempDir()))
	for _, test := range (refusals{
		{"calculate", `{"operation":"divide","a":1,"b":0}`, "division by zero"},
		{"calculate", `{"operation":"modulo","a":1,"b":0}`, "division by zero"},
		{"calculate", `{"operation":"power","a":-8,"b":0.5}`, "not a real number"},
		{"calculate", `{"operation":"power","a":10,"b":400}`, "beyond the range"},
		{"calculate", `{"operation":"root","a":1,"b":2}`, "/operation: must be one of"},
		{"calculate", `{"operation":"add","a":1}`, "/b: is required"},
		{"calculate", `{"operation":"add","a":"one","b":2,"c":3}`, "2 problems"},
		{"add_note", `{}`, "/text: is required"},
		{"add_note", `{"text":"x","tags":["a","a"]}`, "/tags: must be an array without duplicates"},
		{"search_notes", `{"since":"2024-02-30"}`, "February 2024 has 29 days"},
		{"search_notes", `{"limit":101}`, "/limit: must be between 1 and 100"},
		{"search_notes", `{"tag":"x"}`, "did you mean /tags?"},
		{"delete_note", `{"id":7}`, "there is no number 7"},
		{"delete_note", `{"id":0}`, "/id: must be"},
		{"schedule_event", `{"title":"x","date":"2030-04-31","start":"09:00"}`, "April has 30 days"},
		{"schedule_event", `{"title":"x","date":"2030-04-30","start":"9:00"}`, "/start"},
		{"schedule_event", `{"title":"x","date":"2030-04-30","start":"09:00","duration":"1 hour"}`, "/duration"},
		{"schedule_event", `{"title":"x","date":"2030-04-30","start":"09:00","duration":"1s"}`, "/duration"},
		{"schedule_event", `{"title":"x","date":"9999-12-31","start":"23:30"}`, "/date: must be 9999-12-24 or earlier"},
		{"list_events", `{"from":"2030-03-02","to":"2030-03-01"}`, "/to: must be"},
		{"cancel_event", `{"id":7}`, "there is no number 7"},
		{"system_info", `{"all":true}`, "/all: unknown property"},
		{"draw_bar_chart", `{"bars":[]}`, "/bars: must be"},
		{"draw_bar_chart", `{"bars":[{"label":"a","value":-1}]}`, "/bars/0/value: must be"},
	}) {
		if got := c.fails(test.tool, test.arguments); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: got %q, want it to contain %q", test.tool, test.arguments, got, test.want)
		}
	}
}

func TestUnknownTool(t *testing.T) {
	c := connect(t, newBench(t, t.TempDir()))
	c.start("calculator", `{}`)
	m := c.receive()
	if m.Error == nil || m.Error.Code != -32602 || !strings.Contains(m.Error.Message, "calculator") {
		t.Errorf("got %+v, want error -32602 that names the tool", m.Error)
	}
}

func TestSystemInfo(t *testing.T) {
	c := connect(t, newBench(t, t.TempDir()))
	got := must[SystemOut](c, "system_info", `{}`)
	if since := time.Since(got.Time); since < 0 || since > time.Minute {
		t.Errorf("its clock shows %s", got.Time)
	}
	want := SystemOut{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Time: got.Time, Transport: "pipe", Revision: "2025-11-25", Client: "test 1"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestChart(t *testing.T) {
	c := connect(t, newBench(t, t.TempDir()))
	r, _ := c.call("draw_bar_chart", `{"title":"Sales","bars":[{"label":"North","value":3},{"label":"South","value":1}],"width":400,"height":200}`)
	if r.IsError || len(r.Content) != 2 || r.Content[1].Type != "image" || r.Content[1].MIMEType != "image/png" {
		t.Fatalf("got %+v, want a text and an image", r)
	}
	const want = `{"title":"Sales","bars":[{"label":"North","value":3},{"label":"South","value":1}]}`
	if got := r.Content[0].Text; got != want || string(r.Structured) != want {
		t.Errorf("got text %q and %s, want %q", got, r.Structured, want)
	}
	img, err := png.Decode(bytes.NewReader(r.Content[1].Data))
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Size(); got.X != 400 || got.Y != 200 {
		t.Errorf("got %v, want 400 by 200", got)
	}
	// The first bar fills the height, the second a third of it.
	for _, at := range []struct {
		x, y int
		want color.Color
	}{{110, 30, fills[0]}, {110, 170, fills[0]}, {290, 90, paper}, {290, 170, fills[1]}, {200, 100, paper}} {
		if got := color.RGBAModel.Convert(img.At(at.x, at.y)); got != at.want {
			t.Errorf("at %d,%d: got %v, want %v", at.x, at.y, got, at.want)
		}
	}
}

func TestPlotExtremes(t *testing.T) {
	for _, values := range [][]float64{{0}, {0, 0}, {1e15, 1}, {1e-300}, make([]float64, 40)} {
		var bars []Bar
		for _, v := range values {
			bars = append(bars, Bar{"x", v})
		}
		if img := plot(bars, 200, 120); img.Bounds().Dx() != 200 {
			t.Errorf("%v: got %v", values, img.Bounds())
		}
	}
}
