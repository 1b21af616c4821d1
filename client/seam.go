package client

import (
	"fmt"

	"github.com/talaria-go/mcp/client/internal/link"
)

// Transport connects a client to one server: Command, HTTP, SSE, WebSocket,
// Dial, Stream and Conn make one. The interface is sealed, because it is bound
// to grow; a transport of your own is a transport.Conn, which Conn takes.
//
// String names the server: its URL or its command line. What a client learns of
// a server is remembered under that name.
type Transport interface {
	fmt.Stringer
	transport() link.Transport
}
