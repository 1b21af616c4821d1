package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/invopop/jsonschema"
)

// durationParam reads a Duration as the tag grammar does: "1h30m", or an
// integer of nanoseconds.
func durationParam(r rule, t target) (time.Duration, *problem) {
	if d, err := time.ParseDuration(r.param); err == nil {
		return d, nil
	}
	if p := numericFault(r); p != nil {
		return 0, p
	}
	n, err := strconv.ParseInt(r.param, 0, 64)
	switch {
	case err != nil:
		return 0, r.fault(fmt.Sprintf("%q is not a duration", r.param), "write "+r.name+"=30s or 1h30m, say")
	case t.integerUnit > 1:
		return 0, r.fault("a bare number means nanoseconds in a tag", "write a unit: "+r.name+"="+r.param+"s, say")
	}
	return time.Duration(n), nil
}

// compileDuration compares nanoseconds. On the wire a Duration is text, of
// which the schema cannot say the length of time, or an integer of units.
func compileDuration(r rule, t target) ([]check, *problem) {
	d, p := durationParam(r, t)
	if p != nil {
		return nil, p
	}
	op := operator(r.name)
	c := check{tag: r.written, code: r.name, integer: compareWith(op, int64(d))}
	if t.integerUnit == 0 {
		c.words(op, durationText(d, t.iso), durationWords, "a duration other than ")
		c.note = "Must be " + c.want + "."
		return []check{c}, nil
	}
	unit := time.Duration(t.integerUnit)
	floor, rest := d/unit, d%unit
	if rest < 0 {
		floor--
	}
	n := floor
	switch {
	case rest == 0:
	case op == "min", op == "lt":
		n++ // the next whole number of units
	case op == "len", op == "eq", op == "ne":
		return nil, r.fault(fmt.Sprintf("%s is no whole number of the field's unit", shortDuration(d)), "write a multiple of "+shortDuration(unit))
	}
	number := json.Number(strconv.FormatInt(int64(n), 10))
	c.code = boundCode(op)
	c.words(op, string(number), numberWords, "a whole number of "+unitWord(t.integerUnit)+" other than ")
	if c.bound == nil && op != "ne" {
		c.want += " " + unitWord(t.integerUnit)
	}
	c.emit = func(s *jsonschema.Schema) { addBound(s, op, number) }
	return []check{c}, nil
}

// words sets what a comparison with a limit expects; other comes before the
// limit of ne.
func (c *check) words(op, limit string, words *boundWords, other string) {
	c.bound = boundOp(op, limit, words)
	switch {
	case c.bound != nil:
		c.want = c.bound.phrase()
	case op == "ne":
		c.want = other + limit
	default:
		c.want = fmt.Sprintf(words.exactly, limit)
	}
}

// durationText writes a duration in the form that a field takes.
func durationText(d time.Duration, iso bool) string {
	if text, err := formatISODuration(d); iso && err == nil {
		return text
	}
	return shortDuration(d)
}

// compileTime compares points in time: with the constant in the parameter, or
// for a time.Time without one, with the moment of the call.
func compileTime(r rule, t target) ([]check, *problem) {
	op := operator(r.name)
	compare, shown, p := timeComparison(r, t)
	if p != nil {
		return nil, p
	}
	words := timeWords
	if shown == "now" {
		words = nowWords
	}
	c := check{tag: r.written, code: r.name, bound: boundOp(op, shown, words)}
	c.want = c.bound.phrase()
	c.note = "Must be " + c.want + "."
	holds := compareWith(op, int64(0))
	c.value = func(v reflect.Value) bool { return holds(int64(compare(v))) }
	return []check{c}, nil
}

var timeType = reflect.TypeFor[time.Time]()

// timeComparison returns how to compare a value with the parameter, and the
// parameter in words.
func timeComparison(r rule, t target) (func(reflect.Value) int, string, *problem) {
	switch {
	case t.kind == kindTime && !r.hasParam:
		return func(v reflect.Value) int { return timeOf(v).Compare(time.Now()) }, "now", nil
	case t.kind == kindTime:
		at, fault := parseRFC3339([]byte(r.param))
		if fault != "" {
			day, err := ParseDate(r.param)
			if err != nil {
				return nil, "", r.fault(fmt.Sprintf("%q is neither a date nor a time", r.param), "write "+r.name+"=2024-01-31, or 2024-01-31T10:00:00Z, or no parameter for the present moment")
			}
			at = day.In(time.UTC)
		}
		return func(v reflect.Value) int { return timeOf(v).Compare(at) }, at.Format(time.RFC3339Nano), nil
	case typeIs[Date](t):
		day, err := ParseDate(r.param)
		if err != nil {
			return nil, "", r.fault(fmt.Sprintf("%q is not a date", r.param), "write "+r.name+"=2024-01-31, say")
		}
		return func(v reflect.Value) int { return v.Interface().(Date).Compare(day) }, r.param, nil
	case typeIs[TimeOfDay](t):
		at, err := ParseTimeOfDay(r.param)
		if err != nil {
			return nil, "", r.fault(fmt.Sprintf("%q is not a time of day", r.param), "write "+r.name+"=09:30, say")
		}
		return func(v reflect.Value) int { return v.Interface().(TimeOfDay).Compare(at) }, r.param, nil
	case typeIs[NaiveDateTime](t):
		at, err := ParseNaiveDateTime(r.param)
		if err != nil {
			return nil, "", r.fault(fmt.Sprintf("%q is not a local date and time", r.param), "write "+r.name+"=2024-01-31T09:30:00, say")
		}
		return func(v reflect.Value) int { return v.Interface().(NaiveDateTime).Compare(at) }, r.param, nil
	}
	return nil, "", r.fault(r.name+" does not apply to "+t.typ.String(), "use Date, TimeOfDay, NaiveDateTime or time.Time")
}

func timeOf(v reflect.Value) time.Time {
	return v.Convert(timeType).Interface().(time.Time)
}
