package rules

// The patterns of the text rules compile, and match the same texts, as RE2 and
// as ECMA-262 with the u flag. Digits and spaces are spelt out as classes, since
// some dialects read \d and \s wider; dashes and slashes are escaped in classes,
// for the v flag.

// Patterns of characters, encodings and numbers. Some accept more than a
// standard does: they accept what go-playground accepts, and a test compares
// the two.
const (
	patternAlpha           = `^[a-zA-Z]+$`
	patternAlphaSpace      = `^[a-zA-Z ]+$`
	patternAlphanum        = `^[a-zA-Z0-9]+$`
	patternAlphanumSpace   = `^[a-zA-Z0-9 ]+$`
	patternAlphaUnicode    = `^\p{L}+$`
	patternAlphanumUnicode = `^[\p{L}\p{N}]+$`
	patternNumeric         = `^[+\-]?[0-9]+(?:\.[0-9]+)?$`
	patternNumber          = `^[0-9]+$`
	patternHexadecimal     = `^(?:0[xX])?[0-9a-fA-F]+$`
	patternASCII           = `^[\x00-\x7F]*$`
	patternPrintASCII      = `^[ -~]*$`
	patternMultibyte       = `^$|[^\x00-\x7F]`
	patternBase32          = `^(?:[A-Z2-7]{8})*(?:[A-Z2-7]{2}={6}|[A-Z2-7]{4}={4}|[A-Z2-7]{5}={3}|[A-Z2-7]{7}=|[A-Z2-7]{8})$`
	patternBase64          = `^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$`
	patternBase64URL       = `^(?:[A-Za-z0-9_\-]{4})*(?:[A-Za-z0-9_\-]{2}==|[A-Za-z0-9_\-]{3}=|[A-Za-z0-9_\-]{4})$`
	patternBase64RawURL    = `^(?:[A-Za-z0-9_\-]{4})*[A-Za-z0-9_\-]{2,4}$`
	patternDataURI         = `^data:[^,]*,(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$`
	patternURLEncoded      = `^(?:[^%]|%[0-9A-Fa-f]{2})*$`
	patternJWT             = `^[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*$`
	patternSemver          = `^(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z\-][0-9a-zA-Z\-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z\-][0-9a-zA-Z\-]*))*)?(?:\+[0-9a-zA-Z\-]+(?:\.[0-9a-zA-Z\-]+)*)?$`
	patternCron            = `^(?:@(?:annually|yearly|monthly|weekly|daily|hourly|reboot)|@every (?:[0-9]+(?:ns|us|µs|ms|s|m|h))+|(?:[A-Za-z0-9*?][A-Za-z0-9*?\/,#L\-]+|[*?0-9])(?: +(?:[A-Za-z0-9*?][A-Za-z0-9*?\/,#L\-]+|[*?0-9])){4,6})$`
	patternLatitude        = `^[+\-]?(?:[1-8]?[0-9](?:\.[0-9]+)?|90(?:\.0+)?)$`
	patternLongitude       = `^[+\-]?(?:180(?:\.0+)?|(?:1[0-7][0-9]|[1-9]?[0-9])(?:\.[0-9]+)?)$`
	patternHTML            = `</?[a-zA-Z]+[^\n]*?>`
	patternHTMLEncoded     = `&#x?[0-9a-fA-F]{2}|&gt|&lt|&quot|&amp`
	patternClock           = `^(?:[01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.,][0-9]+)?$`
)

// Patterns of identifiers and codes.
const (
	patternE164            = `^\+?[1-9][0-9]{7,14}$`
	patternISSN            = `^[0-9]{4}-[0-9]{3}[0-9X]$`
	patternEthereum        = `^0x[0-9a-fA-F]{40}$`
	patternBitcoin         = `^[13][a-km-zA-HJ-NP-Z1-9]{25,34}$`
	patternBech32          = `^(?:BC1[02-9AC-HJ-NP-Z]{7,76}|bc1[02-9ac-hj-np-z]{7,76})$`
	patternUUID            = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
	patternUUID3           = `^[0-9a-f]{8}-[0-9a-f]{4}-3[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`
	patternUUID4           = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	patternUUID5           = `^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	patternUUID7           = `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	patternUUID3Any        = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-3[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
	patternUUID4Any        = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$`
	patternUUID5Any        = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-5[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$`
	patternSSN             = `^[0-9]{3}[ \-](?:0[1-9]|[1-9][0-9])[ \-](?:[1-9][0-9]{3}|[0-9][1-9][0-9]{2}|[0-9]{2}[1-9][0-9]|[0-9]{3}[1-9])$`
	patternCVE             = `^CVE-(?:1999|2[0-9]{3})-(?:0[^0][0-9]{2}|0[0-9][^0][0-9]|0[0-9]{2}[^0]|[1-9][0-9]{3,})$`
	patternMongoID         = `^[a-f0-9]{24}$`
	patternMongoURL        = `^mongodb(?:\+srv)?://(?:[a-zA-Z0-9]+:[a-zA-Z0-9$:\/?#\[\]@]+@)?[a-z0-9.\-]+(?::[0-9]+)?(?:,[a-z0-9.\-]+(?::[0-9]+)?)*(?:/[a-zA-Z_\-]{1,64})?(?:\?[a-zA-Z]+=[a-zA-Z0-9]+(?:&(?:[a-zA-Z0-9]+=[a-zA-Z0-9]+)?)*)?$`
	patternSpiceID         = `^(?:[a-zA-Z0-9\/_\|\-=+]+|\*)$`
	patternSpicePermission = `^(?:[a-z][a-z0-9_]{1,62}[a-z0-9])?$`
	patternSpiceType       = `^(?:[a-z][a-z0-9_]{1,61}[a-z0-9]/)?[a-z][a-z0-9_]{1,62}[a-z0-9]$`
	patternEIN             = `^[0-9]{2}-[0-9]{7}$`
	patternBIC             = `^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$`
	patternBIC2014         = `^[A-Za-z]{6}[A-Za-z0-9]{2}(?:[A-Za-z0-9]{3})?$`
	patternCreditCard      = `^[0-9]{3,}(?: [0-9]{3,})*$`
	patternDigits2         = `^[0-9]{2,}$`
	patternTwoCapitals     = `^[A-Z]{2}$`
	patternThreeCapitals   = `^[A-Z]{3}$`
	patternSignedDigits    = `^[+\-]?[0-9]+$`
	patternSubdivision     = `^[A-Z]{2}-[A-Z0-9]{1,3}$`
	patternISBN10          = `^[0-9X \-]+$`
	patternISBN13          = `^[0-9 \-]+$`
	patternULID            = `^[0-7][A-HJKMNP-TV-Za-hjkmnp-tv-z0-9]{25}$`
	patternCountry         = `^(?:[A-Z]{2}|[A-Z]{3}|[+\-]?[0-9]+)$`
	patternHex32           = `^[0-9a-f]{32}$`
	patternHex40           = `^[0-9a-f]{40}$`
	patternHex48           = `^[0-9a-f]{48}$`
	patternHex64           = `^[0-9a-f]{64}$`
	patternHex96           = `^[0-9a-f]{96}$`
	patternHex128          = `^[0-9a-f]{128}$`
	patternLanguage        = `^[A-Za-z0-9]+(?:[_\-][A-Za-z0-9]+)*$`
)

// Patterns of network addresses and names.
const (
	ipOctet = `(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	ipv4    = `(?:` + ipOctet + `\.){3}` + ipOctet
	ipGroup = `[0-9a-fA-F]{1,4}`
	ipv6    = `(?:(?:` + ipGroup + `:){7}` + ipGroup +
		`|(?:` + ipGroup + `:){1,7}:` +
		`|(?:` + ipGroup + `:){1,6}:` + ipGroup +
		`|(?:` + ipGroup + `:){1,5}(?::` + ipGroup + `){1,2}` +
		`|(?:` + ipGroup + `:){1,4}(?::` + ipGroup + `){1,3}` +
		`|(?:` + ipGroup + `:){1,3}(?::` + ipGroup + `){1,4}` +
		`|(?:` + ipGroup + `:){1,2}(?::` + ipGroup + `){1,5}` +
		`|` + ipGroup + `:(?::` + ipGroup + `){1,6}` +
		`|:(?:(?::` + ipGroup + `){1,7}|:)` +
		`|(?:` + ipGroup + `:){6}` + ipv4 +
		`|::(?:` + ipGroup + `:){0,5}` + ipv4 +
		`|` + ipGroup + `::(?:` + ipGroup + `:){0,4}` + ipv4 +
		`|(?:` + ipGroup + `:){2}:(?:` + ipGroup + `:){0,3}` + ipv4 +
		`|(?:` + ipGroup + `:){3}:(?:` + ipGroup + `:){0,2}` + ipv4 +
		`|(?:` + ipGroup + `:){4}:(?:` + ipGroup + `:)?` + ipv4 +
		`|(?:` + ipGroup + `:){5}:` + ipv4 +
		`)`

	ipv4Prefix = ipv4 + `/0*(?:[0-9]|[12][0-9]|3[0-2])`
	ipv6Prefix = ipv6 + `/0*(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8])`

	patternIPv4   = `^` + ipv4 + `$`
	patternIP     = `^(?:` + ipv4 + `|` + ipv6 + `)$`
	patternCIDRv4 = `^` + ipv4Prefix + `$`
	patternCIDRv6 = `^` + ipv6Prefix + `$`
	patternCIDR   = `^(?:` + ipv4Prefix + `|` + ipv6Prefix + `)$`

	hostLabel        = `[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?`
	hostName         = hostLabel + `(?:\.` + hostLabel + `)*`
	patternHostLabel = `^` + hostLabel + `$`
	patternHost      = `^` + hostName + `$`
	patternHost952   = `^[a-zA-Z](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?)*$`
	patternFQDN      = `^[a-zA-Z0-9][a-zA-Z0-9\-]{0,62}(?:\.[a-zA-Z0-9][a-zA-Z0-9\-]{0,62})*\.[a-zA-Z][a-zA-Z0-9\-]{0,62}\.?$`
	patternDNSLabel  = `^[a-z](?:[\-a-z0-9]{0,61}[a-z0-9])?$`
	patternHostPort  = `^(?:` + hostName + `|\[(?:` + hostName + `)?\])?:\+?0*(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
	patternMAC       = `^(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){7}|[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){19}|[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){7}|[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){19}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){3}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){9}|[0-9a-fA-F]{12}|[0-9a-fA-F]{16}|[0-9a-fA-F]{40})$`

	patternHTTP   = `^[hH][tT][tT][pP][sS]?:\/\/`
	patternHTTPS  = `^[hH][tT][tT][pP][sS]:\/\/`
	patternOrigin = `^[hH][tT][tT][pP][sS]?:\/\/[^\/?#@]+$`
	patternURN    = `^[uU][rR][nN]:`
)

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
