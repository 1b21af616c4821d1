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

// GoDurationPattern is the syntax of time.ParseDuration. Both characters that
// look like µ are accepted.
const GoDurationPattern = `^[+\-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$`

// IsoDurationPattern is the part of ISO 8601 durations that has a fixed length:
// weeks, or days and a time. Years and months differ in length and are left
// out.
const IsoDurationPattern = `^P(?:[0-9]+W|[0-9]+D(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))$`

// ParseDuration reads a duration in the form of package time. The error says
// what is wrong and what to write instead; it has no prefix, because it becomes
// part of a longer message.
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

// unitWords replaces the words that models and people write for units, longer
// ones first, and removes what is between them.
var unitWords = strings.NewReplacer("nanoseconds", "ns", "nanosecond", "ns", "microseconds", "us", "microsecond", "us",
	"milliseconds", "ms", "millisecond", "ms", "seconds", "s", "second", "s", "secs", "s", "sec", "s",
	"minutes", "m", "minute", "m", "mins", "m", "min", "m", "hours", "h", "hour", "h", "hrs", "h", "hr", "h",
	"and", "", ",", "", " ", "", "\t", "", "\u00a0", "")

// spelled returns the duration that a text with words or spaces means, in the
// form of package time: "5m" for "5 minutes". It returns "" if that is
// unclear. It is for advice only; such text is not accepted.
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

// durationSyntax distinguishes a duration that is too long from other text.
var durationSyntax = regex.Lazy(GoDurationPattern)

// DurationFault returns what keeps a text from being a duration, or "" if it is
// one.
func DurationFault(s string) string {
	if _, err := ParseDuration(s); err != nil {
		return err.Error()
	}
	return ""
}

// ParseISODuration is jsonx.ParseISODuration with advice in its error.
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

// isISODuration reports whether s has the form of an ISO 8601 duration, even if
// it is too long for a time.Duration.
func isISODuration(s string) bool {
	_, err := jsonx.ParseISODuration(s)
	return err == nil || errors.Is(err, jsonx.ErrISODurationLong)
}

// FormatDuration returns a duration as text. With iso set it has the form of
// ISO 8601, unless it has a fraction of a second, which that form cannot
// express.
func FormatDuration(d time.Duration, iso bool) string {
	if text, err := jsonx.FormatISODuration(d); iso && err == nil {
		return text
	}
	return ShortDuration(d)
}

// ShortDuration is d.String without units that are 0 at the end: "1h" and not
// "1h0m0s".
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

// UnitWord returns the plural of a unit, which is given in nanoseconds.
func UnitWord(unit int64) string {
	return map[time.Duration]string{time.Nanosecond: "nanoseconds", time.Microsecond: "microseconds",
		time.Millisecond: "milliseconds", time.Second: "seconds", time.Minute: "minutes", time.Hour: "hours"}[time.Duration(unit)]
}
