package jsonx

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// DurationUnits are the units that the tag mcp:"unit=…" can name. The map must
// not be modified.
var DurationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour,
}

var durationType = reflect.TypeFor[time.Duration]()

// durationForm is the form in which a time.Duration travels. The zero value is
// the text that time.Duration.String returns.
type durationForm struct {
	unit time.Duration // of an integer; 0 for text
	iso  bool          // the text is of ISO 8601
}

// durationFormOf reads the form from the tags mcp:"unit=…" and
// jsonschema:"format=duration" of a field. The form applies to durations of the
// field's type that have no struct or map of their own in between: behind
// pointers, and for ISO 8601 also as elements of a list. Tags were checked when
// the schema was compiled, so mistakes are ignored here.
func durationFormOf(tag reflect.StructTag) (form durationForm) {
	if !strings.Contains(string(tag), "unit=") && !strings.Contains(string(tag), "format=duration") {
		return form
	}
	for piece := range tagPieces(tag.Get("mcp")) {
		if unit, ok := strings.CutPrefix(piece, "unit="); ok {
			form.unit = DurationUnits[unit]
		}
	}
	for piece := range tagPieces(tag.Get("jsonschema")) {
		form.iso = form.iso || piece == "format=duration"
	}
	return form
}

// tagPieces iterates over the parts of a tag between commas that have no
// backslash in front of them.
func tagPieces(tag string) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := range len(tag) {
			if tag[i] == ',' && (i == 0 || tag[i-1] != '\\') {
				if !yield(tag[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(tag[start:])
	}
}

// inside returns the form for the elements of a list.
func (f durationForm) inside() durationForm { return durationForm{iso: f.iso} }

// append appends d in the form. Nothing is rounded: a duration that the form
// cannot express is an error.
func (f durationForm) append(dst []byte, d time.Duration) ([]byte, error) {
	switch {
	case f.unit != 0 && d%f.unit != 0:
		return dst, fmt.Errorf("duration %s is not a whole number of the unit %s that its tag names; round it, or name a smaller unit", d, f.unit)
	case f.unit != 0:
		return strconv.AppendInt(dst, int64(d/f.unit), 10), nil
	case f.iso:
		text, err := FormatISODuration(d)
		return AppendString(dst, text), err
	}
	dst = append(dst, '"')
	dst = append(dst, d.String()...)
	return append(dst, '"'), nil
}

// FormatISODuration writes d in the form that ParseISODuration reads. It
// fails for a negative duration and for fractions of a second.
func FormatISODuration(d time.Duration) (string, error) {
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

// Errors of ParseISODuration.
var (
	ErrISODuration     = errors.New("write days, hours, minutes and seconds in this order without gaps, as in P2DT12H0M30S, or weeks, as in P3W")
	ErrISODurationLong = errors.New("it is longer than 292 years")
)

// ParseISODuration reads a duration of ISO 8601 without years, months and
// fractions: "PT1H30M", "P2DT12H", "P3W".
func ParseISODuration(s string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok {
		return 0, ErrISODuration
	}
	total, long := int64(0), false
	// unit takes a number with the letter c, if one is next.
	unit := func(c byte, seconds int64) bool {
		i := digits([]byte(rest), 0)
		if i == 0 || i == len(rest) || rest[i] != c {
			return false
		}
		n, err := strconv.ParseInt(rest[:i], 10, 64)
		const limit = math.MaxInt64 / int64(time.Second)
		if err != nil || n > limit/seconds || total > limit-n*seconds {
			long = true
		} else {
			total += n * seconds
		}
		rest = rest[i+1:]
		return true
	}
	if !unit('W', 7*24*3600) {
		days := unit('D', 24*3600)
		if rest, ok = strings.CutPrefix(rest, "T"); ok {
			// Nothing between two units may be left out.
			h := unit('H', 3600)
			m := unit('M', 60)
			if !(h && !m) && unit('S', 1) || h || m {
				days = true
			} else {
				return 0, ErrISODuration
			}
		}
		if !days {
			return 0, ErrISODuration
		}
	}
	switch {
	case rest != "":
		return 0, ErrISODuration
	case long:
		return 0, ErrISODurationLong
	}
	return time.Duration(total) * time.Second, nil
}

// nullPackage is the import path of the package with the generic type Null,
// which cannot be imported here because it lies above.
const nullPackage = "github.com/talaria-go/mcp/schema"

// isNull reports whether t is a schema.Null. This package has to know the type
// because the tags of a field are about the value inside.
func isNull(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == nullPackage && strings.HasPrefix(t.Name(), "Null[")
}
