// Package principal puts into contexts who requests come from, and finds it
// there. It is its own package because the transports need no more of it than
// the name, and package frame, which knows what an identity is, lies above.
//
// The name is what a server binds to a client what it keeps for it; see
// frame.Identity.Principal. "" is an anonymous client.
package principal

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

// key is that of a string or of a *Grant: what is looked up for each request is
// in one place.
type key struct{}

// With returns a context whose requests belong to the principal with that name,
// of which no more is known.
func With(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, key{}, name)
}

// WithGrant returns a context whose requests have the identity of g.
func WithGrant(ctx context.Context, g *Grant) context.Context {
	return context.WithValue(ctx, key{}, g)
}

// Of returns the name of the principal of requests with ctx.
func Of(ctx context.Context) string { return Granted(ctx).Name }

// Granted returns what WithGrant put into ctx, or the name that With did; the zero
// Grant if that is nothing.
func Granted(ctx context.Context) Grant {
	switch who := ctx.Value(key{}).(type) {
	case string:
		return Grant{Name: who}
	case *Grant:
		return *who
	}
	return Grant{}
}
