package lexical

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
)

// ParseRFC3339 reads a date-time strictly as RFC 3339 defines it: two digits
// for each field, 'T' or 't', a mandatory offset, '.' before a fraction. The
// second result is "" or says what is wrong and what to write instead.
//
// Digits of a fraction beyond nanoseconds are dropped. A leap second, which
// time.Time cannot express, becomes the first second of the next day, as
// computers count it.
func ParseRFC3339(b []byte) (time.Time, string) {
	s := string(b)
	if len(s) < 10 {
		return time.Time{}, WrongForm
	}
	day, err := civil.ParseDate(s[:10])
	if bad, ok := errors.AsType[*civil.ParseError](err); ok {
		return time.Time{}, cmp.Or(bad.Message, WrongForm)
	}
	switch {
	case len(s) == 10:
		return time.Time{}, "the time is missing; write " + s + "T00:00:00Z for midnight UTC"
	case s[10] != 'T' && s[10] != 't':
		return time.Time{}, "put a T between date and time"
	}
	clock, rest, fault := clockRFC3339(s[11:])
	if fault != "" {
		return time.Time{}, fault
	}
	nanos, rest, fault := fractionRFC3339(rest)
	if fault != "" {
		return time.Time{}, fault
	}
	loc, fault := offsetRFC3339(rest)
	if fault != "" {
		return time.Time{}, fault
	}
	_, offset := time.Time{}.In(loc).Zone()
	if minute := (clock-60)/60*60 - offset; s[17:19] == "60" && ((minute%86400)+86400)%86400 != 86400-60 {
		return time.Time{}, "second 60 is a leap second, which comes at 23:59:60 UTC alone"
	}
	year, month, date := day.Date()
	return time.Date(year, month, date, 0, 0, clock, nanos, loc), ""
}

// WrongForm is the fault of a text that is nowhere near a date-time. Reports
// leave it out, since what they expect shows the form already.
const WrongForm = "must have the form 2006-01-02T15:04:05Z"

// readDigits reads a number that consists of digits only; ok is false for
// anything else.
func readDigits(s string) (n int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}

// clockRFC3339 reads "15:04:05" at the start of s and returns the seconds since
// midnight. Second 60 is permitted; the caller checks that it is a leap second.
func clockRFC3339(s string) (seconds int, rest, fault string) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return 0, "", "write the time as hh:mm:ss with two digits each"
	}
	hour, okHour := readDigits(s[:2])
	minute, okMinute := readDigits(s[3:5])
	second, okSecond := readDigits(s[6:8])
	switch {
	case !okHour || !okMinute || !okSecond:
		return 0, "", "write the time as hh:mm:ss with two digits each"
	case hour == 24:
		return 0, "", "hour 24 does not exist; write 00:00:00 of the next day"
	case hour > 23:
		return 0, "", fmt.Sprintf("hour %02d does not exist; use 00 to 23", hour)
	case minute > 59:
		return 0, "", fmt.Sprintf("minute %02d does not exist; use 00 to 59", minute)
	case second > 60:
		return 0, "", fmt.Sprintf("second %02d does not exist; use 00 to 59", second)
	}
	return hour*3600 + minute*60 + second, s[8:], ""
}

// fractionRFC3339 reads the optional fraction of a second at the start of s.
func fractionRFC3339(s string) (nanos int, rest, fault string) {
	if strings.HasPrefix(s, ",") {
		return 0, "", "write the fraction of a second with a point"
	}
	if !strings.HasPrefix(s, ".") {
		return 0, s, ""
	}
	end := 1
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == 1 {
		return 0, "", "a digit must follow the point after the seconds"
	}
	digits := s[1:end]
	for i := range 9 {
		nanos *= 10
		if i < len(digits) {
			nanos += int(digits[i] - '0')
		}
	}
	return nanos, s[end:], ""
}

// offsetRFC3339 reads the offset, which must be all of s. The location has no
// name; its offset is at most 23:59.
func offsetRFC3339(s string) (*time.Location, string) {
	switch s {
	case "Z", "z":
		return time.UTC, ""
	case "":
		return nil, "the offset is missing; add Z for UTC, or an offset such as +02:00"
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return nil, "end with Z, or with an offset such as +02:00"
	}
	hours, okHours := readDigits(s[1:3])
	minutes, okMinutes := readDigits(s[4:])
	switch {
	case !okHours || !okMinutes:
		return nil, "end with Z, or with an offset such as +02:00"
	case hours > 23 || minutes > 59:
		return nil, "an offset is at most 23:59"
	}
	seconds := hours*3600 + minutes*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return time.FixedZone("", seconds), ""
}
