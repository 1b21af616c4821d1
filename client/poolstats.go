package client

import "slices"

// PoolStats count what a pool does.
type PoolStats struct {
	Size        int   // connections, ready or not
	Ready       int   // those that calls may go to
	InFlight    int64 // calls under way
	Waiting     int64 // callers that wait for a connection
	Requests    int64 // calls that went to one of these connections
	Failed      int64 // those that failed
	Connections []PoolConnStats
}

// PoolConnStats are those of one connection.
type PoolConnStats struct {
	ID       int
	Server   string // what the transport calls the server
	Ready    bool
	InFlight int64
	Requests int64
	Failed   int64
	Opened   int64 // how often; more than once means that it was replaced
	Err      error // why it is not ready, or nil
}

// Stats returns what the connections of the pool did so far, in the order in
// which they were added.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	members := slices.Clone(p.members)
	p.mu.Unlock()
	stats := PoolStats{Size: len(members), Waiting: p.waiting.Load()}
	for _, m := range members {
		c := PoolConnStats{
			ID: m.id, Server: m.transport.String(), InFlight: m.inFlight.Load(), Requests: m.requests.Load(), Failed: m.failed.Load(),
		}
		var now *Client
		now, c.Opened, c.Err = m.now()
		c.Ready = now != nil
		stats.Connections = append(stats.Connections, c)
		stats.InFlight += c.InFlight
		stats.Requests += c.Requests
		stats.Failed += c.Failed
		if c.Ready {
			stats.Ready++
		}
	}
	return stats
}
