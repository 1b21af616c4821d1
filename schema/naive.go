package schema

import (
	"strings"
	"time"
)

// NaiveDateTime is a date and a time of day without a zone: what a calendar
// and a clock on the wall show, wherever they hang. Its text form is
// "2006-01-02T15:04:05", with the seconds and a fraction of them optional.
//
// The zero value is midnight of 1 January of the year 1. Values can be
// compared with == and used as map keys.
type NaiveDateTime struct {
	date  Date
	clock TimeOfDay
}

// datePattern matches exactly the days that exist: month lengths and leap
// years included, so that a schema without format:date still says all.
const datePattern = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))` +
	`|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`

const naivePattern = `^` + datePattern + `T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?$`

// NaiveDateTimeOf returns what a calendar and a clock in t's zone show at t.
func NaiveDateTimeOf(t time.Time) NaiveDateTime {
	return NaiveDateTime{date: DateOf(t), clock: TimeOfDayOf(t)}
}

// ParseNaiveDateTime reads a date, a 'T' and a time of day. An offset is an
// error: use time.Time for a point in time.
func ParseNaiveDateTime(s string) (NaiveDateTime, error) {
	t, fault := parseNaive(s)
	if fault != "" {
		return NaiveDateTime{}, &formError{"local date and time", s, fault}
	}
	return t, nil
}

// parseNaive returns the date and time, or what is wrong with the fix.
func parseNaive(s string) (NaiveDateTime, string) {
	const form = wrongForm + "2006-01-02T15:04:05"
	if len(s) < 10 {
		return NaiveDateTime{}, form
	}
	d, fault := parseDate(s[:10])
	switch {
	case strings.HasPrefix(fault, wrongForm):
		return NaiveDateTime{}, form
	case fault != "":
		return NaiveDateTime{}, fault
	case len(s) == 10:
		return NaiveDateTime{}, "the time is missing; write " + s + "T00:00:00 for midnight"
	case s[10] != 'T':
		return NaiveDateTime{}, "put a T between date and time"
	}
	t, fault := parseTimeOfDay(s[11:])
	return NaiveDateTime{date: d, clock: t}, fault
}

// Date returns the date.
func (t NaiveDateTime) Date() Date { return t.date }

// TimeOfDay returns the time of day.
func (t NaiveDateTime) TimeOfDay() TimeOfDay { return t.clock }

// In returns the point in time at which calendar and clock show t in loc,
// which must not be nil. Around a change of the clocks time.Date decides.
func (t NaiveDateTime) In(loc *time.Location) time.Time {
	year, month, day := t.date.Date()
	hour, minute, second := t.clock.Clock()
	return time.Date(year, month, day, hour, minute, second, t.clock.Nanosecond(), loc)
}

// Compare returns -1, 0 or +1 as t is before, equal to or after u.
func (t NaiveDateTime) Compare(u NaiveDateTime) int {
	if c := t.date.Compare(u.date); c != 0 {
		return c
	}
	return t.clock.Compare(u.clock)
}

// Before reports whether t is before u.
func (t NaiveDateTime) Before(u NaiveDateTime) bool { return t.Compare(u) < 0 }

// After reports whether t is after u.
func (t NaiveDateTime) After(u NaiveDateTime) bool { return t.Compare(u) > 0 }

// Add returns what calendar and clock show when d has passed, on days of 24
// hours. A day after the year 9999 or before the year 0 has no text form:
// MarshalText refuses it.
func (t NaiveDateTime) Add(d time.Duration) NaiveDateTime {
	days, rest := d/fullDay, d%fullDay
	if rest += t.clock.sinceMidnight; rest < 0 {
		days, rest = days-1, rest+fullDay
	} else if rest >= fullDay {
		days, rest = days+1, rest-fullDay
	}
	return NaiveDateTime{date: t.date.AddDays(int(days)), clock: TimeOfDay{rest}}
}

// IsZero reports whether t is the zero value, so that omitzero works.
func (t NaiveDateTime) IsZero() bool { return t == NaiveDateTime{} }

// String returns t as "2006-01-02T15:04:05", with as many digits of a
// fraction as needed.
func (t NaiveDateTime) String() string { return t.date.String() + "T" + t.clock.String() }

// MarshalText returns what String returns. It fails for years outside 0 to
// 9999.
func (t NaiveDateTime) MarshalText() ([]byte, error) {
	if _, err := t.date.MarshalText(); err != nil {
		return nil, yearError("local date and time", t.String())
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what ParseNaiveDateTime reads.
func (t *NaiveDateTime) UnmarshalText(text []byte) error {
	parsed, err := ParseNaiveDateTime(string(text))
	if err == nil {
		*t = parsed
	}
	return err
}
