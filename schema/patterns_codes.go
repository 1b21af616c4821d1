package schema

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
