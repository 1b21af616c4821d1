package oauth

import (
	"context"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// Grant is a way to get tokens: AuthorizationCode, ClientCredentials,
// EnterpriseManaged or WorkloadIdentity. The interface is sealed: what a grant
// has to observe is more than its methods say.
type Grant interface {
	// check says what is wrong with the fields.
	check() error
	// kind names the grant in the store.
	kind() string
	// interactive says whether the user takes part.
	interactive() bool
	// trusts lists URLs that the user has named.
	trusts() []*url.URL
	obtain(ctx context.Context, r *grantRequest) (*oauth2.Token, error)
}

// grantRequest is one request for a token.
type grantRequest struct {
	client    *Client
	authority *authority
	scopes    scopes
	key       *dpopKey      // to bind the token to; nil if it is not bound
	used      *Registration // set by ask
}

// ask sends a grant to the token endpoint.
func (r *grantRequest) ask(ctx context.Context, client *Registration, form url.Values) (*oauth2.Token, error) {
	r.used = client
	form.Set("resource", r.authority.resource)
	return r.client.endpoints.requestToken(ctx, StepToken, r.authority.server, client, r.key, form)
}

// scoped adds the scope parameter, if there is anything to ask for.
func (r *grantRequest) scoped(form url.Values) url.Values {
	if len(r.scopes) > 0 {
		form.Set("scope", r.scopes.String())
	}
	return form
}

// sendable tells whether a token can be sent in a header, and as one word.
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' })
}

// record checks what the token endpoint has given and makes it something to
// keep.
func (r *grantRequest) record(token *oauth2.Token) (*record, error) {
	failed := func(problem string) error {
		return &Error{Step: StepToken, URL: r.authority.server.TokenEndpoint, Problem: problem}
	}
	rec := &record{
		Issuer: r.authority.server.Issuer, Resource: r.authority.resource, ClientID: r.used.ClientID, Grant: r.client.opts.Grant.kind(),
		AccessToken: token.AccessToken, RefreshToken: token.RefreshToken, Expiry: early(token.Expiry),
		Requested: r.scopes, Granted: r.scopes, key: r.key,
	}
	switch {
	case strings.EqualFold(token.TokenType, tokenTypeBearer) && r.key == nil:
		rec.TokenType = tokenTypeBearer
	case strings.EqualFold(token.TokenType, tokenTypeDPoP) && r.key != nil:
		rec.TokenType = tokenTypeDPoP
	case r.key != nil:
		return nil, failed("the token was to be bound by DPoP, but its type is " + printable(token.TokenType))
	default:
		return nil, failed("the type of the token is " + printable(token.TokenType) + ", not Bearer")
	}
	if !sendable(token.AccessToken) {
		return nil, failed("the access token has characters that no header may have")
	}
	if given, ok := token.Extra("scope").(string); ok && given != "" {
		granted, err := parseScopes(given)
		if err != nil {
			return nil, failed(err.Error())
		}
		rec.Granted = granted
	}
	if r.key != nil {
		var err error
		if rec.Key, err = r.key.marshal(); err != nil {
			return nil, failed("the DPoP key cannot be kept")
		}
	}
	return rec, nil
}
