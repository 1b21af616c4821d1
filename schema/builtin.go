package schema

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/invopop/jsonschema"
)

// textForm is the schema of a known type with a text form.
type textForm struct {
	said                         typeName
	format, pattern, description string
	examples                     []any
}

const uuidPattern = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`

// textForms are known by name, so that this package need not import them.
var textForms = map[string]textForm{
	"github.com/google/uuid.UUID":   {said: typeName{"a UUID", ""}, format: "uuid", pattern: uuidPattern},
	"github.com/gofrs/uuid.UUID":    {said: typeName{"a UUID", ""}, format: "uuid", pattern: uuidPattern},
	"github.com/gofrs/uuid/v5.UUID": {said: typeName{"a UUID", ""}, format: "uuid", pattern: uuidPattern},
	"net/netip.Addr":                {said: typeName{"an IP address", "192.0.2.1"}, description: "An IP address.", examples: []any{"192.0.2.1", "2001:db8::1"}},
	"net/netip.Prefix":              {said: typeName{"a network in CIDR form", "192.0.2.0/24"}, description: "A network in CIDR form.", examples: []any{"192.0.2.0/24"}},
	"net/netip.AddrPort":            {said: typeName{"an IP address with a port", "192.0.2.1:80"}, description: "An IP address with a port.", examples: []any{"192.0.2.1:80"}},
	"net.IP":                        {said: typeName{"an IP address", "192.0.2.1"}, description: "An IP address.", examples: []any{"192.0.2.1", "2001:db8::1"}},
	"regexp.Regexp":                 {said: typeName{"a regular expression in RE2 syntax", ""}, description: "A regular expression in RE2 syntax."},
	"math/big.Float":                {said: typeName{"a decimal number inside a string", ""}, description: "A decimal number as text."},
	"math/big.Rat":                  {said: typeName{"a fraction inside a string", "1/3"}, description: "A fraction such as 1/3 as text."},
}

// dateNames are what values of the package's own types are called.
var dateNames = map[reflect.Type]typeName{
	reflect.TypeFor[Date]():          {"a date", "2026-01-31"},
	reflect.TypeFor[TimeOfDay]():     {"a time of day", "09:30"},
	reflect.TypeFor[NaiveDateTime](): {"a date and time without an offset", "2026-01-31T09:30:00"},
}

// textName is what values of a known type with a text form are called.
func textName(t reflect.Type) typeName {
	if said, ok := dateNames[t]; ok {
		return said
	}
	return textForms[t.PkgPath()+"."+t.Name()].said
}

// builtin fills the node of a type whose JSON form is known to this package.
func (c *compiler) builtin(n *node) bool {
	switch t := n.typ; {
	case t == timeType:
		n.kind, n.name = nodeTime, "string"
	case t == typeDuration:
		n.kind, n.name = nodeDuration, "string"
		if c.opts.Output {
			n.name, n.unit = "integer", 1 // results are written as encoding/json does
		}
	case t == typeNumber:
		n.kind, n.name = nodeNumber, "number"
	case t == typeRaw:
		n.kind = nodeRaw
	case t == typeBigInt:
		n.kind, n.name = nodeBigInt, "integer"
	case t == typeURL:
		if c.opts.Output {
			c.report("", "url.URL has no JSON form of its own", "use a string field")
		}
		n.kind, n.name = nodeURL, "string"
	case dateNames[t].name != "":
		n.kind, n.name, n.said = nodeText, "string", dateNames[t]
		n.own = func() *jsonschema.Schema { return dateSchema(t) }
	default:
		if elem, ok := nullElem(t); ok {
			c.null(n, elem)
			return true
		}
		form, ok := textForms[t.PkgPath()+"."+t.Name()]
		if !ok {
			return false
		}
		c.textType(n, form)
	}
	return true
}

func (c *compiler) textType(n *node, form textForm) {
	n.kind, n.name, n.said = nodeText, "string", form.said
	n.own = func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Format: form.format, Pattern: form.pattern,
			Description: form.description, Examples: append([]any(nil), form.examples...)}
	}
	if form.pattern != "" {
		re := regexp.MustCompile(form.pattern)
		n.checks = append(n.checks, check{tag: form.format, code: "format", want: "a " + strings.ToUpper(form.format), text: re.MatchString})
	}
}

// dateSchema is the schema of Date, TimeOfDay and NaiveDateTime. Only Date has
// a format of JSON Schema: time and date-time there demand an offset.
func dateSchema(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	switch t {
	case reflect.TypeFor[Date]():
		s.Format = "date"
	case reflect.TypeFor[TimeOfDay]():
		s.Pattern = timeOfDayPattern
	default:
		s.Pattern = naivePattern
	}
	return s
}
