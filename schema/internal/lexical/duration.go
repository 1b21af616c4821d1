package lexical

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// GoDurationPattern is the syntax of time.ParseDuration; both characters that
// look like µ are taken.
const GoDurationPattern = `^[+\-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$`

// IsoDurationPattern is the part of ISO 8601 that has a fixed length: weeks,
// or days and a time. Years and months differ in length and are left out.
const IsoDurationPattern = `^P(?:[0-9]+W|[0-9]+D(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))$`

// ParseDuration reads a duration as Go writes it. The error says what is
// wrong and what to write instead.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	switch trimmed := strings.TrimSpace(s); {
	case trimmed == "":
		return 0, errors.New("write a number and a unit")
	case spelled(s) != "":
		return 0, errors.New("write " + spelled(s))
	case trimmed != s || strings.ContainsAny(s, " \t"):
		return 0, errors.New("write it without spaces, with the units ns, us, ms, s, m and h")
	case isISODuration(s):
		return 0, errors.New("ISO 8601 form is not taken here")
	case strings.Trim(s, "+-.0123456789") == "":
		return 0, fmt.Errorf("add a unit: %ss for seconds, %sm for minutes", wording.Cut(s), wording.Cut(s))
	case strings.ContainsAny(s, "dDwW"):
		return 0, errors.New("the largest unit is h; write two days as 48h")
	case durationSyntax().MatchString(s):
		return 0, errors.New("it is longer than 2562047h (292 years)")
	}
	return 0, errors.New("the units are ns, us, ms, s, m and h")
}

// unitWords are words for the units of a duration, longer ones first.
var unitWords = strings.NewReplacer("nanoseconds", "ns", "nanosecond", "ns", "microseconds", "us", "microsecond", "us",
	"milliseconds", "ms", "millisecond", "ms", "seconds", "s", "second", "s", "secs", "s", "sec", "s",
	"minutes", "m", "minute", "m", "mins", "m", "min", "m", "hours", "h", "hour", "h", "hrs", "h", "hr", "h",
	"and", "", ",", "", " ", "", "\t", "", "\u00a0", "")

// spelled returns the duration that a text with words or spaces means, as Go
// writes it: "5m" for "5 minutes". It is "" if that cannot be told.
func spelled(s string) string {
	if len(s) > 100 {
		return ""
	}
	text := unitWords.Replace(strings.ToLower(s))
	if _, err := time.ParseDuration(text); err != nil || strings.Trim(text, "+-.0123456789") == "" {
		return ""
	}
	return text
}

var durationSyntax = regex.Lazy(GoDurationPattern)

// DurationFault says what keeps a text from being a duration.
func DurationFault(s string) string {
	if _, err := ParseDuration(s); err != nil {
		return err.Error()
	}
	return ""
}

// ParseISODuration is jsonx.ParseISODuration with more advice.
func ParseISODuration(s string) (time.Duration, error) {
	d, err := jsonx.ParseISODuration(s)
	if err == nil || errors.Is(err, jsonx.ErrISODurationLong) {
		return d, err
	}
	switch {
	case spelled(s) != "":
		d, _ := time.ParseDuration(spelled(s))
		if text, err := jsonx.FormatISODuration(d); err == nil {
			return 0, errors.New("write " + text)
		}
		return 0, errors.New("it must start with P")
	case !strings.HasPrefix(s, "P"):
		return 0, errors.New("it must start with P")
	case strings.ContainsAny(s, "Y"), strings.Contains(strings.SplitN(s, "T", 2)[0], "M"):
		return 0, errors.New("years and months have no fixed length; use weeks, days or hours")
	case strings.ContainsAny(s, ".,"):
		return 0, errors.New("use whole numbers; a fraction is not supported")
	}
	return 0, err
}

// isISODuration tells whether s has the form of ISO 8601, be it too long.
func isISODuration(s string) bool {
	_, err := jsonx.ParseISODuration(s)
	return err == nil || errors.Is(err, jsonx.ErrISODurationLong)
}

// FormatDuration writes a duration in the form that a field takes.
func FormatDuration(d time.Duration, iso bool) string {
	if text, err := jsonx.FormatISODuration(d); iso && err == nil {
		return text
	}
	return ShortDuration(d)
}

// ShortDuration writes a duration as Go does, without units that are 0.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if cutSeconds, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cutSeconds + "m"
	}
	if cutMinutes, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cutMinutes + "h"
	}
	return s
}

// UnitWord names the unit of a Duration that travels as an integer.
func UnitWord(unit int64) string {
	return map[time.Duration]string{time.Nanosecond: "nanoseconds", time.Microsecond: "microseconds",
		time.Millisecond: "milliseconds", time.Second: "seconds", time.Minute: "minutes", time.Hour: "hours"}[time.Duration(unit)]
}
