package browser

import (
	"context"
	"net"
)

// peer is whose process the other end of a connection is.
type peer struct {
	uid   int
	known bool
}

// peerKey is where the context of a connection has its peer.
type peerKey struct{}

// withPeer is called once for each connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerOf(c.RemoteAddr(), c.LocalAddr()))
}
