package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/subscriptions"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// backend is a connection to the server behind.
type backend struct {
	*client.Client
	subs subscriptions.Set
	lost atomic.Pointer[error] // why it is not there, nil while it is
}

// backTime is how long a request waits for a connection that was lost.
const backTime = 10 * time.Second

// connect makes the connection of a session, which comes back however long the
// server behind is away.
func (p *Proxy) connect(ctx context.Context, session string) (*backend, error) {
	b := &backend{}
	o := &client.Options{Timeout: 30 * time.Second, MaxTimeout: -1, Roots: nil, Logger: p.opts.Logger, LaxCapabilities: true,
		Tasks:     client.TasksOff, // they end here: the proxy's own clients could not ask about them
		Reconnect: &client.Backoff{Attempts: -1}, OnState: b.state}
	o.OnNotification = func(e client.Notification) { p.tell(session, e) }
	if session == "" {
		// Clients of revisions without sessions answer in a later request; the
		// handlers are for the one client of older revisions.
		o.Elicit, o.ElicitURL, o.Sample = p.elicit, p.elicit, p.sample
	}
	var err error
	b.Client, err = p.opts.Connect(ctx, o)
	return b, err
}

// state keeps what became of the attempts to come back.
func (b *backend) state(state client.State, err error) {
	switch {
	case state == client.StateReady:
		b.lost.Store(nil)
	case err != nil:
		b.lost.Store(&err)
	}
}

// ready waits for a while if the connection is lost.
func (b *backend) ready(ctx context.Context) error {
	if b.Revision() != 0 {
		return nil
	}
	limited, stop := context.WithTimeout(ctx, backTime)
	defer stop()
	return b.explain(b.WaitReady(limited))
}

// explain returns why the connection is lost for an error that says that it
// does not come back in time.
func (b *backend) explain(err error) error {
	why := b.lost.Load()
	if why == nil || !errors.Is(err, client.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return *why
}

// capabilities are those of the server behind, without what ends here. While it
// is away they are what they were.
func (p *Proxy) capabilities() protocol.ServerCapabilities {
	var hello struct {
		Capabilities protocol.ServerCapabilities `json:"capabilities"`
	}
	raw := p.shared.Server().Raw
	p.mu.Lock()
	defer p.mu.Unlock()
	if raw != nil && json.Unmarshal(raw, &hello) == nil {
		p.offers = hello.Capabilities
		p.offers.Extensions, p.offers.Experimental = nil, nil
	}
	return p.offers
}

// upstream returns the connection that a request goes to.
func (p *Proxy) upstream(f *mcp.Frame) (*backend, error) {
	session := f.SessionID()
	p.mu.Lock()
	c := p.sessions[session]
	p.mu.Unlock()
	if p.opts.One || session == "" {
		c = p.shared
	}
	if c != nil {
		return c, c.ready(f)
	}
	c, err := p.connect(f, session)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	other := p.sessions[session]
	if other == nil && !p.closed {
		p.sessions[session] = c
	}
	closed := p.closed
	p.mu.Unlock()
	if other != nil || closed {
		err := c.Close() // another request of the session was faster
		if closed {
			return nil, errors.Join(client.ErrClosed, err)
		}
		return other, nil
	}
	return c, nil
}

// leave ends the connection of a session.
func (p *Proxy) leave(session string) {
	p.mu.Lock()
	c := p.sessions[session]
	delete(p.sessions, session)
	p.mu.Unlock()
	if c != nil {
		if err := c.Close(); err != nil {
			p.opts.Logger.Warn().Err(visible.Error(err)).Msg("closing a connection")
		}
	}
}
