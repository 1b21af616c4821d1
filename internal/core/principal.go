package core

import "context"

// Grant is who requests come from, made once for all requests with one token. It
// does not change.
type Grant struct {
	Name string
	// Identity is the *frame.Identity, nil for an anonymous client.
	Identity any
	// Challenge says how a request that lacks scopes is answered over HTTP: status
	// and the value of WWW-Authenticate. scopes are all that the operation needs.
	// nil stands for a plain one.
	Challenge func(scopes []string) (status int, header string)
}

// grantKey is that of a string or of a *Grant: what is looked up for each request is
// in one place.
type grantKey struct{}

// WithPrincipal returns a context whose requests belong to the principal with that name,
// of which no more is known.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, grantKey{}, name)
}

// WithGrant returns a context whose requests have the identity of g.
func WithGrant(ctx context.Context, g *Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// Principal returns the name of the principal of requests with ctx.
func Principal(ctx context.Context) string { return GrantOf(ctx).Name }

// GrantOf returns what WithGrant put into ctx, or the name that WithPrincipal did; the zero
// Grant if that is nothing.
func GrantOf(ctx context.Context) Grant {
	switch who := ctx.Value(grantKey{}).(type) {
	case string:
		return Grant{Name: who}
	case *Grant:
		return *who
	}
	return Grant{}
}
