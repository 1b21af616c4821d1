// Package facts has what the packages of this module tell each other, and users
// need not know: about compiled types, names of the specification, and
// defaults.
package facts

import "encoding/json"

// Plan is what a server asks of a schema.Plan besides its schema and decoder.
type Plan struct {
	// Headers are the arguments that clients mirror into HTTP headers, nested
	// ones too, in the order of the schema.
	Headers []Header
	// Constrained is set if a value of the Go type can break the schema. If not,
	// checking what such values encode to is a waste.
	Constrained bool
	// Narrow is the schema of arguments that every host takes; nil for results.
	Narrow json.RawMessage
	// Authored is set if methods of the types wrote a part of Narrow.
	Authored bool
}

// Header is an argument that clients mirror into an HTTP header.
type Header struct {
	Name string   // what follows "Mcp-Param-"
	Path []string // member names from the root
}
