package schema

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// webRules are rules on addresses of people and documents. Formats are
// asserted, so each rule checks its format by the functions below first.
var webRules = map[string]textRule{
	"email":       {class: classNecessary, format: "email", match: matchEmail, residual: true, residue: matchMailDomain, want: "an email address such as ann@example.com", note: "Must be plain ASCII without quotes, with a dot in the domain."},
	"url":         {class: classTightened, format: "uri", match: matchURI, residual: true, residue: matchURL, want: "an absolute URL such as https://example.com/path", note: "Must have a scheme and a host."},
	"http_url":    {class: classNecessary, format: "uri", pattern: patternHTTP, match: both(patternHTTP, matchURI), residual: true, residue: matchWebURL, want: "an http or https URL with a host"},
	"https_url":   {class: classNecessary, format: "uri", pattern: patternHTTPS, match: both(patternHTTPS, matchURI), residual: true, residue: matchWebURL, want: "an https URL with a host"},
	"uri":         {class: classNecessary, format: "uri-reference", match: matchURIReference, residual: true, want: "a URI, or an absolute path"},
	"origin":      {class: classNecessary, pattern: patternOrigin, residual: true, want: "a web origin: http or https, a host, a port if needed, and no path"},
	"urn_rfc2141": {class: classNecessary, pattern: patternURN, residual: true, want: "a URN by RFC 2141, such as urn:isbn:0451450523"},
	"urn_rfc8141": {class: classNecessary, pattern: patternURN, residual: true, want: "a URN by RFC 8141, such as urn:isbn:0451450523"},
}

// hostRules are rules on names and addresses of machines.
var hostRules = map[string]textRule{
	// go-playground also takes ::ffff:1.2.3.4 for IPv4, which no one else does.
	"ipv4":     {class: classTightened, format: "ipv4", pattern: patternIPv4, match: matchIPv4, want: "an IPv4 address"},
	"ip4_addr": {class: classTightened, format: "ipv4", pattern: patternIPv4, match: matchIPv4, want: "an IPv4 address"},
	"ipv6":     {class: classNecessary, format: "ipv6", match: matchIPv6, residual: true, want: "an IPv6 address", note: "Must not be an IPv4-mapped address."},
	"ip6_addr": {class: classNecessary, format: "ipv6", match: matchIPv6, residual: true, want: "an IPv6 address", note: "Must not be an IPv4-mapped address."},
	"ip":       {class: classExact, pattern: patternIP, match: matchIP, want: "an IPv4 or IPv6 address"},
	"ip_addr":  {class: classExact, pattern: patternIP, match: matchIP, want: "an IPv4 or IPv6 address"},
	"cidrv4":   {class: classNecessary, pattern: patternCIDRv4, residual: true, want: "an IPv4 network such as 10.0.0.0/8, with all host bits 0"},
	"cidrv6":   {class: classNecessary, pattern: patternCIDRv6, residual: true, want: "an IPv6 network such as 2001:db8::/32, not IPv4-mapped"},
	"cidr":     {class: classExact, pattern: patternCIDR, want: "a network such as 10.0.0.0/8 or 2001:db8::/32"},
	"mac":      {class: classExact, pattern: patternMAC, want: "a MAC address such as 00:00:5e:00:53:01"},

	"hostname":          {class: classExact, pattern: patternHost952, match: matchHost952, want: "a host name that begins with a letter"},
	"hostname_rfc1123":  {class: classExact, pattern: patternHost, match: matchHost, want: "a host name"},
	"hostname_label":    {class: classExact, pattern: patternHostLabel, match: matchHostLabel, want: "one label of a host name"},
	"fqdn":              {class: classExact, pattern: patternFQDN, max: 254, want: "a fully qualified domain name"},
	"dns_rfc1035_label": {class: classExact, pattern: patternDNSLabel, want: "a DNS label in lower case"},
	"hostname_port":     {class: classExact, pattern: patternHostPort, want: "a host and a port, such as example.com:8080"},

	// A service name may stand for the port, and which ones there are is up to
	// the server's tables.
	"tcp_addr":  {class: classDescribed, residual: true, want: "an IP address and a TCP port, such as 192.0.2.1:80"},
	"tcp4_addr": {class: classDescribed, residual: true, want: "an IPv4 address and a TCP port, such as 192.0.2.1:80"},
	"tcp6_addr": {class: classDescribed, residual: true, want: "an IPv6 address and a TCP port, such as [2001:db8::1]:80"},
	"udp_addr":  {class: classDescribed, residual: true, want: "an IP address and a UDP port, such as 192.0.2.1:53"},
	"udp4_addr": {class: classDescribed, residual: true, want: "an IPv4 address and a UDP port, such as 192.0.2.1:53"},
	"udp6_addr": {class: classDescribed, residual: true, want: "an IPv6 address and a UDP port, such as [2001:db8::1]:53"},
}

// both makes a matcher of a pattern and a function.
func both(pattern string, match func(string) bool) func(string) bool {
	re := textRule{pattern: pattern}.defaultMatch()
	return func(s string) bool { return re(s) && match(s) }
}

// matchEmail takes the addresses that all readings of format:email agree on:
// ASCII, no quotes, a host name as domain.
func matchEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	for i := range len(local) {
		if c := local[i]; c <= ' ' || c > '~' || strings.IndexByte(`"(),:;<>@[\]`, c) >= 0 {
			return false
		}
	}
	return local[0] != '.' && local[at-1] != '.' && !strings.Contains(local, "..") && matchHost(domain)
}

// matchMailDomain is what go-playground asks of the domain of an address that
// matchEmail takes: it ends with a letter, and a label but the first begins
// with one.
func matchMailDomain(s string) bool {
	domain := s[strings.LastIndexByte(s, '@')+1:]
	if charClass[domain[len(domain)-1]]&letters == 0 {
		return false
	}
	for i := 1; i < len(domain); i++ {
		if domain[i-1] == '.' && charClass[domain[i]]&letters != 0 {
			return true
		}
	}
	return false
}

// matchURL is what go-playground asks of a URL that matchURI takes: a host, an
// opaque part or a fragment, or the path of a file.
func matchURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	if u.Scheme == "file" {
		return u.Path != "" && u.Path != "/"
	}
	return u.Host != "" || u.Opaque != "" || u.Fragment != ""
}

// matchWebURL is what go-playground asks of a URL with the scheme http or
// https.
func matchWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != ""
}

// matchURI is format:uri: an absolute URI.
func matchURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && validHost(u)
}

// matchURIReference is format:uri-reference.
func matchURIReference(s string) bool {
	if strings.ContainsRune(s, '\\') {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && validHost(u)
}

// validHost checks an IPv6 address in a URL, which url.Parse does not.
func validHost(u *url.URL) bool {
	host := u.Hostname()
	if !strings.Contains(host, ":") {
		return true
	}
	return strings.HasPrefix(u.Host, "[") && strings.Contains(u.Host, "]") && matchIPv6(host)
}

func matchIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func matchIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func matchIP(s string) bool { return net.ParseIP(s) != nil }

// matchHostLabel is patternHostLabel.
func matchHostLabel(s string) bool {
	n := len(s)
	return n > 0 && n <= 63 && s[0] != '-' && s[n-1] != '-' && allBytes(s, letters|digits|dash)
}

// matchHost is patternHost.
func matchHost(s string) bool {
	for {
		label, rest, more := strings.Cut(s, ".")
		if !matchHostLabel(label) {
			return false
		}
		if !more {
			return true
		}
		s = rest
	}
}

// matchHost952 is patternHost952.
func matchHost952(s string) bool {
	return s != "" && charClass[s[0]]&letters != 0 && matchHost(s)
}
