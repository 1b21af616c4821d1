package schema

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// headerKeyword marks an argument that clients mirror into an HTTP header.
const headerKeyword = "x-mcp-header"

// maxSafeInteger is the largest integer that every JSON implementation keeps.
const maxSafeInteger = 1<<53 - 1

var mcpKeys = []string{"header", "secret", "strict", "msg", "unit"}

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour,
}

// mcpTag reads the mcp tag of a field.
func (c *compiler) mcpTag(sf reflect.StructField, f *field) {
	n := f.node
	for _, piece := range splitTag(sf.Tag.Get("mcp")) {
		key, value, hasValue := strings.Cut(piece, "=")
		tag := `mcp:"` + piece + `"`
		switch {
		case key == "secret" && !hasValue:
			n.secret = true
			n.note.writing = true
		case key == "strict" && !hasValue:
			n.strict = true
		case key == "header" && hasValue:
			f.header = value
			c.headerName(n, tag, value)
		case key == "unit" && hasValue:
			unit := durationUnits[value]
			if unit == 0 || n.kind != nodeDuration {
				c.report(tag, "unit is for a time.Duration, and one of ns, us, ms, s, m, h", "write unit=s")
				continue
			}
			if c.opts.Output {
				c.report(tag, "results carry a time.Duration as nanoseconds", "use an integer field and convert")
				continue
			}
			n.unit, n.name = int64(unit), "integer"
		case (key == "msg" || strings.HasPrefix(key, "msg.")) && hasValue:
			n.message = append(n.message, messageRule{strings.TrimPrefix(strings.TrimPrefix(key, "msg"), "."), value})
		default:
			fix := "known are header=Name, secret, strict, msg=text, msg.rule=text and unit=s; write a comma inside a text as \\\\,"
			if near := nearest(key, mcpKeys); near != "" && near != key {
				fix = "did you mean " + near + "?"
			}
			c.report(tag, fmt.Sprintf("unknown setting %q", piece), fix)
		}
	}
}

// headerName checks the name that mirrors an argument into a header.
func (c *compiler) headerName(n *node, tag, name string) {
	if !headerToken(name) {
		c.report(tag, "a header name is a token of RFC 9110: letters, digits and !#$%&'*+-.^_`|~", "")
	}
	switch n.kind {
	case nodeString, nodeInt, nodeUint, nodeBool, nodeTime, nodeText, nodeBytes, nodeURL:
	case nodeDuration:
	default:
		c.report(tag, "only a string, a boolean or an integer can be mirrored into a header", "remove the header")
	}
}

func headerToken(s string) bool {
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if !('a' <= ch|0x20 && ch|0x20 <= 'z' || '0' <= ch && ch <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", ch) >= 0) {
			return false
		}
	}
	return s != ""
}
