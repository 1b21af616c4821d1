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
//     coercion off for the field and all below it, msg=text and msg.rule=text replace messages, unit=s makes a
//     time.Duration an integer.
//
// A mistake in a tag is an error when the type is compiled, never later. All
// mistakes of a type are reported at once.
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
// Unless Options.Strict is set, values that models are known to send are read
// as what they mean, when that is certain: "5" for an integer, "true" for a
// boolean, 5 for a string, an object or array inside a string, and null or ""
// for an optional member that is not set. [Plan.DecodeReport] tells which values
// were read so.
//
// # Numbers
//
// Bounds are compared with the decimal text of a number, not with its rounding
// to 64 bits. Only numbers of more than 1,000 digits or with an exponent beyond
// ±400 are compared as they are rounded.
package schema
