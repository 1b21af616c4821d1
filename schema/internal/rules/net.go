package rules

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/talaria-go/mcp/schema/internal/regex"
)

// webRules returns the rules on URLs and email addresses. Formats are asserted,
// so each rule first checks its format with the functions of this file.
func webRules() map[string]TextRule {
	return map[string]TextRule{
		"email":       {class: ClassNecessary, format: "email", Match: matchEmail, residual: true, residue: matchMailDomain, want: "an email address such as ann@example.com", note: "Must be plain ASCII without quotes, with a dot in the domain."},
		"url":         {class: classTightened, format: "uri", Match: MatchURI, residual: true, residue: matchURL, want: "an absolute URL such as https://example.com/path", note: "Must have a scheme and a host."},
		"http_url":    {class: ClassNecessary, format: "uri", Pattern: patternHTTP, Match: both(patternHTTP, MatchURI), residual: true, residue: matchWebURL, want: "an http or https URL with a host"},
		"https_url":   {class: ClassNecessary, format: "uri", Pattern: patternHTTPS, Match: both(patternHTTPS, MatchURI), residual: true, residue: matchWebURL, want: "an https URL with a host"},
		"uri":         {class: ClassNecessary, format: "uri-reference", Match: MatchURIReference, residual: true, want: "a URI, or an absolute path"},
		"origin":      {class: ClassNecessary, Pattern: patternOrigin, residual: true, want: "a web origin: http or https, a host, a port if needed, and no path"},
		"urn_rfc2141": {class: ClassNecessary, Pattern: patternURN, residual: true, want: "a URN by RFC 2141, such as urn:isbn:0451450523"},
		"urn_rfc8141": {class: ClassNecessary, Pattern: patternURN, residual: true, want: "a URN by RFC 8141, such as urn:isbn:0451450523"},
	}
}

// HostRules returns the rules on names and addresses of machines.
func HostRules() map[string]TextRule {
	return map[string]TextRule{
		// go-playground also takes ::ffff:1.2.3.4 for IPv4, which no one else does.
		"ipv4":     {class: classTightened, format: "ipv4", Pattern: patternIPv4, Match: matchIPv4, want: "an IPv4 address"},
		"ip4_addr": {class: classTightened, format: "ipv4", Pattern: patternIPv4, Match: matchIPv4, want: "an IPv4 address"},
		"ipv6":     {class: ClassNecessary, format: "ipv6", Match: matchIPv6, residual: true, want: "an IPv6 address", note: "Must not be an IPv4-mapped address."},
		"ip6_addr": {class: ClassNecessary, format: "ipv6", Match: matchIPv6, residual: true, want: "an IPv6 address", note: "Must not be an IPv4-mapped address."},
		"ip":       {class: ClassExact, Pattern: patternIP, Match: matchIP, want: "an IPv4 or IPv6 address"},
		"ip_addr":  {class: ClassExact, Pattern: patternIP, Match: matchIP, want: "an IPv4 or IPv6 address"},
		"cidrv4":   {class: ClassNecessary, Pattern: patternCIDRv4, residual: true, want: "an IPv4 network such as 10.0.0.0/8, with all host bits 0"},
		"cidrv6":   {class: ClassNecessary, Pattern: patternCIDRv6, residual: true, want: "an IPv6 network such as 2001:db8::/32, not IPv4-mapped"},
		"cidr":     {class: ClassExact, Pattern: patternCIDR, want: "a network such as 10.0.0.0/8 or 2001:db8::/32"},
		"mac":      {class: ClassExact, Pattern: patternMAC, want: "a MAC address such as 00:00:5e:00:53:01"},

		"hostname":          {class: ClassExact, Pattern: patternHost952, Match: matchHost952, want: "a host name that begins with a letter"},
		"hostname_rfc1123":  {class: ClassExact, Pattern: patternHost, Match: matchHost, want: "a host name"},
		"hostname_label":    {class: ClassExact, Pattern: patternHostLabel, Match: matchHostLabel, want: "one label of a host name"},
		"fqdn":              {class: ClassExact, Pattern: patternFQDN, max: 254, want: "a fully qualified domain name"},
		"dns_rfc1035_label": {class: ClassExact, Pattern: patternDNSLabel, want: "a DNS label in lower case"},
		"hostname_port":     {class: ClassExact, Pattern: patternHostPort, want: "a host and a port, such as example.com:8080"},

		// A service name may stand for the port, and which ones there are is up to
		// the server's tables.
		"tcp_addr":  {class: ClassDescribed, residual: true, want: "an IP address and a TCP port, such as 192.0.2.1:80"},
		"tcp4_addr": {class: ClassDescribed, residual: true, want: "an IPv4 address and a TCP port, such as 192.0.2.1:80"},
		"tcp6_addr": {class: ClassDescribed, residual: true, want: "an IPv6 address and a TCP port, such as [2001:db8::1]:80"},
		"udp_addr":  {class: ClassDescribed, residual: true, want: "an IP address and a UDP port, such as 192.0.2.1:53"},
		"udp4_addr": {class: ClassDescribed, residual: true, want: "an IPv4 address and a UDP port, such as 192.0.2.1:53"},
		"udp6_addr": {class: ClassDescribed, residual: true, want: "an IPv6 address and a UDP port, such as [2001:db8::1]:53"},
	}
}

// both returns a matcher for texts that match a pattern and satisfy a function.
func both(pattern string, match func(string) bool) func(string) bool {
	re := regex.Lazy(pattern)
	return func(s string) bool { return re().MatchString(s) && match(s) }
}

// matchEmail accepts the addresses on which all readings of the format email
// agree: ASCII, without quotes, with a host name as the domain.
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

// matchMailDomain is what go-playground additionally demands of the domain of
// an address that matchEmail accepts: it ends with a letter, and some label but
// the first begins with one.
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

// matchURL is what go-playground additionally demands of a URL that MatchURI
// accepts: a host, an opaque part or a fragment, or for a file a path.
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

// matchWebURL is what go-playground additionally demands of an http or https
// URL: a host.
func matchWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != ""
}

// MatchURI reports whether s has the format uri: it is an absolute URI.
func MatchURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && validHost(u)
}

// MatchURIReference reports whether s has the format uri-reference.
func MatchURIReference(s string) bool {
	if strings.ContainsRune(s, '\\') {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && validHost(u)
}

// validHost checks an IPv6 address in a URL, which url.Parse does not do.
func validHost(u *url.URL) bool {
	host := u.Hostname()
	if !strings.Contains(host, ":") {
		return true
	}
	return strings.HasPrefix(u.Host, "[") && strings.Contains(u.Host, "]") && matchIPv6(host)
}

// matchIPv4 rejects IPv4-mapped addresses, and matchIPv6 zones. matchIP accepts
// what net.ParseIP accepts.
func matchIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func matchIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func matchIP(s string) bool { return net.ParseIP(s) != nil }

// matchHostLabel matches the same texts as patternHostLabel, matchHost as
// patternHost, and matchHost952 as patternHost952.
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
