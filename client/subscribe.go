package client

import (
	"context"
	"errors"
	"slices"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

// subscriptionOf finds the subscription that a notification belongs to.
func (conn *connection) subscriptionOf(m *protocol.Message, during *link.Message) *Subscription {
	if !conn.revision().Modern() {
		return nil
	}
	var c *call
	if raw := protocol.Lookup(m.Params, []string{"_meta", protocol.MetaSubscription}); raw != nil {
		if id, err := protocol.RawID(raw); err == nil {
			c = conn.callOf(id)
		}
	} else if during != nil {
		c = conn.callOf(during.ID)
	} else {
		return conn.client.onlyListener(m)
	}
	if c == nil {
		return nil
	}
	return c.subscription()
}

// onlyListener returns the one subscription that wants a notification whose
// server does not say which it is for, nil if there are none or more.
func (c *Client) onlyListener(m *protocol.Message) (one *Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.subs {
		if !wantsEvent(&s.wanted, m) {
			continue
		}
		if one != nil {
			return nil
		}
		one = s
	}
	return one
}

// legacyFn returns who among the subscriptions hears a notification of a legacy
// server.
func (c *Client) legacyFn(m *protocol.Message) func(Event) {
	var fns []func(Event)
	c.mu.Lock()
	for s := range c.subs {
		if s.fn != nil && wantsEvent(&s.wanted, m) {
			fns = append(fns, s.fn)
		}
	}
	c.mu.Unlock()
	switch len(fns) {
	case 0:
		return nil
	case 1:
		return fns[0]
	}
	return func(e Event) {
		for _, fn := range fns {
			fn(e)
		}
	}
}

func wantsEvent(f *protocol.SubscriptionFilter, m *protocol.Message) bool {
	switch m.Method {
	case protocol.MethodToolsChanged:
		return f.ToolsListChanged
	case protocol.MethodPromptsChanged:
		return f.PromptsListChanged
	case protocol.MethodResourcesChanged:
		return f.ResourcesListChanged
	case protocol.MethodResourceUpdated:
		return slices.Contains(f.ResourceSubscriptions, stringIn(m.Params, "uri"))
	}
	return false
}

// Subscribe asks to be told when a resource changes, until Unsubscribe. The
// notifications go to Options.OnNotification and to Events.
func (c *Client) Subscribe(ctx context.Context, uri string) error {
	c.mu.Lock()
	_, there := c.watched[uri]
	c.mu.Unlock()
	if there {
		return nil
	}
	s, err := c.Listen(ctx, protocol.SubscriptionFilter{ResourceSubscriptions: []string{uri}}, nil)
	if err != nil {
		return err
	}
	if !slices.Contains(s.Honoured().ResourceSubscriptions, uri) {
		_ = s.Close()
		return unsupported("subscribe "+uri, protocol.MethodListen, "the server does not tell of changes of this resource")
	}
	c.mu.Lock()
	twin := c.watched[uri]
	if twin == nil {
		c.watched[uri] = s
	}
	c.mu.Unlock()
	if twin != nil {
		return s.Close()
	}
	return nil
}

// Unsubscribe undoes Subscribe. A resource that was not subscribed to is
// ErrNotFound.
func (c *Client) Unsubscribe(_ context.Context, uri string) error {
	c.mu.Lock()
	s := c.watched[uri]
	delete(c.watched, uri)
	c.mu.Unlock()
	if s == nil {
		return &Error{Op: "unsubscribe " + uri, kind: ErrNotFound, Err: errors.New("not subscribed to")}
	}
	return s.Close()
}

// subscriptions returns those that live.
func (c *Client) subscriptions() []*Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Subscription, 0, len(c.subs))
	for s := range c.subs {
		list = append(list, s)
	}
	return list
}

// endSubscriptions ends all of them, because the client does not come back.
func (c *Client) endSubscriptions(err error) {
	for _, s := range c.subscriptions() {
		s.finish(err)
	}
}

// pauseSubscriptions is called when the connection was lost.
func (c *Client) pauseSubscriptions(err error, back bool) {
	if !back {
		c.endSubscriptions(&Error{Op: "listen", kind: ErrClosed, Err: err})
	}
}

// resubscribe opens the subscriptions on a new connection.
func (c *Client) resubscribe() {
	conn := c.conn.Load()
	if conn == nil {
		return
	}
	for _, s := range c.subscriptions() {
		if err := s.start(c.ctx, conn); err != nil && c.conn.Load() == conn {
			c.opts.Logger.Warn().Err(err).Str("server", c.server).Msg("a subscription was not opened again")
			s.finish(wrap("listen", protocol.MethodListen, "", err))
		}
	}
	// What changed meanwhile was not told.
	c.tools.stale()
	for _, method := range []string{protocol.MethodToolsList, protocol.MethodPromptsList, protocol.MethodResourcesList,
		protocol.MethodResourceTemplates, protocol.MethodResourcesRead} {
		c.opts.Cache.drop(c.server, method, "")
	}
}
