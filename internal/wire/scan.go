// Package wire holds those parts of the wire format that the server, the client
// and the transports of this module need and their users do not. The types of
// the messages themselves are in package protocol.
//
//   - fit.go: the functions named For, which return a copy of a value without
//     what a revision lacks.
//   - result.go: [AppendResult], which writes any protocol.Result in the form
//     of the revision of its request, and results that only this module makes.
//   - notification.go, error.go, subscription.go, lifecycle.go, completion.go:
//     the params, results and errors of single methods.
//   - scan.go: messages and batches as transports read them.
//   - header.go: the values of the HTTP headers that repeat parts of a request.
//   - weburl.go: the check of addresses that people are sent to.
//
// Encoded text is appended to a buffer of the caller, in the manner of
// strconv.AppendInt, because an answer is put together from several parts and
// goes out in one write. Functions that can fail return nil in place of the
// buffer unless they say otherwise: the caller keeps its own.
//
// Results are parts of the text, not copies, unless the result is a string.
// Faults are *protocol.Error, ready to be sent to the peer.
//
// Values are plain data. No function starts a goroutine or takes a lock;
// [Change] and [FrozenResult] do not change once they are made, and are sent to
// many clients at once.
//
// Specification: basic/index, basic/lifecycle and basic/transports of every
// revision, basic/versioning, basic/patterns/mrtr and
// basic/patterns/subscriptions of 2026-07-28; the pages of single methods are
// named where they are served.
package wire

import (
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// DefaultMaxBatch is how many messages a batch may hold if the server's options
// do not say.
const DefaultMaxBatch = 100

// IsBatch reports whether text begins like a JSON array. It looks at nothing
// else; ScanBatch does.
func IsBatch(text []byte) bool {
	for _, c := range jsonx.Document(text) {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c == '['
		}
	}
	return false
}

// Scan reads one message from text, as Decode of package protocol does. It is
// the same function with the type that a fault always has, so that callers need
// not assert it. After a fault m has what could be read, its ID above all.
func Scan(text []byte, m *protocol.Message) *protocol.Error {
	var err error
	if *m, err = protocol.Decode(text); err != nil {
		return err.(*protocol.Error)
	}
	return nil
}

// ScanParams reads the params of m, as its method DecodeParams does; see Scan
// for why it is there. m must be one that Scan has accepted.
func ScanParams(m *protocol.Message, p *protocol.Params) *protocol.Error {
	if err := m.DecodeParams(p); err != nil {
		return err.(*protocol.Error)
	}
	return nil
}

// ScanBatch splits a JSON array into its messages, each of which the caller
// then hands to Scan. It checks the whole text except for duplicate members,
// which Scan finds. max limits the messages; 0 means DefaultMaxBatch. Messages
// beyond the limit are counted for the error but not kept.
//
// A fault means that the batch as a whole is answered with one error without
// id: the text is not valid JSON, rev has no batches, or the array is empty or
// too long. Only revision 2025-03-26 has batches (basic/index of that
// revision); syntax is checked first, so that a broken text is a parse error in
// every revision.
func ScanBatch(text []byte, rev protocol.Revision, max int) (messages [][]byte, fault *protocol.Error) {
	if max <= 0 {
		max = DefaultMaxBatch
	}
	messages, count, err := protocol.Internal(facts.Private{}).SplitBatch(text, rev, max)
	switch {
	case err != nil:
		fault := err.(*protocol.Error)
		if fault.Code == protocol.CodeInvalidRequest {
			fault = Refused("batch", fault.Code, "%s", fault.Message)
		}
		return nil, fault
	case count > max:
		return nil, Refused("batch", protocol.CodeInvalidRequest, "the batch has %d messages; the limit is %d", count, max)
	}
	return messages, nil
}

// ErrInitializeInBatch is the answer to a batch that has an initialize
// request, which the specification forbids (basic/lifecycle of 2025-03-26).
func ErrInitializeInBatch() *protocol.Error {
	return Refused("batch", protocol.CodeInvalidRequest, "initialize must not be part of a batch: send it alone and first")
}

// ErrModernInBatch is the answer to a modern request within a batch.
func ErrModernInBatch() *protocol.Error {
	return Refused("batch", protocol.CodeInvalidRequest, "revision %s has no batches: send the request alone", protocol.Latest)
}

// AppendBatch appends the array of those answers that are not nil, or nothing
// if all are.
func AppendBatch(dst []byte, answers [][]byte) []byte {
	start := len(dst)
	for _, answer := range answers {
		if answer == nil {
			continue
		}
		if len(dst) == start {
			dst = append(dst, '[')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, answer...)
	}
	if len(dst) > start {
		dst = append(dst, ']')
	}
	return dst
}
