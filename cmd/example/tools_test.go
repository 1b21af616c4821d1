package main

import (
	"bytes"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"
)

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
		{"search_notes", `{"sort":"random"}`, "/sort: must be one of"},
		{"search_notes", `{"tag":"x"}`, "did you mean /tags?"},
		{"delete_note", `{"id":7}`, "there is no note 7"},
		{"delete_note", `{"id":0}`, "/id: must be"},
		{"schedule_event", `{"title":"x","date":"2030-04-31","start":"09:00"}`, "April has 30 days"},
		{"schedule_event", `{"title":"x","date":"2030-04-30","start":"9:00"}`, "/start"},
		{"schedule_event", `{"title":"x","date":"2030-04-30","start":"09:00","duration":"1 hour"}`, "/duration"},
		{"schedule_event", `{"title":"x","date":"2030-04-30","start":"09:00","duration":"1s"}`, "/duration"},
		{"schedule_event", `{"title":"x","date":"9999-12-31","start":"23:30"}`, "the calendar ends on 9999-12-31"},
		{"list_events", `{"from":"2030-03-02","to":"2030-03-01"}`, "/to: must be"},
		{"list_events", `{"to":"2030-02-01"}`, "is before from"},
		{"cancel_event", `{"id":7}`, "there is no event 7"},
		{"system_info", `{"all":true}`, "/all: unknown property"},
		{"draw_bar_chart", `{"bars":[]}`, "/bars: must be"},
		{"draw_bar_chart", `{"bars":[{"label":"a","value":1e16}]}`, "/bars/0/value: must be"},
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
	want := RequestIs{Transport: "pipe", Revision: "2025-11-25", Client: "test 1"}
	if got.Request != want || got.PID != os.Getpid() || !got.Time.Equal(noon) || got.HeapBytes == 0 {
		t.Errorf("got %+v", got)
	}
}

func TestChart(t *testing.T) {
	c := connect(t, newBench(t, t.TempDir()))
	r, _ := c.call("draw_bar_chart", `{"title":"Sales","bars":[{"label":"North","value":3},{"label":"South","value":-1}],"width":400,"height":200}`)
	if r.IsError || len(r.Content) != 2 || r.Content[0].Type != "image" || r.Content[0].MIMEType != "image/png" {
		t.Fatalf("got %+v, want an image and a text", r)
	}
	if got, want := r.Content[1].Text, "Sales\n1. North: 3\n2. South: -1"; got != want {
		t.Errorf("got text %q, want %q", got, want)
	}
	img, err := png.Decode(bytes.NewReader(r.Content[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Size(); got.X != 400 || got.Y != 200 {
		t.Errorf("got %v, want 400 by 200", got)
	}
	// The axis is a quarter of the way up: the first bar stands on it, the
	// second hangs down.
	for _, at := range []struct {
		x, y int
		want color.Color
	}{{110, 90, fills[0]}, {110, 160, paper}, {290, 90, paper}, {290, 160, fills[1]}} {
		if got := color.RGBAModel.Convert(img.At(at.x, at.y)); got != at.want {
			t.Errorf("at %d,%d: got %v, want %v", at.x, at.y, got, at.want)
		}
	}
}

func TestPlotExtremes(t *testing.T) {
	for _, values := range [][]float64{{0}, {0, 0}, {1e15, -1e15}, {1e-300}, {-5}, make([]float64, 40)} {
		if img := plot(values, 200, 120); img.Bounds().Dx() != 200 {
			t.Errorf("%v: got %v", values, img.Bounds())
		}
	}
}
