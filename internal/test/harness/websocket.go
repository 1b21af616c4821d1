package harness

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

func openWebSocket(t testing.TB, s *mcp.Server, rev protocol.Revision) Conversation {
	conn, err := websocket.Dial(context.Background(), ServeWebSocket(t, s), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return NewConnClient(t, conn, rev)
}

// ServeWebSocket serves s in a chi router until the test ends, and sees to it
// that every connection ends.
func ServeWebSocket(t testing.TB, s *mcp.Server) (url string) {
	r := chi.NewRouter()
	r.Handle("/deep/ws", websocket.Handler(s))
	server := httptest.NewServer(r)
	t.Cleanup(func() {
		server.Close() // does not wait for connections that were taken over
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return server.URL + "/deep/ws"
}
