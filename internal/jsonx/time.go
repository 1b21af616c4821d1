package jsonx

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Time is a time.Time that a peer has written: its UnmarshalJSON is ParseTime.
type Time struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler. Null and an empty text change
// nothing.
func (t *Time) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("a time is text such as %s, not %.100s", timeSample, text)
	}
	if s == "" {
		return nil
	}
	at, err := ParseTime(s)
	if err == nil {
		t.Time = at
	}
	return err
}

// timeSample is a time in errors.
const timeSample = `"2006-01-02T15:04:05Z"`

// timeForms are the forms of ISO 8601 that ParseTime reads, as layouts; each can
// contain a fraction of the second.
var timeForms = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", time.DateOnly, "20060102T150405Z0700", "20060102T150405",
}

// zones rewrites offsets of programs: isoformat of Python with a Z behind it, and strftime.
var zones = strings.NewReplacer("+00:00Z", "Z", " UTC", "Z", " +", "+", " -", "-")

// ParseTime reads a time as peers write it: in the form of RFC 3339, or in
// another of ISO 8601. A time without a zone is in UTC, as is a day without a
// time, which is its beginning. A space may stand for the T, letters may be small, and
// what RFC 9557 adds in brackets is ignored. The error quotes at most 100 characters.
func ParseTime(s string) (time.Time, error) {
	form := strings.ToUpper(s)
	if len(form) > 10 && form[10] == ' ' {
		form = form[:10] + "T" + form[11:]
	}
	if i := strings.IndexByte(form, '['); i > 0 && strings.HasSuffix(form, "]") { // RFC 9557
		form = form[:i]
	}
	form = zones.Replace(form)
	for _, layout := range timeForms {
		if at, err := time.Parse(layout, form); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.100q is not a time such as %s", s, timeSample)
}
