// Package interop is the server that the clients of e2e/clients try: it offers
// something of everything.
package interop

import (
	"sync/atomic"

	"github.com/talaria-go/mcp"
)

// shared is what the replicas of a server have in common in one process: what the
// clients ask one of them to do, another may have to.
type shared struct {
	replicas []*mcp.Server
	calls    *pendingCalls
	reads    atomic.Int64
}

// NewServers returns replicas of the server, one for each of opts, which they
// complete. Pages are short, so that every list has several.
func NewServers(opts ...mcp.Options) []*mcp.Server {
	all := &shared{calls: &pendingCalls{released: map[string]chan struct{}{}}}
	for _, o := range opts {
		o.Instructions, o.PageSize = "Try everything.", 3
		o.HTTP = mcp.HTTPOptions{SSE: len(opts) == 1, Polling: true} // HTTP+SSE needs a client that stays
		s := mcp.NewServer(mcp.Info{Name: "talaria-e2e", Title: "Something of everything", Version: "1.0.0"}, &o)
		s.MustAdd(answering()...)
		s.MustAdd(asking()...)
		s.MustAdd(all.running()...)
		s.MustAdd(all.changing(s)...)
		s.MustAdd(all.resources()...)
		s.MustAdd(prompts()...)
		all.replicas = append(all.replicas, s)
	}
	return all.replicas
}
