package client

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// A server that writes other things than messages is told from one that is
// silent.
func TestInvalidMessageInErrors(t *testing.T) {
	const blames = `sent invalid messages, the last one "Listening on port 80" (its log belongs on standard error)`
	tests := []struct {
		name string
		play func(s *script)
		is   error
	}{
		{"and goes on", func(s *script) { s.say("%s", "Listening on port 80"); s.drain() }, ErrTimeout},
		{"and ends", func(s *script) { s.next(); s.say("%s", "Listening on port 80") }, ErrConnection},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := Connect(t.Context(), scripted(t, tt.play), &Options{Timeout: time.Second, NoReconnect: true})
				if LastInvalidMessage(err) != "Listening on port 80" || !errors.Is(err, tt.is) || !strings.Contains(err.Error(), blames) {
					t.Errorf("Connect: %v", err)
				}
			})
		})
	}
	t.Run("an error without an id", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const text = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`
			c := connect(t, scripted(t, func(s *script) {
				s.legacyHello("2025-06-18")
				s.next()
				s.say("%s", text)
				s.drain()
			}), &Options{Revisions: []protocol.Revision{protocol.V20250618}})
			if err := c.Ping(t.Context()); errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "what?") || c.Stats().Failed != 1 {
				t.Errorf("Ping: %v, %+v", err, c.Stats())
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("long before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, scripted(t, func(s *script) {
				s.say("%s", "Listening on port 80")
				s.legacyHello("2025-06-18")
				time.Sleep(time.Hour)
				s.drain()
			}), &Options{Revisions: []protocol.Revision{protocol.V20250618}})
			time.Sleep(time.Minute)
			if err := c.Ping(t.Context()); !errors.Is(err, ErrTimeout) || LastInvalidMessage(err) != "" {
				t.Errorf("Ping: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}
