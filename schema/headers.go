package schema

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// boundHeaders limits integers that are mirrored into headers to the range that
// every JSON implementation represents exactly, as the specification demands:
// server and client compare the header with the argument, and a rounded number
// would differ.
func boundHeaders(c *compiler) {
	for _, sh := range c.order {
		for i := range sh.fields {
			f := &sh.fields[i]
			n := f.node
			if f.header == "" || n.bits != 64 || n.kind != nodeInt && n.kind != nodeUint {
				continue
			}
			limit := fmt.Sprint(maxSafeInteger)
			bounds := []tags.Rule{{Name: "max", Param: limit, HasParam: true, Written: "max=" + limit}}
			if n.kind == nodeInt {
				bounds = append(bounds, tags.Rule{Name: "min", Param: "-" + limit, HasParam: true, Written: "min=-" + limit})
			}
			for _, r := range bounds {
				if ks, p := rules.Compile(r, c.target(n)); p == nil {
					n.checks = append(n.checks, ks...)
				}
			}
		}
	}
}

// findHeaders collects into p.headers the arguments that are mirrored and can
// be reached only through structs. It reports names that are used twice; names
// of headers are compared without case. path leads from the root to n. open
// holds the shapes that are being walked, since a recursive type has no end,
// and taken the names found so far.
func findHeaders(c *compiler, p *Plan, n *node, path []string, open map[any]bool, taken map[string]string) {
	if n.object == nil || open[n.object] {
		return
	}
	open[n.object] = true
	for i := range n.object.fields {
		f := &n.object.fields[i]
		at := append(append([]string(nil), path...), f.name)
		if f.header != "" {
			c.where = place{n.object.typ.String(), f.goName, f.name}
			lower := strings.ToLower(f.header)
			if old, dup := taken[lower]; dup {
				c.report(`mcp:"header=`+f.header+`"`, fmt.Sprintf("the header %q is taken by /%s", f.header, old), "header names differ in more than case")
			}
			taken[lower] = strings.Join(at, "/")
			if f.node.nullable {
				c.report(`mcp:"header=`+f.header+`"`, "only a string, a boolean or an integer can be mirrored into a header, and this may be null", "remove nullable, or the header")
			}
			p.headers = append(p.headers, facts.Header{Name: f.header, Path: at})
		}
		findHeaders(c, p, f.node, at, open, taken)
	}
	delete(open, n.object)
	if len(path) == 0 {
		unreachableHeaders(c, p)
	}
}

// unreachableHeaders reports header tags below lists, maps, unions and
// recursive types, where one header would stand for several values or for none.
func unreachableHeaders(c *compiler, p *Plan) {
	reached := map[string]bool{}
	for _, h := range p.headers {
		reached[h.Name] = true
	}
	for _, sh := range c.order {
		for i := range sh.fields {
			f := &sh.fields[i]
			if f.header != "" && (!reached[f.header] || sh.recursive) {
				c.where = place{sh.typ.String(), f.goName, f.name}
				c.report(`mcp:"header=`+f.header+`"`, "a mirrored argument must be reached through objects alone, not through lists, maps, unions or recursion", "move it up, or remove the header")
			}
		}
	}
}

// headerKeyword is the keyword by which a schema tells clients to mirror an
// argument into an HTTP header. Its value is the name of the header.
const headerKeyword = "x-mcp-header"

// maxSafeInteger is the largest integer that a JSON implementation based on
// float64 represents exactly.
const maxSafeInteger = 1<<53 - 1

// mcpKeys are the settings of the mcp tag, for suggestions.
var mcpKeys = []string{"header", "secret", "strict", "msg", "unit"}

// readMCPTag reads the mcp tag of a field into f and its node. The settings are
// about how a value travels and who may see it, for which the other tags have
// no words.
func readMCPTag(c *compiler, sf reflect.StructField, f *field) {
	n := f.node
	for _, piece := range tags.Split(sf.Tag.Get("mcp")) {
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
			checkHeader(c, n, tag, value)
		case key == "unit" && hasValue:
			unit := jsonx.DurationUnits[value]
			if unit == 0 || n.kind != nodeDuration {
				c.report(tag, "unit is for a time.Duration, and one of ns, us, ms, s, m, h", "write unit=s")
				continue
			}
			n.unit, n.name = int64(unit), "integer"
		case (key == "msg" || strings.HasPrefix(key, "msg.")) && hasValue:
			n.message = append(n.message, messageRule{strings.TrimPrefix(strings.TrimPrefix(key, "msg"), "."), value})
		default:
			fix := "known are header=Name, secret, strict, msg=text, msg.rule=text and unit=s; write a comma inside a text as \\\\,"
			if near := wording.Nearest(key, mcpKeys); near != "" && near != key {
				fix = "did you mean " + near + "?"
			}
			c.report(tag, fmt.Sprintf("unknown setting %q", piece), fix)
		}
	}
}

// checkHeader reports a header name that is not valid, and a type whose values
// have no single text form to put into a header.
func checkHeader(c *compiler, n *node, tag, name string) {
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

// headerToken reports whether s is a token as RFC 9110 defines it, which the
// name of a header has to be.
func headerToken(s string) bool {
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if !('a' <= ch|0x20 && ch|0x20 <= 'z' || '0' <= ch && ch <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", ch) >= 0) {
			return false
		}
	}
	return s != ""
}
