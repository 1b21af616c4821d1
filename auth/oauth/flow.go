package oauth

import (
	"context"
	"errors"
	"slices"
)

// need is why a new token is wanted.
type need struct {
	challenge challenge
	stale     *record // the token that does not do, if there was one
	since     uint64  // flights before the request that was refused
	anew      bool    // refreshing will not do
	force     bool    // nor will a token that another program has stored
}

// current returns the token to send, refreshed if it has to be. What it returns
// may be unusable, or nil: only a challenge tells how to get a token.
func (c *Client) current(ctx context.Context) (*record, error) {
	rec, err := c.stored(ctx)
	if err != nil || rec == nil || rec.usable() || rec.RefreshToken == "" {
		return rec, err
	}
	return c.fly(ctx, c.flown(), replaced(rec), func() (*record, error) {
		server, err := c.issuerMetadata(ctx, rec.Issuer)
		if err != nil {
			return nil, err
		}
		return c.refresh(ctx, server, rec)
	})
}

// renew replaces a token that the MCP server has refused, by refreshing it or
// by a new grant.
func (c *Client) renew(ctx context.Context, n need) (*record, error) {
	return c.fly(ctx, n.since, replaced(n.stale), func() (*record, error) { return c.authorize(ctx, n) })
}

func (c *Client) authorize(ctx context.Context, n need) (*record, error) {
	stored, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	previous := stored
	if previous == nil {
		previous = n.stale
	}
	if !n.force && stored.usable() && (n.stale == nil || stored.AccessToken != n.stale.AccessToken) {
		return stored, nil // another program has been quicker
	}
	auth, err := c.discover(ctx, n.challenge, previous.issuer())
	if err != nil {
		return nil, err
	}
	if stored != nil && stored.Issuer == auth.server.Issuer && stored.RefreshToken != "" && !n.anew {
		rec, err := c.refresh(ctx, auth.server, stored)
		if err != nil || rec.usable() {
			return rec, err
		}
	}
	return c.obtain(ctx, auth, c.selectScopes(auth, n.challenge.scope, previous), previous)
}

// stepUp gets a token with the scopes of the challenge on top of those that the
// client had.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#step-up-authorization-flow
func (c *Client) stepUp(ctx context.Context, n need) (*record, error) {
	enough := func(rec *record) bool {
		return rec != n.stale && rec.usable() && len(n.challenge.scope) > 0 && rec.Requested.covers(n.challenge.scope)
	}
	return c.fly(ctx, n.since, enough, func() (*record, error) {
		previous := c.newest()
		if previous == nil {
			previous = n.stale
		}
		auth, err := c.discover(ctx, n.challenge, previous.issuer())
		if err != nil {
			return nil, err
		}
		missing := n.challenge.scope
		if len(missing) == 0 {
			missing = auth.scopes
		}
		if previous.Requested.covers(missing) {
			return nil, &Error{Step: StepStepUp, URL: c.server.String(), Code: n.challenge.errorCode,
				Problem: "the MCP server demands the scopes " + printable(missing.String()) +
					", which the token was already asked for with; the authorization server did not grant them, or the MCP server does not see them"}
		}
		return c.obtain(ctx, auth, c.selectScopes(auth, missing, previous), previous)
	})
}

// obtain runs the grant and keeps what it gives.
func (c *Client) obtain(ctx context.Context, auth *authority, want scopes, previous *record) (*record, error) {
	key, err := c.dpopKey(auth, previous)
	if err != nil {
		return nil, err
	}
	grant := &grantRequest{client: c, authority: auth, scopes: want, key: key}
	token, err := c.opts.Grant.obtain(ctx, grant)
	if err != nil {
		return nil, err
	}
	rec, err := grant.record(token)
	if err != nil {
		return nil, err
	}
	rec.granted = true
	return rec, c.save(ctx, rec)
}

// selectScopes is the scopes to ask for: those of the challenge or else those
// that the resource lists, together with what was asked for and granted before.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-selection-strategy
func (c *Client) selectScopes(auth *authority, challenged scopes, previous *record) scopes {
	var want scopes
	if previous != nil {
		want = want.with(previous.Requested...).with(previous.Granted...).without(offlineAccess)
	}
	if len(challenged) > 0 {
		want = want.with(challenged...)
	} else if len(want) == 0 {
		want = want.with(auth.scopes...)
	}
	want = want.with(c.opts.Scopes...)
	if c.opts.Grant.interactive() && !c.opts.NoOfflineAccess && slices.Contains(auth.server.ScopesSupported, offlineAccess) {
		want = want.with(offlineAccess)
	}
	return want
}

// replaced says of a token that it is a usable one other than stale.
func replaced(stale *record) func(*record) bool {
	return func(rec *record) bool { return rec != stale && rec.usable() }
}

// flown is the number of flows that have ended.
func (c *Client) flown() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flights
}

// fly runs a flow unless the one that it waited for has done the work, or has
// failed at it: requests that are refused at the same time share one flow and
// its outcome. since is how many flows had ended when the request was sent.
func (c *Client) fly(ctx context.Context, since uint64, done func(*record) bool, run func() (*record, error)) (*record, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c.mu.Lock()
	newest, flights, failure := c.token, c.flights, c.failure
	c.mu.Unlock()
	if done(newest) {
		return newest, nil
	}
	if flights > since && failure != nil {
		return nil, failure
	}

	rec, err := run()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flights++
	if c.failure = err; err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			c.failure = nil // it was this caller who gave up; the next one may try
		}
		return nil, err
	}
	c.token, c.loaded = rec, true
	return rec, nil
}
