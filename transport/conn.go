// Package transport moves whole messages between two sides. It knows nothing of
// what they say.
//
// A [Conn] is one connection: lines over a byte stream ([NewStream], [NewSocket]),
// a child process ([Command], [StartCommand]), two ends within a process
// ([Pipe]), or a WebSocket (package transport/websocket). Servers serve one
// with Server.ServeConn, and clients connect over one with client.Conn. A
// transport of your own is a Conn too; package transporttest checks that it
// does what Conn demands.
//
// Framing follows basic/transports/stdio of every revision: a message is one
// line. Every limit has a default: 4 MiB for a message, 30 seconds for a peer
// to take what is written or to end a message that it has begun, 1 MiB that
// waits unsent.
//
// A Conn may be used by one reader and many writers at a time. That of a byte
// stream has no goroutine: of the goroutines that write, one writes for all. A
// Command has one, which waits for the process. HTTP has no Conn; package
// httplink of the client and the server's endpoint handle requests instead.
package transport

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Conn is a link to one peer that carries whole messages, in order and each
// exactly once. A message is one JSON text in UTF-8; it may hold any white
// space between its tokens, newlines too, which a Conn may turn into spaces.
//
// Read is called from one goroutine at a time; Write, Flush and Close from many
// at once, also while a Read or a Write waits.
type Conn interface {
	// Read returns the next message, which the caller owns. It returns io.EOF
	// when the peer has ended its side in order but may still read, and
	// ErrPeerGone, which is an io.EOF too, when the peer has left. A
	// *TooLongError costs one message and leaves the link usable; any other
	// error ends it.
	Read() ([]byte, error)
	// Write sends one message and does not keep it. It may return before the
	// message has left; Flush or a later Write reports the error then. A peer
	// that does not read makes it wait, for as long as the Conn decides.
	Write(message []byte) error
	// Flush returns when everything written has left.
	Flush() error
	// Close ends the link: a Read or Write that waits fails, and so does every later
	// one. Messages that are written but not flushed may be lost. It may be called
	// more than once.
	Close() error
}

// ErrClosed is the error of using a Conn after Close.
var ErrClosed = errors.New("transport: closed")

// ErrPeerGone is the error of a Conn whose peer has left in order and reads no
// more: what it asked for need not be answered. It is an io.EOF, by errors.Is.
var ErrPeerGone = fmt.Errorf("transport: the peer has closed the connection: %w", io.EOF)

// TooLongError is the error for a message over the limit. The message has been
// skipped. A Conn that returns one writes the message to it first, in parts, so that
// the request can be answered, or the answer reported to its caller.
type TooLongError struct {
	Limit int   // bytes
	Size  int64 // of what was written, in bytes; 0 means unknown
	// Option is the name of the option that raises the limit, for the error; "" means none.
	Option string

	outline jsonx.Outline
}

// Write takes the next part of the message, of which it keeps little. The error is
// always nil.
func (e *TooLongError) Write(p []byte) (int, error) {
	if e.outline.Names == nil {
		e.outline.Names = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	}
	e.Size += int64(len(p))
	return e.outline.Write(p)
}

// Message returns the message without what is long in it: the members of a JSON-RPC
// message, with {} in place of long values. It is nil if what was written is not the
// beginning of a JSON object. whole reports whether the message was written to its end.
// Nothing may be written after it.
func (e *TooLongError) Message() (text []byte, whole bool) {
	if e.outline.Names == nil {
		return nil, false
	}
	return e.outline.Text()
}

// Error returns the limit, what raises it, and the size of the message.
func (e *TooLongError) Error() string {
	text := "message is longer than the limit of " + strconv.Itoa(e.Limit) + " bytes"
	if e.Size > 0 {
		text = "message of " + strconv.FormatInt(e.Size, 10) + " bytes is longer than the limit of " + strconv.Itoa(e.Limit) + " bytes"
	}
	if e.Option != "" {
		text += " (" + e.Option + " raises it)"
	}
	return text
}
