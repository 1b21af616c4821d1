package raw

// failure is why a value is not valid: one keyword that it breaks, or a group
// of such failures. A validation returns one; flatten makes issues of it. The
// types of Want and Got depend on the keyword; rawWords knows them.
type failure struct {
	Path    []string // names and indexes from the document to the value
	Keyword string   // the keyword, "" for a group, "false" for the schema false
	Want    any      // what the keyword holds; see the keywords below
	Got     any      // the value, or its size for the keywords about sizes
	Open    bool     // of a bound that is not a value itself, as the description says

	// Names are the members that are missing (required, dependentRequired) or
	// not allowed (additionalProperties, unevaluatedProperties).
	Names []string
	// Hints say what to write instead of the first names that are not allowed.
	Hints []string
	// Causes are the failures of a group, of each alternative of anyOf and
	// oneOf, and of a name that propertyNames refuses.
	Causes []*failure
}

// several reports, for a failure of oneOf, whether the value is valid by more
// than one of the schemas rather than by none.
func (f *failure) several() bool { return f.Keyword == "oneOf" && len(f.Causes) == 0 }
