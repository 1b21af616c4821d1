package mcp

import "sync"

// connections counts the connections of a server that have a link of their
// own, other than standard input and output, and tells them when to end.
type connections struct {
	max  int
	down chan struct{} // closed when the server shuts down

	mu   sync.Mutex
	open int
	once sync.Once
}

// DefaultMaxConnections is how many connections a Server has at a time if
// Options name no limit.
const DefaultMaxConnections = 10_000

func newConnections(max int) *connections {
	if max <= 0 {
		max = DefaultMaxConnections
	}
	return &connections{max: max, down: make(chan struct{})}
}

// enter counts one more, unless there are as many as allowed. leave must be
// called when it has ended.
func (c *connections) enter() (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.max {
		return nil, false
	}
	c.open++
	return c.leave, true
}

func (c *connections) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
}

// shutdown tells every connection to end.
func (c *connections) shutdown() { c.once.Do(func() { close(c.down) }) }

// isDown tells whether the server shuts down.
func (c *connections) isDown() bool {
	select {
	case <-c.down:
		return true
	default:
		return false
	}
}
