package mcp

import (
	"context"
	"net/http"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Connect implements streamable.Backend: a stream of HTTP+SSE is a connection
// like others, but legacy. It ends with its stream.
func (e *endpoint) Connect(r *http.Request, open func(ours func(*http.Request) bool) (transport.Conn, error)) *protocol.Error {
	s := e.server()
	if s.connections.isDown() {
		return protocol.Errorf(protocol.CodeBusy, "the server shuts down")
	}
	leave, ok := s.connections.enter()
	if !ok {
		return protocol.Errorf(protocol.CodeBusy, "the server has %d connections, which is the limit", s.connections.max)
	}
	defer leave()
	principal := frame.PrincipalOf(r.Context())
	conn, err := open(func(post *http.Request) bool { return frame.PrincipalOf(post.Context()) == principal })
	if err != nil {
		return nil // the client is gone
	}
	via := frame.Transport{Kind: frame.SSE, HTTP: r}
	// The connection itself says when the client has left.
	s.logEnd(via, s.serveConn(context.WithoutCancel(r.Context()), conn, linkOptions{via: via, legacy: true}))
	return nil
}
