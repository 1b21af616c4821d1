package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

// backends are the connections to the server behind: what a session does is its
// own, and clients without one share a connection.
type backends struct {
	connect func(ctx context.Context, session string) (*backend, error)
	one     bool // there is one client, for which the shared connection is enough
	shared  *backend

	mu       sync.Mutex
	sessions map[string]*backend
	closed   bool
}

// of returns the connection that a request goes to.
func (b *backends) of(f *mcp.Frame) (*backend, error) {
	session := f.SessionID()
	b.mu.Lock()
	c := b.sessions[session]
	b.mu.Unlock()
	if b.one || session == "" {
		c = b.shared
	}
	if c != nil {
		return c, c.ready(f)
	}
	c, err := b.connect(f, session)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	other := b.sessions[session]
	if other == nil && !b.closed {
		b.sessions[session] = c
	}
	closed := b.closed
	b.mu.Unlock()
	switch {
	case closed:
		return nil, errors.Join(client.ErrClosed, c.Close())
	case other != nil: // another request of the session was faster
		_ = c.Close() // nobody has used it
		return other, nil
	}
	return c, nil
}

// leave ends the connection of a session.
func (b *backends) leave(session string) error {
	b.mu.Lock()
	c := b.sessions[session]
	delete(b.sessions, session)
	b.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Close()
}

// close ends all of them.
func (b *backends) close() error {
	b.mu.Lock()
	b.closed = true
	list := append(slices.Collect(maps.Values(b.sessions)), b.shared)
	clear(b.sessions)
	b.mu.Unlock()
	faults := make([]error, len(list))
	var closing sync.WaitGroup
	for i, c := range list {
		closing.Go(func() { faults[i] = c.Close() })
	}
	closing.Wait()
	return errors.Join(faults...)
}
