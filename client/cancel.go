package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/talaria-go/mcp/protocol"
)

// Cancel gives up a request under way: its caller gets ErrCancelled with the
// reason, and the server is told. An id that is not under way is ErrNotFound.
func (c *Client) Cancel(id protocol.ID, reason string) error {
	for _, p := range c.Pending() {
		if p.ID == id {
			if c.cancelCalls(reason, func(q *call) bool { return protocol.IntID(q.id) == id }) != nil {
				return nil
			}
		}
	}
	return &Error{Op: "cancel", kind: ErrNotFound, Err: fmt.Errorf("no request %v is under way", id)}
}

// CancelAll gives up every request under way and returns them.
func (c *Client) CancelAll(reason string) []Pending {
	return c.cancelCalls(reason, func(*call) bool { return true })
}

func (c *Client) cancelCalls(reason string, match func(*call) bool) []Pending {
	failure := &Error{kind: ErrCancelled, Err: errors.New(cmp.Or(reason, "cancelled by the client"))}
	c.calls.mu.Lock()
	ended := map[int64]*call{}
	for id, p := range c.calls.table {
		if match(p) {
			delete(c.calls.table, id)
			c.calls.stats.Cancelled++
			p.err = failure
			close(p.done)
			ended[id] = p
		}
	}
	list := pendingOf(ended)
	c.calls.mu.Unlock()
	for _, p := range ended {
		if p.abort != nil {
			p.abort(failure)
		}
		if p.conn.cancels(p.method) {
			p.conn.sendSoon(protocol.MethodCancelled, cancelledBody(p.id, reason))
		}
	}
	return list
}

// pendingOf lists calls, oldest first.
func pendingOf(table map[int64]*call) []Pending {
	list := make([]Pending, 0, len(table))
	ids := make([]int64, 0, len(table))
	for id := range table {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		list = append(list, table[id].pending())
	}
	return list
}
