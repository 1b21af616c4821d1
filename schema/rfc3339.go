package schema

import (
	"fmt"
	"strings"
	"time"
)

// parseRFC3339 reads a date-time strictly by RFC 3339: two digits for each
// field, 'T' or 't', an offset, '.' before a fraction. The second result is
// empty or says what is wrong with the fix. Digits of a fraction beyond
// nanoseconds are dropped. A leap second is refused: time.Time has none.
func parseRFC3339(b []byte) (time.Time, string) {
	s := string(b)
	const form = wrongForm + "2006-01-02T15:04:05Z"
	if len(s) < 10 {
		return time.Time{}, form
	}
	day, fault := parseDate(s[:10])
	switch {
	case strings.HasPrefix(fault, wrongForm):
		return time.Time{}, form
	case fault != "":
		return time.Time{}, fault
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
	year, month, date := day.Date()
	return time.Date(year, month, date, 0, 0, clock, nanos, loc), ""
}

// clockRFC3339 reads "15:04:05" as seconds since midnight.
func clockRFC3339(s string) (seconds int, rest, fault string) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return 0, "", "write the time as hh:mm:ss with two digits each"
	}
	hour, okHour := number(s[:2])
	minute, okMinute := number(s[3:5])
	second, okSecond := number(s[6:8])
	switch {
	case !okHour || !okMinute || !okSecond:
		return 0, "", "write the time as hh:mm:ss with two digits each"
	case hour == 24:
		return 0, "", "hour 24 does not exist; write 00:00:00 of the next day"
	case hour > 23:
		return 0, "", fmt.Sprintf("hour %02d does not exist; use 00 to 23", hour)
	case minute > 59:
		return 0, "", fmt.Sprintf("minute %02d does not exist; use 00 to 59", minute)
	case second == 60:
		return 0, "", "leap seconds are not supported; write :59 or the next minute"
	case second > 59:
		return 0, "", fmt.Sprintf("second %02d does not exist; use 00 to 59", second)
	}
	return hour*3600 + minute*60 + second, s[8:], ""
}

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
	hours, okHours := number(s[1:3])
	minutes, okMinutes := number(s[4:])
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
