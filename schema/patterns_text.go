package schema

// The patterns of the text rules compile, and match the same texts, as RE2 and
// as ECMA-262 with the u flag. Digits and spaces are spelt out as classes, since
// some dialects read \d and \s wider; dashes and slashes are escaped in classes,
// for the v flag.

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
