package protocol

import (
	"bytes"

	"github.com/talaria-go/mcp/internal/jsonx"
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
func ScanBatch(text []byte, limits Limits, rev Revision, max int) (messages [][]byte, fault *Error) {
	if max <= 0 {
		max = DefaultMaxBatch
	}
	if limits.Depth > 0 {
		limits.Depth++ // the array itself
	}
	s := jsonx.Scanner{Buf: text, MaxDepth: limits.Depth, AllowDuplicates: true}
	more, err := s.ArrayStart()
	count := 0
	for more && err == nil {
		s.Peek() // passes the space before the message
		start := s.Pos
		if _, err = s.Skip(); err != nil {
			break
		}
		if count++; count <= max {
			messages = append(messages, text[start:s.Pos])
		}
		more, err = s.ArrayNext()
	}
	if err == nil {
		err = s.End()
	}
	switch {
	case err != nil:
		return nil, scanError(err)
	case !rev.Has(Batches):
		return nil, Errorf(CodeInvalidRequest, "batches are only for sessions of revision %s: send one message at a time", V20250326)
	case count == 0:
		return nil, Errorf(CodeInvalidRequest, "a batch must not be empty")
	case count > max:
		return nil, Errorf(CodeInvalidRequest, "the batch has %d messages; the limit is %d", count, max)
	}
	return messages, nil
}

// ErrInitializeInBatch is the answer to a batch that has an initialize
// request, which the specification forbids (basic/lifecycle of 2025-03-26).
func ErrInitializeInBatch() *Error {
	return Errorf(CodeInvalidRequest, "initialize must not be part of a batch: send it alone and first")
}

// ErrModernInBatch is the answer to a modern request within a batch.
func ErrModernInBatch() *Error {
	return Errorf(CodeInvalidRequest, "revision %s has no batches: send the request alone", Latest)
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
