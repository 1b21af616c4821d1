package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// durationParam reads a duration in the tag grammar: in the form of package
// time, or an integer of nanoseconds. The integer is refused on a field with a
// unit, where it would mislead.
func durationParam(r tags.Rule, t Target) (time.Duration, *tags.Problem) {
	if d, err := time.ParseDuration(r.Param); err == nil {
		return d, nil
	}
	if p := numericFault(r); p != nil {
		return 0, p
	}
	n, err := strconv.ParseInt(r.Param, 0, 64)
	switch {
	case err != nil:
		return 0, r.Fault(fmt.Sprintf("%q is not a duration", r.Param), "write "+r.Name+"=30s or 1h30m, say")
	case t.IntegerUnit > 1:
		return 0, r.Fault("a bare number means nanoseconds in a tag", "write a unit: "+r.Name+"="+r.Param+"s, say")
	}
	return time.Duration(n), nil
}

// compileDuration compiles comparisons of durations. A Duration travels as
// text, of which the schema cannot limit the length of time, or as an integer
// of units, of which it can; a limit between two units is moved to the next one
// that means the same.
func compileDuration(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	d, p := durationParam(r, t)
	if p != nil {
		return nil, p
	}
	op := Operator(r.Name)
	c := Check{Tag: r.Written, Code: r.Name, Test: compareWith(op, SignedNumber(int64(d)))}
	if t.IntegerUnit == 0 {
		c.words(op, lexical.FormatDuration(d, t.Iso), wording.DurationWords, "a duration other than ")
		c.Note = "Must be " + c.Want + "."
		return []Check{c}, nil
	}
	unit := time.Duration(t.IntegerUnit)
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
		return nil, r.Fault(fmt.Sprintf("%s is no whole number of the field's unit", lexical.ShortDuration(d)), "write a multiple of "+lexical.ShortDuration(unit))
	}
	number := json.Number(strconv.FormatInt(int64(n), 10))
	c.Code = boundCode(op)
	c.words(op, string(number), wording.NumberWords, "a whole number of "+lexical.UnitWord(t.IntegerUnit)+" other than ")
	if c.Bound == nil && op != "ne" {
		c.Want += " " + lexical.UnitWord(t.IntegerUnit)
	}
	c.Emit = func(s *jsonschema.Schema) { addBound(s, op, number) }
	return []Check{c}, nil
}

// words sets what a comparison with a limit expects. other is the phrase in
// front of the limit of ne.
func (c *Check) words(op, limit string, words *wording.BoundWords, other string) {
	c.Bound = wording.BoundOf(op, limit, words)
	switch {
	case c.Bound != nil:
		c.Want = c.Bound.Phrase()
	case op == "ne":
		c.Want = other + limit
	default:
		c.Want = fmt.Sprintf(words.Exactly, limit)
	}
}

// compileTime compiles comparisons of points in time with the parameter, or for
// a time.Time without a parameter with the moment of the call. No keyword
// expresses that, so the description does.
func compileTime(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	op := Operator(r.Name)
	compare, shown, p := timeComparison(r, t)
	if p != nil {
		return nil, p
	}
	words := wording.TimeWords
	if shown == "now" {
		words = wording.NowWords
	}
	c := Check{Tag: r.Written, Code: r.Name, Bound: wording.BoundOf(op, shown, words)}
	c.Want = c.Bound.Phrase()
	c.Note = "Must be " + c.Want + "."
	holds := ordering(op)
	c.Test = ValueTest(func(v reflect.Value) bool { return holds(compare(v)) })
	return []Check{c}, nil
}

// timeComparison returns a function that compares a value with the parameter,
// and the parameter as messages show it.
func timeComparison(r tags.Rule, t Target) (func(reflect.Value) int, string, *tags.Problem) {
	switch {
	case t.Kind == KindTime && !r.HasParam:
		return func(v reflect.Value) int { return timeOf(v).Compare(time.Now()) }, "now", nil
	case t.Kind == KindTime:
		at, fault := lexical.ParseRFC3339([]byte(r.Param))
		if fault != "" {
			day, err := civil.ParseDate(r.Param)
			if err != nil {
				return nil, "", r.Fault(fmt.Sprintf("%q is neither a date nor a time", r.Param), "write "+r.Name+"=2024-01-31, or 2024-01-31T10:00:00Z, or no parameter for the present moment")
			}
			at = day.In(time.UTC)
		}
		return func(v reflect.Value) int { return timeOf(v).Compare(at) }, at.Format(time.RFC3339Nano), nil
	case typeIs[civil.Date](t):
		day, err := civil.ParseDate(r.Param)
		if err != nil {
			return nil, "", r.Fault(fmt.Sprintf("%q is not a date", r.Param), "write "+r.Name+"=2024-01-31, say")
		}
		return func(v reflect.Value) int { return v.Interface().(civil.Date).Compare(day) }, r.Param, nil
	case typeIs[civil.TimeOfDay](t):
		at, err := civil.ParseTimeOfDay(r.Param)
		if err != nil {
			return nil, "", r.Fault(fmt.Sprintf("%q is not a time of day", r.Param), "write "+r.Name+"=09:30, say")
		}
		return func(v reflect.Value) int { return v.Interface().(civil.TimeOfDay).Compare(at) }, r.Param, nil
	case typeIs[civil.NaiveDateTime](t):
		at, err := civil.ParseNaiveDateTime(r.Param)
		if err != nil {
			return nil, "", r.Fault(fmt.Sprintf("%q is not a local date and time", r.Param), "write "+r.Name+"=2024-01-31T09:30:00, say")
		}
		return func(v reflect.Value) int { return v.Interface().(civil.NaiveDateTime).Compare(at) }, r.Param, nil
	}
	return nil, "", r.Fault(r.Name+" does not apply to "+t.Type.String(), "use Date, TimeOfDay, NaiveDateTime or time.Time")
}

// timeOf returns the time in a value of time.Time, or of a type derived from
// it.
func timeOf(v reflect.Value) time.Time {
	return v.Convert(TimeType).Interface().(time.Time)
}

// TimeType is the type time.Time.
var TimeType = reflect.TypeFor[time.Time]()
