package schema

import (
	"strconv"
	"strings"
)

// Problem is one fault in the declaration of a type.
type Problem struct {
	// Type is the Go type that declares the field. For a field of an embedded struct
	// it is that struct, where the fault must be fixed.
	Type string
	// Field is the Go name of the field; "" for the type itself.
	Field string
	// JSONName is the name of the member; "" if there is none.
	JSONName string
	// Tag is the tag at fault, with its key; "" if it is the type.
	Tag string
	// Message says what is wrong.
	Message string
	// Fix says what to write instead; "" if there is nothing to suggest.
	Fix string
}

// String returns the problem on one line.
func (p Problem) String() string {
	s := p.Type
	if p.Field != "" {
		s += "." + p.Field
		if p.JSONName != "" && p.JSONName != p.Field {
			s += " (json " + strconv.Quote(p.JSONName) + ")"
		}
	}
	if p.Tag != "" {
		s += ": " + p.Tag + " - " + p.Message
	} else {
		s += ": " + p.Message
	}
	if p.Fix != "" {
		s += "; " + p.Fix
	}
	return s
}

// RegistrationError lists every fault found in a type and its tags, so that
// they can be fixed in one go.
type RegistrationError struct {
	Type     string // the type that was compiled
	Problems []Problem
}

// Error returns the problems, one a line when there are several.
func (e *RegistrationError) Error() string {
	if len(e.Problems) == 1 {
		return "schema: " + e.Problems[0].String()
	}
	var b strings.Builder
	b.WriteString("schema: " + strconv.Itoa(len(e.Problems)) + " problems in " + e.Type)
	for _, p := range e.Problems {
		b.WriteString("\n- " + p.String())
	}
	return b.String()
}
