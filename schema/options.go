package schema

// Options decide how types are compiled. The zero value is the default, and
// nil stands for it.
type Options struct {
	// Strict turns coercion off: "5" is then no integer. The default is
	// lenient, because models and clients do send such values.
	Strict bool
	// RequiredNonZero makes validate:"required" refuse 0 and false too, as
	// go-playground/validator does, and says so in the schema.
	RequiredNonZero bool
	// AllowServerState permits rules that look at the server's disk, such as
	// file and dir. They let a caller probe the machine.
	AllowServerState bool
	// Output compiles for values that the server sends: pointers without
	// omitempty may be null, and defaults are only advertised.
	Output bool
	// MaxDepth limits nesting of arguments; 0 means 32.
	MaxDepth int
	// MaxNodes limits the number of values in one document; 0 means 10,000.
	MaxNodes int
	// Rules are custom validate tags.
	Rules []Rule
	// StructRules are checks on whole structs.
	StructRules []*StructRule
	// Unions list the variants of interface types.
	Unions []UnionType
	// Aliases are short names for validate rules, as with RegisterAlias.
	Aliases map[string]string
	// Localize, if not nil, returns the text of an issue in place of the
	// built-in English one; it must be safe for concurrent use.
	Localize func(Issue) string
}
