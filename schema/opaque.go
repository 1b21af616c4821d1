package schema

import (
	"encoding/json"
	"reflect"
	"unsafe"
)

// opaque reads a value that only encoding/json and its own schema know.
func (d *decoder) opaque(n *node, p unsafe.Pointer) bool {
	start := d.s.Pos
	before := len(d.issues)
	if !d.skip() {
		return false
	}
	raw := d.s.Buf[start:d.s.Pos]
	if n.verify != nil {
		// The schema says more precisely what is wrong than the decoder would.
		if d.verify(n, n.verify, raw); len(d.issues) > before {
			return true
		}
	}
	if d.plan.opts.Output && !implements(n.typ, typeJSONUnmarshaler) && implements(n.typ, typeJSONMarshaler) {
		return true
	}
	if err := json.Unmarshal(append([]byte(nil), raw...), reflect.NewAt(n.typ, p).Interface()); err != nil {
		d.misfit(n, ruleCustom, "a value that "+n.typ.String()+" accepts", gotValue(raw, true), err.Error())
	}
	return true
}
