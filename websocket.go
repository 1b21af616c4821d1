package mcp

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/transport/websocket"
)

// WebSocketHandler returns an HTTP endpoint that serves WebSocket connections,
// each as ServeStdio serves its one: a legacy session of its own, modern
// requests beside it. Mount it into a router, under any path and behind any
// middleware that leaves http.Hijacker reachable. Options.WebSocket shapes it.
//
//	r.Handle("/mcp/ws", s.WebSocketHandler())
//
// Connections beyond Options.MaxConnections are refused with 503. Shutdown
// closes them with code 1001 once their calls have ended.
func (s *Server) WebSocketHandler() http.Handler {
	upgrader := websocket.NewUpgrader(s.opts.WebSocket)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.connections.isDown() {
			http.Error(w, "the server shuts down", http.StatusServiceUnavailable)
			return
		}
		leave, ok := s.connections.enter()
		if !ok {
			http.Error(w, "the server has "+strconv.Itoa(s.connections.max)+" connections, which is the limit", http.StatusServiceUnavailable)
			return
		}
		defer leave()
		conn, err := upgrader.Upgrade(w, r)
		if err != nil {
			s.logger.Debug().Err(err).Msg("WebSocket refused")
			return
		}
		s.serveWebSocket(r, conn)
	})
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
