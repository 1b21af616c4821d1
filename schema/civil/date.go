// Package civil has dates and times of day without a zone, for arguments and
// results of tools. A time.Time is a point in time; a birthday, an opening hour
// or an appointment on a wall calendar is not one.
//
//   - [Date] is a day, "2006-01-02".
//   - [TimeOfDay] is what a clock shows, "15:04:05".
//   - [NaiveDateTime] is both, "2006-01-02T15:04:05".
//
// All three are small values without pointers: they can be copied, compared with ==,
// and used as map keys, and their methods are safe for concurrent use. Each implements
// encoding.TextMarshaler and encoding.TextUnmarshaler, and so becomes a string in JSON.
// Package schema knows the types and describes the form of the text. Reading is strict,
// as a language model can fix an error that it receives: a text that is not of the
// form, or that names a day or an hour that does not exist, is a [ParseError] that says
// what to write instead.
package civil

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Date is a day of the calendar, without a time of day or a zone. Its text
// form is "2006-01-02", in the proleptic Gregorian calendar.
//
// The zero value is 1 January of the year 1, as for time.Time. Dates can be
// compared with == and used as map keys.
type Date struct {
	days int32 // since the zero value
}

// The range that the text form can hold.
const (
	minYear = 0
	maxYear = 9999
)

// secondsPerDay is the length of every day in UTC as package time counts it,
// without leap seconds.
const secondsPerDay = 24 * 60 * 60

// zeroSeconds is the Unix time of the zero Date.
const zeroSeconds = -62135596800

// NewDate returns the day. A day or month outside its range is carried over,
// as time.Date does: 31 April is 1 May.
func NewDate(year int, month time.Month, day int) Date {
	return DateOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
}

// DateOf returns the day that t falls on in its own zone.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	return dateOfDays((midnight.Unix() - zeroSeconds) / secondsPerDay)
}

// dateOfDays returns the day that many days after the zero value, or the
// nearest one that a Date can hold.
func dateOfDays(days int64) Date {
	return Date{days: int32(min(max(days, math.MinInt32), math.MaxInt32))}
}

// ParseDate reads a date of the form "2006-01-02". The day must exist. The error
// is a *ParseError.
func ParseDate(s string) (Date, error) {
	wrong := func(message string) (Date, error) {
		return Date{}, &ParseError{Layout: "2006-01-02", Value: s, Message: message, what: "date"}
	}
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return wrong("")
	}
	year, okYear := number(s[:4])
	month, okMonth := number(s[5:7])
	day, okDay := number(s[8:])
	switch {
	case !okYear || !okMonth || !okDay:
		return wrong("")
	case month < 1 || month > 12:
		return wrong(fmt.Sprintf("month %02d does not exist; use 01 to 12", month))
	case day < 1:
		return wrong("day 00 does not exist; the first is 01")
	case day > daysIn(year, month):
		return wrong(monthLength(year, month))
	}
	return NewDate(year, time.Month(month), day), nil
}

// monthLength returns a sentence that says how many days a month has.
func monthLength(year, month int) string {
	name := time.Month(month).String()
	if month == 2 {
		name += " " + fmt.Sprintf("%04d", year)
	}
	return fmt.Sprintf("%s has %d days", name, daysIn(year, month))
}

// number reads a decimal number that consists of digits only.
func number(s string) (n int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}

// daysIn returns the number of days of a month, 1 to 12.
func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// utc returns midnight of the day in UTC, whose calendar functions the methods
// use.
func (d Date) utc() time.Time {
	return time.Unix(zeroSeconds+int64(d.days)*secondsPerDay, 0).UTC()
}

// Date returns the year, month and day.
func (d Date) Date() (year int, month time.Month, day int) { return d.utc().Date() }

// Weekday returns the day of the week.
func (d Date) Weekday() time.Weekday { return d.utc().Weekday() }

// In returns the start of the day in loc, which must not be nil.
func (d Date) In(loc *time.Location) time.Time {
	year, month, day := d.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, loc)
}

// At returns the moment of the day that t shows on a clock.
func (d Date) At(t TimeOfDay) NaiveDateTime { return NaiveDateTime{date: d, clock: t} }

// AddDays returns the day n days later, or earlier if n is negative. A day after
// the year 9999 or before the year 0 has no text form: MarshalText refuses it.
func (d Date) AddDays(n int) Date {
	n = min(max(n, math.MinInt32), math.MaxInt32) // so that the sum fits
	return dateOfDays(int64(d.days) + int64(n))
}

// DaysSince returns the number of days from e to d.
func (d Date) DaysSince(e Date) int { return int(d.days) - int(e.days) }

// Compare returns -1, 0 or +1 as d is before, equal to or after e.
func (d Date) Compare(e Date) int {
	return cmp.Compare(d.days, e.days)
}

// Before reports whether d is before e.
func (d Date) Before(e Date) bool { return d.days < e.days }

// After reports whether d is after e.
func (d Date) After(e Date) bool { return d.days > e.days }

// IsZero reports whether d is the zero value, so that omitzero works.
func (d Date) IsZero() bool { return d.days == 0 }

// String returns d as "2006-01-02".
func (d Date) String() string { return d.utc().Format(time.DateOnly) }

// MarshalText returns d as "2006-01-02". It fails for years outside 0 to 9999.
func (d Date) MarshalText() ([]byte, error) {
	if year := d.utc().Year(); year < minYear || year > maxYear {
		return nil, yearError("date", d.String())
	}
	return []byte(d.String()), nil
}

// yearError returns the error for a day that has no text form.
func yearError(what, text string) error {
	return fmt.Errorf("%s %s: JSON has years from 0 to 9999 only", what, text)
}

// UnmarshalText reads what ParseDate reads.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := ParseDate(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}
