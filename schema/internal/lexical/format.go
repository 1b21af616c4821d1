// Package lexical reads values that are written as text: dates and times with
// an offset, durations, decimals without rounding, and the formats of JSON
// Schema. Packages schema, raw and rules use it, so that a form means the same
// in each of them.
//
// A function that can fail returns, instead of an error, a text that says what
// to write instead: it becomes part of an Issue, which a model reads. Such a
// text completes a sentence of the form "must be a duration; …". Functions that
// only decide, as for formats, return a bool.
//
// Everything here is pure and safe for concurrent use, and takes time linear in
// the length of its text.
package lexical

import (
	"net/netip"
	"net/url"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Formats are the names of the formats that Format knows.
var Formats = []string{"date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6",
	"uri", "uri-reference", "uri-template", "iri", "iri-reference", "uuid", "json-pointer", "relative-json-pointer", "regex"}

// Format returns the check of a format, or nil if the name is not known. The
// formats are those of JSON Schema 2020-12 except idn-email and idn-hostname.
// The checks follow the RFCs named at each of them, and are stricter than the
// parsers of the standard library where those accept more.
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
		return func(s string) bool { _, err := syntax.Parse(s, syntax.Perl); return err == nil }
	}
	return nil
}

// These functions report whether an ASCII character belongs to a class.
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// all reports whether s is not empty and every byte of it satisfies fits.
func all(s string, fits func(byte) bool) bool {
	for i := range len(s) {
		if !fits(s[i]) {
			return false
		}
	}
	return s != ""
}

// isDate reports whether s is a full-date of RFC 3339.
func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// isDateTime reports whether s is a date-time of RFC 3339.
func isDateTime(s string) bool {
	return len(s) > 11 && isDate(s[:10]) && (s[10] == 'T' || s[10] == 't') && isTime(s[11:])
}

// isTime reports whether s is a full-time of RFC 3339. A second of 60 is
// accepted where a leap second can be: at the end of a day in UTC.
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

// two returns the number that the first two bytes of s, which must be digits,
// stand for.
func two(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

// isDuration reports whether s is a duration of RFC 3339, appendix A, which is
// a part of ISO 8601.
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

// units reports whether s consists of numbers with units of order, which follow
// each other without skipping one: hours and seconds need minutes between them.
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

// isEmail reports whether s is a Mailbox of RFC 5321, in ASCII: a local part of
// up to 64 bytes, and a host name or an address literal, of up to 254 bytes in
// total.
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

// isLocal reports whether s is a local part of a mailbox: a quoted string, or
// atoms separated by dots.
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

// isHostname reports whether s is a host name of RFC 1123. A dot at the end is
// refused, as in RFC 5321.
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

// isReference reports whether s is a URI reference of RFC 3986, or an IRI
// reference of RFC 3987 if international is set. With absolute it must have a
// scheme. url.Parse accepts more than the RFCs: what it lets pass, such as
// brackets outside of a host, is refused here.
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

// isTemplate reports whether s is a URI template of RFC 6570. Braces and the
// expressions in them are checked, literals for characters that are not
// permitted.
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

// isExpression reports whether s, without its braces, is an expression of RFC
// 6570: an optional operator and variables with their modifiers.
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

// isUUID reports whether s is a UUID of RFC 4122 in the form with hyphens.
// Variant and version are not looked at.
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

// isPointer reports whether s is a JSON Pointer of RFC 6901.
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

// isRelativePointer reports whether s is a relative JSON Pointer: a number of
// levels, then "#" or a JSON Pointer.
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
