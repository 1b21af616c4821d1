// Package transport moves whole messages between two sides. It knows nothing
// of what they say.
package transport

import (
	"errors"
	"fmt"
)

// Conn is a link to one peer that carries whole messages.
//
// Read is called from one goroutine at a time; Write from many. After Close
// both fail.
type Conn interface {
	// Read returns the next message, which the caller owns. It returns io.EOF
	// when the peer has ended the link in order. A *TooLongError costs one
	// message and leaves the link usable; any other error ends it.
	Read() ([]byte, error)
	// Write sends one message and does not keep it. It may return before the
	// message has left; Flush or a later Write reports the error then.
	Write(message []byte) error
	// Flush returns when everything written has left.
	Flush() error
	// Close ends the link. What is written but not flushed may be lost.
	Close() error
}

// ErrClosed is the error of using a Conn after Close.
var ErrClosed = errors.New("transport: closed")

// TooLongError is the error for a message over the limit. The message has been
// skipped.
type TooLongError struct {
	Limit int // bytes
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("message is longer than the limit of %d bytes", e.Limit)
}
