package hostrules

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// What only lint reports, of schemas. A server does not link it.

// results checks a schema of results.
func (c *checker) results(text json.RawMessage) {
	if !bytes.Contains(text, []byte("schema")) {
		return // what it looks for has this in its name, and an escape of a letter there is unusual
	}
	if dialect, ok := parse(text)["$schema"].(string); ok && !strings.Contains(dialect, "2020-12") {
		c.report("dialect", "the schema of results is of %, and claude.ai refuses draft-07 there", dialect)
	}
}

// rare are the keywords that some host refuses or deletes.
var rare = []string{"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "propertyNames", "patternProperties", "uniqueItems", "not", "if",
	"dependentRequired", "dependentSchemas", "dependencies", "contains", "unevaluatedProperties", "unevaluatedItems", "additionalItems"}

// formats are those of strings that JSON Schema has.
const formats = " date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri iri iri-reference uuid uri-template json-pointer relative-json-pointer regex "

// note notes keywords and formats that some host refuses, and hidden characters.
func (c *checker) note(n *node) {
	if dialect, ok := n.schema["$schema"].(string); ok && len(c.path) == 0 && !strings.Contains(dialect, "draft-07") {
		c.report("dialect", "the schema of arguments is of %, and VS Code left out such tools", dialect)
	}
	for _, k := range []string{"description", "title"} {
		if text, ok := n.schema[k].(string); ok {
			c.hidden(k, text)
		}
	}
	for _, k := range rare {
		if v, there := n.schema[k]; there && v != false && (len(c.path) > 0 || !slices.Contains(rareRoot[:], k)) {
			c.report("keyword", "llguidance or Gemini refuses %", k)
		}
	}
	format, ok := n.schema["format"].(string)
	if !ok || strings.Contains(formats, " "+format+" ") {
		return
	}
	if n.types&kindNumber != 0 && strings.Contains(" int32 int64 float double ", " "+format+" ") {
		return
	}
	c.report("format", "llguidance or Gemini refuses the format %", format)
}
