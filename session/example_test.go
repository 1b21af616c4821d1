package session_test

import (
	"context"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

func ExampleManager() {
	m := session.NewManager(session.Config{Idle: time.Hour, Max: 100})
	defer m.Close(nil)
	x, err := m.Open(context.Background(), session.Client{Revision: protocol.V20251125})
	if err != nil {
		fmt.Println(err)
		return
	}
	there, err := m.Get(context.Background(), x.ID())
	fmt.Println(len(x.ID()), x.Revision(), there == x, err)
	ended, err := m.End(context.Background(), x.ID(), session.ErrDeleted)
	if err != nil {
		panic(err)
	}
	fmt.Println(ended, x.Ended())
	// Output:
	// 22 2025-11-25 true <nil>
	// true true
}
