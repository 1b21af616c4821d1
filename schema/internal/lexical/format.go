// Package lexical reads values that are written as text: dates and times with an
// offset, durations, decimals without rounding, and the formats of JSON Schema. Its
// faults say what to write instead.
package lexical

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Formats are the names of the formats that Format knows.
var Formats = []string{"date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6",
	"uri", "uri-reference", "uri-template", "iri", "iri-reference", "uuid", "json-pointer", "relative-json-pointer", "regex"}

// Format returns the check of a format, or nil if it is not known.
func Format(name string) func(string) bool {
	switch name {
	case "date":
		return isDate
	case "date-time":
		return isDateTime
	case "time":
		return isTime
	case "duration":
		return isDuration
	case "email":
		return isEmail
	case "hostname":
		return isHostname
	case "ipv4":
		return func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }
	case "ipv6":
		return func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() && a.Zone() == "" }
	case "uri":
		return func(s string) bool { return isReference(s, true, false) }
	case "uri-reference":
		return func(s string) bool { return isReference(s, false, false) }
	case "iri":
		return func(s string) bool { return isReference(s, true, true) }
	case "iri-reference":
		return func(s string) bool { return isReference(s, false, true) }
	case "uri-template":
		return isTemplate
	case "uuid":
		return isUUID
	case "json-pointer":
		return isPointer
	case "relative-json-pointer":
		return isRelativePointer
	case "regex":
		return func(s string) bool { _, err := regexp.Compile(s); return err == nil }
	}
	return nil
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// all reports whether s is not empty and every byte of it fits.
func all(s string, fits func(byte) bool) bool {
	for i := range len(s) {
		if !fits(s[i]) {
			return false
		}
	}
	return s != ""
}

// isDate follows RFC 3339, full-date.
func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isDateTime follows RFC 3339, date-time.
func isDateTime(s string) bool {
	return len(s) > 11 && isDate(s[:10]) && (s[10] == 'T' || s[10] == 't') && isTime(s[11:])
}

// isTime follows RFC 3339, full-time. A second 60 is taken where a leap second
// can be: at the end of a day of UTC.
func isTime(s string) bool {
	if len(s) < 9 || s[2] != ':' || s[5] != ':' || !all(s[:2]+s[3:5]+s[6:8], isDigit) {
		return false
	}
	hour, minute, second := two(s), two(s[3:]), two(s[6:])
	s = s[8:]
	if s[0] == '.' {
		digits := 1
		for digits < len(s) && isDigit(s[digits]) {
			digits++
		}
		if digits == 1 {
			return false
		}
		s = s[digits:]
	}
	ahead := 0 // of UTC, in minutes
	switch {
	case s == "Z" || s == "z":
	case len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':' && all(s[1:3]+s[4:], isDigit) && two(s[1:]) < 24 && two(s[4:]) < 60:
		if ahead = two(s[1:])*60 + two(s[4:]); s[0] == '-' {
			ahead = -ahead
		}
	default:
		return false
	}
	if hour > 23 || minute > 59 || second > 60 {
		return false
	}
	const day = 24 * 60
	return second < 60 || (hour*60+minute-ahead+day)%day == day-1
}

func two(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

// isDuration follows RFC 3339, appendix A.
func isDuration(s string) bool {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" {
		return false
	}
	date, clock, timed := strings.Cut(rest, "T")
	if weeks, ok := strings.CutSuffix(date, "W"); ok {
		return !timed && all(weeks, isDigit)
	}
	return (units(date, "YMD") || date == "" && timed) && (!timed || units(clock, "HMS"))
}

// units reads numbers with their units, which follow each other in order
// without a gap.
func units(s, order string) bool {
	next := -1
	for s != "" {
		n := 0
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		if n == 0 || n == len(s) {
			return false
		}
		at := strings.IndexByte(order, s[n])
		if at < 0 || next >= 0 && at != next {
			return false
		}
		next, s = at+1, s[n+1:]
	}
	return next >= 0
}

// isEmail follows RFC 5321, Mailbox, in ASCII.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || len(s) > 254 || at > 64 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if inner, ok := strings.CutPrefix(domain, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if v6, is6 := strings.CutPrefix(inner, "IPv6:"); is6 {
			return ok && isLocal(local) && Format("ipv6")(v6)
		}
		return ok && isLocal(local) && Format("ipv4")(inner)
	}
	return isLocal(local) && isHostname(domain)
}

func isLocal(s string) bool {
	if inner, ok := strings.CutPrefix(s, `"`); ok {
		inner, ok = strings.CutSuffix(inner, `"`)
		if !ok {
			return false
		}
		for i := 0; i < len(inner); i++ {
			if inner[i] == '\\' {
				i++
				if i == len(inner) {
					return false
				}
			} else if inner[i] == '"' {
				return false
			}
			if inner[i] < ' ' || inner[i] > '~' {
				return false
			}
		}
		return true
	}
	for atom := range strings.SplitSeq(s, ".") {
		if !all(atom, func(c byte) bool {
			return isLetter(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
		}) {
			return false
		}
	}
	return true
}

// isHostname follows RFC 1123, with a dot at the end refused as RFC 5321 does.
func isHostname(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) > 63 || label == "" || label[0] == '-' || label[len(label)-1] == '-' ||
			!all(label, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' }) {
			return false
		}
	}
	return true
}

// isReference follows RFC 3986, or RFC 3987 for IRIs.
func isReference(s string, absolute, international bool) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			if !international {
				return false
			}
		case c <= ' ' || c == 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return false
		case c == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])):
			return false
		}
	}
	u, err := url.Parse(s)
	if err != nil || (absolute && u.Scheme == "") || strings.Count(s, "#") > 1 {
		return false
	}
	outside := s
	if u.Host != "" || u.User != nil {
		_, after, _ := strings.Cut(s, "//")
		authority := after[:len(after)-len(strings.TrimLeftFunc(after, func(r rune) bool { return !strings.ContainsRune("/?#", r) }))]
		outside = strings.Replace(s, authority, "", 1)
		if strings.Count(authority, "@") > 1 {
			return false
		}
		host := authority[strings.IndexByte(authority, '@')+1:]
		if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
			if host, port, _ := strings.Cut(host, ":"); strings.Contains(host+port, ":") || port != "" && !all(port, isDigit) {
				return false
			}
		}
		if inner, ok := strings.CutPrefix(host, "["); ok {
			inner, _, _ = strings.Cut(inner, "]")
			if !Format("ipv6")(inner) && !strings.HasPrefix(strings.ToLower(inner), "v") {
				return false
			}
		}
		if strings.ContainsAny(authority[:len(authority)-len(host)], "[]") {
			return false
		}
	}
	return !strings.ContainsAny(outside, "[]")
}

// isTemplate follows RFC 6570 as far as braces and the names within go.
func isTemplate(s string) bool {
	for s != "" {
		open := strings.IndexAny(s, "{}")
		literal := s
		if open >= 0 {
			literal = s[:open]
		}
		if strings.ContainsFunc(literal, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\"<>\\^`|", r) }) {
			return false
		}
		if open < 0 {
			return true
		}
		end := strings.IndexByte(s, '}')
		if s[open] == '}' || end < open || !isExpression(s[open+1:end]) {
			return false
		}
		s = s[end+1:]
	}
	return true
}

func isExpression(s string) bool {
	if s != "" && strings.IndexByte("+#./;?&=,!@|", s[0]) >= 0 {
		s = s[1:]
	}
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSuffix(name, "*")
		if at := strings.IndexByte(name, ':'); at >= 0 {
			if n, err := strconv.Atoi(name[at+1:]); err != nil || n < 1 || n > 9999 || name[at+1] == '0' {
				return false
			}
			name = name[:at]
		}
		if !all(name, func(c byte) bool { return isLetter(c) || isDigit(c) || strings.IndexByte("_.%", c) >= 0 }) ||
			name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") {
			return false
		}
	}
	return true
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}

// isPointer follows RFC 6901.
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

func isRelativePointer(s string) bool {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	return s[n:] == "#" || isPointer(s[n:])
}
