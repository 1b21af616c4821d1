package frame

// Transport says how a request came.
type Transport string

// The transports that Talaria brings.
const (
	HTTP      Transport = "http"
	SSE       Transport = "sse" // the HTTP transport of 2024-11-05
	WebSocket Transport = "websocket"
	Socket    Transport = "socket" // a Unix or TCP socket
	Stdio     Transport = "stdio"
	Pipe      Transport = "pipe" // any other transport.Conn
)
