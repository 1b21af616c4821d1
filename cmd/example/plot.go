package main

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"strconv"
)

var (
	paper = color.RGBA{255, 255, 255, 255}
	ink   = color.RGBA{40, 44, 52, 255}
	lines = color.RGBA{222, 226, 232, 255}
	fills = []color.RGBA{{66, 114, 196, 255}, {230, 126, 52, 255}, {90, 160, 90, 255}, {180, 84, 148, 255}, {120, 120, 128, 255}}
)

const (
	margin     = 24 // pixels around the bars, where their texts stand
	gridLevels = 4
)

// plot draws a bar for each value, with its value above and its number, from
// 1, below. width and height are in pixels.
func plot(values []float64, width, height int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	area := img.Bounds().Inset(margin)
	low, high := bounds(values)
	y := func(v float64) int {
		return area.Max.Y - int(math.Round((v-low)/(high-low)*float64(area.Dy())))
	}
	for i := range gridLevels + 1 {
		level := y(low + (high-low)*float64(i)/gridLevels)
		fill(img, image.Rect(area.Min.X, level, area.Max.X, level+1), lines)
	}
	for i, v := range values {
		left := area.Min.X + area.Dx()*i/len(values)
		right := area.Min.X + area.Dx()*(i+1)/len(values)
		gap := max(1, (right-left)/6)
		bar := image.Rect(left+gap, y(v), max(right-gap, left+gap+1), y(0)).Canon()
		fill(img, bar, fills[i%len(fills)])
		center := (bar.Min.X + bar.Max.X) / 2
		write(img, strconv.Itoa(i+1), center, area.Max.Y+8)
		text := strconv.FormatFloat(v, 'g', 4, 64)
		if textWidth(text) > right-left {
			continue // the text beside the image has it
		}
		write(img, text, center, bar.Min.Y-glyphHeight-3) // above the axis if the bar hangs down
	}
	fill(img, image.Rect(area.Min.X, y(0), area.Max.X, y(0)+1), ink)
	return img
}

// bounds returns a range that holds every value, and zero.
func bounds(values []float64) (low, high float64) {
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if low == high {
		high = low + 1
	}
	return low, high
}

func fill(img draw.Image, r image.Rectangle, c color.Color) {
	draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// The standard library has no font. These are the characters of a number, five
// rows of three pixels each, the highest bit on the left.
var glyphs = map[rune][5]byte{
	'0': {7, 5, 5, 5, 7}, '1': {2, 6, 2, 2, 7}, '2': {7, 1, 7, 4, 7}, '3': {7, 1, 7, 1, 7},
	'4': {5, 5, 7, 1, 1}, '5': {7, 4, 7, 1, 7}, '6': {7, 4, 7, 5, 7}, '7': {7, 1, 2, 2, 2},
	'8': {7, 5, 7, 5, 7}, '9': {7, 5, 7, 1, 7}, '-': {0, 0, 7, 0, 0}, '+': {0, 2, 7, 2, 0},
	'.': {0, 0, 0, 0, 2}, 'e': {0, 7, 7, 4, 7},
}

const (
	dot         = 2 // pixels of the image for a pixel of a glyph
	glyphWidth  = 4 * dot
	glyphHeight = 5 * dot
)

func textWidth(text string) int { return len(text)*glyphWidth - dot }

// write draws a number, centred at x, with its upper edge at y.
func write(img draw.Image, text string, x, y int) {
	x -= textWidth(text) / 2
	for _, r := range text {
		for row, bits := range glyphs[r] {
			for column := range 3 {
				if bits&(4>>column) != 0 {
					at := image.Pt(x+column*dot, y+row*dot)
					fill(img, image.Rectangle{Min: at, Max: at.Add(image.Pt(dot, dot))}, ink)
				}
			}
		}
		x += glyphWidth
	}
}
