package schema

import (
	"encoding"
	"encoding/base64"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// str reads into a Go string.
func (d *decoder) str(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	var v string
	switch {
	case k == jsonx.String:
		b, err := d.s.Str()
		if err != nil {
			return d.stop(err)
		}
		v = string(b)
	case k == jsonx.Number && n.plain && d.coerces(n):
		text, plain, err := d.s.Number()
		if err != nil {
			return d.stop(err)
		}
		if !plain || string(text) == "-0" {
			d.wrongType(n, text)
			return true
		}
		v = string(text)
		d.coerce()
	default:
		return d.mismatch(n)
	}
	for i := range n.checks {
		if c := &n.checks[i]; c.text != nil && !c.text(v) {
			return d.badText(n, p, v)
		}
	}
	*(*string)(p) = v
	return true
}

// badText handles a string that breaks a check: an enum value with space
// around it is taken without the space.
func (d *decoder) badText(n *node, p unsafe.Pointer, v string) bool {
	if n.orZero && v == "" {
		return true
	}
	if trimmed := strings.TrimSpace(v); trimmed != v && d.coerces(n) && hasCode(n, "enum") && passesText(n, trimmed) {
		*(*string)(p) = trimmed
		d.coerce()
		return true
	}
	d.failText(n, v)
	*(*string)(p) = v
	return true
}

// failText records every check that a text breaks.
func (d *decoder) failText(n *node, v string) {
	for i := range n.checks {
		c := &n.checks[i]
		if c.text == nil || c.text(v) {
			continue
		}
		why := ""
		if c.why != nil {
			why = c.why(v)
		}
		d.fail(n, c, quoted(v), why)
	}
}

func passesText(n *node, v string) bool {
	for i := range n.checks {
		if c := &n.checks[i]; c.text != nil && !c.text(v) {
			return false
		}
	}
	return true
}

// text reads the types that travel as strings and are not strings in Go.
func (d *decoder) text(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	if k != jsonx.String {
		return d.mismatch(n)
	}
	b, err := d.s.Str()
	if err != nil {
		return d.stop(err)
	}
	switch n.kind {
	case nodeBytes:
		d.bytes(n, p, b)
	case nodeTime:
		d.time(n, p, b)
	case nodeDuration:
		d.duration(n, p, string(b))
	case nodeURL:
		u, err := url.Parse(string(b))
		if err != nil {
			d.misfit(n, "format", n.describe(), quoted(string(b)), "")
			return true
		}
		*(*url.URL)(p) = *u
	default:
		d.unmarshal(n, p, b)
	}
	return true
}

func (d *decoder) bytes(n *node, p unsafe.Pointer, b []byte) {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	size, err := base64.StdEncoding.Decode(out, b)
	if err != nil || strings.ContainsAny(string(b), "\r\n") {
		d.misfit(n, "pattern", n.describe(), quoted(string(b)), "use the alphabet A-Z a-z 0-9 + / with = at the end, without line breaks")
		return
	}
	out = out[:size]
	for i := range n.checks {
		if c := &n.checks[i]; c.count != nil && !c.count(size) {
			d.fail(n, c, byteWords.quantity(size), "")
		}
	}
	*(*[]byte)(p) = out
}

func (d *decoder) time(n *node, p unsafe.Pointer, b []byte) {
	t, fault := parseRFC3339(b)
	if fault != "" {
		d.misfit(n, "format", n.describe(), quoted(string(b)), fault)
		return
	}
	*(*time.Time)(p) = t
}

func (d *decoder) duration(n *node, p unsafe.Pointer, s string) {
	parse, rule := parseGoDuration, "pattern"
	if n.iso {
		parse, rule = parseISODuration, "format"
	}
	v, err := parse(s)
	if err != nil {
		d.misfit(n, rule, n.describe(), quoted(s), err.Error())
		return
	}
	for i := range n.checks {
		if c := &n.checks[i]; c.integer != nil && !c.integer(int64(v)) {
			d.fail(n, c, quoted(s), "")
		}
	}
	*(*time.Duration)(p) = v
}

// unmarshal reads a type with a text form.
func (d *decoder) unmarshal(n *node, p unsafe.Pointer, b []byte) {
	if n.orZero && len(b) == 0 {
		return
	}
	if len(n.checks) > 0 && !passesText(n, string(b)) {
		d.failText(n, string(b))
		return
	}
	u, ok := reflect.NewAt(n.typ, p).Interface().(encoding.TextUnmarshaler)
	if !ok {
		return // a result type that can only be written
	}
	own := append([]byte(nil), b...) // it may keep them
	if err := u.UnmarshalText(own); err != nil {
		d.badForm(n, string(b), err)
	}
}

// badForm records that a type does not take a text. What the package's own
// types say is meant to be read; other errors speak to programmers, and are
// shown only where the type has no name here.
func (d *decoder) badForm(n *node, text string, err error) {
	rule := "format"
	if s := n.textSchema(); s.Format == "" && s.Pattern != "" {
		rule = "pattern"
	} else if s.Format == "" {
		rule = ruleCustom
	}
	var bad *formError
	switch {
	case errors.As(err, &bad):
		d.misfit(n, rule, n.describe(), quoted(text), bad.fault)
		return
	case n.said.name != "" || d.hides(n):
		d.misfit(n, rule, n.describe(), quoted(text), "")
		return
	}
	is := Issue{Path: pointer(d.path), Rule: rule, Expected: n.describe(), Got: quoted(text), Message: "is not valid: " + err.Error()}
	if !strings.Contains(is.Message, text) {
		is.Message += "; got " + is.Got
	}
	d.add(n, is)
}
