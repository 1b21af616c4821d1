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
	sessions map[string]*opening
	closed   bool
}

// opening is the connection of a session, which its first request opens, while others
// wait.
type opening struct {
	done    chan struct{} // closed when the connection is open, or has failed
	backend *backend
	err     error
}

// of returns what a request goes to.
func (b *backends) of(f *mcp.Frame) (*backend, error) {
	session := f.SessionID()
	if b.one || session == "" {
		return b.shared, nil
	}
	for {
		b.mu.Lock()
		o := b.sessions[session]
		if o == nil && !b.closed {
			o = &opening{done: make(chan struct{})}
			b.sessions[session] = o
			b.mu.Unlock()
			return b.open(f, session, o)
		}
		b.mu.Unlock()
		if o == nil {
			return nil, client.ErrClosed
		}
		select {
		case <-o.done:
		case <-f.Done():
			return nil, context.Cause(f)
		}
		switch {
		case o.err == nil:
			return o.backend, nil
		case !errors.Is(o.err, context.Canceled) || f.Err() != nil:
			return nil, o.err
		}
		// The request that was to open it was cancelled.
	}
}

// open opens the connection of a session. One whose session has ended in the
// meantime is closed again.
func (b *backends) open(f *mcp.Frame, session string, o *opening) (*backend, error) {
	o.err = client.ErrClosed // if connect panics
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if o.err != nil && b.sessions[session] == o {
			delete(b.sessions, session)
		}
		close(o.done)
	}()
	c, err := b.connect(f, session)
	if err == nil {
		b.mu.Lock()
		if b.sessions[session] != o || f.Err() != nil {
			err = client.ErrClosed
		} else {
			o.backend, o.err = c, nil
		}
		b.mu.Unlock()
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	}
	o.err = err
	return nil, err
}

// opened calls do with the backend of each session, several at a time, and waits for
// those that are being opened.
func (b *backends) opened(ctx context.Context, do func(*backend)) {
	b.mu.Lock()
	list := slices.Collect(maps.Values(b.sessions))
	b.mu.Unlock()
	var doing sync.WaitGroup
	for _, o := range list {
		doing.Go(func() {
			select {
			case <-o.done:
				if o.err == nil {
					do(o.backend)
				}
			case <-ctx.Done():
			}
		})
	}
	doing.Wait()
}

// leave ends the connection of a session.
func (b *backends) leave(session string) error {
	b.mu.Lock()
	o := b.sessions[session]
	delete(b.sessions, session)
	var c *backend
	if o != nil {
		c = o.backend
	}
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
	list := []*backend{b.shared}
	for _, o := range b.sessions {
		if o.backend != nil { // else open closes it
			list = append(list, o.backend)
		}
	}
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
