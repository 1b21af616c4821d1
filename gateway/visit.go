package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// visitKey is the context key of the visit of a request.
type visitKey struct{ *Gateway }

// visit has the connections that one request uses: each is found once, and held until the
// request ends.
type visit struct {
	pool *pool

	mu      sync.Mutex
	ended   bool
	uses    []*use
	renewed []*upstream // of which another connection was opened
}

// use is a connection for a request, or the error for which there is none.
type use struct {
	upstream *upstream
	done     chan struct{} // closed when the rest is known
	c        *connection
	err      error
}

// visitOf returns the visit of the request of f; nil if it has not passed the middleware.
func (g *Gateway) visitOf(f *mcp.Frame) *visit {
	v, _ := f.Value(visitKey{g}).(*visit)
	return v
}

// middleware finds the connections for what a request names before the server does.
func (g *Gateway) middleware(next mcp.Handler) mcp.Handler {
	return func(f *mcp.Frame) (protocol.Result, error) {
		switch f.Request().Method {
		case protocol.MethodToolsList, protocol.MethodPromptsList, protocol.MethodResourcesList, protocol.MethodResourceTemplates,
			protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead, protocol.MethodComplete,
			protocol.MethodSubscribe, protocol.MethodUnsubscribe, protocol.MethodListen, protocol.MethodSetLevel, protocol.MethodRootsChanged:
		default:
			return next(f)
		}
		v := g.visitOf(f)
		if v == nil { // else it is a call within a request
			v = &visit{pool: &g.pool}
			f = f.WithContext(context.WithValue(f, visitKey{g}, v))
			defer v.end()
		}
		return g.visited(f, v, next)
	}
}

// visited serves a request that has a visit.
func (g *Gateway) visited(f *mcp.Frame, v *visit, next mcp.Handler) (protocol.Result, error) {
	request := f.Request()
	switch request.Method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet:
		kind := registry.KindTool
		if request.Method == protocol.MethodPromptsGet {
			kind = registry.KindPrompt
		}
		u := g.owner(request.Params.Name)
		if u == nil {
			break
		}
		// Its name may be known to the caller by another replica only, or be as new as a
		// notification.
		at := place{kind, request.Params.Name}
		c, err := u.ready(f)
		if err != nil && !g.publisher.has(at) {
			return u.failed(f, err)
		}
		if err == nil && c.catalog.Load().items[at] == nil {
			settle(f, c)
		}
	case protocol.MethodResourcesRead:
		all := g.publisher.of(request.Params.Name)
		if len(all) == 0 {
			g.open(f, v)
			break
		}
		if _, err := all[0].upstream.ready(f); err != nil {
			return all[0].upstream.failed(f, err)
		}
	case protocol.MethodComplete, protocol.MethodToolsList, protocol.MethodPromptsList, protocol.MethodResourcesList, protocol.MethodResourceTemplates:
		g.open(f, v)
	case protocol.MethodSubscribe, protocol.MethodListen:
		return g.subscribe(f, next)
	case protocol.MethodUnsubscribe, protocol.MethodSetLevel, protocol.MethodRootsChanged:
		result, err := next(f)
		if err == nil || request.Method == protocol.MethodRootsChanged { // which a server need not handle
			g.pass(f)
		}
		return result, err
	}
	return next(f)
}

// open opens the connections to all upstreams, and waits for those that have not listed.
func (g *Gateway) open(f *mcp.Frame, v *visit) {
	all := g.all()
	found := make(chan struct{}, len(all))
	waits := 0
	for _, u := range all {
		if u.For == nil && (u.era.Load() != eraUnknown || u.list == nil || u.Shared) {
			_, _ = v.connection(f, u, true) // it does not wait; the error is that of a later use
			continue
		}
		if g.spawn(func() {
			_, _ = v.connection(f, u, true) // the error is that of a later use
			found <- struct{}{}
		}) {
			waits++
		}
	}
	gather(f, found, waits)
	var listed []*connection
	for _, u := range all {
		if c, err := v.connection(f, u, false); err == nil {
			c.waitOpening(f)
			if c.catalog.Load() == nil {
				c.late.Store(true)
			} else {
				listed = append(listed, c)
			}
		}
	}
	settle(f, listed...)
}

// gather receives n values, for listWait at most.
func gather(ctx context.Context, values <-chan struct{}, n int) {
	late := time.NewTimer(listWait)
	defer late.Stop()
	for range n {
		select {
		case <-values:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// connection returns the connection to u for the request. If another goroutine looks for
// it, only a patient caller waits.
func (v *visit) connection(f *mcp.Frame, u *upstream, patient bool) (*connection, error) {
	v.mu.Lock()
	at := slices.IndexFunc(v.uses, func(one *use) bool { return one.upstream == u })
	if at >= 0 {
		one := v.uses[at]
		v.mu.Unlock()
		select {
		case <-one.done:
			return one.c, one.err
		default:
		}
		if !patient {
			return nil, errOpening
		}
		select {
		case <-one.done:
			return one.c, one.err
		case <-f.Done():
			return nil, context.Cause(f)
		}
	}
	one := &use{upstream: u, done: make(chan struct{}), err: errOpening}
	v.uses = append(v.uses, one)
	v.mu.Unlock()
	c, err := u.open(f)
	v.mu.Lock()
	defer v.mu.Unlock()
	one.c, one.err = c, err
	close(one.done)
	if v.ended && err == nil {
		v.pool.release(c)
	}
	return c, err
}

// renew drops a connection with which err was the end, once for each upstream, and reports
// whether the request finds another one now.
func (v *visit) renew(u *upstream, err error) bool {
	if v == nil || !errors.Is(err, errEra) && (u.For == nil || !errors.Is(err, client.ErrUnauthorized)) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	at := slices.IndexFunc(v.uses, func(one *use) bool { return one.upstream == u && one.c != nil })
	if at < 0 || slices.Contains(v.renewed, u) {
		return false
	}
	v.pool.drop(v.uses[at].c, true)
	v.pool.release(v.uses[at].c)
	v.uses, v.renewed = slices.Delete(v.uses, at, at+1), append(v.renewed, u)
	return true
}

// end gives all connections back.
func (v *visit) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	for _, one := range v.uses {
		if one.c != nil {
			v.pool.release(one.c)
		}
	}
}

// pass makes a request of a session at all its connections that it concerns, and waits for
// that, for listWait at most: the next call of the session comes to the upstreams after it.
func (g *Gateway) pass(f *mcp.Frame) {
	x := internal.Session(f)
	if x == nil {
		return
	}
	level, request := x.LogLevel(), f.Request()
	uri := uriOf(request.Params.Raw) // of MethodUnsubscribe
	var all []*connection
	g.pool.session(f.SessionID(), func(c *connection) {
		if request.Method != protocol.MethodUnsubscribe || slices.Contains(c.watched.Wanted(), uri) {
			all = append(all, c)
		}
	})
	passed, waits := make(chan struct{}, len(all)), 0
	for _, c := range all {
		if g.spawn(func() {
			defer func() { passed <- struct{}{} }()
			switch request.Method {
			case protocol.MethodUnsubscribe:
				c.refused("ending a subscription", c.watched.Remove(uri))
			case protocol.MethodSetLevel:
				c.level.Store(uint32(level)) // for one that has not listed
				c.setLevel(level)
			case protocol.MethodRootsChanged:
				c.tell("a change of roots", func(ctx context.Context, cl *client.Client) error {
					return cl.Notify(ctx, protocol.MethodRootsChanged, nil)
				})
			}
		}) {
			waits++
		}
	}
	gather(f, passed, waits)
}

// uriOf returns the URI in params; "" if there is none.
func uriOf(params []byte) string {
	var p struct {
		URI string `json:"uri"`
	}
	if jsonx.Unmarshal(params, &p) != nil {
		return ""
	}
	return p.URI
}

// maxWatched is the number of resources of an upstream whose changes reach clients. Clients
// do not always say when they stop, so that the oldest make room.
const maxWatched = 1000

// subscribe subscribes to resources at their upstreams.
func (g *Gateway) subscribe(f *mcp.Frame, next mcp.Handler) (protocol.Result, error) {
	request := f.Request()
	var wanted []string
	if request.Method == protocol.MethodListen {
		var filter protocol.SubscriptionFilter
		if wire.ScanFilter(request.Params.Raw, maxWatched, &filter) == nil {
			wanted = filter.ResourceSubscriptions
		}
	} else {
		wanted = []string{uriOf(request.Params.Raw)}
	}
	for _, uri := range wanted {
		if len(uri) > wire.MaxURI {
			continue
		}
		for _, one := range g.publisher.of(uri) {
			u := one.upstream
			it, c, err := u.find(f, one.at, true)
			if err == nil && it == nil {
				continue // it is not there for this client
			}
			if c == nil {
				c = u.list
			}
			if c != nil {
				err = c.watch(f, uri)
			}
			if err != nil && !errors.Is(err, client.ErrUnsupported) {
				safely.Log(g.log.Debug().Str("server", u.name).Err(visible.Error(err)), "subscribing at an upstream failed")
			}
			break
		}
	}
	return next(f)
}
