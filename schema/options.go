package schema

// Validator is the part of go-playground's *validator.Validate that rules use:
// Var returns nil if the value satisfies the tag.
type Validator interface {
	Var(value any, tag string) error
}

// Options determine how types are compiled. The zero value has the defaults,
// and a nil *Options stands for it. Compile copies the struct, so later changes
// have no effect; what it refers to must not change while plans are in use.
type Options struct {
	// Strict turns coercion off: "5" is then no integer. The default is lenient,
	// because models and clients do send such values. Results are always strict.
	Strict bool
	// RequiredNonZero makes validate:"required" refuse 0 and false too, as
	// go-playground/validator does, and says so in the schema. The default looks
	// at whether a member is there, as required in JSON Schema does.
	RequiredNonZero bool
	// AllowServerState permits rules that look at the server's disk, such as file
	// and dir. They let a caller find out which files there are. Without it such
	// a rule is an error when a type is compiled.
	AllowServerState bool
	// Output compiles for values that the server sends: pointers without
	// omitempty may be null, defaults are only advertised, nothing is coerced,
	// and the type may be any that JSON has.
	Output bool
	// MaxDepth limits how deep objects and arrays lie within each other in a
	// document; 0 means 32.
	MaxDepth int
	// MaxValues limits the number of values in one document, members and items
	// at all levels counted; 0 means 100,000.
	MaxValues int
	// Validator checks the tags that need the tables of go-playground's validator:
	// iso3166_2, the tags of BCP 47, URNs, Bitcoin and Ethereum, postcode_iso3166_alpha2
	// of most countries, and those that look into files. Without it such a tag is an
	// error. Set it to validator.New(), which makes a program about 4 MB larger.
	// It must be safe for concurrent use, as *validator.Validate is.
	Validator Validator
	// Rules are custom checks. A custom rule takes precedence over a built-in rule of
	// the same name.
	Rules []Rule
	// Unions list the variants of interface types. Without an entry an interface
	// type with methods cannot be compiled.
	Unions []UnionType
	// Types are schemas for types of other modules that have their own JSON form; see
	// Declare.
	Types []TypeSchema
	// Formats adds formats for jsonschema:"format=NAME", each with a function that checks
	// a text. A format whose function is nil is a hint: it is in the schema, and any value
	// passes. The functions must be safe for concurrent use.
	Formats map[string]func(text string) bool
	// Aliases are short names for validate rules, as with RegisterAlias of
	// go-playground: "name" stands for "min=1,max=80". They must not hide a
	// built-in rule or refer to themselves.
	Aliases map[string]string
	// Localize, if not nil, returns the text of an issue in place of the built-in
	// English one, or "" to keep that. It must be safe for concurrent use.
	Localize func(Issue) string
}
