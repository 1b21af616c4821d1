package inspector

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/wire"
)

// The times of the subscription to changes of lists: how long lists wait for a server to agree to it, and the first
// and the greatest pause after it has ended.
const (
	agreeTime   = 2 * time.Second
	listenPause = time.Second
	listenRest  = 30 * time.Second
)

// changes says which lists of a connection have to be read again.
type changes struct {
	of    map[string]chan struct{} // by kind; has one if the list has changed
	rests atomic.Bool              // changes appear late, as the server ends each subscription
}

func newChanges() *changes {
	c := &changes{of: map[string]chan struct{}{}}
	for name := range kinds {
		c.of[name] = make(chan struct{}, 1)
	}
	return c
}

// all says that each list has changed.
func (c *changes) all() {
	for _, list := range c.of {
		signal(list)
	}
}

// listen subscribes to changes of lists, and calls ready when the server has answered. It subscribes again when
// a subscription has ended while the connection lives on, and has all lists read again then. The pause before
// grows unless a subscription lasts longer than it. A server without such notifications is not a failure.
func (c *changes) listen(ctx context.Context, to *client.Client, ready func()) {
	f, some := wire.ListChanges(to.Server().Capabilities)
	once := false
	for wait := listenPause; some; wait = min(2*wait, listenRest) {
		agreed, cancel := context.WithTimeout(ctx, agreeTime)
		s, err := to.Listen(agreed, f, nil) // OnNotification receives it
		cancel()
		if err != nil && !once {
			break
		}
		if !once {
			once = true
			ready()
		} else {
			c.rests.Store(wait == listenRest)
			c.all()
		}
		if err == nil && pause(ctx, wait, s.Done()) == nil {
			wait = listenPause
			if c.rests.Swap(false) {
				c.all() // whose notes go
			}
			select {
			case <-s.Done():
			case <-ctx.Done():
				return
			}
		}
		if to.State() == client.StateDisconnected || pause(ctx, wait, nil) != nil {
			return
		}
	}
	if !once {
		ready()
	}
}

// signal says that there is something to do; what is said twice is one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
