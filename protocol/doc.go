// Package protocol holds the wire format of the Model Context Protocol: the
// JSON-RPC envelope, request ids, error codes, the revisions of the
// specification with the features of each, and the params, results and
// notifications of its methods.
//
// # Layers
//
// Values of this package know how to read and write themselves and nothing
// else. What a message means is decided above: the dispatcher chooses the
// handler of a method, package session keeps what outlives a request, and the
// transports carry the bytes. For that reason the package imports no other
// public package of the module, and servers and clients share it.
//
// # Reading
//
// Text from a peer is read in two steps, so that nothing is decoded before it
// is known who must answer for it:
//
//   - [Scan] checks the whole text of a message once (syntax, UTF-8, depth,
//     duplicate members) and finds the members of its envelope. It decodes none
//     of them but the id and the method.
//   - [ScanParams] finds the members of the params that methods share: the name
//     of the tool, its arguments, the cursor, the reserved keys of _meta. It
//     relies on the check that Scan has made and passes over values without
//     checking them again. What only one method has, [ScanFilter],
//     [ParseContent] or encoding/json read.
//
// What these functions return are parts of the scanned text, not copies, unless
// the result is a string. A caller that reuses the buffer of a message must
// have copied what it keeps.
//
// A fault is returned as the [*Error] that is sent to the peer, with a text
// that names the place (params._meta["…"], params.notifications.taskIds/3).
// Depth, lengths of names, and counts of entries are limited here; the length
// of a whole message is limited by its transport.
//
// # Writing
//
// Results, errors and notifications append themselves to a buffer, in the
// manner of strconv.AppendInt. A [Result] is told the [Wire] that it goes to:
// the same value is written for each revision in that revision's form. Methods
// named For return a copy of a value that lacks what an older revision does not
// have.
//
// # Revisions
//
// Code never compares dates. It asks [Revision.Has] for a [Feature], and the
// table in revision.go says which revisions have which. Revisions up to
// 2025-11-25 are called legacy here: a session begins with initialize. Those
// from 2026-07-28 on are called modern: every request carries its revision,
// client and capabilities in _meta and stands alone.
//
// Specification: https://modelcontextprotocol.io/specification/ with the date
// of a revision behind it. Comments name pages by their path below that, as in
// basic/index or server/tools, and schema.ts of the revision where the pages
// say nothing.
//
// No function of this package starts a goroutine or takes a lock. Values are
// safe for concurrent reading; [Change] and [FrozenResult] never change.
package protocol
