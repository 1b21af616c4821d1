package mcp

import (
	"context"
	"net/http"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
)

// Connect implements streamable.Backend: a stream of HTTP+SSE is a connection
// like others, but legacy. It ends with its stream. What is POSTed to it runs as
// who POSTs it, which must be the principal that opened the stream: the token may
// be another one.
func (e *endpoint) Connect(r *http.Request, open func(ours func(*http.Request) bool) (streamable.Posted, error)) *protocol.Error {
	s := e.server()
	if s.connections.isDown() {
		return protocol.Errorf(protocol.CodeBusy, "the server shuts down")
	}
	principal := frame.PrincipalOf(r.Context())
	leave, err := s.connections.enter(principal)
	if err != nil {
		return protocol.Errorf(protocol.CodeBusy, "%w", err)
	}
	defer leave()
	conn, err := open(func(post *http.Request) bool { return frame.PrincipalOf(post.Context()) == principal })
	if err != nil {
		return nil // the client is gone
	}
	via := frame.Transport{Kind: frame.SSE, HTTP: r}
	// The connection itself says when the client has left.
	// Nothing runs with the token that opened the stream.
	ctx := frame.WithPrincipal(context.WithoutCancel(r.Context()), principal)
	s.logEnd(via, s.serveConn(ctx, conn, linkOptions{via: via, legacy: true, by: conn.By}))
	return nil
}
