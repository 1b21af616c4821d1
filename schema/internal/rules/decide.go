package rules

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// deciders holds the tests of rules whose schema cannot say everything: check
// digits, registers, addresses. They accept the same texts as go-playground's
// functions, which a test verifies. They are here, so that its validator is
// linked only into programs that ask for it.
var deciders = sync.OnceValue(func() map[string]func(string) bool {
	return map[string]func(string) bool{
		"isbn":             func(s string) bool { return isISBN10(s) || isISBN13(s) },
		"isbn10":           isISBN10,
		"isbn13":           isISBN13,
		"issn":             isISSN,
		"credit_card":      isCreditCard,
		"luhn_checksum":    func(s string) bool { return len(s) > 1 && luhn(s) },
		"iso3166_1_alpha2": listed(countries2),
		"iso3166_1_alpha3": listed(countries3),
		"iso4217":          listed(currencies3),

		"iso3166_1_alpha_numeric":    numbered(countriesNumeric),
		"iso3166_1_alpha_numeric_eu": numbered(countriesNumericEU),
		"country_code":               anyOf(listed(countries2), listed(countries3), numbered(countriesNumeric)),
		"eu_country_code":            anyOf(oneOf(euAlpha2), oneOf(euAlpha3), numbered(countriesNumericEU)),

		"duration":  func(s string) bool { _, err := time.ParseDuration(s); return err == nil },
		"timezone":  isTimeZone,
		"lowercase": func(s string) bool { return s != "" && s == strings.ToLower(s) },
		"uppercase": func(s string) bool { return s != "" && s == strings.ToUpper(s) },

		"uri":       isURI,
		"origin":    isOrigin,
		"ipv6":      isIPv6,
		"ip6_addr":  isIPv6,
		"cidrv4":    isNetwork4,
		"cidrv6":    isNetwork6,
		"tcp_addr":  isAddress(netip.Addr.IsValid),
		"tcp4_addr": isAddress(isAddr4),
		"tcp6_addr": isAddress(isAddr6),
		"udp_addr":  isAddress(netip.Addr.IsValid),
		"udp4_addr": isAddress(isAddr4),
		"udp6_addr": isAddress(isAddr6),

		"file": func(s string) bool { info, err := os.Stat(s); return err == nil && !info.IsDir() },
		"dir":  func(s string) bool { info, err := os.Stat(s); return err == nil && info.IsDir() },
	}
})

// anyOf returns a test that holds if one of checks does.
func anyOf(checks ...func(string) bool) func(string) bool {
	return func(s string) bool {
		return slices.ContainsFunc(checks, func(check func(string) bool) bool { return check(s) })
	}
}

// oneOf returns a test for one of a few texts.
func oneOf(texts []string) func(string) bool {
	return func(s string) bool { return slices.Contains(texts, s) }
}

// listed returns a test for one of the codes, which are sorted and separated by
// white space.
func listed(codes string) func(string) bool {
	list := sync.OnceValue(func() []string { return strings.Fields(codes) })
	return func(s string) bool {
		_, found := slices.BinarySearch(list(), s)
		return found
	}
}

// numbered is listed for codes of three digits, which a text may write with or
// without leading zeros. As in go-playground only the last three digits are
// examined.
func numbered(codes string) func(string) bool {
	known := listed(codes)
	return func(s string) bool {
		n, err := strconv.Atoi(s)
		if err != nil || n%1000 < 0 {
			return false
		}
		digits := strconv.Itoa(1000 + n%1000)
		return known(digits[1:])
	}
}

// luhn reports whether a text consists of digits, the last of which is the
// check digit of the Luhn algorithm.
func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isCreditCard reports whether s is a card number of 12 to 19 digits, written
// in groups of at least three.
func isCreditCard(s string) bool {
	digits := ""
	for segment := range strings.SplitSeq(s, " ") {
		if len(segment) < 3 {
			return false
		}
		digits += segment
	}
	return len(digits) >= 12 && len(digits) <= 19 && luhn(digits)
}

// weighted returns the sum of all digits, each multiplied by its weight. An X
// at the end counts ten, as in an ISBN. ok is false if there is any other
// character.
func weighted(digits string, weight func(i int) int) (sum int, ok bool) {
	for i := range len(digits) {
		d := int(digits[i]) - '0'
		if digits[i] == 'X' && i == len(digits)-1 {
			d = 10
		}
		if d < 0 || d > 10 || d == 10 && digits[i] != 'X' {
			return 0, false
		}
		sum += d * weight(i)
	}
	return sum, true
}

// without returns s without its first hyphens and spaces, at most most of each.
func without(s string, most int) string {
	return strings.Replace(strings.Replace(s, "-", "", most), " ", "", most)
}

// isISBN10, isISBN13 and isISSN verify the check digit of the number.
func isISBN10(s string) bool {
	s = without(s, 3)
	sum, ok := weighted(s, func(i int) int { return i + 1 })
	return ok && len(s) == 10 && sum%11 == 0
}

func isISBN13(s string) bool {
	s = without(s, 4)
	sum, ok := weighted(s, func(i int) int { return 1 + i%2*2 })
	return ok && len(s) == 13 && s[12] != 'X' && (strings.HasPrefix(s, "978") || strings.HasPrefix(s, "979")) && sum%10 == 0
}

func isISSN(s string) bool {
	if len(s) != 9 || s[4] != '-' {
		return false
	}
	sum, ok := weighted(s[:4]+s[5:], func(i int) int { return 8 - i })
	return ok && sum%11 == 0
}

// isTimeZone reports whether s is a time zone of the IANA database that the
// system, or the program, has.
func isTimeZone(s string) bool {
	if s == "" || strings.EqualFold(s, "local") {
		return false // to Go these are names of its own
	}
	_, err := time.LoadLocation(s)
	return err == nil
}

// isURI reports whether s is an absolute URI or an absolute path.
func isURI(s string) bool {
	s, _, _ = strings.Cut(s, "#")
	_, err := url.ParseRequestURI(s)
	return s != "" && err == nil
}

// isOrigin reports whether s is a web origin: http or https, a host, and
// optionally a port.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || strings.Contains(s, "#") || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.RawQuery != "" ||
		u.ForceQuery || u.User != nil {
		return false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	host := u.Hostname()
	return host != "" && (net.ParseIP(host) != nil || isHostname(host))
}

// isHostname reports whether s is a host name of RFC 1123.
func isHostname(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if len(label) < 1 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				return false
			}
		}
	}
	return true
}

// isIPv6 reports whether s is an IPv6 address that is not IPv4-mapped.
func isIPv6(s string) bool {
	ip := net.ParseIP(s)
	return ip != nil && ip.To4() == nil
}

// isNetwork4 reports whether s is an IPv4 network in CIDR form whose host bits
// are 0.
func isNetwork4(s string) bool {
	ip, network, err := net.ParseCIDR(s)
	return err == nil && ip.To4() != nil && network.IP.Equal(ip)
}

// isNetwork6 reports whether s is an IPv6 network in CIDR form. Host bits may
// be set, as in go-playground.
func isNetwork6(s string) bool {
	ip, _, err := net.ParseCIDR(s)
	return err == nil && ip.To4() == nil
}

// isAddr4 and isAddr6 are for isAddress. An IPv4-mapped address counts as IPv4.
func isAddr4(a netip.Addr) bool { return a.Unmap().Is4() }
func isAddr6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }

// isAddress returns a test for an IP address with a port, which may be the name
// of a service. A host name does not pass, since it would have to be looked up.
func isAddress(fits func(netip.Addr) bool) func(string) bool {
	return func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			return false
		}
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" || !fits(addr) {
			return false
		}
		_, err = net.LookupPort("tcp", port)
		return err == nil
	}
}
