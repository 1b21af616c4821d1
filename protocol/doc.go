// Package protocol holds the wire format of the Model Context Protocol: the
// JSON-RPC envelope, request ids, error codes, the revisions of the
// specification, and the params, results and notifications of its methods.
//
// # Layers
//
// Values of this package know how to read and write themselves and nothing else.
// Other packages handle messages: the dispatcher chooses the handler of a
// method, package session keeps what outlives a request, and the transports
// carry the bytes. For that reason the package imports no other public package
// of the module, and servers and clients share it. What only the transports and
// the dispatcher of this module need, such as the text of notifications, is in
// internal/wire.
//
// # Reading
//
// Text from a peer is read in two steps. The method is known before anything else is
// decoded:
//
//   - [Decode] checks the whole text of a message once (syntax, UTF-8, depth,
//     duplicate members) and finds the members of its envelope. It decodes none
//     of them but the id and the method. [DecodeLines] and [DecodeBatch] do so
//     for a stream and for a JSON array.
//   - [Message.DecodeParams] finds the members of the params that methods share:
//     the name of the tool, its arguments, the cursor, the reserved keys of
//     _meta. It relies on the check that Decode has made and passes over values
//     without checking them again. What only one method has is left to
//     [ParseContent], encoding/json and the packages that serve the method.
//
// What these functions return are parts of the scanned text, not copies, unless
// the result is a string. A caller that reuses the buffer of a message must have
// copied what it keeps.
//
// A fault is returned as an error whose type is [*Error], the one that is sent
// to the peer, with a text that names the place (params._meta["…"],
// params.arguments). Depth and lengths of names are limited here; the length of
// a whole message is limited by its transport.
//
// [Message.Validate] checks the rules that differ between revisions.
// Servers of this module do not call it, because their dispatcher knows which
// methods it serves; it is for proxies, recorders and tests, which see messages
// of both sides.
//
// # Writing
//
// Messages are made with [NewRequest] and its like and written with
// [Message.MarshalJSON]. A [Result] holds Go values and is written when it is
// known which revision it goes to, by internal/wire; the interface is sealed for
// that reason. Content and the contents of resources are written here in the form of
// the newest revision. Members that an older one lacks are removed before.
//
// # Metadata
//
// A field Meta of type map[string]any is the _meta of a value. Keys follow the
// specification's rules (basic/index, "_meta"): a prefix that is a reversed
// domain name, a slash, and a name; prefixes whose second label is
// modelcontextprotocol or mcp are reserved. It is encoded with encoding/json,
// and nil or empty is left out. What the specification reserves in the _meta of
// requests, [Meta] has.
//
// # Revisions
//
// Revisions are ordered, see [Revision]. Those up to 2025-11-25 are called
// legacy here: a session begins with initialize. Those from 2026-07-28 on are
// called modern: every request carries its revision, client and capabilities in
// _meta and is stateless.
//
// Specification: https://modelcontextprotocol.io/specification/ with the date of
// a revision behind it. Comments name pages by their path below that, as in
// basic/index or server/tools, and schema.ts of the revision where the pages say
// nothing.
//
// No function of this package starts a goroutine or takes a lock, and values are
// safe for concurrent reading.
package protocol
