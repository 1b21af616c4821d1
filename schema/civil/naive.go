package civil

import (
	"errors"
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

// NaiveDateTimeOf returns what a calendar and a clock in t's zone show at t.
func NaiveDateTimeOf(t time.Time) NaiveDateTime {
	return NaiveDateTime{date: DateOf(t), clock: TimeOfDayOf(t)}
}

// ParseNaiveDateTime reads a date, a 'T' and a time of day. An offset is an
// error: use time.Time for a point in time. The error is a *ParseError.
func ParseNaiveDateTime(s string) (NaiveDateTime, error) {
	wrong := func(message string) (NaiveDateTime, error) {
		return NaiveDateTime{}, &ParseError{Layout: "2006-01-02T15:04:05", Value: s, Message: message, what: "local date and time"}
	}
	if len(s) < 10 {
		return wrong("")
	}
	d, err := ParseDate(s[:10])
	if bad, ok := errors.AsType[*ParseError](err); ok {
		return wrong(bad.Message)
	}
	switch {
	case len(s) == 10:
		return wrong("the time is missing; write " + s + "T00:00:00 for midnight")
	case s[10] != 'T':
		return wrong("put a T between date and time")
	}
	t, ok, message := parseTimeOfDay(s[11:])
	if !ok {
		return wrong(message)
	}
	return NaiveDateTime{date: d, clock: t}, nil
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
	return time.Date(year, month, day, hour, minute, second, int(t.clock.sinceMidnight%time.Second), loc)
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
