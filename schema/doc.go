// Package schema turns Go types into JSON Schema and into decoders that
// enforce exactly that schema.
//
// [Compile] walks a type once, at start-up, and returns a [Plan]. The plan has
// the schema to advertise and a decoder that reads a document, checks it and
// fills a value of the type in one pass. Both come from one description of the
// type, so a document is accepted if and only if the schema accepts it. The
// exceptions are rules that JSON Schema cannot say, such as a comparison of
// two fields: those are enforced too and stated in the description.
//
// # Tags
//
//   - json names the members, as for encoding/json.
//   - validate holds rules in the grammar of go-playground/validator:
//     validate:"required,max=80", validate:"oneof=asc desc", validate:"dive,email".
//   - jsonschema, jsonschema_description and jsonschema_extras hold keywords in
//     the grammar of invopop/jsonschema: jsonschema:"default=3,example=5".
//   - mcp holds what is particular to MCP: header=Name mirrors an argument into
//     an HTTP header, secret keeps a value out of messages, strict turns
//     coercion off for the field and all below it, msg=text and msg.rule=text
//     replace messages, unit=s makes a time.Duration an integer.
//
// A mistake in a tag is an error when the type is compiled, never later. All
// mistakes of a type are reported at once, each with its place and with what to
// write instead.
//
// In the grammar of validate a comma separates rules, all of which must hold, and a bar
// separates alternatives. 0x2C and 0x7C stand for a comma and a bar in a parameter; single
// quotes keep words with spaces together. omitempty, omitnil and omitzero come first and
// make a member optional. dive continues with the elements of a list or the values of a map;
// keys and endkeys, directly behind it, enclose rules of the map's names. A tag of "-" takes
// a field without rules.
//
// # Rules
//
// The type of a field decides what a rule compares:
//
//   - min, max, gt, gte, lt, lte and len limit the number of characters of a
//     string, of items of a list, of members of a map and of bytes of a []byte; for
//     numbers and durations they limit the value. On a time.Time they compare with
//     a date or time in the parameter, or without one with the moment of the call;
//     on the types of package civil with a value of that type.
//   - eq and ne compare the value itself, the text of a string included.
//   - oneof and noneof list values, oneofci and noneofci texts in upper or lower
//     case.
//   - unique refuses equal items or values. It compares the decoded elements as
//     Go's == does, and times as instants, so their type must be comparable by
//     content: slices, maps and any are refused, and so are structs that hold one.
//     unique=Field compares one member of structs.
//   - contains, excludes, startswith, endswith, startsnotwith, endsnotwith,
//     containsany, excludesall, containsrune and excludesrune look for the
//     parameter in a string; eq_ignore_case and ne_ignore_case compare without
//     case.
//   - alpha, alphanum, ascii, lowercase and the like say which characters a string
//     has; email, url, uuid, ipv4, hostname, base64, semver, e164, iso4217 and about
//     a hundred more, which form. The names are those of go-playground.
//   - numeric, number and boolean are about the text of a string and hold for every
//     value of such a type; port, latitude and longitude are also for numbers.
//   - datetime=layout wants a date or time in a layout of package time.
//
// Other rules look at other members. They name a field as in Go, or the member as
// in JSON:
//
//   - required_if=Kind mail, required_unless, required_with, required_with_all,
//     required_without and required_without_all say when a member must be there,
//     excluded_if and the like when it must not. They are in the schema too.
//   - eqfield, nefield, gtfield, gtefield, ltfield and ltefield compare with
//     another member of the same struct, eqcsfield and the like with one on a path
//     from the top, such as Range.From. fieldcontains and fieldexcludes look for
//     the other member's text. The description says so, as the schema cannot. An
//     absent member counts as its default; without one nothing is compared.
//
// Where JSON Schema has a keyword that says exactly the same, the rule becomes that keyword.
// Where it can say part, as with email, that part is in the schema and the rest in the
// description. A few rules are stricter than go-playground's, where that takes forms that
// nothing else does, and rules that look at the server's disk have to be permitted by
// Options.AllowServerState.
//
// [NewRule] and [ValidatorRule] make rules of functions, and [NewStructRule] checks
// a whole struct. They run when everything else is fine, with the context of the
// call.
//
// # Types
//
// Structs, maps, slices, arrays, strings, numbers, booleans and pointers travel as
// encoding/json writes them, embedded structs and the options of its tags included.
// Besides:
//
//   - time.Time is text by RFC 3339, and time.Duration has forms of its own, below.
//   - Date, TimeOfDay and NaiveDateTime of package civil are for what has no zone.
//   - A type with UnmarshalText is a string; a method Enum() []T lists its values, by what
//     MarshalText writes, and oneof takes those texts, to keep some of the values. That
//     holds for every kind of type, also as the key of a map; a method String has no effect,
//     as in encoding/json.
//   - Types of net/netip, math/big and net/url, and UUIDs of the well-known
//     packages, have descriptions and patterns.
//   - any takes every value, and json.RawMessage keeps its text.
//   - [Null] tells null from absent.
//   - An interface with methods is a union, if Options.Unions lists its variants.
//   - A type with UnmarshalJSON has to say its schema, by a method JSONSchema or
//     MCPSchema that returns *jsonschema.Schema. Values are checked against it.
//   - Options.Types has the schemas of types that other modules declare; see [Declare].
//   - A method JSONSchemaExtend(*jsonschema.Schema) changes the schema of its type. Its
//     additions are checked as well.
//
// # Limits
//
// A document has at most Options.MaxValues values, nested at most Options.MaxDepth
// deep; a big.Int has 1,000 digits, and an Error keeps the first 1,000 issues. A
// member that is there twice is an issue, as are bytes behind the document.
//
// # Presence
//
// Rules look at what is in the document, not at zero values. A field must be
// there unless it is a pointer, has omitempty or omitzero in its json or
// validate tag, has a default, or has a conditional rule such as
// required_if. A rule never runs on an absent member. validate:"required"
// means present and not null, and for strings not empty; 0 and false are
// values like any other (see Options.RequiredNonZero).
//
// # Coercion
//
// Unless Options.Strict is set, values that models are known to send are read as what they
// mean, when that is certain: "5" for an integer, "true" for a boolean, 5 for a string, an
// object or array inside a string, a single item for a list, and null or "" for an optional
// member that is not set. An uncertain value stays an error: 1.0 is not a string, "yes" no
// boolean, and ["a"] no list of lists. mcp:"strict" turns coercion off for a field and all
// that is below it, and names of members are never coerced.
//
// # Numbers
//
// Bounds are compared with the decimal text of a number, not with its rounding
// to 64 bits. Only numbers of more than 1,000 digits or with an exponent beyond
// ±400 are compared as they are rounded.
//
// The formats int64 and uint64 of an integer say that it has 64 bits, in results only int64;
// shorter types and float32 have a minimum and a maximum. A rule with a bound outside of its
// type is an error.
//
// # Durations
//
// A time.Duration is text as Go writes it, "1m30s", in arguments and in results,
// as a value and as a map key. mcp:"unit=s" makes it an integer of that unit
// (ns, us, ms, s, m, h), jsonschema:"format=duration" text of ISO 8601 without
// fractions, "PT1M30S"; a result that such a form cannot say exactly is an error.
// In an any, which has no tags, it is written as Go's text and read as a string.
// A type with a MarshalJSON method writes what that says.
package schema

// The rest is for those who change this package.
