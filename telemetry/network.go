package telemetry

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
)

// network is how a message came.
type network struct {
	via          frame.Transport
	unix         bool
	major, minor uint8 // of HTTP
}

// networkOf returns how f came.
func networkOf(f *mcp.Frame) network {
	n := network{via: f.Transport()}
	switch n.via {
	case frame.HTTP, frame.SSE:
		if r := f.HTTPRequest(); r != nil {
			// Clients can say any minor version, but there are two.
			n.major, n.minor = uint8(min(r.ProtoMajor, 3)), uint8(min(r.ProtoMinor, 1))
		}
	case frame.Socket:
		n.unix = unix(f.RemoteAddr())
	}
	return n
}

// unix reports whether the address of a socket's peer is that of a Unix socket.
func unix(address string) bool { return strings.HasPrefix(address, "unix:") }

// append appends the attributes of n.
func (n network) append(as []attribute.KeyValue) []attribute.KeyValue {
	switch n.via {
	case frame.HTTP, frame.SSE:
		if n.major >= 3 {
			as = append(as, keyTransport.String("quic"))
		} else {
			as = append(as, keyTransport.String("tcp"))
		}
		as = append(as, keyProtocol.String("http"))
		switch {
		case n.major == 1:
			as = append(as, keyProtocolVersion.String("1."+strconv.Itoa(int(n.minor))))
		case n.major > 1:
			as = append(as, keyProtocolVersion.String(strconv.Itoa(int(n.major))))
		}
	case frame.WebSocket:
		as = append(as, keyTransport.String("tcp"), keyProtocol.String("websocket"))
	case frame.Socket:
		if n.unix {
			as = append(as, keyTransport.String("unix"))
		} else {
			as = append(as, keyTransport.String("tcp"))
		}
	case frame.Stdio, frame.Pipe:
		as = append(as, keyTransport.String("pipe"))
	}
	return as
}
