package wire

import (
	"fmt"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// AppendError appends the JSON object of e. Data that does not encode is left
// out: an answer has to go out in any case.
func AppendError(dst []byte, e *protocol.Error) []byte {
	text, _ := e.MarshalJSON() // never fails
	return append(dst, text...)
}

// AppendID appends the JSON text of id, or null if there is none. A number goes
// out as the client wrote it.
func AppendID(dst []byte, id protocol.ID) []byte {
	if id.IsZero() {
		return append(dst, "null"...)
	}
	return append(dst, id.String()...)
}

// AppendErrorResponse appends a whole error response. A zero id means that the
// id of the request could not be read: it is written as null, or left out in
// revisions that allow that (protocol.FeatureOptionalErrorID).
func AppendErrorResponse(dst []byte, id protocol.ID, e *protocol.Error, rev protocol.Revision) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if !id.IsZero() || !rev.Has(protocol.FeatureOptionalErrorID) {
		dst = append(dst, `,"id":`...)
		dst = AppendID(dst, id)
	}
	dst = append(dst, `,"error":`...)
	dst = AppendError(dst, e)
	return append(dst, '}')
}

// UnsupportedVersion returns the error for a revision that the server does not
// serve (basic/versioning of 2026-07-28). Data lists those that it does serve,
// in the order of supported, so that the client can choose one of them.
func UnsupportedVersion(requested string, supported []protocol.Revision) *protocol.Error {
	return &protocol.Error{
		Code:    protocol.CodeUnsupportedVersion,
		Message: fmt.Sprintf("Unsupported protocol version %q", requested),
		Data: struct {
			Supported []string `json:"supported"`
			Requested string   `json:"requested"`
		}{RevisionNames(supported), requested},
	}
}

// MethodNotFound returns the error for a method that the server does not have,
// or not in the revision of the request.
func MethodNotFound(method string) *protocol.Error {
	return protocol.Errorf(protocol.CodeMethodNotFound, "Method not found: %s", method)
}

// ResourceNotFound is the error for a resource that does not exist. It has the
// code of legacy revisions; ErrorFor gives that of a revision.
func ResourceNotFound(uri string) *protocol.Error {
	return &protocol.Error{
		Code:    protocol.CodeResourceNotFound,
		Message: "Resource not found: " + uri,
		Data: struct {
			URI string `json:"uri"`
		}{uri},
	}
}

// MissingCapability returns the error for a request that needs a capability
// which the client did not declare (basic/index of 2026-07-28). name is the
// capability, such as "elicitation"; settings are the members in it that are
// needed, such as "url", none if the capability suffices. Data repeats both
// as requiredCapabilities, in the form in which a client would declare them.
func MissingCapability(name string, settings ...string) *protocol.Error {
	inner := map[string]any{}
	whole := name
	for _, s := range settings {
		inner[s] = struct{}{}
		whole += "." + s
	}
	return &protocol.Error{
		Code:    protocol.CodeMissingCapability,
		Message: fmt.Sprintf("the client did not declare the capability %q, which this request needs", whole),
		Data:    map[string]any{"requiredCapabilities": map[string]any{name: inner}},
	}
}

// Unavailable is the error of a request that passes when what it needs answers
// again; what is the beginning of a sentence. Nothing has been done.
func Unavailable(what string, err error) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Message: what + " now: try again", RetryAfter: time.Second, Err: err}
}
