package civil

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// TimeOfDay is what a clock shows, without a date or a zone. Its text form is
// "15:04", "15:04:05" or with up to nine digits of a fraction
// "15:04:05.000000001".
//
// The zero value is midnight. Values can be compared with == and used as map
// keys.
type TimeOfDay struct {
	sinceMidnight time.Duration
}

// fullDay is where a TimeOfDay begins again. Days on which clocks change are
// longer or shorter, but a TimeOfDay belongs to no day.
const fullDay = 24 * time.Hour

// NewTimeOfDay returns the time of day that is d after midnight, on a day of
// 24 hours. Time beyond the day is cut off: 25 hours give 01:00.
func NewTimeOfDay(d time.Duration) TimeOfDay {
	if d %= fullDay; d < 0 {
		d += fullDay
	}
	return TimeOfDay{sinceMidnight: d}
}

// TimeOfDayOf returns what a clock in the zone of t shows at t.
func TimeOfDayOf(t time.Time) TimeOfDay {
	hour, minute, second := t.Clock()
	return TimeOfDay{time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute +
		time.Duration(second)*time.Second + time.Duration(t.Nanosecond())}
}

// ParseTimeOfDay reads "15:04", "15:04:05" or "15:04:05.999999999". The error is
// a *ParseError.
func ParseTimeOfDay(s string) (TimeOfDay, error) {
	t, ok, message := parseTimeOfDay(s)
	if !ok {
		return TimeOfDay{}, &ParseError{Layout: "15:04 or 15:04:05, with two digits each", Value: s, Message: message, what: "time of day"}
	}
	return t, nil
}

// parseTimeOfDay returns the time; if ok is false, message is the Message of
// the ParseError.
func parseTimeOfDay(s string) (t TimeOfDay, ok bool, message string) {
	if len(s) >= 2 && strings.ContainsAny(s[len(s)-1:], "Zz") || len(s) > 5 && strings.ContainsAny(s[5:], "+-") {
		return t, false, "a zone has no place here; leave out Z or the offset"
	}
	if len(s) < 5 || s[2] != ':' {
		return t, false, ""
	}
	hour, okHour := number(s[:2])
	minute, okMinute := number(s[3:5])
	second, nanos, okSecond := 0, 0, true
	if rest := s[5:]; rest != "" {
		if len(rest) < 3 || rest[0] != ':' {
			return t, false, ""
		}
		second, okSecond = number(rest[1:3])
		if rest = rest[3:]; rest != "" {
			var fault string
			if nanos, fault = fraction(rest); fault != "" {
				return t, false, fault
			}
		}
	}
	switch {
	case !okHour || !okMinute || !okSecond:
		return t, false, ""
	case hour > 23:
		return t, false, fmt.Sprintf("hour %02d does not exist; use 00 to 23", hour)
	case minute > 59:
		return t, false, fmt.Sprintf("minute %02d does not exist; use 00 to 59", minute)
	case second > 59:
		return t, false, fmt.Sprintf("second %02d does not exist; use 00 to 59", second)
	}
	seconds := time.Duration(hour*3600+minute*60+second) * time.Second
	return TimeOfDay{seconds + time.Duration(nanos)}, true, ""
}

// fraction reads ".5", a point and one to nine digits, as nanoseconds. fault is
// what is wrong with it, or "".
func fraction(s string) (nanos int, fault string) {
	if s[0] == ',' {
		return 0, "write the fraction of a second with a point, as in 05.25"
	}
	digits := s[1:]
	n, ok := number(digits)
	switch {
	case s[0] != '.' || !ok && len(digits) <= 9:
		return 0, "only a fraction such as .25 may follow the seconds"
	case len(digits) > 9:
		return 0, "a fraction of a second has at most nine digits"
	}
	for range 9 - len(digits) {
		n *= 10
	}
	return n, ""
}

// Clock returns the hour, minute and second; SinceMidnight has the fraction, too.
func (t TimeOfDay) Clock() (hour, minute, second int) {
	s := int(t.sinceMidnight / time.Second)
	return s / 3600, s / 60 % 60, s % 60
}

// SinceMidnight returns the time from midnight to t, on a day of 24 hours.
func (t TimeOfDay) SinceMidnight() time.Duration { return t.sinceMidnight }

// Compare returns -1, 0 or +1 as t is before, equal to or after u.
func (t TimeOfDay) Compare(u TimeOfDay) int {
	return cmp.Compare(t.sinceMidnight, u.sinceMidnight)
}

// Before reports whether t is before u.
func (t TimeOfDay) Before(u TimeOfDay) bool { return t.sinceMidnight < u.sinceMidnight }

// After reports whether t is after u.
func (t TimeOfDay) After(u TimeOfDay) bool { return t.sinceMidnight > u.sinceMidnight }

// IsZero reports whether t is midnight, so that omitzero works.
func (t TimeOfDay) IsZero() bool { return t.sinceMidnight == 0 }

// String returns t as "15:04:05", with as many digits of a fraction as needed.
func (t TimeOfDay) String() string {
	hour, minute, second := t.Clock()
	s := fmt.Sprintf("%02d:%02d:%02d", hour, minute, second)
	if nanos := t.sinceMidnight % time.Second; nanos != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%09d", int(nanos)), "0")
	}
	return s
}

// MarshalText returns what String returns. It never fails.
func (t TimeOfDay) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what ParseTimeOfDay reads.
func (t *TimeOfDay) UnmarshalText(text []byte) error {
	parsed, err := ParseTimeOfDay(string(text))
	if err == nil {
		*t = parsed
	}
	return err
}
