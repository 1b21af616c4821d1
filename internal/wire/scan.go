package wire

import (
	"bytes"

	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/protocol"
)

// DefaultMaxBatch is how many messages a batch may hold if the server's options
// do not say.
const DefaultMaxBatch = 100

// IsBatch reports whether text begins like a JSON array. It looks at nothing
// else; ScanBatch does.
func IsBatch(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '['
}

// Scan reads one message from text, as Decode of package protocol does.
func Scan(text []byte, m *protocol.Message) *protocol.Error {
	var err error
	if *m, err = protocol.Decode(text); err != nil {
		return err.(*protocol.Error)
	}
	return nil
}

// ScanParams reads the params of m, as its method DecodeParams does.
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
	messages, count, err := protocol.SplitBatch(call.Private{}, text, rev, max)
	switch {
	case err != nil:
		return nil, err.(*protocol.Error)
	case count > max:
		return nil, protocol.Errorf(protocol.CodeInvalidRequest, "the batch has %d messages; the limit is %d", count, max)
	}
	return messages, nil
}

// ErrInitializeInBatch is the answer to a batch that has an initialize
// request, which the specification forbids (basic/lifecycle of 2025-03-26).
func ErrInitializeInBatch() *protocol.Error {
	return protocol.Errorf(protocol.CodeInvalidRequest, "initialize must not be part of a batch: send it alone and first")
}

// ErrModernInBatch is the answer to a modern request within a batch.
func ErrModernInBatch() *protocol.Error {
	return protocol.Errorf(protocol.CodeInvalidRequest, "revision %s has no batches: send the request alone", protocol.Latest)
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
