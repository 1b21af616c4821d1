package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/talaria-go/mcp/internal/clients/attend"
)

// need is why a new token is wanted, and which ways of getting one are
// excluded.
type need struct {
	challenge challenge
	stale     *record // the token that does not do, if there was one
	since     uint64  // flights before the request that was refused
	anew      bool    // refreshing will not do
	force     bool    // nor will a token that another program has stored
}

// current returns the token to send, refreshed if it has expired. The result
// may be nil or unusable: only a challenge tells how to get another token.
func (c *Client) current(ctx context.Context) (*record, error) {
	rec, err := c.stored(ctx)
	if err != nil || rec == nil || rec.usable() || rec.RefreshToken == "" {
		return rec, err
	}
	return c.fly(ctx, c.flown(), replaced(rec), func() (*record, error) {
		server, err := c.discovery.issuerMetadata(ctx, rec.Issuer)
		if err == nil {
			var fresh *record
			if fresh, err = c.refresh(ctx, server, rec); err == nil {
				return fresh, nil
			}
		}
		if errors.Is(err, attend.ErrUnauthorized) {
			return rec, nil // the challenge of the MCP server leads to a new login
		}
		return nil, err
	})
}

// renew replaces a token that the MCP server has refused, by refreshing it or
// by a new grant.
func (c *Client) renew(ctx context.Context, n need) (*record, error) {
	return c.fly(ctx, n.since, replaced(n.stale), func() (*record, error) { return c.authorize(ctx, n) })
}

// authorize is the flow of renew. In this order it takes a token that another
// program has stored in the meantime, refreshes the stored one, or runs the
// grant. c.flow is held.
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
	auth, err := c.discovery.discover(ctx, n.challenge, previous.issuer())
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

// stepUp gets a token with the scopes of the challenge in addition to those
// that the client had. If the previous token was asked for with these scopes
// already, another grant would not help, and it returns an error.
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
		auth, err := c.discovery.discover(ctx, n.challenge, previous.issuer())
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

// obtain runs the grant and stores the token. c.flow is held.
func (c *Client) obtain(ctx context.Context, auth *authority, want scopes, previous *record) (*record, error) {
	key, err := c.endpoints.dpopKey(auth, previous)
	if err != nil {
		return nil, err
	}
	grant := &grantRequest{client: c, authority: auth, scopes: want, key: key}
	rec, err := c.granted(ctx, grant)
	if err != nil && grant.shown && ctx.Err() == nil {
		err = afterAsking(err)
	}
	if grant.asked != nil {
		grant.asked(err)
	}
	return rec, err
}

// granted is obtain without what has to be done around asking the user.
func (c *Client) granted(ctx context.Context, grant *grantRequest) (*record, error) {
	token, err := c.opts.Grant.obtain(ctx, grant)
	if err != nil {
		return nil, err
	}
	rec, err := grant.record(token)
	if err != nil {
		return nil, err
	}
	rec.granted = true
	return rec, c.storage.save(ctx, rec)
}

// selectScopes returns the scopes to ask for: those of the challenge, or else
// those that the resource lists, together with what was asked for and granted
// before.
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

// flown returns the number of flows that have ended. A request notes it before
// it is sent, so that fly can tell whether a flow has ended since.
func (c *Client) flown() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flights
}

// fly runs a flow, unless the one that it waited for has done the work or has
// failed at it: requests that are refused at the same time share one flow and
// its outcome. since is the number of flows that had ended when the request was
// sent; done reports whether a token is good enough.
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

// refresh exchanges the refresh token for a new access token (RFC 6749, section
// 6), at the issuer that gave it. It runs inside Store.Update, which holds off
// other programs: a refresh token that rotates can be used once.
//
// If the grant has ended, it returns what is left of the record, which is not
// usable. It returns nil if the token was removed by a logout. c.flow is held.
func (c *Client) refresh(ctx context.Context, server *serverMetadata, rec *record) (*record, error) {
	client, err := c.registrar.clientOf(ctx, rec)
	if err != nil {
		return nil, err
	}
	var fresh *record
	var dropped bool
	err = c.opts.Store.Update(ctx, rec.binding().tokenKey(), func(old json.RawMessage) (json.RawMessage, error) {
		if old == nil {
			return nil, nil // logged out
		}
		var stored record
		if err := decode(old, &stored); err != nil {
			return nil, err
		}
		if err := stored.restore(); err != nil {
			return nil, err
		}
		if stored.AccessToken != rec.AccessToken && stored.usable() {
			fresh = &stored
			return old, nil
		}
		fresh, err = c.refreshed(ctx, server, client, &stored)
		switch {
		case hasCode(err, "invalid_grant", "invalid_client", "unauthorized_client"):
			dropped = hasCode(err, "invalid_client", "unauthorized_client")
			fresh, err = stored.ended(), nil
		case refused(err):
			// The request is refused, such as for its resource. Only a new login
			// helps, but nothing says that the refresh token has ended.
			fresh = stored.ended()
			return old, nil
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(fresh)
	})
	if err != nil {
		return nil, storeError(err)
	}
	if dropped {
		return fresh, c.storage.forgetClient(ctx, rec.Issuer, rec.ClientID)
	}
	return fresh, nil
}

// refreshed asks the token endpoint for a new access token and returns the
// record to store.
func (c *Client) refreshed(ctx context.Context, server *serverMetadata, client *Registration, old *record) (*record, error) {
	if client == nil || old.RefreshToken == "" {
		return nil, &Error{Step: StepToken, URL: server.TokenEndpoint, Code: "invalid_grant", Problem: "there is nothing to refresh with"}
	}
	token, err := c.endpoints.requestToken(ctx, StepToken, server, client, old.key, url.Values{
		"grant_type":    {"refresh_token"},
		"refresh_token": {old.RefreshToken},
		"resource":      {old.Resource},
	})
	if err != nil {
		return nil, err
	}
	grant := &grantRequest{
		client:    c,
		authority: &authority{resource: old.Resource, server: server},
		scopes:    old.Granted,
		key:       old.key,
		used:      client,
	}
	fresh, err := grant.record(token)
	if err != nil {
		return nil, err
	}
	fresh.Requested = old.Requested
	if fresh.RefreshToken == "" {
		fresh.RefreshToken = old.RefreshToken // it has not been rotated
	}
	return fresh, nil
}

// revoke revokes the tokens of a record at their issuer (RFC 7009), if that has
// an endpoint for it.
func (c *Client) revoke(ctx context.Context, rec *record) error {
	server, err := c.discovery.issuerMetadata(ctx, rec.Issuer)
	if err != nil || server.RevocationEndpoint == "" {
		return err
	}
	client, err := c.registrar.clientOf(ctx, rec)
	if err != nil || client == nil {
		return err
	}
	// The refresh token comes first: with it an authorization server revokes
	// the whole grant.
	for _, each := range []struct{ token, hint string }{{rec.RefreshToken, "refresh_token"}, {rec.AccessToken, "access_token"}} {
		if each.token == "" {
			continue
		}
		if err := c.endpoints.revokeOne(ctx, server, client, each.token, each.hint); err != nil {
			return err
		}
	}
	return nil
}

// stored returns the token in use, or nil. The first call asks the store.
func (c *Client) stored(ctx context.Context) (*record, error) {
	c.mu.Lock()
	rec, loaded := c.token, c.loaded
	c.mu.Unlock()
	if loaded {
		return rec, nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c.mu.Lock()
	rec, loaded = c.token, c.loaded
	c.mu.Unlock()
	if loaded {
		return rec, nil
	}
	if rec, err = c.load(ctx); err != nil {
		return nil, err
	}
	c.use(rec)
	return rec, nil
}

// load reads the token from the store; nil if there is none. If it equals the
// one in use, it returns that, so that callers can compare pointers.
func (c *Client) load(ctx context.Context) (*record, error) {
	var bound binding
	if found, err := c.storage.read(ctx, c.storage.serverKey(), &bound); err != nil || !found {
		return nil, err
	}
	var rec record
	if found, err := c.storage.read(ctx, bound.tokenKey(), &rec); err != nil || !found {
		return nil, err
	}
	if newest := c.newest(); newest != nil && newest.AccessToken == rec.AccessToken && newest.RefreshToken == rec.RefreshToken {
		return newest, nil
	}
	return &rec, rec.restore()
}

// forget removes a token from memory and from the store. c.flow is held.
func (c *Client) forget(ctx context.Context, rec *record) error {
	c.use(nil)
	return errors.Join(c.storage.write(ctx, rec.binding().tokenKey(), nil), c.storage.write(ctx, c.storage.serverKey(), nil))
}

// replaced returns a function that reports whether a token is usable and is not
// stale.
func replaced(stale *record) func(*record) bool {
	return func(rec *record) bool { return rec != stale && rec.usable() }
}
