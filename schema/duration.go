package schema

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// goDurationPattern is the syntax of time.ParseDuration; both characters that
// look like µ are taken.
const goDurationPattern = `^[+\-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$`

// isoDurationPattern is the part of ISO 8601 that has a fixed length: weeks,
// or days and a time. Years and months differ in length and are left out.
const isoDurationPattern = `^P(?:[0-9]+W|[0-9]+D(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))$`

var isoDuration = regexp.MustCompile(isoDurationPattern)

// parseGoDuration reads a duration as Go writes it. The error says what is
// wrong and what to write instead.
func parseGoDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	switch trimmed := strings.TrimSpace(s); {
	case trimmed == "":
		return 0, errors.New("write a number and a unit")
	case trimmed != s || strings.ContainsAny(s, " \t"):
		return 0, errors.New("write it without spaces")
	case isoDuration.MatchString(s):
		return 0, errors.New("ISO 8601 form is not taken here")
	case strings.Trim(s, "+-.0123456789") == "":
		return 0, fmt.Errorf("add a unit: %ss for seconds, %sm for minutes", shorten(s), shorten(s))
	case strings.ContainsAny(s, "dDwW"):
		return 0, errors.New("the largest unit is h; write two days as 48h")
	case durationSyntax.MatchString(s):
		return 0, errors.New("it is longer than 2562047h (292 years)")
	}
	return 0, errors.New("the units are ns, us, ms, s, m and h")
}

var durationSyntax = regexp.MustCompile(goDurationPattern)

// durationFault says what keeps a text from being a duration.
func durationFault(s string) string {
	if _, err := parseGoDuration(s); err != nil {
		return err.Error()
	}
	return ""
}

// parseISODuration reads a duration of ISO 8601 without years, months and
// fractions: "PT1H30M", "P2DT12H", "P3W".
func parseISODuration(s string) (time.Duration, error) {
	if !isoDuration.MatchString(s) {
		switch {
		case !strings.HasPrefix(s, "P"):
			return 0, errors.New("it must start with P")
		case strings.ContainsAny(s, "Y"), strings.Contains(strings.SplitN(s, "T", 2)[0], "M"):
			return 0, errors.New("years and months have no fixed length; use weeks, days or hours")
		case strings.ContainsAny(s, ".,"):
			return 0, errors.New("use whole numbers; a fraction is not supported")
		}
		return 0, errors.New("write days, hours, minutes and seconds in this order without gaps, as in P2DT12H0M30S, or weeks, as in P3W")
	}
	var total, number int64
	units := map[byte]int64{'W': 7 * 24 * 3600, 'D': 24 * 3600, 'H': 3600, 'M': 60, 'S': 1}
	start := 0
	for i := range len(s) {
		unit, ok := units[s[i]]
		switch {
		case ok:
			n, err := strconv.ParseInt(s[start:i], 10, 64)
			if err != nil || n > math.MaxInt64/int64(time.Second)/unit {
				return 0, errors.New("it is longer than 292 years")
			}
			number = n * unit
			if total += number; total > math.MaxInt64/int64(time.Second) {
				return 0, errors.New("it is longer than 292 years")
			}
			start = i + 1
		case s[i] == 'P' || s[i] == 'T':
			start = i + 1
		}
	}
	return time.Duration(total) * time.Second, nil
}

// formatISODuration writes d in the form that parseISODuration reads. It
// fails for a negative duration and for fractions of a second.
func formatISODuration(d time.Duration) (string, error) {
	switch {
	case d < 0:
		return "", fmt.Errorf("duration %s: the ISO 8601 form has no sign", d)
	case d%time.Second != 0:
		return "", fmt.Errorf("duration %s: the ISO 8601 form has whole seconds only", d)
	}
	hours, minutes, seconds := d/time.Hour, d/time.Minute%60, d/time.Second%60
	s := "PT"
	switch {
	case seconds != 0 && hours != 0:
		s += fmt.Sprintf("%dH%dM%dS", hours, minutes, seconds)
	case seconds != 0 && minutes != 0:
		s += fmt.Sprintf("%dM%dS", minutes, seconds)
	case minutes != 0 && hours != 0:
		s += fmt.Sprintf("%dH%dM", hours, minutes)
	case minutes != 0:
		s += fmt.Sprintf("%dM", minutes)
	case hours != 0:
		s += fmt.Sprintf("%dH", hours)
	default:
		s += fmt.Sprintf("%dS", seconds)
	}
	return s, nil
}
