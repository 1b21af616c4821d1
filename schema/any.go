package schema

import (
	"bytes"
	"encoding/json"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// readAny reads a value of unknown type as map[string]any, []any, string, bool,
// nil or json.Number. Numbers stay text because float64 would round integers
// beyond 2^53. A member that occurs twice is reported as everywhere else.
//
// It returns false only when the walk ends, as the methods of decoder do. The
// value itself is not counted in d.values: the caller has counted it. Recursion
// is bounded by the scanner's depth limit.
func readAny(d *decoder) (any, bool) {
	switch d.s.Peek() {
	case jsonx.Object:
		return readAnyObject(d)
	case jsonx.Array:
		return readAnyArray(d)
	case jsonx.String:
		b, err := d.s.Str()
		if err != nil {
			return nil, d.stop(err)
		}
		return string(b), true
	case jsonx.Number:
		text, _, err := d.s.Number()
		if err != nil {
			return nil, d.stop(err)
		}
		return json.Number(text), true
	case jsonx.Bool:
		b, err := d.s.Bool()
		if err != nil {
			return nil, d.stop(err)
		}
		return b, true
	case jsonx.Null:
		if err := d.s.Null(); err != nil {
			return nil, d.stop(err)
		}
		return nil, true
	}
	_, err := d.s.Skip()
	return nil, d.stop(err)
}

// readPart reads a value inside a value of type any. Such values are counted
// one by one, so that a deep any cannot hold more values than a document may
// have.
func readPart(d *decoder) (any, bool) {
	if d.values++; d.values > d.plan.maxValues {
		return nil, d.tooMany()
	}
	return readAny(d)
}

// readAnyObject reads an object with unknown members. Of two members with the
// same name the last is kept, although the document is refused in that case.
func readAnyObject(d *decoder) (any, bool) {
	out := map[string]any{}
	more, err := d.s.ObjectStart()
	for more && err == nil {
		var b []byte
		if b, err = d.s.Name(); err != nil {
			break
		}
		name := string(b)
		d.pushName(name)
		if _, dup := out[name]; dup {
			d.duplicate()
		}
		v, ok := readPart(d)
		if !ok {
			return nil, false
		}
		d.pop()
		out[name] = v
		more, err = d.s.ObjectNext()
	}
	if err != nil {
		return nil, d.stop(err)
	}
	return out, true
}

// readAnyArray reads an array with unknown items. An empty array gives an empty
// slice, not nil, so that it is encoded as [] again.
func readAnyArray(d *decoder) (any, bool) {
	out := []any{}
	more, err := d.s.ArrayStart()
	for more && err == nil {
		d.pushIndex(len(out))
		v, ok := readPart(d)
		if !ok {
			return nil, false
		}
		d.pop()
		out = append(out, v)
		more, err = d.s.ArrayNext()
	}
	if err != nil {
		return nil, d.stop(err)
	}
	return out, true
}

// readOpaque reads a value whose form is known to encoding/json and to the
// type's own schema only. The text is first checked against that schema
// (n.verify), whose issues are more precise than an error of UnmarshalJSON, and
// then decoded by jsonx.Unmarshal, in the form that the schema means.
//
// For a result type that has MarshalJSON and no UnmarshalJSON the value is
// checked but not decoded: results are written and never read back.
// UnmarshalJSON gets a copy of the text, because it may keep it.
func readOpaque(d *decoder, n *node, p slot) bool {
	start := d.s.Pos
	before := len(d.issues)
	if !d.skip() {
		return false
	}
	raw := d.s.Buf[start:d.s.Pos]
	if n.verify != nil {
		// The schema says more precisely what is wrong than the decoder would.
		fitted := d.verify(n, n.verify, raw)
		if len(d.issues) > before {
			return true
		}
		if !bytes.Equal(fitted, raw) {
			d.coerce()
			raw = fitted
		}
	}
	if d.plan.opts.Output && !implements(n.typ, typeJSONUnmarshaler) && implements(n.typ, typeJSONMarshaler) {
		return true
	}
	if err := jsonx.Unmarshal(append([]byte(nil), raw...), p.value(n.typ).Addr().Interface()); err != nil {
		d.misfit(n, wording.RuleCustom, "a value that "+n.typ.String()+" accepts", wording.Got(raw, true), err.Error())
	}
	return true
}
