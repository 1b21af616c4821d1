package schema

// Patterns of CSS colours, as go-playground reads them: a shade of 256 has no
// leading zero, and the opacity of rgba and hsla is 0 and any character, or 1.
const (
	colorSpace  = `[\t\n\f\r ]*`
	colorShade  = `(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])`
	colorComma  = colorSpace + `,` + colorSpace
	colorShades = `(?:` + colorShade + colorComma + colorShade + colorComma + colorShade +
		`|` + colorShade + `%` + colorComma + colorShade + `%` + colorComma + colorShade + `%)`
	colorOpacity = `(?:0[^\n][1-9]*|[01])`
	colorPercent = `(?:0|[1-9][0-9]?|100)%`
	colorHue     = `(?:0|[1-9][0-9]?|[12][0-9][0-9]|3[0-5][0-9]|360)` + colorComma + colorPercent + colorComma + colorPercent
	colorInk     = `(?:100|[1-9]?[0-9])%`

	colorHex  = `#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})`
	colorRGB  = `rgb\(` + colorSpace + colorShades + colorSpace + `\)`
	colorRGBA = `rgba\(` + colorSpace + colorShades + colorComma + colorOpacity + colorSpace + `\)`
	colorHSL  = `hsl\(` + colorSpace + colorHue + colorSpace + `\)`
	colorHSLA = `hsla\(` + colorSpace + colorHue + colorComma + colorOpacity + colorSpace + `\)`
	colorCMYK = `cmyk\(` + colorInk + colorComma + colorInk + colorComma + colorInk + colorComma + colorInk + `\)`

	patternHexColor = `^` + colorHex + `$`
	patternRGB      = `^` + colorRGB + `$`
	patternRGBA     = `^` + colorRGBA + `$`
	patternHSL      = `^` + colorHSL + `$`
	patternHSLA     = `^` + colorHSLA + `$`
	patternCMYK     = `^` + colorCMYK + `$`
	patternColor    = `^(?:` + colorHex + `|` + colorRGB + `|` + colorRGBA + `|` + colorHSL + `|` + colorHSLA + `|` + colorCMYK + `)$`
)
