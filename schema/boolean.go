package schema

import (
	"strconv"
	"unsafe"

	"github.com/talaria-go/mcp/internal/jsonx"
)

func (d *decoder) boolean(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	start := d.s.Pos
	var v bool
	switch {
	case k == jsonx.Bool && (!n.quoted || d.coerces(n)):
		b, err := d.s.Bool()
		if err != nil {
			return d.stop(err)
		}
		v = b
		if n.quoted {
			d.coerce()
		}
	case k == jsonx.String && (n.quoted || d.coerces(n)):
		str, err := d.s.Str()
		if err != nil {
			return d.stop(err)
		}
		var known bool
		if v, known = boolText(str, !n.quoted); !known {
			d.wrongType(n, d.s.Buf[start:d.s.Pos])
			return true
		}
		if !n.quoted {
			d.coerce()
		}
	default:
		return d.mismatch(n)
	}
	if n.orZero && !v {
		return true
	}
	for i := range n.checks {
		if c := &n.checks[i]; c.boolean != nil && !c.boolean(v) {
			d.fail(n, c, strconv.FormatBool(v), "")
		}
	}
	*(*bool)(p) = v
	return true
}

// boolText reads true or false, in any case if anyCase is set.
func boolText(b []byte, anyCase bool) (v, known bool) {
	if len(b) > 5 {
		return false, false
	}
	var low [5]byte
	for i, c := range b {
		if anyCase && 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		low[i] = c
	}
	switch string(low[:len(b)]) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}
