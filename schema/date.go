package schema

import (
	"fmt"
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
	return Date{days: int32((midnight.Unix() - zeroSeconds) / secondsPerDay)}
}

// ParseDate reads a date of the form "2006-01-02". The day must exist.
func ParseDate(s string) (Date, error) {
	d, fault := parseDate(s)
	if fault != "" {
		return Date{}, fmt.Errorf("date %q: %s", shorten(s), fault)
	}
	return d, nil
}

// parseDate returns the date, or what is wrong with the fix.
func parseDate(s string) (Date, string) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return Date{}, "must have the form 2006-01-02"
	}
	year, okYear := number(s[:4])
	month, okMonth := number(s[5:7])
	day, okDay := number(s[8:])
	switch {
	case !okYear || !okMonth || !okDay:
		return Date{}, "must have the form 2006-01-02, in digits"
	case month < 1 || month > 12:
		return Date{}, fmt.Sprintf("month %02d does not exist; use 01 to 12", month)
	case day < 1 || day > daysIn(year, month):
		return Date{}, fmt.Sprintf("day %02d does not exist in %s; use 01 to %d", day, s[:7], daysIn(year, month))
	}
	return NewDate(year, time.Month(month), day), ""
}

// number reads digits, and nothing but digits.
func number(s string) (n int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}

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

// shorten cuts long text for an error message.
func shorten(s string) string {
	const limit = 40
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}

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

// AddDays returns the day n days later, or earlier if n is negative.
func (d Date) AddDays(n int) Date { return Date{days: d.days + int32(n)} }

// DaysSince returns the number of days from e to d.
func (d Date) DaysSince(e Date) int { return int(d.days) - int(e.days) }

// Compare returns -1, 0 or +1 as d is before, equal to or after e.
func (d Date) Compare(e Date) int {
	switch {
	case d.days < e.days:
		return -1
	case d.days > e.days:
		return +1
	}
	return 0
}

// IsZero reports whether d is the zero value, so that omitzero works.
func (d Date) IsZero() bool { return d.days == 0 }

// String returns d as "2006-01-02".
func (d Date) String() string { return d.utc().Format(time.DateOnly) }

// MarshalText returns d as "2006-01-02". It fails for years outside 0 to 9999.
func (d Date) MarshalText() ([]byte, error) {
	if year := d.utc().Year(); year < minYear || year > maxYear {
		return nil, fmt.Errorf("date %s: the year must be between 0 and 9999", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what ParseDate reads.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := ParseDate(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}
