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
	want := boundWant(op, d.String())
	c := check{tag: r.written, code: r.name, want: want, integer: compareWith(op, int64(d))}
	if t.integerUnit == 0 {
		c.note = "Must be " + want + "."
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
		return nil, r.fault(fmt.Sprintf("%s is no whole number of the field's unit", d), "write a multiple of "+unit.String())
	}
	number := json.Number(strconv.FormatInt(int64(n), 10))
	c.code, c.want = boundCode(op), boundWant(op, string(number))
	c.emit = func(s *jsonschema.Schema) { addBound(s, op, number) }
	return []check{c}, nil
}

// compileTime compares points in time: with the constant in the parameter, or
// for a time.Time without one, with the moment of the call.
func compileTime(r rule, t target) ([]check, *problem) {
	op := operator(r.name)
	compare, shown, p := timeComparison(r, t)
	if p != nil {
		return nil, p
	}
	words := map[string]string{"min": "not before ", "max": "not after ", "gt": "after ", "lt": "before "}
	want := words[op] + shown
	holds := compareWith(op, int64(0))
	return []check{{
		tag: r.written, code: r.name, want: want, note: "Must be " + want + ".",
		value: func(v reflect.Value) bool { return holds(int64(compare(v))) },
	}}, nil
}

var timeType = reflect.TypeFor[time.Time]()

// timeComparison returns how to compare a value with the parameter, and the
// parameter in words.
func timeComparison(r rule, t target) (func(reflect.Value) int, string, *problem) {
	switch {
	case t.kind == kindTime && !r.hasParam:
		return func(v reflect.Value) int { return timeOf(v).Compare(time.Now()) }, "the present moment", nil
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
		return func(v reflect.Value) int { return v.Interface().(Date).Compare(day) }, day.String(), nil
	case typeIs[TimeOfDay](t):
		at, err := ParseTimeOfDay(r.param)
		if err != nil {
			return nil, "", r.fault(fmt.Sprintf("%q is not a time of day", r.param), "write "+r.name+"=09:30, say")
		}
		return func(v reflect.Value) int { return v.Interface().(TimeOfDay).Compare(at) }, at.String(), nil
	case typeIs[NaiveDateTime](t):
		at, err := ParseNaiveDateTime(r.param)
		if err != nil {
			return nil, "", r.fault(fmt.Sprintf("%q is not a local date and time", r.param), "write "+r.name+"=2024-01-31T09:30:00, say")
		}
		return func(v reflect.Value) int { return v.Interface().(NaiveDateTime).Compare(at) }, at.String(), nil
	}
	return nil, "", r.fault(r.name+" does not apply to "+t.typ.String(), "use Date, TimeOfDay, NaiveDateTime or time.Time")
}

func timeOf(v reflect.Value) time.Time {
	return v.Convert(timeType).Interface().(time.Time)
}
