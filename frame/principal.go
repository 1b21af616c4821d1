package frame

import "context"

// principalKey is of a string or of a *Grant: what is looked up for each
// request is in one place.
type principalKey struct{}

// WithPrincipal returns a context whose requests belong to principal, the name
// of who was authenticated. It is for net/http middleware in front of the
// server; what a server keeps for a client is bound to it. WithIdentity says
// more, and takes the place of the name.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, principalKey{}, principal)
}

// PrincipalOf returns who was authenticated, as WithPrincipal or WithIdentity
// put it into ctx; "" for an anonymous client.
func PrincipalOf(ctx context.Context) string {
	switch who := ctx.Value(principalKey{}).(type) {
	case string:
		return who
	case *Grant:
		return who.principal
	}
	return ""
}

// Principal returns who was authenticated, "" for an anonymous client. Two
// clients have the same principal only if they are the same subject of the same
// issuer.
func (f *Frame) Principal() string { return PrincipalOf(f.ctx) }
