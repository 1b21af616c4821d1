// Package protocol holds the wire of the Model Context Protocol: the JSON-RPC
// envelope, request ids, error codes, revisions and what each of them has, and
// the messages of tools and of the lifecycle.
//
// Values here know how to read and write themselves and nothing else; what
// they mean is decided above, in the dispatcher and the transports.
package protocol
