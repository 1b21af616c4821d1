package protocol

import (
	"bytes"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// DefaultMaxBatch is how many messages a batch may hold if nothing else is
// said.
const DefaultMaxBatch = 100

// IsBatch tells whether text begins as a JSON array does.
func IsBatch(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '['
}

// ScanBatch splits a JSON array of messages into them; what the messages are,
// Scan tells. The whole text is checked as Scan does. max is how many messages
// there may be; 0 means DefaultMaxBatch. What fails is returned as the one
// error to answer with, whose id is not known: the array is no JSON, rev has
// no batches, or it holds no message or too many.
//
// Revision 2025-03-26 alone has batches (basic/index of that revision).
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
