package mcp

import (
	"sync"

	"github.com/talaria-go/mcp/internal/share"
)

// connections counts the connections of a server that have a link of their
// own, other than standard input and output, and tells them when to end.
type connections struct {
	all  *share.Shares
	down chan struct{} // closed when the server shuts down
	last chan struct{} // closed when there are no tasks either that a connection could ask for

	once sync.Once // of down
	done sync.Once // of last
}

func newConnections(max, own int) *connections {
	return &connections{all: share.New("connections", max, own), down: make(chan struct{}), last: make(chan struct{})}
}

// enter counts one more of a principal, unless there are as many as allowed:
// the error says so to the client. leave must be called when it has ended.
func (c *connections) enter(principal string) (leave func(), err error) {
	if err := c.all.Take(principal, 1); err != nil {
		return nil, err
	}
	return func() { c.all.Give(principal, 1) }, nil
}

// shutdown tells every connection to end that cannot have tasks.
func (c *connections) shutdown() { c.once.Do(func() { close(c.down) }) }

// finish tells every connection to end.
func (c *connections) finish() { c.done.Do(func() { close(c.last) }) }

// isDown tells whether the server shuts down.
func (c *connections) isDown() bool {
	select {
	case <-c.down:
		return true
	default:
		return false
	}
}
