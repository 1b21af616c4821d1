package raw

// failure says why a value is not valid: a keyword that it breaks, or a group of
// such failures.
type failure struct {
	Path    []string // names and indexes from the document to the value
	Keyword string   // the keyword, "" for a group, "false" for the schema false
	Want    any      // what the keyword holds; see the keywords below
	Got     any      // the value, or its size for the keywords about sizes

	// Names are the members that are missing (required, dependentRequired) or
	// not allowed (additionalProperties, unevaluatedProperties).
	Names []string
	// Causes are the failures of a group, of each alternative of anyOf and
	// oneOf, and of a name that propertyNames refuses.
	Causes []*failure
}

// several tells for oneOf whether the value is valid by more than one of the
// schemas.
func (f *failure) several() bool { return f.Keyword == "oneOf" && len(f.Causes) == 0 }
