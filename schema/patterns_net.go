package schema

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
