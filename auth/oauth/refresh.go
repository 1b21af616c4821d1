package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// refresh trades the refresh token for a new access token (RFC 6749, section
// 6), at the issuer that gave it. The store holds off other programs meanwhile:
// a refresh token that rotates is good for one use. If the grant has ended, it
// returns what is left, which is not usable, or nil if somebody has logged out.
func (c *Client) refresh(ctx context.Context, server *serverMetadata, rec *record) (*record, error) {
	client, err := c.clientOf(ctx, rec)
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
		if hasCode(err, "invalid_grant", "invalid_client", "unauthorized_client") {
			dropped = hasCode(err, "invalid_client", "unauthorized_client")
			fresh, err = stored.ended(), nil
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
		return fresh, c.forgetClient(ctx, rec.Issuer, rec.ClientID)
	}
	return fresh, nil
}

// ended is a token whose grant has ended. It stays, for its scopes to be asked
// for again, and for the MCP server to say so.
func (r *record) ended() *record {
	rest := *r
	rest.RefreshToken, rest.Expiry = "", time.Now().Add(-time.Second)
	return &rest
}

func (c *Client) refreshed(ctx context.Context, server *serverMetadata, client *Registration, old *record) (*record, error) {
	if client == nil || old.RefreshToken == "" {
		return nil, &Error{Step: StepToken, URL: server.TokenEndpoint, Code: "invalid_grant", Problem: "there is nothing to refresh with"}
	}
	token, err := c.requestToken(ctx, StepToken, server, client, old.key, url.Values{
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

// revoke tells the authorization server that the tokens have ended (RFC 7009).
func (c *Client) revoke(ctx context.Context, rec *record) error {
	server, err := c.issuerMetadata(ctx, rec.Issuer)
	if err != nil || server.RevocationEndpoint == "" {
		return err
	}
	client, err := c.clientOf(ctx, rec)
	if err != nil || client == nil {
		return err
	}
	// The refresh token comes first: with it an authorization server revokes
	// the whole grant.
	for _, each := range []struct{ token, hint string }{{rec.RefreshToken, "refresh_token"}, {rec.AccessToken, "access_token"}} {
		if each.token == "" {
			continue
		}
		if err := c.revokeOne(ctx, server, client, each.token, each.hint); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) revokeOne(ctx context.Context, server *serverMetadata, client *Registration, token, hint string) error {
	failed := func(e Error) error {
		e.Step, e.URL = StepRevocation, server.RevocationEndpoint
		return &e
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	methods := server.RevocationAuthMethods
	if len(methods) == 0 {
		methods = server.TokenAuthMethods
	}
	header := http.Header{}
	auth, err := c.authenticate(server, client, methods)
	if err != nil {
		return failed(Error{Err: err})
	}
	auth.apply(header, form)
	answer, err := c.outbound.Post(ctx, server.RevocationEndpoint, "application/x-www-form-urlencoded", header, []byte(form.Encode()))
	if err != nil {
		return failed(Error{Err: err})
	}
	if answer.Status == http.StatusOK {
		return nil
	}
	var e struct {
		Code string `json:"error"`
	}
	_ = json.Unmarshal(answer.Body, &e) // without an error code the status says enough
	if e.Code == "unsupported_token_type" {
		return nil // it lives for as long as it was issued for; nobody can change that
	}
	return failed(Error{Code: without([]string{token, auth.secret}, e.Code), Status: answer.Status, Problem: "the token may still be valid until it expires"})
}
