package session_test

import (
	"context"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

func ExampleManager() {
	m := session.NewManager(session.Config{IdleTimeout: time.Hour, MaxSessions: 100})
	defer m.Close(context.Background(), nil)
	x, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125})
	if err != nil {
		fmt.Println(err)
		return
	}
	there, err := m.Get(context.Background(), x.Principal(), x.ID())
	fmt.Println(len(x.ID()), x.Revision(), there == x, err)
	fmt.Println(m.Stop(x, core.ErrSessionDeleted), x.Ended())
	// Output:
	// 22 2025-11-25 true <nil>
	// <nil> true
}
