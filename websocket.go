package mcp

import (
	"errors"
	"net/http"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/transport/websocket"
)

// WebSocketHandler returns an HTTP endpoint that serves WebSocket connections,
// each as ServeStdio serves its one: a legacy session of its own, modern
// requests beside it. Mount it into a router, under any path and behind any
// middleware that leaves http.Hijacker reachable.
//
//	r.Handle("/mcp/ws", s.WebSocketHandler())
//
// Connections beyond Limits.Connections are refused with 503. Shutdown
// closes them with code 1001 once their calls have ended.
func (s *Server) WebSocketHandler() http.Handler {
	upgrader := websocket.NewUpgrader(s.opts.websocket())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.connections.isDown() {
			unavailable(w, "the server shuts down")
			return
		}
		leave, err := s.connections.enter(frame.PrincipalOf(r.Context()))
		if err != nil {
			unavailable(w, err.Error())
			return
		}
		defer leave()
		conn, err := upgrader.Upgrade(w, r)
		if err != nil {
			safely.Log(s.logger.Debug().Err(visible.Error(err)), "WebSocket refused")
			return
		}
		s.serveWebSocket(r, conn)
	})
}

// unavailable refuses a connection for now.
func unavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusServiceUnavailable)
}

func (s *Server) serveWebSocket(r *http.Request, conn *websocket.Conn) {
	via := frame.Transport{Kind: frame.WebSocket, HTTP: r}
	l, err := s.serve(r.Context(), conn, linkOptions{via: via})
	switch {
	case errors.Is(err, ErrServerClosed):
		_ = conn.CloseWith(websocket.GoingAway, "the server shuts down")
	case err != nil && r.Context().Err() != nil:
		_ = conn.CloseWith(websocket.GoingAway, "the connection was ended")
	default:
		_ = conn.Close() // it has ended already
	}
	s.logEnd(via, l.wait(err))
}
